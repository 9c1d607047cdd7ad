"""Sources of button presses: each stamps a press when it happens and hands it on. No ROS in here."""
