"""Runs one plan again and again, planner by planner, and compares the motions."""
