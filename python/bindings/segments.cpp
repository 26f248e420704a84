// Functions whose calls are queued: see oar/compiler/segments/segments.h.
#include "oar/compiler/segments/segments.h"

#include "frames.h"

namespace oar::python {
namespace {

// Queued calls run without the interpreter lock.
void finish(SegmentScope& scope, bool returned) {
  const GilRelease release;
  scope.finish(returned);
}

// The function has raised. Its earlier calls are run; if one fails, it failed first. What ends a program, such as Ctrl-C,
// takes precedence.
[[noreturn]] void finish_after_error(SegmentScope& scope) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const bool ends_all = PyErr_GivenExceptionMatches(type, PyExc_Exception) == 0;
  try {
    finish(scope, false);
  } catch (...) {
    if (!ends_all) {
      Py_XDECREF(type);
      Py_XDECREF(value);
      Py_XDECREF(trace);
      throw;
    }
    PyErr_Clear();
  }
  PyErr_Restore(type, value, trace);
  throw PythonError{};
}

// run_in_segments(function, args, kwargs, title): calls it; its kernel calls are queued until a value is
// read or it ends. Segments are traced under the title, if there is one.
PyObject* run_in_segments(PyObject*, PyObject* args) {
  PyObject *function, *given, *named;
  const char* title;
  if (!PyArg_ParseTuple(args, "OO!O!s", &function, &PyTuple_Type, &given, &PyDict_Type, &named,
                        &title))
    return nullptr;
  return guarded([&] {
    SegmentScope scope(title);
    Ref result(PyObject_Call(function, given, named));
    if (!result) finish_after_error(scope);
    finish(scope, true);
    return result.release();
  });
}

// segment_counts() -> (queued calls, segments that ran, segments that ran as programs).
PyObject* counts(PyObject*, PyObject*) {
  const SegmentCounts c = segment_counts();
  return Py_BuildValue("(KKK)", c.calls, c.segments, c.programs);
}

PyMethodDef kFunctions[] = {{"run_in_segments", run_in_segments, METH_VARARGS, nullptr},
                            {"segment_counts", counts, METH_NOARGS, nullptr},
                            {}};

}  // namespace

void init_segments(PyObject* module) { check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace oar::python
