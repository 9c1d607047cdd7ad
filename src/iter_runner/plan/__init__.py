"""The plan language: loading, expanding, checking and building task plans."""
