"""The engine: one step after another, with pause, resume, stop, events and the journal."""
