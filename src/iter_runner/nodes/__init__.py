"""ROS nodes, one module each: wiring only."""
