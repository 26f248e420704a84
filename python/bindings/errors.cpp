// Errors at the language boundary: kinds of Error become the classes that Paddle raises.
#include <new>

#include "common.h"
#include "native_docs.h"

namespace oar::python {
namespace {

PyObject* g_argument_type_error = nullptr;

PyObject* class_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidArgument:
      return PyExc_ValueError;
    case ErrorKind::InvalidType:
      return g_argument_type_error ? g_argument_type_error : PyExc_TypeError;
    case ErrorKind::OutOfRange:
      return PyExc_IndexError;
    case ErrorKind::Unsupported:
      return PyExc_NotImplementedError;
    case ErrorKind::OutOfMemory:
      return PyExc_MemoryError;
    case ErrorKind::Interrupted:
      return PyExc_KeyboardInterrupt;
    default:
      return PyExc_RuntimeError;
  }
}

// A Python exception on its way through native code.
class CarriedError : public std::exception {
 public:
  CarriedError() { PyErr_Fetch(&type_, &value_, &trace_); }
  CarriedError(const CarriedError& other)
      : type_(other.type_), value_(other.value_), trace_(other.trace_) {
    const GilHold gil;
    Py_XINCREF(type_);
    Py_XINCREF(value_);
    Py_XINCREF(trace_);
  }
  ~CarriedError() override {
    if (!type_ || !Py_IsInitialized()) return;
    const GilHold gil;
    Py_XDECREF(type_);
    Py_XDECREF(value_);
    Py_XDECREF(trace_);
  }
  const char* what() const noexcept override { return "a Python exception"; }
  void restore() const {
    Py_XINCREF(type_);
    Py_XINCREF(value_);
    Py_XINCREF(trace_);
    PyErr_Restore(type_, value_, trace_);
  }

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *trace_ = nullptr;
};

}  // namespace

// Paddle raises TypeError for an argument of the wrong type in static mode; in eager mode ValueError, or RuntimeError if there is
// no kernel for its dtype. Here it is all three.
void init_errors(PyObject* module) {
  const Ref bases = checked(PyTuple_Pack(3, PyExc_TypeError, PyExc_ValueError, PyExc_RuntimeError));
  Ref error = checked(PyErr_NewExceptionWithDoc("oar.ArgumentTypeError", docs::kArgumentTypeError,
                                                bases.get(), nullptr));
  g_argument_type_error = error.get();
  if (PyModule_AddObjectRef(module, "ArgumentTypeError", error.release()) < 0) throw PythonError();
}

void set_python_error() {
  try {
    throw;
  } catch (const PythonError&) {  // NOLINT(bugprone-empty-catch): Python has the error already
  } catch (const CarriedError& error) {
    error.restore();
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Interrupted && PyErr_Occurred())
      return;  // Python's own exception
    PyErr_SetString(class_of(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
  }
}

void throw_python_error() { throw CarriedError(); }

Callable::Callable(PyObject* object) {
  Py_INCREF(object);
  object_ = std::shared_ptr<PyObject>(object, [](PyObject* o) {
    if (!Py_IsInitialized()) return;
    const GilHold gil;
    Py_DECREF(o);
  });
}

}  // namespace oar::python
