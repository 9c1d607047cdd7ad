"""A pose in, a motion done: one module a planner."""
