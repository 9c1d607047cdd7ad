#include "arrays.hpp"

namespace iter_core {

namespace {

// The numpy functions are looked up once and live as long as the interpreter.
const py::object& numpy(const char* name) {
  static const py::object* empty_function = new py::object(py::module::import("numpy").attr("empty"));
  static const py::object* contiguous = new py::object(py::module::import("numpy").attr("ascontiguousarray"));
  return name[0] == 'e' ? *empty_function : *contiguous;
}

Output writable(py::object array) {
  Py_buffer view;
  if (PyObject_GetBuffer(array.ptr(), &view, PyBUF_WRITABLE | PyBUF_C_CONTIGUOUS) != 0) throw py::error_already_set();
  void* data = view.buf;
  PyBuffer_Release(&view);  // the array keeps its memory
  return {std::move(array), data};
}

}  // namespace

Input::Input(py::handle object, std::initializer_list<Py_ssize_t> shape, const char* name) {
  const auto acquire = [&](py::handle from) {
    if (!PyObject_CheckBuffer(from.ptr())) return false;
    if (PyObject_GetBuffer(from.ptr(), &view_, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
      PyErr_Clear();
      return false;
    }
    if (view_.format != nullptr && std::string(view_.format) == "d") return true;
    PyBuffer_Release(&view_);
    return false;
  };
  if (!acquire(object)) {
    owner_ = numpy("ascontiguousarray")(object, "float64");
    if (!acquire(owner_)) throw py::type_error(std::string(name) + " is not an array of numbers");
  }
  bool fits = view_.ndim == static_cast<int>(shape.size());
  for (int i = 0; fits && i < view_.ndim; ++i) {
    const Py_ssize_t expected = shape.begin()[i];
    fits = expected < 0 || expected == view_.shape[i];
  }
  if (!fits) {
    std::string found, expected;
    for (int i = 0; i < view_.ndim; ++i) found += (i ? ", " : "") + std::to_string(view_.shape[i]);
    for (size_t i = 0; i < shape.size(); ++i) {
      expected += (i ? ", " : "") + (shape.begin()[i] < 0 ? std::string("N") : std::to_string(shape.begin()[i]));
    }
    PyBuffer_Release(&view_);
    view_ = Py_buffer{};
    throw py::value_error(std::string(name) + " has shape (" + found + "), expected (" + expected + ")");
  }
}

Input::~Input() {
  if (view_.obj != nullptr) PyBuffer_Release(&view_);
}

Output empty(py::object shape) { return writable(numpy("empty")(shape)); }

Output empty_bool(py::object shape) {
  static const py::object* boolean =
      new py::object(py::reinterpret_borrow<py::object>(reinterpret_cast<PyObject*>(&PyBool_Type)));
  return writable(numpy("empty")(shape, *boolean));
}

}  // namespace iter_core
