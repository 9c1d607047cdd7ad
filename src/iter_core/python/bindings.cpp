#include <pybind11/pybind11.h>

PYBIND11_MODULE(iter_core, module) {
  module.doc() = "Chains, inverse kinematics and distances for robot arms.";
}
