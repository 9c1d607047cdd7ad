"""Stands in for moveit_msgs where MoveIt is not installed: what the planner uses of it, with the real fields."""
