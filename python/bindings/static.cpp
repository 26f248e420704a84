// Programs that stay open, which `oar.static` writes call by call.
#include "common.h"
#include "oar/autograd/sharded.h"
#include "oar/base/scope_guard.h"
#include "oar/compiler/capture/known.h"
#include "oar/compiler/executor.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/parse.h"
#include "oar/ir/print.h"
#include "oar/ops/gen/repeat.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/tensor/hooks.h"
#include "programs.h"

namespace oar::python {
namespace {

struct PyBuilder {
  PyObject_HEAD std::shared_ptr<Builder> builder;
};
PyTypeObject* g_type = nullptr;

const std::shared_ptr<Builder>& builder_of(PyObject* self) {
  return reinterpret_cast<PyBuilder*>(self)->builder;
}

PyObject* wrap_builder(std::shared_ptr<Builder> builder) {
  auto* self = PyObject_New(PyBuilder, g_type);
  if (!self) throw PythonError{};
  new (&self->builder) std::shared_ptr<Builder>(std::move(builder));
  return reinterpret_cast<PyObject*>(self);
}

void dealloc(PyObject* self) {
  reinterpret_cast<PyBuilder*>(self)->builder.~shared_ptr();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

const char* utf8(PyObject* text) {
  const char* chars = PyUnicode_AsUTF8(text);
  if (!chars) throw PythonError{};
  return chars;
}

Ref string_list(const std::vector<std::string>& strings) {
  Ref list = checked(PyList_New(0));
  for (const std::string& s : strings) {
    const Ref entry = checked(PyUnicode_FromString(s.c_str()));
    check(PyList_Append(list.get(), entry.get()));
  }
  return list;
}

Shape to_shape(PyObject* sizes) {
  const Ref list = checked(PySequence_Fast(sizes, "a shape is a list"));
  Shape shape;
  for (Py_ssize_t k = 0; k < PySequence_Fast_GET_SIZE(list.get()); ++k)
    shape.push_back(to_dim(PySequence_Fast_GET_ITEM(list.get(), k)));
  return shape;
}

// ---- where calls go -----------------------------------------------------------------------------

struct Active {
  std::shared_ptr<Builder> builder;
  std::unique_ptr<Capture::Scope> scope;
};
thread_local Active t_active;

// Other layers may have been switched on or off since the scope began; they stay as they are.
void leave_scope() {
  constexpr uint32_t kOurs = kFunctionalise | kCapture;
  const uint32_t before = t_layers.on;
  t_active.scope.reset();
  t_layers.on = (before & ~kOurs) | (t_layers.on & kOurs);
}

// static_switch(builder or None): calls of this thread go there from now on, or run at once.
PyObject* static_switch(PyObject*, PyObject* to) {
  return guarded([&]() -> PyObject* {
    user_check(Capture::current() == t_active.builder.get(), ErrorKind::Unsupported,
               "the program cannot be changed inside a branch, a loop or a captured function.\n"
               "hint: Do it outside.");
    leave_scope();
    t_active.builder = to == Py_None ? nullptr : builder_of(to);
    if (t_active.builder) t_active.scope = std::make_unique<Capture::Scope>(*t_active.builder);
    Py_RETURN_NONE;
  });
}

// static_within(builder, function): calls it so that its calls go to the builder.
PyObject* static_within(PyObject*, PyObject* args) {
  PyObject *self, *function;
  if (!PyArg_ParseTuple(args, "O!O", g_type, &self, &function)) return nullptr;
  const std::shared_ptr<Builder> builder = builder_of(self);
  const Capture::Scope scope(*builder);
  return PyObject_CallNoArgs(function);
}

// Is a program being written on this thread, inside branches too?
PyObject* static_active(PyObject*, PyObject*) {
  return PyBool_FromLong(t_active.builder && Capture::current());
}

// ---- methods ------------------------------------------------------------------------------------

PyObject* make(PyTypeObject*, PyObject* args, PyObject*) {
  const char* name;
  if (!PyArg_ParseTuple(args, "s", &name)) return nullptr;
  return guarded([&] { return wrap_builder(std::make_shared<Builder>(name)); });
}

// input(shape, dtype, name, stop_gradient)
PyObject* input(PyObject* self, PyObject* args) {
  PyObject *shape, *dtype;
  const char* name;
  int stop;
  if (!PyArg_ParseTuple(args, "OOsp", &shape, &dtype, &name, &stop)) return nullptr;
  return guarded([&] {
    InputSpec spec;
    spec.shape = to_shape(shape);
    if (!to_dtype(dtype, &spec.dtype)) throw PythonError{};
    spec.name = name;
    spec.stop_gradient = stop != 0;
    Tensor t = builder_of(self)->input(spec);
    history_of(t).name = name;
    return wrap(std::move(t));
  });
}

// state(shape, dtype, name)
PyObject* state(PyObject* self, PyObject* args) {
  PyObject *shape, *dtype;
  const char* name;
  if (!PyArg_ParseTuple(args, "OOs", &shape, &dtype, &name)) return nullptr;
  return guarded([&] {
    ValueType type;
    type.shape = to_shape(shape);
    if (!to_dtype(dtype, &type.dtype)) throw PythonError{};
    type.device = devices::current();
    return wrap(builder_of(self)->state(type, name));
  });
}

PyObject* follow(PyObject* self, PyObject* tensor) {
  return guarded([&]() -> PyObject* {
    builder_of(self)->follow(tensor_of(tensor));
    Py_RETURN_NONE;
  });
}

PyObject* find(PyObject* self, PyObject* name) {
  return guarded([&] { return wrap(builder_of(self)->find(utf8(name))); });
}

PyObject* resolve(PyObject* self, PyObject* tensor) {
  return guarded([&] {
    user_check(is_tensor(tensor), ErrorKind::InvalidType, "a variable is expected, not {}.",
               Py_TYPE(tensor)->tp_name);
    Builder& builder = *builder_of(self);
    const Capture::Scope scope(builder);
    return PyLong_FromLong(builder.resolve(tensor_of(tensor)));
  });
}

PyObject* begin(PyObject* self, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const std::string_view role = utf8(name);
    builder_of(self)->begin(role == "backward" ? Role::Backward
                            : role == "update" ? Role::Update
                                               : Role::Training);
    Py_RETURN_NONE;
  });
}
PyObject* end(PyObject* self, PyObject*) {
  builder_of(self)->end();
  Py_RETURN_NONE;
}

PyObject* alternative(PyObject* self, PyObject* args) {
  PyObject *training, *inference;
  if (!PyArg_ParseTuple(args, "OO", &training, &inference)) return nullptr;
  return guarded([&]() -> PyObject* {
    builder_of(self)->alternative(tensor_of(training), tensor_of(inference));
    Py_RETURN_NONE;
  });
}

// draft(outputs, contents(name, shape, dtype, read), pruned, fed=()) -> (program, names of its inputs)
PyObject* draft(PyObject* self, PyObject* args) {
  PyObject *outputs, *contents, *fed = nullptr;
  int pruned;
  if (!PyArg_ParseTuple(args, "OOp|O", &outputs, &contents, &pruned, &fed)) return nullptr;
  return guarded([&] {
    const auto content = [&](const std::string& name, const ValueType& type, bool read) {
      const Ref shape = checked(PyList_New(0));
      for (Dim d : type.shape) {
        const Ref size = checked(from_dim(d));
        check(PyList_Append(shape.get(), size.get()));
      }
      const Ref dtype = checked(wrap_dtype(type.dtype));
      const Ref made(PyObject_CallFunction(contents, "sOOO", name.c_str(), shape.get(), dtype.get(),
                                           read ? Py_True : Py_False));
      if (!made) throw_python_error();
      return tensor_of(made.get());
    };
    Builder::Draft made = builder_of(self)->draft(tensors_of(outputs), content, pruned != 0,
                                                  fed ? tensors_of(fed) : std::vector<Tensor>());
    optimise(made.program);
    const Ref program(wrap_program(std::move(made.program)));
    const Ref names = string_list(made.inputs);
    return Py_BuildValue("(OO)", program.get(), names.get());
  });
}

PyObject* clone(PyObject* self, PyObject* for_inference) {
  return guarded(
      [&] { return wrap_builder(builder_of(self)->clone(PyObject_IsTrue(for_inference) != 0)); });
}

PyObject* is_late(PyObject* self, PyObject* tensor) {
  return guarded([&] { return PyBool_FromLong(builder_of(self)->is_late(tensor_of(tensor))); });
}

// taped(sources, targets) -> (sources, targets) with a history between them
PyObject* taped(PyObject* self, PyObject* args) {
  PyObject *sources, *targets;
  if (!PyArg_ParseTuple(args, "OO", &sources, &targets)) return nullptr;
  return guarded([&] {
    const Builder::Taped made = builder_of(self)->taped(tensors_of(sources), tensors_of(targets));
    const Ref from(wrap_list(made.sources)), to(wrap_list(made.targets));
    return Py_BuildValue("(OO)", from.get(), to.get());
  });
}

// cast_again(sources, replaced, targets, ranges) -> targets, cast as auto_cast says
PyObject* cast_again(PyObject* self, PyObject* args) {
  PyObject *sources, *replaced, *targets, *ranges;
  if (!PyArg_ParseTuple(args, "OOOO!", &sources, &replaced, &targets, &PyList_Type, &ranges))
    return nullptr;
  return guarded([&] {
    std::vector<std::pair<size_t, size_t>> stretches;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(ranges); ++i) {
      Py_ssize_t begin, end;
      if (!PyArg_ParseTuple(PyList_GET_ITEM(ranges, i), "nn", &begin, &end)) throw PythonError{};
      stretches.emplace_back(static_cast<size_t>(begin), static_cast<size_t>(end));
    }
    return wrap_list(builder_of(self)->cast_again(tensors_of(sources), tensors_of(replaced),
                                                  tensors_of(targets), stretches));
  });
}

PyObject* text(PyObject* self, PyObject*) {
  return guarded([&] {
    Program program = builder_of(self)->whole();
    name_values(program);
    program.renumber();
    program.collect_symbols();
    return PyUnicode_FromString(to_text(program, {.locations = false}).c_str());
  });
}

// One row per call: (op, [names of operands], [names of results], {attributes}).
PyObject* calls(PyObject* self, PyObject*) {
  return guarded([&] {
    const Builder& builder = *builder_of(self);
    const Program& program = builder.program();
    std::vector<std::string> names(program.values.size());
    for (size_t i = 0; i < names.size(); ++i)
      names[i] = program.label(static_cast<ValueId>(i)).substr(1);
    for (const Tensor& t : builder.named())
      names[static_cast<size_t>(symbolic_payload(t).value)] = maybe_history(t)->name;
    Ref rows = checked(PyList_New(0));
    for (const Instruction& i : program.body.instructions) {
      std::vector<std::string> operands, results;
      for_each_operand(i, [&](ValueId id) { operands.push_back(names[static_cast<size_t>(id)]); });
      for (ValueId id : i.results) results.push_back(names[static_cast<size_t>(id)]);
      const Ref attributes = checked(PyDict_New());
      for (size_t k = 0; k < i.operands.size(); ++k) {
        if (i.operands[k].kind != Operand::Attribute) continue;
        const Ref value = checked(from_value(i.attributes[k]));
        check(PyDict_SetItemString(attributes.get(), i.op->schema().parameters[k].name.c_str(),
                                   value.get()));
      }
      const Ref in = string_list(operands), out = string_list(results);
      const Ref row = checked(
          Py_BuildValue("(sOOO)", i.op->name().c_str(), in.get(), out.get(), attributes.get()));
      check(PyList_Append(rows.get(), row.get()));
    }
    return rows.release();
  });
}

// The dtype of each call's first result, None if it has none.
PyObject* result_dtypes(PyObject* self, PyObject*) {
  return guarded([&] {
    const Program& program = builder_of(self)->program();
    Ref list = checked(PyList_New(0));
    for (const Instruction& i : program.body.instructions) {
      const Ref dtype = i.results.empty()
                            ? Ref(Py_NewRef(Py_None))
                            : checked(wrap_dtype(program.type_of(i.results[0]).dtype));
      check(PyList_Append(list.get(), dtype.get()));
    }
    return list.release();
  });
}

// The pairs of open sizes that the calls so far combined: assumed to be equal, or broadcast to each other.
PyObject* met_sizes(PyObject* self, void*) {
  return guarded([&] {
    const Program program = builder_of(self)->whole();
    Ref pairs = checked(PyList_New(0));
    auto add = [&](Dim left, Dim right) {
      if (left.is_known() || right.is_known() || left.str() == right.str()) return;
      const Ref pair = checked(Py_BuildValue("(ss)", left.str().c_str(), right.str().c_str()));
      check(PyList_Append(pairs.get(), pair.get()));
    };
    for (const DimAssumption& a : program.assumptions)
      if (a.kind == DimAssumption::Equal) add(a.left, a.right);
    for (const Instruction& i : program.body.instructions) {
      if (i.op->def().epilogue.role != EpilogueRole::Spread) continue;
      const Shape& to = program.values[static_cast<size_t>(i.results[0])].type.shape;
      for_each_operand(i, [&](ValueId id) {
        const Shape& from = program.values[static_cast<size_t>(id)].type.shape;
        for (size_t k = 1; k <= std::min(from.size(), to.size()); ++k)
          add(from[from.size() - k], to[to.size() - k]);
      });
    }
    return pairs.release();
  });
}

PyObject* named(PyObject* self, PyObject*) {
  return guarded([&] { return wrap_list(builder_of(self)->named()); });
}
PyObject* held(PyObject* self, PyObject*) {
  return guarded([&] { return wrap_list(builder_of(self)->held()); });
}
PyObject* trained_variables(PyObject* self, PyObject*) {
  return guarded([&] { return wrap_list(builder_of(self)->trained_variables()); });
}
PyObject* outputs(PyObject* self, PyObject*) {
  return guarded([&] { return wrap_list(builder_of(self)->outputs()); });
}

// builder_from_text(text, constants, names): the program that a text describes. Constants that it omits
// are looked up by their label; `names` has the names of labels. States are those of a scope.
PyObject* from_text(PyObject*, PyObject* args) {
  PyObject *source, *constants, *names;
  if (!PyArg_ParseTuple(args, "UO!O!", &source, &PyDict_Type, &constants, &PyDict_Type, &names))
    return nullptr;
  return guarded([&] {
    std::vector<Tensor> missing;
    ParseOptions options;
    options.tensor = [&](const std::string& name, const ValueType& type) -> Tensor {
      PyObject* found = PyDict_GetItemString(constants, name.c_str());
      if (found && is_tensor(found)) {
        const Tensor& t = tensor_of(found);
        user_check(t.dtype() == type.dtype && t.shape() == type.shape, ErrorKind::InvalidArgument,
                   "the program reads {} as {}, but the file holds {}.", name, type.str(),
                   t.describe());
        return t;
      }
      return missing.emplace_back(Tensor::empty(type.shape, type.dtype));
    };
    Program program = parse_program(utf8(source), options);
    for (const Constant& c : program.constants)
      for (const Tensor& t : missing)
        user_check(t.impl() != c.tensor.impl(), ErrorKind::InvalidArgument,
                   "the values of the constant {} are missing.", program.label(c.value));
    for (State& s : program.states) s.tensor = Tensor();
    for (ProgramValue& v : program.values)
      if (PyObject* name = v.name.empty() ? nullptr : PyDict_GetItemString(names, v.name.c_str()))
        v.name = utf8(name);
    return wrap_builder(std::make_shared<Builder>(std::move(program)));
  });
}

PyObject* version(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(builder_of(self)->version());
}
PyObject* serial(PyObject* self, void*) {
  return PyLong_FromUnsignedLongLong(builder_of(self)->serial());
}
PyObject* state_names(PyObject* self, void*) {
  return guarded([&] { return string_list(builder_of(self)->state_names()).release(); });
}
PyObject* input_names(PyObject* self, void*) {
  return guarded([&] {
    const Program& program = builder_of(self)->program();
    std::vector<std::string> names;
    for (ValueId id : program.inputs) names.push_back(program.label(id).substr(1));
    return string_list(names).release();
  });
}

// capture_of(tensor): the serial number of the program that a variable belongs to; None for others.
PyObject* capture_of(PyObject*, PyObject* tensor) {
  if (!is_tensor(tensor) || tensor_of(tensor).kind() != Kind::Symbolic) Py_RETURN_NONE;
  return PyLong_FromUnsignedLongLong(symbolic_payload(tensor_of(tensor)).capture);
}

PyMethodDef kMethods[] = {
    {"input", input, METH_VARARGS, "A variable that is fed to runs."},
    {"state", state, METH_VARARGS, "A variable that persists between runs."},
    {"follow", follow, METH_O, "Another handle of a variable sees later writes too."},
    {"find", find, METH_O, "The variable of this name, or None."},
    {"resolve", resolve, METH_O, "The number of the value that a variable has."},
    {"begin", begin, METH_O, "What follows is for training, backward or update."},
    {"end", end, METH_NOARGS, "The end of what began last."},
    {"alternative", alternative, METH_VARARGS, "The replacement of a variable in inference."},
    {"draft", draft, METH_VARARGS, "A program that can be run, and the names of its inputs."},
    {"clone", clone, METH_O, "A copy; for inference if true."},
    {"is_late", is_late, METH_O, "Whether calls read it before its gradient was requested."},
    {"taped", taped, METH_VARARGS, "The calls from sources to targets again, with the tape."},
    {"result_dtypes", result_dtypes, METH_NOARGS, "The dtype of each call's first result."},
    {"cast_again", cast_again, METH_VARARGS,
     "The calls from sources to targets again, cast as auto_cast says."},
    {"text", text, METH_NOARGS, "The program as text."},
    {"calls", calls, METH_NOARGS, "The calls so far."},
    {"named", named, METH_NOARGS, "The variables that have names."},
    {"held", held, METH_NOARGS, "The variables that Python has objects for."},
    {"trained_variables", trained_variables, METH_NOARGS,
     "The persistable variables that require a gradient."},
    {"outputs", outputs, METH_NOARGS, "Outputs of the program that it began with."},
    {}};
PyGetSetDef kGetters[] = {{"version", version, nullptr, nullptr, nullptr},
                          {"serial", serial, nullptr, nullptr, nullptr},
                          {"state_names", state_names, nullptr, nullptr, nullptr},
                          {"input_names", input_names, nullptr, nullptr, nullptr},
                          {"met_sizes", met_sizes, nullptr, nullptr, nullptr},
                          {}};
PyType_Slot kSlots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                        {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                        {Py_tp_methods, kMethods},
                        {Py_tp_getset, kGetters},
                        {0, nullptr}};
PyType_Spec kSpec = {"oar._C.Builder", sizeof(PyBuilder), 0, Py_TPFLAGS_DEFAULT, kSlots};
PyMethodDef kFunctions[] = {{"static_switch", static_switch, METH_O, nullptr},
                            {"static_within", static_within, METH_VARARGS, nullptr},
                            {"static_active", static_active, METH_NOARGS, nullptr},
                            {"builder_from_text", from_text, METH_VARARGS, nullptr},
                            {"capture_of", capture_of, METH_O, nullptr},
                            {}};

}  // namespace

namespace {

std::optional<Program> constant_part_of(const Tensor& t) {
  if (!t.defined() || t.kind() != Kind::Symbolic) return std::nullopt;
  const uint64_t serial = symbolic_payload(t).capture;
  if (Builder* builder = Builder::current(); builder && serial == builder->serial())
    return constant_part(*builder, t);
  Capture* capture = Capture::current();
  if (!capture || serial != capture->serial()) return std::nullopt;
  return constant_part(*capture, t);
}

// The elements of a tensor that follow from constants and sizes. Constants belong to the capture: reading them here
// adds no dependency to the program.
std::optional<std::vector<Dim>> constant_sizes(const Tensor& t) {
  const std::optional<Program> part = constant_part_of(t);
  if (!part) return std::nullopt;
  const ReadHook hook = std::exchange(t_read_hook, nullptr);
  const ScopeGuard restore([&] { t_read_hook = hook; });
  return as_sizes(*part);
}

}  // namespace

Tensor known_value(const Tensor& t) {
  if (is_sharded(t)) {
    const GradMode quiet(false);
    return lay_out(t, kAlone, {});
  }
  std::optional<Program> part = constant_part_of(t);
  if (!part || !part->symbols.empty()) return t;
  const LayersOff off(kFunctionalise | kCapture);
  return Executor(std::move(*part)).run({})[0];
}

namespace {

// known_size(tensor): the one integer in it, as a number or a size, if it is known before a run; else None.
PyObject* known_size(PyObject*, PyObject* object) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_of(object);
    if (!is_integral(t.dtype()) || t.dtype() == DType::Bool || !(t.numel() == Dim(1)))
      Py_RETURN_NONE;
    const std::optional<std::vector<Dim>> sizes = constant_sizes(t);
    if (!sizes) Py_RETURN_NONE;
    return from_dim(sizes->at(0));
  });
}

PyMethodDef kKnown[] = {{"known_size", known_size, METH_O, nullptr}, {}};

}  // namespace

std::vector<Dim> known_sizes(const Tensor& t) {
  if (std::optional<std::vector<Dim>> found = constant_sizes(t)) return std::move(*found);
  const Tensor value = known_value(t);
  user_check(is_integral(t.dtype()) || value.kind() != Kind::Symbolic, ErrorKind::InvalidType,
             "integers are expected, not {}.", t.describe());
  std::vector<Dim> sizes;
  for (int64_t v : value.to_vector<int64_t>()) sizes.push_back(v);
  return sizes;
}

namespace {

// Where the sizes that a variable stands for are kept, so that a second call has the same ones; null inside a branch or loop,
// whose sizes end with it.
std::vector<Dim>* sizes_kept_for(const Tensor& t) {
  struct Kept {
    uint64_t program = 0;
    std::unordered_map<ValueId, std::vector<Dim>> sizes;
  };
  thread_local Kept kept;
  Builder* builder = Builder::current();
  if (builder != Capture::current()) return nullptr;
  if (kept.program != builder->serial()) kept = {builder->serial(), {}};
  return &kept.sizes[builder->resolve(t)];
}

}  // namespace

std::vector<Dim> sizes_in_program(const Tensor& t) {
  if (std::optional<std::vector<Dim>> found = constant_sizes(t)) return std::move(*found);
  const bool countable =
      is_integral(t.dtype()) && t.dtype() != DType::Bool && t.rank() <= 1 && t.numel().is_known();
  if (!Builder::current() || !countable || known_value(t).kind() != Kind::Symbolic)
    return known_sizes(t);
  std::vector<Dim>* kept = sizes_kept_for(t);
  if (kept && !kept->empty()) return *kept;
  // The number of rows of a result whose size depends on the value.
  std::vector<Dim> sizes;
  const Tensor values = reshape(t, {t.numel()});
  for (int64_t i = 0; i < t.numel().word(); ++i)
    sizes.push_back(repeat_positions(slice(values, {0}, {i}, {i + 1})).dim(0));
  if (kept) *kept = sizes;
  return sizes;
}

void init_static(PyObject* module) {
  g_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&kSpec)).release());
  check(PyModule_AddObjectRef(module, "Builder", reinterpret_cast<PyObject*>(g_type)));
  check(PyModule_AddFunctions(module, kFunctions));
  check(PyModule_AddFunctions(module, kKnown));
}

}  // namespace oar::python
