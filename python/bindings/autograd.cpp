// backward, grad, PyLayer, jvp, vmap, and the switches.
#include "common.h"
#include "oar/autograd/engine.h"
#include "oar/autograd/record.h"
#include "oar/autograd/series.h"
#include "oar/autograd/transform.h"
#include "oar/compiler/capture/control_flow.h"
#include "oar/ops/core/watch.h"
#include "tensor_methods.h"

namespace oar::python {
namespace {

// As one number.
PyObject* number_of(GradState state) {
  return PyLong_FromLong(state.tangents_cut_until * 2L + (state.recording ? 1 : 0));
}

// set_grad_enabled(switch) -> the previous state. The switch is a bool, or what an earlier call returned.
PyObject* set_grad_enabled(PyObject*, PyObject* flag) {
  if (PyBool_Check(flag) || !PyLong_Check(flag)) {
    const int on = PyObject_IsTrue(flag);
    return on < 0 ? nullptr : number_of(switch_grad(on != 0));
  }
  const long state = PyLong_AsLong(flag);
  if (state == -1 && PyErr_Occurred()) return nullptr;
  const GradState before = grad_state();
  set_grad_state({state % 2 != 0, static_cast<int>(state / 2)});
  return number_of(before);
}
PyObject* get_grad_state(PyObject*, PyObject*) { return number_of(grad_state()); }
PyObject* is_grad_enabled(PyObject*, PyObject*) { return PyBool_FromLong(grad_enabled()); }

PyObject* final_hooks = nullptr;  // a list of functions; null if there are none

// add_backward_final_hook(f): f() is called once, after the next backward.
PyObject* add_backward_final_hook(PyObject*, PyObject* function) {
  if (!final_hooks) final_hooks = PyList_New(0);
  if (!final_hooks || PyList_Append(final_hooks, function) != 0) return nullptr;
  Py_RETURN_NONE;
}

PyObject* backward_function(PyObject*, PyObject* args) {
  PyObject *roots, *cotangents;
  int retain;
  if (!PyArg_ParseTuple(args, "OOp", &roots, &cotangents, &retain)) return nullptr;
  return guarded([&]() -> PyObject* {
    const std::vector<Tensor> outputs = tensors_of(roots);
    const std::vector<Tensor> given =
        cotangents == Py_None ? std::vector<Tensor>() : tensors_of(cotangents, true);
    return run_backward(outputs, given, retain != 0);
  });
}

PyObject* grad_function(PyObject*, PyObject* args) {
  PyObject *outputs, *inputs, *cotangents, *blocked;
  int retain, create, unused;
  if (!PyArg_ParseTuple(args, "OOOpppO", &outputs, &inputs, &cotangents, &retain, &create, &unused,
                        &blocked))
    return nullptr;
  return guarded([&] {
    const std::vector<Tensor> from = tensors_of(outputs), to = tensors_of(inputs);
    const std::vector<Tensor> given =
        cotangents == Py_None ? std::vector<Tensor>() : tensors_of(cotangents, true);
    const std::vector<Tensor> stop =
        blocked == Py_None ? std::vector<Tensor>() : tensors_of(blocked);
    std::vector<Tensor> found;
    {
      const GilRelease release;
      found = grad(from, to, given, {.retain_graph = retain != 0, .create_graph = create != 0},
                   unused != 0, stop);
    }
    return wrap_list(found);
  });
}

// A Python callable as a function of tensors; it takes and returns lists.
TensorFunction python_function(PyObject* callable) {
  return [call = Callable(callable)](const std::vector<Tensor>& inputs) {
    const GilHold gil;
    const Ref list(wrap_list(inputs));
    const Ref result(PyObject_CallOneArg(call.get(), list.get()));
    if (!result) throw_python_error();
    return tensors_of(result.get());
  };
}

// custom(inputs, forward, backward, name): forward(list) -> list, backward(list) -> list with None.
PyObject* custom(PyObject*, PyObject* args) {
  PyObject *inputs, *forward, *backward;
  const char* name;
  if (!PyArg_ParseTuple(args, "OOOs", &inputs, &forward, &backward, &name)) return nullptr;
  return guarded([&] {
    const TensorFunction run = python_function(forward);
    const auto pull = [call = Callable(backward)](TensorList cotangents) {
      const GilHold gil;
      const Ref list(wrap_list(cotangents));
      const Ref result(PyObject_CallOneArg(call.get(), list.get()));
      if (!result) throw_python_error();
      return tensors_of(result.get(), true);
    };
    const std::vector<Tensor> outputs = with_derivative(
        tensors_of(inputs), [&](TensorList list) { return run({list.begin(), list.end()}); }, pull,
        name);
    return wrap_list(outputs);
  });
}

// as_result(alias, index): inside the backward of a custom function, which kept a result without its history.
PyObject* as_result(PyObject*, PyObject* args) {
  PyObject* alias;
  unsigned index;
  if (!PyArg_ParseTuple(args, "OI", &alias, &index)) return nullptr;
  return guarded([&] { return wrap(result_of_custom(tensor_of(alias), index)); });
}

// … of an input whose content was saved without its history.
PyObject* as_input(PyObject*, PyObject* args) {
  PyObject* content;
  unsigned index;
  if (!PyArg_ParseTuple(args, "OI", &content, &index)) return nullptr;
  return guarded([&] { return wrap(input_of_custom(tensor_of(content), index)); });
}

// A pair of Python functions. The object that pack returns is kept until unpack gets it.
UnpackHook call_pack(const Callable& pack, const Callable& unpack, const Tensor& saved) {
  const GilHold gil;
  const Ref tensor(wrap(saved));
  const Ref made(PyObject_CallOneArg(pack.get(), tensor.get()));
  if (!made) throw_python_error();
  return [unpack, object = Callable(made.get())]() -> Tensor {
    const GilHold again;
    const Ref found(PyObject_CallOneArg(unpack.get(), object.get()));
    if (!found) throw_python_error();
    user_check(is_tensor(found.get()), ErrorKind::InvalidType,
               "an unpack hook must return a tensor, not {}.", Py_TYPE(found.get())->tp_name);
    return tensor_of(found.get());
  };
}

thread_local std::vector<std::unique_ptr<SavedTensorHook>> t_saved_hooks;

PyObject* push_saved_hooks(PyObject*, PyObject* args) {
  PyObject *pack, *unpack;
  if (!PyArg_ParseTuple(args, "OO", &pack, &unpack)) return nullptr;
  return guarded([&]() -> PyObject* {
    t_saved_hooks.push_back(std::make_unique<SavedTensorHook>(
        [pack = Callable(pack), unpack = Callable(unpack)](const Tensor& saved) {
          return call_pack(pack, unpack, saved);
        }));
    Py_RETURN_NONE;
  });
}
PyObject* pop_saved_hooks(PyObject*, PyObject*) {
  if (!t_saved_hooks.empty()) t_saved_hooks.pop_back();
  Py_RETURN_NONE;
}

// pack_saved(tensor): a function without arguments that returns its content again, or None if no hook takes it.
PyObject* call_unpack(PyObject* capsule, PyObject*) {
  return guarded([&] {
    const auto* saved =
        static_cast<std::pair<UnpackHook, Tensor>*>(PyCapsule_GetPointer(capsule, nullptr));
    return wrap(unpacked(saved->first, saved->second, "save_for_backward"));
  });
}
PyObject* pack_saved(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_of(object);
    UnpackHook unpack = packed(t);
    if (!unpack) Py_RETURN_NONE;
    using Saved = std::pair<UnpackHook, Tensor>;
    auto saved =
        std::make_unique<Saved>(std::move(unpack), Tensor::meta(t.dims(), t.dtype(), t.device()));
    Saved* const owned = saved.release();
    const Ref capsule(PyCapsule_New(owned, nullptr, [](PyObject* self) {
      delete static_cast<Saved*>(PyCapsule_GetPointer(self, nullptr));
    }));
    if (!capsule) {
      delete owned;
      return nullptr;
    }
    static PyMethodDef method = {"unpack", call_unpack, METH_NOARGS, "The saved tensor."};
    return PyCFunction_New(&method, capsule.get());
  });
}

PyObject* jvp_function(PyObject*, PyObject* args) {
  PyObject *function, *primals, *tangents;
  if (!PyArg_ParseTuple(args, "OOO", &function, &primals, &tangents)) return nullptr;
  return guarded([&]() -> PyObject* {
    const auto [values, derivatives] =
        jvp(python_function(function), tensors_of(primals), tensors_of(tangents, true));
    const Ref first(wrap_list(values)), second(wrap_list(derivatives));
    return PyTuple_Pack(2, first.get(), second.get());
  });
}

std::vector<int64_t> axes_of(PyObject* list) {
  std::vector<int64_t> axes;
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(list); ++i) {
    PyObject* element = PyList_GET_ITEM(list, i);
    axes.push_back(element == Py_None ? kNoAxis : to_dim(element).value());
  }
  return axes;
}

PyObject* vmap_function(PyObject*, PyObject* args) {
  PyObject *function, *inputs, *in_axes, *out_axes;
  if (!PyArg_ParseTuple(args, "OOO!O!", &function, &inputs, &PyList_Type, &in_axes, &PyList_Type,
                        &out_axes))
    return nullptr;
  return guarded([&] {
    return wrap_list(
        vmap(python_function(function), tensors_of(inputs), axes_of(in_axes), axes_of(out_axes)));
  });
}

// taylor(function, coefficients, order): a list of coefficients, or None for zero, for each input; the same of each result.
PyObject* taylor_function(PyObject*, PyObject* args) {
  PyObject *function, *inputs;
  int order;
  if (!PyArg_ParseTuple(args, "OO!i", &function, &PyList_Type, &inputs, &order)) return nullptr;
  return guarded([&]() -> PyObject* {
    Coefficients coefficients;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(inputs); ++i)
      coefficients.push_back(tensors_of(PyList_GET_ITEM(inputs, i), true));
    const Coefficients results = taylor(python_function(function), coefficients, order);
    Ref list(PyList_New(0));
    for (const std::vector<Tensor>& one : results) {
      const Ref wrapped(wrap_list(one));
      if (!list || !wrapped || PyList_Append(list.get(), wrapped.get()) != 0) return nullptr;
    }
    return list.release();
  });
}

// The tensors of a call by the names of its parameters: [(name, tensor)].
Ref operands_of(const WatchedReturn& call) {
  Ref list = checked(PyList_New(0));
  const auto add = [&](const char* name, const Tensor& t) {
    const Ref row = checked(Py_BuildValue("(sN)", name, wrap(t)));
    check(PyList_Append(list.get(), row.get()));
  };
  for (const Tensor& t : call.cotangents)
    if (t.defined()) add("grad", t);
  for (size_t i = 0; i < call.args.size(); ++i)
    for_each_tensor(call.args.subspan(i, 1),
                    [&](const Tensor& t) { add(call.op->schema().parameters[i].name.c_str(), t); });
  return list;
}

// The newest node behind the results: 0 if they have none.
uint64_t sequence_of(const WatchedReturn& call) {
  uint64_t newest = call.sequence;
  for (const Tensor& t : call.results)
    if (const History* h = t.defined() ? maybe_history(t) : nullptr; h && h->node && !newest)
      newest = std::max(newest, h->node->sequence());
  return newest;
}

struct PythonWatcher {
  Callable callable;
  void operator()(const WatchedReturn& call) const {
    const GilHold gil;
    const Ref operands = operands_of(call);
    Ref results = checked(PyList_New(0));
    for (const Tensor& t : call.results) {
      const Ref result = checked(wrap(t));
      check(PyList_Append(results.get(), result.get()));
    }
    const Ref returned(PyObject_CallFunction(
        callable.get(), "s#OOKO", call.name.data(), static_cast<Py_ssize_t>(call.name.size()),
        operands.get(), results.get(), static_cast<unsigned long long>(sequence_of(call)),
        call.op ? Py_False : Py_True));
    if (!returned) throw_python_error();
  }
};

// watch_calls(f): after each call of this thread f(name, operands, results, sequence, backward). None: no longer.
PyObject* watch_calls(PyObject*, PyObject* function) {
  return guarded([&]() -> PyObject* {
    watch_this_thread(function == Py_None ? Watcher() : Watcher(PythonWatcher{Callable(function)}));
    Py_RETURN_NONE;
  });
}

PyMethodDef kFunctions[] = {
    {"watch_calls", watch_calls, METH_O, "Calls a function after each call of this thread."},
    {"set_grad_enabled", set_grad_enabled, METH_O,
     "Switches recording; returns the previous state."},
    {"grad_state", get_grad_state, METH_NOARGS, "What set_grad_enabled restores."},
    {"as_result", as_result, METH_VARARGS, "The alias of a result, on the tape again."},
    {"as_input", as_input, METH_VARARGS, "The content of an input, on the tape again."},
    {"push_saved_hooks", push_saved_hooks, METH_VARARGS, "Hooks for the tensors that are saved."},
    {"pop_saved_hooks", pop_saved_hooks, METH_NOARGS, "Removes the hooks that came last."},
    {"pack_saved", pack_saved, METH_O, "Packs a tensor, if there is a hook."},
    {"is_grad_enabled", is_grad_enabled, METH_NOARGS, "Whether calls are recorded."},
    {"backward", backward_function, METH_VARARGS, nullptr},
    {"add_backward_final_hook", add_backward_final_hook, METH_O,
     "Calls a function once, after the next backward."},
    {"grad", grad_function, METH_VARARGS, nullptr},
    {"custom_function", custom, METH_VARARGS, nullptr},
    {"taylor", taylor_function, METH_VARARGS, nullptr},
    {"jvp", jvp_function, METH_VARARGS, nullptr},
    {"vmap", vmap_function, METH_VARARGS, nullptr},
    {}};

}  // namespace

PyObject* run_backward(TensorList roots, TensorList cotangents, bool retain_graph) {
  {
    const GilRelease release;
    backward(roots, cotangents, {.retain_graph = retain_graph});
  }
  if (final_hooks) {
    const Ref hooks(std::exchange(final_hooks, nullptr));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(hooks.get()); ++i)
      if (!Ref(PyObject_CallNoArgs(PyList_GET_ITEM(hooks.get(), i)))) return nullptr;
  }
  Py_RETURN_NONE;
}

void init_autograd(PyObject* module) { check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace oar::python
