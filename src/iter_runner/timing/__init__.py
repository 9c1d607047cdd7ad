"""Events in, intervals and metrics of robot attention demand out."""
