"""The table of robots, and the arm and gripper as the rest of the system sees them."""
