"""Runs human-robot interaction studies on a robot arm."""
