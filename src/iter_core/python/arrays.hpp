// Arrays of doubles between Python and C++ over the buffer protocol, whatever the numpy release.
#pragma once

#include <pybind11/pybind11.h>

#include <initializer_list>
#include <string>
#include <vector>

namespace iter_core {

namespace py = pybind11;

// A C-contiguous view of doubles; anything else is converted by numpy first.
class Input {
 public:
  // shape: -1 takes any length there. `name` is for the message of the ValueError that another shape raises.
  Input(py::handle object, std::initializer_list<Py_ssize_t> shape, const char* name);
  ~Input();
  Input(const Input&) = delete;
  Input& operator=(const Input&) = delete;
  const double* data() const { return static_cast<const double*>(view_.buf); }
  Py_ssize_t length(int dimension) const { return view_.shape[dimension]; }

 private:
  py::object owner_;
  Py_buffer view_{};
};

// A new numpy array, and where to write it.
struct Output {
  py::object array;
  void* data;
  double* doubles() const { return static_cast<double*>(data); }
};
Output empty(py::object shape);
Output empty_bool(py::object shape);

}  // namespace iter_core
