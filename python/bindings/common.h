// Shared by the binding's files. Raw CPython: an op call must cost nanoseconds.
#pragma once

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <cxxabi.h>
#include <structmember.h>  // needs Python.h in front
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "oar/base/error.h"
#include "oar/tensor/value.h"

namespace oar {
class Op;
}

namespace oar::python {

// An owned reference.
class Ref {
 public:
  Ref() = default;
  explicit Ref(PyObject* object) : object_(object) {}  // takes over
  static Ref borrow(PyObject* object) {
    Py_XINCREF(object);
    return Ref(object);
  }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { Py_XDECREF(object_); }
  PyObject* get() const { return object_; }
  PyObject* release() { return std::exchange(object_, nullptr); }
  explicit operator bool() const { return object_ != nullptr; }

 private:
  PyObject* object_ = nullptr;
};

// Thrown when a Python exception is already set; `guarded` passes it on.
struct PythonError {};
inline Ref checked(PyObject* object) {
  if (!object) throw PythonError{};
  return Ref(object);
}
inline void check(int status) {
  if (status < 0) throw PythonError{};
}

// Sets the Python exception for the C++ exception being handled.
void set_python_error();
// Inside a handler: adds a note to the error, if it is a Python exception.
void add_note(const char* text);

// Runs the body; a C++ exception becomes a Python one and null.
template <class F>
PyObject* guarded(F&& body) noexcept {
  try {
    return body();
  } catch (...) {
    set_python_error();
    return nullptr;
  }
}
template <class F>
int guarded_int(F&& body) noexcept {
  try {
    return body();
  } catch (...) {
    set_python_error();
    return -1;
  }
}

// At exit Python ends the other threads within its locking calls, by unwinding their stacks. C++ frames
// with destructors do not survive that, so such a thread sleeps until the process ends.
template <class F>
auto unless_exiting(F&& lock) {
#if defined(__GLIBCXX__)
  try {
    return lock();
  } catch (abi::__forced_unwind&) {
    for (;;) pause();
  }
#else
  return lock();
#endif
}

class GilRelease {
 public:
  GilRelease() : state_(PyEval_SaveThread()) {}
  ~GilRelease() {
    unless_exiting([&] { PyEval_RestoreThread(state_); });
  }
  GilRelease(const GilRelease&) = delete;
  GilRelease& operator=(const GilRelease&) = delete;

 private:
  PyThreadState* state_;
};
class GilHold {
 public:
  GilHold() : state_(unless_exiting(PyGILState_Ensure)) {}
  ~GilHold() { PyGILState_Release(state_); }
  GilHold(const GilHold&) = delete;
  GilHold& operator=(const GilHold&) = delete;

 private:
  PyGILState_STATE state_;
};

// A callable held by C++; copies share it, and the last one takes the GIL to release it.
class Callable {
 public:
  explicit Callable(PyObject* object);
  PyObject* get() const { return object_.get(); }

 private:
  std::shared_ptr<PyObject> object_;
};

// A Python exception as a C++ one and back, for errors that cross native code (hooks, captures).
[[noreturn]] void throw_python_error();

// ---- tensor_type.cpp
bool is_tensor(PyObject* object);
PyTypeObject* tensor_type();
// The tensor of a Python object; borrowed.
const Tensor& tensor_of(PyObject* object);
PyObject* wrap(Tensor t);  // new reference; None for undefined
PyObject* wrap_list(TensorList list);
PyObject* wrap_tuple(TensorList list);
std::vector<Tensor> tensors_of(PyObject* sequence, bool allow_none = false);
void init_tensor_type(PyObject* module);

// ---- dtype_type.cpp
PyObject* wrap_dtype(DType t);                // new reference
bool to_dtype(PyObject* object, DType* out);  // dtype, name, NumPy dtype or Python type
void init_errors(PyObject* module);
void init_dtype_type(PyObject* module);
const std::string& library_name();  // as the user imported it: oar or paddle

// ---- convert.cpp
bool is_number(PyObject* object);
Scalar to_scalar(PyObject* object);
// A literal that takes the dtype of the other operand.
Tensor weak_scalar(PyObject* object);
// Anything array-like: numbers, nested lists, NumPy arrays, tensors.
Tensor to_tensor(PyObject* object, std::optional<DType> dtype);
Tensor from_array(PyObject* array, bool copy);
PyObject* to_array(const Tensor& t, bool copy);
PyObject* item(const Tensor& t);
PyObject* to_list(const Tensor& t);
int fill_buffer(PyObject* exporter, const Tensor& t, Py_buffer* view, int flags);
void release_buffer(PyObject* exporter, Py_buffer* view);
// Sizes: ints, tensors with one element, or symbolic dims.
Dim to_dim(PyObject* object);
PyObject* from_dim(Dim d);
void init_dim_type(PyObject* module);

// ---- op_function.cpp
void init_op_type(PyObject* module);
PyObject* op_function(const Op& op);
PyObject* call_op(const Op& op, PyObject* const* args, Py_ssize_t count);

// ---- index.cpp
PyObject* tensor_getitem(PyObject* self, PyObject* key);
int tensor_setitem(PyObject* self, PyObject* key, PyObject* value);

// ---- others
void init_autograd(PyObject* module);
void init_framework(PyObject* module);
void init_frames(PyObject* module);
void init_programs(PyObject* module);
void init_model_files(PyObject* module);
void init_profile(PyObject* module);
void init_segments(PyObject* module);
void init_images(PyObject* module);
void init_paddle_models(PyObject* module);
void init_drawing(PyObject* module);
void init_onnx_models(PyObject* module);
void init_graph_models(PyObject* module);
void init_gguf(PyObject* module);
void init_ocr(PyObject* module);
void init_sparse(PyObject* module);
void init_sharded(PyObject* module);
void init_static(PyObject* module);
void init_guards(PyObject* module);
void init_call_keys(PyObject* module);
void init_static_calls(PyObject* module);
// Itself, or, in a program that is being written, the value of a variable that depends on constants
// alone. A variable that depends on more is returned as it is. Of a sharded tensor it is the whole, for which all processes
// of its mesh have to ask.
Tensor known_value(const Tensor& t);
// The elements of an integer tensor as sizes.
std::vector<Dim> known_sizes(const Tensor& t);
// The same; while a static program is written, elements that only a run will know become open sizes.
std::vector<Dim> sizes_in_program(const Tensor& t);
void init_user_ops(PyObject* module);
void init_control(PyObject* module);
void init_distributed(PyObject* module);
void init_parameter_server(PyObject* module);
PyObject* from_value(const Value& v);  // framework.cpp

}  // namespace oar::python
