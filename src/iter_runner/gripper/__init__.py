"""The Robotiq 2F-85 on its own cable or behind a UR controller, and emulated ones; no ROS in here."""
