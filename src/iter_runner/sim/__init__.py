"""The embedded workcell: a world, a controller, and the face of a real driver."""
