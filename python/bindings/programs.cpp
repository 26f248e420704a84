// Programs: capture, print, verify, differentiate, run.
#include "programs.h"

#include "drawing.h"
#include "oar/autograd/transform.h"
#include "oar/compiler/capture/capture.h"
#include "oar/compiler/capture/replay.h"
#include "oar/compiler/deploy.h"
#include "oar/compiler/executor.h"
#include "oar/compiler/passes/pass.h"
#include "oar/compiler/trained_program.h"
#include "oar/device/generator.h"
#include "oar/ir/parse.h"
#include "oar/ir/print.h"
#include "oar/ir/verify.h"
#include "oar/ops/core/autocast.h"

namespace oar::python {
namespace {

struct PyProgram {
  PyObject_HEAD std::shared_ptr<const Executor> executor;
};
PyTypeObject* g_type = nullptr;

const Executor& executor_of(PyObject* self) {
  return *reinterpret_cast<PyProgram*>(self)->executor;
}
const Program& program_of(PyObject* self) { return executor_of(self).program(); }

void dealloc(PyObject* self) {
  reinterpret_cast<PyProgram*>(self)->executor.~shared_ptr();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* text(PyObject* self, PyObject*) {
  return guarded([&] { return PyUnicode_FromString(to_text(program_of(self)).c_str()); });
}

// With all values of all constants, so that it can be read back.
PyObject* full_text(PyObject* self, PyObject*) {
  return guarded([&] {
    constexpr int64_t kAll = std::numeric_limits<int64_t>::max();
    return PyUnicode_FromString(
        to_text(program_of(self), {.locations = false, .largest_constant = kAll}).c_str());
  });
}

PyObject* boxes(PyObject* self, PyObject*) {
  return guarded([&] { return box_rows(program_of(self)); });
}

PyObject* deployable(PyObject* self, PyObject*) {
  return guarded([&] { return wrap_program(for_deployment(program_of(self))); });
}

// [(label, tensor)]
PyObject* states(PyObject* self, PyObject*) {
  return guarded([&] {
    const Program& program = program_of(self);
    Ref list = checked(PyList_New(0));
    for (const State& s : program.states) {
      const Ref tensor = checked(wrap(s.tensor));
      const Ref row =
          checked(Py_BuildValue("(sO)", program.label(s.value).c_str() + 1, tensor.get()));
      check(PyList_Append(list.get(), row.get()));
    }
    return list.release();
  });
}

PyObject* problems(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref list = checked(PyList_New(0));
    for (const std::string& line : verify(program_of(self))) {
      const Ref entry = checked(PyUnicode_FromString(line.c_str()));
      check(PyList_Append(list.get(), entry.get()));
    }
    return list.release();
  });
}

template <bool kAsFunction>
PyObject* run(PyObject* self, PyObject* inputs) {
  return guarded([&] {
    const std::vector<Tensor> given = tensors_of(inputs);
    std::vector<Tensor> outputs;
    {
      const GilRelease release;
      outputs = kAsFunction ? executor_of(self).call(given) : executor_of(self).run(given);
    }
    return wrap_list(outputs);
  });
}

PyObject* run_on_other_shapes(PyObject* self, PyObject* inputs) {
  return guarded(
      [&] { return wrap_list(replay_on_other_shapes(program_of(self), tensors_of(inputs))); });
}

PyObject* parse_text(PyObject*, PyObject* text) {
  return guarded([&] {
    const char* utf8 = PyUnicode_AsUTF8(text);
    if (!utf8) throw PythonError{};
    return wrap_program(parse_program(utf8));
  });
}

PyObject* optimised(PyObject* self, PyObject* inference) {
  return guarded([&] {
    if (PyObject_IsTrue(inference)) return wrap_program(for_inference(program_of(self)));
    Program program = program_of(self);
    optimise(program);
    return wrap_program(std::move(program));
  });
}

// differentiate(names, output): the program with gradients of one scalar output after its results.
PyObject* differentiate_method(PyObject* self, PyObject* args) {
  PyObject* names;
  Py_ssize_t output = 0;
  if (!PyArg_ParseTuple(args, "O|n", &names, &output)) return nullptr;
  return guarded([&] {
    const Program& program = program_of(self);
    std::vector<ValueId> wanted;
    const Ref list = checked(PySequence_Fast(names, "names of inputs or states are expected"));
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
      const char* name = PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(list.get(), i));
      if (!name) throw PythonError{};
      const ValueId id = program.find(name);
      user_check(id != kNoValue, ErrorKind::InvalidArgument,
                 "the program has no value called '{}'.", name);
      wanted.push_back(id);
    }
    return wrap_program(differentiate(program, wanted, static_cast<size_t>(output)));
  });
}

PyObject* names_of(const Program& program, const std::vector<ValueId>& ids) {
  Ref list = checked(PyList_New(0));
  for (ValueId id : ids) {
    const Ref entry = checked(PyUnicode_FromString(program.label(id).c_str() + 1));
    check(PyList_Append(list.get(), entry.get()));
  }
  return list.release();
}
PyObject* input_names(PyObject* self, void*) {
  return guarded([&] { return names_of(program_of(self), program_of(self).inputs); });
}
PyObject* state_names(PyObject* self, void*) {
  return guarded([&] {
    std::vector<ValueId> ids;
    for (const State& s : program_of(self).states) ids.push_back(s.value);
    return names_of(program_of(self), ids);
  });
}
PyObject* op_names(PyObject* self, void*) {
  return guarded([&] {
    Ref list = checked(PyList_New(0));
    for (const Instruction& i : program_of(self).body.instructions) {
      const Ref entry = checked(PyUnicode_FromString(i.op->name().c_str()));
      check(PyList_Append(list.get(), entry.get()));
    }
    return list.release();
  });
}

// Rows (shape, dtype, name, stop_gradient[, the tensor of the call]).
std::vector<InputSpec> specs_of(PyObject* rows) {
  std::vector<InputSpec> specs;
  const Ref list = checked(PySequence_Fast(rows, "a list of input specs is expected"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(list.get()); ++i) {
    PyObject *shape, *dtype;
    const char* name;
    int stop;
    PyObject* given = nullptr;
    if (!PyArg_ParseTuple(PySequence_Fast_GET_ITEM(list.get(), i), "OOsp|O", &shape, &dtype, &name,
                          &stop, &given))
      throw PythonError{};
    InputSpec spec;
    if (given && is_tensor(given)) spec.given = tensor_of(given);
    if (!to_dtype(dtype, &spec.dtype)) throw PythonError{};
    const Ref sizes = checked(PySequence_Fast(shape, "a shape is a list"));
    for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(sizes.get()); ++k)
      spec.shape.push_back(to_dim(PySequence_Fast_GET_ITEM(sizes.get(), k)));
    spec.name = name;
    spec.stop_gradient = stop != 0;
    specs.push_back(std::move(spec));
  }
  return specs;
}

CapturedFunction python_function(PyObject* function) {
  return [callable = Callable(function)](const std::vector<Tensor>& inputs) {
    const Ref list(wrap_list(inputs));
    const Ref result(PyObject_CallOneArg(callable.get(), list.get()));
    if (!result) throw_python_error();
    return tensors_of(result.get());
  };
}

// capture(function, [(shape, dtype, name, stop_gradient)], name); the function takes and returns a list.
PyObject* capture_function(PyObject*, PyObject* args) {
  PyObject *function, *specs;
  const char* name;
  if (!PyArg_ParseTuple(args, "OOs", &function, &specs, &name)) return nullptr;
  return guarded([&] {
    return wrap_program(capture(python_function(function), specs_of(specs), name, false));
  });
}

// ---- functions with their derivatives ----------------------------------------------------------

struct PyTrained {
  PyObject_HEAD TrainedProgram* program;
};
PyTypeObject* g_trained_type = nullptr;

const TrainedProgram& trained_of(PyObject* self) {
  return *reinterpret_cast<PyTrained*>(self)->program;
}

void dealloc_trained(PyObject* self) {
  delete reinterpret_cast<PyTrained*>(self)->program;
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* run_trained(PyObject* self, PyObject* inputs) {
  return guarded([&] {
    const auto outputs = run_or_unmet(trained_of(self), tensors_of(inputs));
    return outputs ? wrap_list(*outputs) : nullptr;
  });
}

PyObject* fits(PyObject* self, PyObject* inputs) {
  return guarded([&]() -> PyObject* {
    const std::string reason = trained_of(self).misfit(tensors_of(inputs));
    if (reason.empty()) Py_RETURN_NONE;
    return PyUnicode_FromString(reason.c_str());
  });
}
PyObject* writes(PyObject* self, void*) { return PyBool_FromLong(trained_of(self).writes()); }
PyObject* kept_tensors(PyObject* self, void*) {
  return PyLong_FromLongLong(trained_of(self).kept());
}

PyObject* trained_program(PyObject* self, void* which) {
  return guarded([&] {
    const TrainedProgram& p = trained_of(self);
    const std::string_view name = static_cast<const char*>(which);
    return wrap_program(name == "forward"    ? p.forward()
                        : name == "backward" ? p.backward()
                                             : p.program());
  });
}

// outside_capture(function): calls it as if no capture were running, for objects that outlive it.
PyObject* outside_capture(PyObject*, PyObject* function) {
  const LayersOff off(kFunctionalise | kCapture);
  return PyObject_CallNoArgs(function);
}

// capture_trained(function, specs, name): the function with its gradients, as one step on the tape.
PyObject* capture_trained(PyObject*, PyObject* args) {
  PyObject *function, *specs;
  const char* name;
  if (!PyArg_ParseTuple(args, "OOs", &function, &specs, &name)) return nullptr;
  return guarded([&] {
    auto program = std::make_unique<TrainedProgram>(
        capture_joint(python_function(function), specs_of(specs), name));
    auto* self = PyObject_New(PyTrained, g_trained_type);
    if (!self) throw PythonError{};
    self->program = program.release();
    return reinterpret_cast<PyObject*>(self);
  });
}

PyMethodDef kTrainedMethods[] = {
    {"run", run_trained, METH_O,
     "Runs it on a list of tensors; the tape sees one step. Raises Unmet if a call fails."},
    {"fits", fits, METH_O,
     "Why a run on these tensors would differ from the function; None if it would not."},
    {}};
PyGetSetDef kTrainedGetters[] = {
    {"program", trained_program, nullptr, "The function alone.", const_cast<char*>("program")},
    {"forward", trained_program, nullptr, "With what the backward half reads.",
     const_cast<char*>("forward")},
    {"backward", trained_program, nullptr, "From cotangents to gradients.",
     const_cast<char*>("backward")},
    {"writes", writes, nullptr, "Whether a run changes states or outside gradients.", nullptr},
    {"kept_tensors", kept_tensors, nullptr, "Symbolic tensors that are still alive.", nullptr},
    {}};
PyType_Slot kTrainedSlots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc_trained)},
                               {Py_tp_methods, kTrainedMethods},
                               {Py_tp_getset, kTrainedGetters},
                               {0, nullptr}};
PyType_Spec kTrainedSpec = {"oar._C.TrainedProgram", sizeof(PyTrained), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, kTrainedSlots};

// ---- mixed precision -------------------------------------------------------------------------

std::vector<std::string> strings_of(PyObject* object) {
  std::vector<std::string> list;
  if (object == Py_None) return list;
  const Ref fast = checked(PySequence_Fast(object, "a list of op names is expected"));
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
    const char* name = PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(fast.get(), i));
    if (!name) throw PythonError{};
    list.emplace_back(name);
  }
  return list;
}

PyObject* state_tuple(const AutocastState& s) {
  const auto listed = [](const std::vector<std::string>& names) {
    Ref list = checked(PyList_New(0));
    for (const std::string& n : names) {
      const Ref entry = checked(PyUnicode_FromString(n.c_str()));
      check(PyList_Append(list.get(), entry.get()));
    }
    return list;
  };
  const Ref low = listed(s.low), full = listed(s.full);
  static constexpr const char* kLevels[] = {"OD", "O1", "O2"};
  return Py_BuildValue("(OsOOsO)", s.enabled ? Py_True : Py_False, name_of(s.dtype), low.get(),
                       full.get(), kLevels[static_cast<size_t>(s.level)],
                       s.promote ? Py_True : Py_False);
}

// set_autocast(enabled, dtype, low, full, level = 'O1', promote = True) -> the previous state, as the same tuple.
PyObject* set_autocast(PyObject*, PyObject* args) {
  int enabled, promote = 1;
  const char* level = "O1";
  PyObject *dtype, *low, *full;
  if (!PyArg_ParseTuple(args, "pOOO|sp", &enabled, &dtype, &low, &full, &level, &promote))
    return nullptr;
  return guarded([&] {
    AutocastState state;
    state.enabled = enabled != 0;
    state.level = std::string_view(level) == "OD"   ? AutocastLevel::OD
                  : std::string_view(level) == "O2" ? AutocastLevel::O2
                                                    : AutocastLevel::O1;
    state.promote = promote != 0;
    if (!to_dtype(dtype, &state.dtype)) throw PythonError{};
    state.low = strings_of(low);
    state.full = strings_of(full);
    return state_tuple(exchange_autocast(std::move(state)));
  });
}
PyObject* get_autocast(PyObject*, PyObject*) {
  return guarded([&] { return state_tuple(autocast_state()); });
}

PyObject* last_dtype(PyObject*, PyObject*) {
  return PyUnicode_FromString(name_of(last_autocast_dtype()));
}

PyObject* forget_dtype(PyObject*, PyObject*) {
  forget_autocast_dtype();
  Py_RETURN_NONE;
}

PyMethodDef kMethods[] = {
    {"text", text, METH_NOARGS, "The program as text."},
    {"full_text", full_text, METH_NOARGS, "The program as text, constants included."},
    {"boxes", boxes, METH_NOARGS, "The boxes of its picture, with the layers of its calls."},
    {"for_deployment", deployable, METH_NOARGS, "An equal program whose calls all have kernels."},
    {"states", states, METH_NOARGS, "Names and tensors of its states."},
    {"verify", problems, METH_NOARGS, "What is wrong with it: a list of lines, empty if nothing."},
    {"run", run<false>, METH_O, "Runs it on a list of tensors."},
    {"run_on_other_shapes", run_on_other_shapes, METH_O,
     "Runs its calls one by one on tensors of other shapes than it declares."},
    {"call", run<true>, METH_O, "Runs it on a list of tensors, instead of the captured function."},
    {"differentiate", differentiate_method, METH_VARARGS, nullptr},
    {"optimised", optimised, METH_O, "The program after the passes; for inference if true."},
    {}};
PyGetSetDef kGetters[] = {{"input_names", input_names, nullptr, nullptr, nullptr},
                          {"state_names", state_names, nullptr, nullptr, nullptr},
                          {"op_names", op_names, nullptr, nullptr, nullptr},
                          {}};
PyType_Slot kSlots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                        {Py_tp_methods, kMethods},
                        {Py_tp_getset, kGetters},
                        {0, nullptr}};
PyType_Spec kSpec = {"oar._C.Program", sizeof(PyProgram), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, kSlots};
// The names that the flag passes_off takes.
PyObject* pass_names(PyObject*, PyObject*) {
  return guarded([&] {
    Ref made = checked(PyList_New(0));
    for (const Pass& pass : passes()) {
      const Ref name = checked(PyUnicode_FromString(pass.name));
      check(PyList_Append(made.get(), name.get()));
    }
    return made.release();
  });
}

PyMethodDef kFunctions[] = {{"capture", capture_function, METH_VARARGS, nullptr},
                            {"capture_trained", capture_trained, METH_VARARGS, nullptr},
                            {"outside_capture", outside_capture, METH_O, nullptr},
                            {"parse_program", parse_text, METH_O, nullptr},
                            {"pass_names", pass_names, METH_NOARGS, nullptr},
                            {"set_autocast", set_autocast, METH_VARARGS, nullptr},
                            {"get_autocast", get_autocast, METH_NOARGS, nullptr},
                            {"last_autocast_dtype", last_dtype, METH_NOARGS, nullptr},
                            {"forget_autocast_dtype", forget_dtype, METH_NOARGS, nullptr},
                            {}};

}  // namespace

PyObject* wrap_program(Program program) {
  auto* self = PyObject_New(PyProgram, g_type);
  if (!self) throw PythonError{};
  new (&self->executor) std::shared_ptr<const Executor>();
  Ref owner(reinterpret_cast<PyObject*>(self));
  self->executor = std::make_shared<const Executor>(std::move(program));
  return owner.release();
}

const Program& native_program(PyObject* object) {
  user_check(Py_IS_TYPE(object, g_type), ErrorKind::InvalidType, "a program is expected, not a {}.",
             Py_TYPE(object)->tp_name);
  return program_of(object);
}

const TrainedProgram& trained_program_of(PyObject* object) {
  user_check(Py_TYPE(object) == g_trained_type, ErrorKind::InvalidType,
             "a TrainedProgram is expected, not a {}.", Py_TYPE(object)->tp_name);
  return trained_of(object);
}

std::optional<std::vector<Tensor>> run_or_unmet(const TrainedProgram& program, TensorList inputs) {
  const generator::Places before;
  try {
    const GilRelease release;
    return program.run(inputs);
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::Interrupted || error.kind() == ErrorKind::Internal) throw;
    before.restore();
  }
  PyErr_SetNone(unmet_error());
  return std::nullopt;
}

void init_programs(PyObject* module) {
  g_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&kSpec)).release());
  check(PyModule_AddObjectRef(module, "Program", reinterpret_cast<PyObject*>(g_type)));
  g_trained_type =
      reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&kTrainedSpec)).release());
  check(
      PyModule_AddObjectRef(module, "TrainedProgram", reinterpret_cast<PyObject*>(g_trained_type)));
  check(PyModule_AddFunctions(module, kFunctions));
}

}  // namespace oar::python
