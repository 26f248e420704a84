// Ops as Python callables: arguments are parsed by schema, directly into the call's values.
#include <algorithm>
#include <unordered_map>

#include "call_text.h"
#include "common.h"
#include "frames.h"
#include "oar/base/flags.h"
#include "oar/base/scope_guard.h"
#include "oar/base/string_util.h"
#include "oar/compiler/capture/training_calls.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/launch_queue.h"
#include "oar/ops/core/program_args.h"
#include "program_calls.h"
#include "spelling.h"

namespace oar::python {
namespace {

struct PyOp {
  PyObject_HEAD vectorcallfunc vectorcall;
  const Op* op;
  PyObject** names;  // interned parameter names
  PyObject* dict;    // __module__, __qualname__, __signature__, …
  bool strict;       // PyTorch's names mean something else here; see oar/_spelling.py
};
PyTypeObject* g_type = nullptr;
PyObject* g_name_keyword = nullptr;

// Thrown where arguments do not fit the schema, before it is known whether another form of the call does.
struct Misfit {};

// Rejects a call, naming what the user called.
template <class... A>
[[noreturn]] void refuse_call(const Op& op, fmt::format_string<A...> text, A&&... args) {
  const CalledOp called = called_as(op);
  const OpScope scope(called.name.c_str());
  fail(ErrorKind::InvalidType, "{}\nhint: The signature is {}.",
       oar::format(text, std::forward<A>(args)...), called.signature);
}

// The expected type of an argument, in words.
const char* expected_of(const Op& op, const Parameter& p) {
  const bool counts = p.type == ArgType::Int, tensor = p.is_tensor();
  if (p.type == ArgType::Program)
    return "a captured program (see oar.static.nn.cond and while_loop)";
  if (p.list)
    return tensor ? "a list of tensors" : counts ? "an int or a list of ints" : "a list of numbers";
  if (tensor) return !p.written && op.has(Trait::Broadcast) ? "a tensor or a number" : "a tensor";
  switch (p.type) {
    case ArgType::Bool:
      return "a bool";
    case ArgType::Int:
      return "an int";
    case ArgType::String:
      return "a str";
    case ArgType::DType:
      return "a dtype such as 'float32'";
    case ArgType::Shape:
      return "a shape (a list of ints)";
    default:
      return "a number";
  }
}

// The object in words: a short value with its type, or the type alone.
std::string shown(PyObject* object) {
  if (object == Py_None) return "None";
  const char* type = Py_TYPE(object)->tp_name;
  if (!PyUnicode_Check(object) && !PyLong_Check(object) && !PyFloat_Check(object)) return type;
  const Ref text = checked(PyObject_Repr(object));
  const char* value = PyUnicode_AsUTF8(text.get());
  if (!value) PyErr_Clear();
  return value && std::string_view(value).size() <= 40 ? oar::format("{} ({})", value, type) : type;
}

// Could to_tensor convert it?
bool could_be_tensor(PyObject* object) {
  return is_number(object) || PyList_Check(object) || PyTuple_Check(object) ||
         PyObject_HasAttrString(object, "__array__");
}

// A call's arguments with temporaries: lists, literals.
class CallFrame {
 public:
  // `final`: a call that does not fit is an error, not a Misfit.
  CallFrame(const Op& op, bool final)
      : op_(op), count_(op.schema().parameters.size()), final_(final) {}
  ~CallFrame() = default;

  void set(size_t i, PyObject* object);
  void fill_defaults(uint32_t given);
  Args args() const { return {values_, count_}; }

  template <class... A>
  [[noreturn]] void refuse_call(fmt::format_string<A...> text, A&&... args) const {
    if (!final_) throw Misfit{};
    python::refuse_call(op_, text, std::forward<A>(args)...);
  }

 private:
  [[noreturn]] void refuse(const Parameter& p, PyObject* object) const;
  [[noreturn]] void refuse_element(const Parameter& p, PyObject* element) const;
  Value tensor(const Parameter& p, PyObject* object);
  Value tensors(const Parameter& p, PyObject* object);
  int64_t integer(const Parameter& p, PyObject* object) const;
  Value integers(const Parameter& p, PyObject* object);
  Value doubles(const Parameter& p, PyObject* object);
  Value single(const Parameter& p, PyObject* object);

  const Op& op_;
  size_t count_;
  bool final_;
  union {
    Value values_[32];  // trivial; each is written before it is read
  };
  SmallVector<Tensor, 2> made_;
  std::vector<std::vector<Tensor>> lists_;
  std::vector<std::unique_ptr<int64_t[]>> blocks_;
  size_t used_ = 0;
  int64_t inline_words_[24];

  int64_t* words(size_t n) {
    if (used_ + n <= 24) {
      used_ += n;
      return inline_words_ + used_ - n;
    }
    blocks_.push_back(std::make_unique<int64_t[]>(n));
    return blocks_.back().get();
  }
};

void CallFrame::refuse(const Parameter& p, PyObject* object) const {
  if (!final_) throw Misfit{};
  const bool nearly = p.is_tensor() && !p.list && could_be_tensor(object);
  refuse_call("argument '{}' must be {}, not {}.{}", p.name, expected_of(op_, p), shown(object),
              nearly ? oar::format(" Use {}.to_tensor to convert it.", library_name()) : "");
}

void CallFrame::refuse_element(const Parameter& p, PyObject* element) const {
  refuse_call("argument '{}' must be {}, but it holds {}.", p.name, expected_of(op_, p),
              shown(element));
}

bool takes_one_tensor(const Op& op) {
  return std::ranges::count_if(op.schema().parameters, &Parameter::is_tensor) == 1;
}

Value CallFrame::tensor(const Parameter& p, PyObject* object) {
  if (is_tensor(object)) [[likely]]
    return Value(tensor_of(object));
  if (!p.written && op_.has(Trait::Broadcast)) {
    // A static program takes variables: an array in it is most likely meant to be fed, a number alone to be computed now.
    const bool in_program = in_static_program();
    if (is_number(object) && !(in_program && takes_one_tensor(op_)))
      made_.push_back(weak_scalar(object));
    else if (!in_program && PyObject_HasAttrString(object, "__array__"))
      made_.push_back(to_tensor(object, std::nullopt));
    else
      refuse(p, object);
    return Value(made_.back());
  }
  refuse(p, object);
}

Value CallFrame::tensors(const Parameter& p, PyObject* object) {
  if (!PyList_Check(object) && !PyTuple_Check(object)) refuse(p, object);
  std::vector<Tensor> list;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(object); ++i) {
    PyObject* element = PySequence_Fast_GET_ITEM(object, i);
    if (is_tensor(element))
      list.push_back(tensor_of(element));
    else if (element == Py_None && p.optional_elements)
      list.emplace_back();
    else
      refuse_element(p, element);
  }
  lists_.push_back(std::move(list));
  return Value(TensorList(lists_.back()));
}

// Tensors and arrays look like numbers to Python; those with axes are lists.
bool has_length(PyObject* object) {
  if (is_tensor(object)) return tensor_of(object).rank() > 0;
  const bool sized = PySequence_Check(object) && PySequence_Size(object) >= 0;
  PyErr_Clear();
  return sized;
}

// A number or a size, as one word.
int64_t CallFrame::integer(const Parameter& p, PyObject* object) const {
  try {
    if (p.type == ArgType::Shape && is_tensor(object) && tensor_of(object).numel() == Dim(1))
      return sizes_in_program(tensor_of(object))[0].word();
    return to_dim(object).word();
  } catch (const Error& error) {
    throw Error(error.kind(), oar::format("argument '{}': {}", p.name, error.text()), error.hint())
        .with_op(called_as(op_).name);
  }
}

Value CallFrame::integers(const Parameter& p, PyObject* object) {
  if (PyLong_Check(object) || (PyIndex_Check(object) && !has_length(object))) {
    int64_t* word = words(1);
    *word = integer(p, object);
    return Value(Ints(word, 1));
  }
  if (is_tensor(object)) {
    const std::vector<Dim> values = p.type == ArgType::Shape ? sizes_in_program(tensor_of(object))
                                                             : known_sizes(tensor_of(object));
    int64_t* copy = words(values.size());
    for (size_t i = 0; i < values.size(); ++i) copy[i] = values[i].word();
    return Value(Ints(copy, values.size()));
  }
  const Ref fast = Ref(
      PySequence_Check(object) && !PyUnicode_Check(object) ? PySequence_Fast(object, "") : nullptr);
  if (!fast) {
    PyErr_Clear();
    refuse(p, object);
  }
  const auto n = static_cast<size_t>(PySequence_Fast_GET_SIZE(fast.get()));
  int64_t* list = words(n);
  for (size_t i = 0; i < n; ++i) {
    PyObject* element = PySequence_Fast_GET_ITEM(fast.get(), static_cast<Py_ssize_t>(i));
    if (!PyIndex_Check(element) && !is_tensor(element)) refuse_element(p, element);
    list[i] = integer(p, element);
  }
  return Value(Ints(list, n));
}

Value CallFrame::doubles(const Parameter& p, PyObject* object) {
  const Ref fast(PySequence_Fast(object, ""));
  if (!fast) {
    PyErr_Clear();
    refuse(p, object);
  }
  const auto n = static_cast<size_t>(PySequence_Fast_GET_SIZE(fast.get()));
  auto* list = reinterpret_cast<double*>(words(n));
  for (size_t i = 0; i < n; ++i) {
    PyObject* element = PySequence_Fast_GET_ITEM(fast.get(), static_cast<Py_ssize_t>(i));
    if (!is_number(element) && !is_tensor(element)) refuse_element(p, element);
    list[i] = PyFloat_AsDouble(element);
    if (PyErr_Occurred()) throw PythonError{};
  }
  return Value(std::span<const double>(list, n));
}

Value CallFrame::single(const Parameter& p, PyObject* object) {
  switch (p.type) {
    case ArgType::Bool:
      if (PyBool_Check(object)) return Value(object == Py_True);
      if (PyLong_Check(object) || is_tensor(object)) {
        const int truth = PyObject_IsTrue(object);
        if (truth < 0) throw PythonError{};
        return Value(truth != 0);
      }
      refuse(p, object);
    case ArgType::Int:
      if (!PyIndex_Check(object) && !is_tensor(object)) refuse(p, object);
      return Value(integer(p, object));
    case ArgType::Float: {
      if (!is_number(object) && !is_tensor(object)) refuse(p, object);
      const double value = PyFloat_AsDouble(object);
      if (value == -1.0 && PyErr_Occurred()) throw PythonError{};
      return Value(value);
    }
    case ArgType::Scalar: {
      if (is_tensor(object)) {
        Ref number(item(tensor_of(object)));
        if (!number) throw PythonError{};
        return single(p, number.get());
      }
      if (!is_number(object)) refuse(p, object);
      const Scalar scalar = to_scalar(object);
      if (scalar.kind() != Scalar::Complex) return Value(scalar);
      auto* parts = reinterpret_cast<double*>(words(2));
      parts[0] = scalar.to_complex().real();
      parts[1] = scalar.to_complex().imag();
      Value v;
      v.tag = OAR_TAG_COMPLEX;
      v.count = 2;
      v.doubles = parts;
      return v;
    }
    case ArgType::String: {
      if (!PyUnicode_Check(object)) refuse(p, object);
      Py_ssize_t size;
      const char* text = PyUnicode_AsUTF8AndSize(object, &size);
      if (!text) throw PythonError{};
      return Value(std::string_view(text, static_cast<size_t>(size)));
    }
    case ArgType::DType: {
      DType dtype;
      if (to_dtype(object, &dtype)) return Value(dtype);
      const Ref any(wrap_dtype(DType::Bool));
      if (Py_TYPE(object) == Py_TYPE(any.get()))
        throw PythonError{};  // one without numbers: it says so
      PyErr_Clear();
      refuse(p, object);
    }
    default:
      fail(ErrorKind::Internal, "unexpected parameter type");
  }
}

void CallFrame::set(size_t i, PyObject* object) {
  const Parameter& p = op_.schema().parameters[i];
  if (object == Py_None && !p.optional && p.type == ArgType::Bool && !p.list) {
    values_[i] = Value(false);  // as in Paddle
  } else if (object == Py_None) {
    if (!p.optional) refuse(p, object);
    values_[i] = Value();
  } else if (p.type == ArgType::Program) {
    refuse(p, object);
  } else if (p.is_tensor()) {
    values_[i] = p.list ? tensors(p, object) : tensor(p, object);
  } else if (p.type == ArgType::Shape || (p.list && p.type == ArgType::Int)) {
    values_[i] = integers(p, object);
  } else if (p.list) {
    values_[i] = doubles(p, object);
  } else {
    values_[i] = single(p, object);
  }
}

void CallFrame::fill_defaults(uint32_t given) {
  const Frame& defaults = op_.schema().defaults();
  for (size_t i = 0; i < count_; ++i) {
    if (given >> i & 1) continue;
    const Parameter& p = op_.schema().parameters[i];
    if (!p.has_default) refuse_call("argument '{}' is missing.", p.name);
    values_[i] = defaults[i];
  }
}

size_t parameter_named(const PyOp* self, PyObject* name, const CallFrame& frame) {
  const auto& parameters = self->op->schema().parameters;
  const size_t visible = self->op->schema().visible_count();
  for (size_t i = 0; i < visible; ++i)
    if (self->names[i] == name) return i;
  for (size_t i = 0; i < visible; ++i)
    if (PyUnicode_Compare(self->names[i], name) == 0) return i;
  if (PyUnicode_Compare(name, g_name_keyword) == 0) return SIZE_MAX;
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) throw PythonError{};
  if (!self->strict)
    for (const char* meant : meanings_of(text))
      for (size_t i = 0; i < visible; ++i)
        if (parameters[i].name == meant) return i;
  std::vector<std::string> known;
  for (size_t i = 0; i < visible; ++i) known.push_back(parameters[i].name);
  const std::string nearest = nearest_name(text, known);
  frame.refuse_call("there is no argument '{}'{}", text,
                    nearest.empty() ? "." : oar::format("; did you mean '{}'?", nearest));
}

// Too many arguments. Sizes or axes one by one, x.reshape(2, 3), are the usual reason.
[[noreturn]] void refuse_count(const Op& op, const CallFrame& frame, PyObject* const* args,
                               size_t count) {
  const std::vector<Parameter>& parameters = op.schema().parameters;
  const size_t visible = op.schema().visible_count();
  size_t list = 0;
  while (list < visible && parameters[list].type != ArgType::Shape &&
         !(parameters[list].list && parameters[list].type == ArgType::Int))
    ++list;
  bool loose = list < visible;
  for (size_t i = list; i < count; ++i) loose &= PyLong_Check(args[i]) != 0;
  frame.refuse_call("it takes {} arguments, but {} were passed.{}", visible, count,
                    loose ? oar::format(" Pass '{}' as one list.", parameters[list].name) : "");
}

int64_t total_elements(Args args) {
  int64_t n = 0;
  for_each_tensor(args, [&](const Tensor& t) { n += t->numel; });
  return n;
}

Outputs run(const Op& op, Args args) {
  if (Builder* builder = Builder::current(); builder && !(t_layers.off & kCapture)) [[unlikely]]
    if (std::optional<Outputs> outputs = call_in_builder(*builder, op, args))
      return std::move(*outputs);
  static const FlagHandle<int> threshold("gil_release_elements");
  bool big = total_elements(args) >= threshold.get();
  if (!big)  // a creation op has no tensors, only a shape
    for (const Value& v : args)
      if (v.tag == OAR_TAG_INTS && v.count > 0 && v.count < 16 && !args.empty() &&
          !args[0].is_tensor()) {
        double product = 1;
        for (int64_t d : v.as_ints()) product *= static_cast<double>(d);
        big |= product >= threshold.get();
      }
  try {
    if (t_launch_queue || (t_layers.on & kCapture)) {
      const CalledName called(op.name().c_str());
      return dispatch(op, args);
    }
    if (!big) return dispatch(op, args);
    const GilRelease release;
    return dispatch(op, args);
  } catch (const LateError&) {
    throw;
  } catch (Error& error) {  // a part may have failed; the user called the whole
    add_call(error, op, args);
    error.with_op(called_as(op).name);
    throw;
  }
}

PyObject* wrap_outputs(const Op& op, Outputs& outputs) {
  if (op.schema().returns_list()) return wrap_list({outputs.data(), outputs.size()});
  if (op.schema().results.size() == 1) return wrap(std::move(outputs[0]));
  return wrap_tuple({outputs.data(), outputs.size()});
}

// Puts the arguments of a call where the schema has them.
void bind(CallFrame& frame, const PyOp* self, PyObject* const* args, size_t count,
          PyObject* keywords) {
  const Op& op = *self->op;
  const auto& parameters = op.schema().parameters;
  const size_t visible = op.schema().visible_count();
  if (count > visible &&
      !(count == visible + 1 && (args[count - 1] == Py_None || PyUnicode_Check(args[count - 1]))))
    refuse_count(op, frame, args, count);
  const size_t positional = std::min(count, visible);
  uint32_t given = 0;
  for (size_t i = 0; i < positional; ++i) {
    frame.set(i, args[i]);
    given |= 1u << i;
  }
  if (keywords) {
    for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keywords); ++k) {
      const size_t i = parameter_named(self, PyTuple_GET_ITEM(keywords, k), frame);
      if (i == SIZE_MAX) continue;  // name=…, which every function of Paddle takes
      if (given >> i & 1) frame.refuse_call("argument '{}' was passed twice.", parameters[i].name);
      frame.set(i, args[count + static_cast<size_t>(k)]);
      given |= 1u << i;
    }
  }
  if (given != (uint64_t{1} << parameters.size()) - 1) frame.fill_defaults(given);
}

// The argument `name`, which every function takes last; null if it is not passed.
PyObject* given_name(const Op& op, PyObject* const* args, size_t count, PyObject* keywords) {
  PyObject* name = count > op.schema().visible_count() ? args[count - 1] : nullptr;
  for (Py_ssize_t k = 0; keywords && k < PyTuple_GET_SIZE(keywords); ++k)
    if (PyUnicode_Compare(PyTuple_GET_ITEM(keywords, k), g_name_keyword) == 0)
      name = args[count + static_cast<size_t>(k)];
  return name && PyUnicode_Check(name) ? name : nullptr;
}

// A call while a static program is written.
[[gnu::noinline]] Outputs run_in_program(const Op& op, Args values, PyObject* const* args,
                                         size_t count, PyObject* keywords) {
  Outputs outputs = run(op, values);
  PyObject* name = given_name(op, args, count, keywords);
  if (name && outputs.size() == 1) name_result(outputs[0], name);
  return outputs;
}

// A call that does not fit the schema: another form of it, or the error. Apart, so that a call that fits has a small stack.
[[gnu::noinline]] PyObject* call_that_does_not_fit(PyObject* callable, PyObject* const* args,
                                                   size_t count, PyObject* keywords) {
  if (Ref made = call_in_other_form(callable, args, count, keywords)) return made.release();
  const auto* self = reinterpret_cast<PyOp*>(callable);
  CallFrame frame(*self->op, /*final=*/true);
  bind(frame, self, args, count, keywords);
  internal_check(false, "{} fits now", self->op->name());
  return nullptr;
}

PyObject* op_call(PyObject* callable, PyObject* const* args, size_t flags, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    const auto* self = reinterpret_cast<PyOp*>(callable);
    const Op& op = *self->op;
    const auto count = static_cast<size_t>(PyVectorcall_NARGS(flags));
    try {
      CallFrame frame(op, /*final=*/false);
      bind(frame, self, args, count, keywords);
      Outputs outputs = in_static_program()
                            ? run_in_program(op, frame.args(), args, count, keywords)
                            : run(op, frame.args());
      return wrap_outputs(op, outputs);
    } catch (const Misfit&) {  // NOLINT(bugprone-empty-catch)
      // Below, where no C++ exception is being handled: Python code runs.
    }
    return call_that_does_not_fit(callable, args, count, keywords);
  });
}

PyObject* op_repr(PyObject* self) {
  return PyUnicode_FromFormat("<op %s>",
                              reinterpret_cast<PyOp*>(self)->op->schema().visible_str().c_str());
}

void op_dealloc(PyObject* self) {
  auto* op = reinterpret_cast<PyOp*>(self);
  for (size_t i = 0; i < op->op->schema().parameters.size(); ++i) Py_DECREF(op->names[i]);
  delete[] op->names;
  Py_XDECREF(op->dict);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* op_descr_get(PyObject* self, PyObject* object, PyObject*) {
  if (!object || object == Py_None) {
    Py_INCREF(self);
    return self;
  }
  return PyMethod_New(self, object);
}

PyObject* get_op_name(PyObject* self, void*) {
  return PyUnicode_FromString(reinterpret_cast<PyOp*>(self)->op->name().c_str());
}
PyObject* get_schema(PyObject* self, void*) {
  return PyUnicode_FromString(reinterpret_cast<PyOp*>(self)->op->schema().visible_str().c_str());
}
PyObject* truth(bool value) { return value ? Py_True : Py_False; }

// The parameters that users see, as `Parameter` of tools/generate/schema.py has them; `text` is the whole type.
Ref parameter_list(const Op& op) {
  const std::vector<Parameter>& parameters = op.schema().parameters;
  const size_t visible = op.schema().visible_count();
  Ref list = checked(PyList_New(static_cast<Py_ssize_t>(visible)));
  for (size_t i = 0; i < visible; ++i) {
    const Parameter& p = parameters[i];
    Ref item = checked(Py_BuildValue(
        "{s:s,s:s,s:s,s:O,s:O,s:O,s:O,s:z}", "name", p.name.c_str(), "type", p.type_name().c_str(),
        "text", p.type_text().c_str(), "list", truth(p.list), "optional", truth(p.optional),
        "optional_elements", truth(p.optional_elements), "written", truth(p.written), "default",
        p.has_default ? p.default_text.c_str() : nullptr));
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), item.release());
  }
  return list;
}
Ref result_list(const Op& op) {
  Ref list = checked(PyList_New(0));
  for (const Result& r : op.schema().results) {
    const Ref item = checked(Py_BuildValue("{s:s,s:O,s:O}", "name", r.name.c_str(), "list",
                                           truth(r.list), "written", truth(r.written)));
    check(PyList_Append(list.get(), item.get()));
  }
  return list;
}
PyObject* get_parameters(PyObject* self, void*) {
  return guarded([&] { return parameter_list(*reinterpret_cast<PyOp*>(self)->op).release(); });
}
PyObject* get_results(PyObject* self, void*) {
  return guarded([&] { return result_list(*reinterpret_cast<PyOp*>(self)->op).release(); });
}
PyObject* get_doc(PyObject* self, void*) {
  return guarded([&] {
    const Op& op = *reinterpret_cast<PyOp*>(self)->op;
    const Op* base = op.inplace_of();
    const Ref module = checked(PyImport_ImportModule("oar._docs"));
    const Ref parameters = parameter_list(op), results = result_list(op);
    return PyObject_CallMethod(
        module.get(), "op_doc", "ssssssOO", op.name().c_str(), (base ? base : &op)->name().c_str(),
        op.family().c_str(), op.def().brief ? op.def().brief : "",
        op.schema().visible_str().c_str(), op.def().dtypes, parameters.get(), results.get());
  });
}
PyObject* get_signature(PyObject* self, void*) {
  return guarded([&] {
    const Op& op = *reinterpret_cast<PyOp*>(self)->op;
    const Ref parameters = parameter_list(op);
    const Ref module = checked(PyImport_ImportModule("oar._signature"));
    return PyObject_CallMethod(
        module.get(), "signature_of", "Oini", parameters.get(), op.has(Trait::Broadcast) ? 1 : 0,
        static_cast<Py_ssize_t>(op.schema().results.size()), op.schema().returns_list() ? 1 : 0);
  });
}
PyObject* get_strict(PyObject* self, void*) {
  return PyBool_FromLong(reinterpret_cast<PyOp*>(self)->strict);
}
int set_strict(PyObject* self, PyObject* value, void*) {
  reinterpret_cast<PyOp*>(self)->strict = value == Py_True;
  return 0;
}
PyObject* op_reduce(PyObject* self, PyObject*) {
  const Ref module = checked(PyImport_ImportModule("oar._C"));
  const Ref getter = checked(PyObject_GetAttrString(module.get(), "op"));
  return Py_BuildValue("O(s)", getter.get(), reinterpret_cast<PyOp*>(self)->op->name().c_str());
}

PyGetSetDef kGetters[] = {
    {"__name__", get_op_name, nullptr, nullptr, nullptr},
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__qualname__", get_op_name, nullptr, nullptr, nullptr},
    {"__signature__", get_signature, nullptr, nullptr, nullptr},
    {"schema", get_schema, nullptr, "The op's schema line.", nullptr},
    {"parameters", get_parameters, nullptr, "Its parameters.", nullptr},
    {"results", get_results, nullptr, "Its results.", nullptr},
    {"strict", get_strict, set_strict, "Whether it takes the names of its parameters only.",
     nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};
PyMethodDef kMethods[] = {{"__reduce__", op_reduce, METH_NOARGS, nullptr}, {}};
PyMemberDef kMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyOp, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(PyOp, dict), READONLY, nullptr},
    {}};
PyType_Slot kSlots[] = {{Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                        {Py_tp_repr, reinterpret_cast<void*>(op_repr)},
                        {Py_tp_dealloc, reinterpret_cast<void*>(op_dealloc)},
                        {Py_tp_descr_get, reinterpret_cast<void*>(op_descr_get)},
                        {Py_tp_getset, kGetters},
                        {Py_tp_methods, kMethods},
                        {Py_tp_members, kMembers},
                        {0, nullptr}};
PyType_Spec kSpec = {"oar._C.OpFunction", sizeof(PyOp), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                     kSlots};

PyObject* make_op(const Op& op) {
  auto* self = PyObject_New(PyOp, g_type);
  if (!self) throw PythonError{};
  self->vectorcall = op_call;
  self->op = &op;
  self->dict = nullptr;
  self->strict = false;
  const auto& parameters = op.schema().parameters;
  self->names = new PyObject*[parameters.size()];
  for (size_t i = 0; i < parameters.size(); ++i)
    self->names[i] = PyUnicode_InternFromString(parameters[i].name.c_str());
  return reinterpret_cast<PyObject*>(self);
}

}  // namespace

PyObject* op_function(const Op& op) {
  // One object per op, forever: functions are compared and pickled by identity.
  static auto* made = new std::unordered_map<const Op*, PyObject*>;
  PyObject*& function = (*made)[&op];
  if (!function) function = make_op(op);
  Py_INCREF(function);
  return function;
}

PyObject* call_op(const Op& op, PyObject* const* args, Py_ssize_t count) {
  return guarded([&] {
    CallFrame frame(op, /*final=*/true);
    uint32_t given = 0;
    for (Py_ssize_t i = 0; i < count; ++i) {
      frame.set(static_cast<size_t>(i), args[i]);
      given |= 1u << i;
    }
    if (given != (uint64_t{1} << op.schema().parameters.size()) - 1) frame.fill_defaults(given);
    Outputs outputs = run(op, frame.args());
    return wrap_outputs(op, outputs);
  });
}

void init_op_type(PyObject* module) {
  g_name_keyword = PyUnicode_InternFromString("name");
  g_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&kSpec)).release());
  check(PyModule_AddObjectRef(module, "OpFunction", reinterpret_cast<PyObject*>(g_type)));
}

}  // namespace oar::python
