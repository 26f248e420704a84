// Branches and loops whose functions are Python's.
#include "common.h"
#include "oar/compiler/capture/control_flow.h"
#include "oar/compiler/capture/training_calls.h"

namespace oar::python {
namespace {

Branch python_branch(PyObject* function) {
  return [callable = Callable(function)] {
    const Ref result(PyObject_CallNoArgs(callable.get()));
    if (!result) throw_python_error();
    return tensors_of(result.get());
  };
}

LoopBody python_body(PyObject* function) {
  return [callable = Callable(function)](const std::vector<Tensor>& variables) {
    const Ref list(wrap_list(variables));
    const Ref result(PyObject_CallOneArg(callable.get(), list.get()));
    if (!result) throw_python_error();
    return tensors_of(result.get());
  };
}

PyObject* is_capturing(PyObject*, PyObject*) {
  return PyBool_FromLong(Capture::current() && !(t_layers.off & kCapture));
}

// In between, the derivative computes again what the captured calls compute.
PyObject* begin_recomputed(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    Capture::require().begin_recomputed();
    Py_RETURN_NONE;
  });
}
PyObject* end_recomputed(PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    Capture::require().end_recomputed();
    Py_RETURN_NONE;
  });
}

PyObject* choice(PyObject*, PyObject* tensor) {
  return guarded([&] { return PyLong_FromLongLong(choice_of(tensor_of(tensor))); });
}

// switch_case(index, functions): each function returns a list of tensors.
PyObject* switch_case_function(PyObject*, PyObject* args) {
  PyObject *index, *functions;
  if (!PyArg_ParseTuple(args, "OO!", &index, &PyList_Type, &functions)) return nullptr;
  return guarded([&] {
    std::vector<Branch> branches;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(functions); ++i)
      branches.push_back(python_branch(PyList_GET_ITEM(functions, i)));
    return wrap_list(write_region_call([&] { return switch_case(tensor_of(index), branches); }));
  });
}

// cond(pred, yes, no)
PyObject* cond_function(PyObject*, PyObject* args) {
  PyObject *pred, *yes, *no;
  if (!PyArg_ParseTuple(args, "OOO", &pred, &yes, &no)) return nullptr;
  return guarded([&] {
    return wrap_list(write_region_call(
        [&] { return cond(tensor_of(pred), python_branch(yes), python_branch(no)); }));
  });
}

// while_loop(test, body, variables): both take a list; the test returns one tensor in a list.
PyObject* while_loop_function(PyObject*, PyObject* args) {
  PyObject *test, *body, *variables;
  if (!PyArg_ParseTuple(args, "OOO", &test, &body, &variables)) return nullptr;
  return guarded([&] {
    const LoopBody ask = python_body(test);
    const auto test_of = [&](const std::vector<Tensor>& given) { return ask(given).at(0); };
    return wrap_list(write_region_call(
        [&] { return while_loop(test_of, python_body(body), tensors_of(variables)); }));
  });
}

// scan(body, carried, sequences, reverse)
PyObject* scan_function(PyObject*, PyObject* args) {
  PyObject *body, *carried, *sequences;
  int reverse;
  if (!PyArg_ParseTuple(args, "OOOp", &body, &carried, &sequences, &reverse)) return nullptr;
  return guarded([&] {
    return wrap_list(write_region_call([&] {
      return scan(python_body(body), tensors_of(carried), tensors_of(sequences), reverse != 0);
    }));
  });
}

PyMethodDef kFunctions[] = {{"is_capturing", is_capturing, METH_NOARGS, nullptr},
                            {"begin_recomputed", begin_recomputed, METH_NOARGS, nullptr},
                            {"end_recomputed", end_recomputed, METH_NOARGS, nullptr},
                            {"choice_of", choice, METH_O, nullptr},
                            {"switch_case", switch_case_function, METH_VARARGS, nullptr},
                            {"cond", cond_function, METH_VARARGS, nullptr},
                            {"while_loop", while_loop_function, METH_VARARGS, nullptr},
                            {"scan", scan_function, METH_VARARGS, nullptr},
                            {}};

}  // namespace

void init_control(PyObject* module) { check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace oar::python
