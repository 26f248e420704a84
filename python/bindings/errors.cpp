// Errors at the language boundary: kinds of Error become the classes that Paddle raises.
#include <cstring>
#include <new>
#include <string>

#include "common.h"
#include "native_docs.h"

namespace oar::python {
namespace {

PyObject* g_argument_type_error = nullptr;
PyObject* g_argument_value_error = nullptr;
PyObject* g_argument_index_error = nullptr;

PyObject* class_of(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::InvalidArgument:
      return g_argument_value_error ? g_argument_value_error : PyExc_ValueError;
    case ErrorKind::InvalidType:
      return g_argument_type_error ? g_argument_type_error : PyExc_TypeError;
    case ErrorKind::OutOfRange:
      return g_argument_index_error ? g_argument_index_error : PyExc_IndexError;
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
  void add_note(const char* text) {
    const GilHold gil;
    PyErr_NormalizeException(&type_, &value_, &trace_);
    const Ref done(value_ ? PyObject_CallMethod(value_, "add_note", "s", text) : nullptr);
    if (!done) PyErr_Clear();  // the note is lost, the exception is not
  }

 private:
  PyObject *type_ = nullptr, *value_ = nullptr, *trace_ = nullptr;
};

// Names in files, which messages quote, may be any bytes.
void set_error(PyObject* type, const char* what) {
  PyObject* text =
      PyUnicode_DecodeUTF8(what, static_cast<Py_ssize_t>(std::strlen(what)), "backslashreplace");
  if (!text) return;  // Python has an error already
  PyErr_SetObject(type, text);
  Py_DECREF(text);
}

}  // namespace

// Paddle raises ValueError for an argument of the wrong type in eager mode, TypeError in static mode, RuntimeError
// where no kernel takes a dtype, and AssertionError where a function tests its arguments by assert. Here it is all of
// them. Likewise it raises ValueError, AssertionError or RuntimeError for a wrong value, and IndexError or one of these
// for an axis that a tensor does not have.
void init_errors(PyObject* module) {
  const auto add = [module](const char* name, const char* doc, Ref bases) {
    const std::string full = std::string("oar.") + name;
    Ref error = checked(PyErr_NewExceptionWithDoc(full.c_str(), doc, bases.get(), nullptr));
    if (PyModule_AddObjectRef(module, name, error.get()) < 0) throw PythonError();
    return error.release();
  };
  g_argument_type_error = add("ArgumentTypeError", docs::kArgumentTypeError,
                              checked(PyTuple_Pack(4, PyExc_TypeError, PyExc_ValueError,
                                                   PyExc_AssertionError, PyExc_RuntimeError)));
  g_argument_value_error =
      add("ArgumentValueError", docs::kArgumentValueError,
          checked(PyTuple_Pack(3, PyExc_ValueError, PyExc_AssertionError, PyExc_RuntimeError)));
  g_argument_index_error = add("ArgumentIndexError", docs::kArgumentIndexError,
                               checked(PyTuple_Pack(2, PyExc_IndexError, g_argument_value_error)));
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
    set_error(class_of(error.kind()), error.what());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const std::exception& error) {
    set_error(PyExc_RuntimeError, error.what());
  }
}

void add_note(const char* text) {
  try {
    throw;
  } catch (CarriedError& error) {
    if (Py_IsInitialized()) error.add_note(text);
  } catch (...) {  // NOLINT(bugprone-empty-catch): not Python's
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
