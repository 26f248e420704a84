// PyTorch's names of arguments, and Python functions that take them.
#include "spelling.h"

#include <algorithm>

namespace oar::python {
namespace {

struct Spelling {
  std::string_view keyword;
  std::vector<const char*> parameters;
};

// The one table of second names. `dim` means `axis` where a function has a parameter `axis`, else `axes`.
const std::vector<Spelling>& spellings() {
  static const auto* table = new std::vector<Spelling>{
      {"A", {"x"}},
      {"B", {"y"}},
      {"batch1", {"x"}},
      {"batch2", {"y"}},
      {"boundaries", {"sorted_sequence"}},
      {"dilation", {"dilations"}},
      {"dim", {"axis", "axes"}},
      {"dim0", {"axis0"}},
      {"dim1", {"axis1"}},
      {"dim2", {"axis2"}},
      {"dimension", {"axis"}},
      {"dims", {"axis", "axes", "repeat_times", "perm"}},
      {"elements", {"x"}},
      {"end", {"stop"}},
      {"end_dim", {"stop_axis"}},
      {"eps", {"epsilon"}},
      {"exponent", {"y"}},
      {"from", {"min", "low"}},
      {"indices", {"num_or_indices"}},
      {"indices_or_sections", {"num_or_indices"}},
      {"input", {"x", "arr", "values"}},
      {"kernel_size", {"kernel_sizes"}},
      {"lambd", {"threshold", "lam"}},
      {"m", {"num_columns"}},
      {"mat1", {"x"}},
      {"mat2", {"y"}},
      {"module", {"sublayer", "layer"}},
      {"modules", {"sublayers"}},
      {"n", {"num_rows"}},
      {"obj", {"x"}},
      {"ord", {"p"}},
      {"orig_func", {"func"}},
      {"other", {"y"}},
      {"output_size", {"output_sizes"}},
      {"padding", {"paddings"}},
      {"persistent", {"persistable"}},
      {"recurse", {"include_sublayers"}},
      {"return_indices", {"return_mask"}},
      {"sections", {"num_or_indices"}},
      {"size", {"shape", "shape_or_dtype"}},
      {"sizes", {"shape"}},
      {"source", {"value"}},
      {"start_dim", {"start_axis"}},
      {"steps", {"num"}},
      {"stride", {"strides"}},
      {"target", {"label"}},
      {"tensor", {"y"}},
      {"tensors", {"x"}},
      {"test_elements", {"test_x"}},
      {"to", {"max", "high"}},
      {"type", {"dtype"}},
      {"vec2", {"y"}},
      {"x1", {"x"}},
      {"x2", {"y"}},
  };
  return *table;
}

// A function of Python that is called as it is if the arguments fit its signature, and in another form if they do not.
struct SpelledFunction {
  PyObject_HEAD vectorcallfunc vectorcall;
  PyObject* function;
  PyObject* keywords;    // the names that it takes; null if it takes all
  Py_ssize_t positions;  // how many arguments it takes by position; -1 if any number
  Py_ssize_t
      sizes;  // the position of the parameter that can also be passed as separate numbers, or -1
  PyObject* dict;
};
PyTypeObject* g_type = nullptr;

SpelledFunction* spelled(PyObject* self) { return reinterpret_cast<SpelledFunction*>(self); }

bool fits(const SpelledFunction* self, PyObject* const* args, Py_ssize_t count,
          PyObject* keywords) {
  if (self->positions >= 0 && count > self->positions) return false;
  if (self->sizes >= 0 && count > self->sizes + 1 && PyLong_CheckExact(args[self->sizes]) &&
      PyLong_CheckExact(args[self->sizes + 1]))
    return false;
  if (!keywords || !self->keywords) return true;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(keywords); ++k) {
    const int known = PySet_Contains(self->keywords, PyTuple_GET_ITEM(keywords, k));
    if (known <= 0) {
      if (known < 0) throw PythonError{};
      return false;
    }
  }
  return true;
}

struct Passed {
  Ref positional, named;
};
Passed passed(PyObject* const* args, Py_ssize_t count, PyObject* keywords) {
  Passed made{checked(PyTuple_New(count)), checked(PyDict_New())};
  for (Py_ssize_t i = 0; i < count; ++i)
    PyTuple_SET_ITEM(made.positional.get(), i, Ref::borrow(args[i]).release());
  for (Py_ssize_t k = 0; keywords && k < PyTuple_GET_SIZE(keywords); ++k)
    check(PyDict_SetItem(made.named.get(), PyTuple_GET_ITEM(keywords, k), args[count + k]));
  return made;
}

// A call found something missing: where a tensor was expected and something else was passed, the error says that.
[[gnu::noinline]] void explain(PyObject* function, PyObject* const* args, Py_ssize_t count,
                               PyObject* keywords) {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  const Passed all = passed(args, count, keywords);
  const Ref module(PyImport_ImportModule("oar._spelling"));
  const Ref done(module ? PyObject_CallMethod(module.get(), "explain", "OOOO", function,
                                              all.positional.get(), all.named.get(), value)
                        : nullptr);
  if (done) return PyErr_Restore(type, value, trace);
  for (PyObject* part : {type, value, trace}) Py_XDECREF(part);
}

PyObject* spelled_call(PyObject* callable, PyObject* const* args, size_t flags,
                       PyObject* keywords) {
  const SpelledFunction* self = spelled(callable);
  return guarded([&]() -> PyObject* {
    const Py_ssize_t count = PyVectorcall_NARGS(flags);
    if (!fits(self, args, count, keywords)) [[unlikely]]
      if (Ref made = call_in_other_form(self->function, args, static_cast<size_t>(count), keywords))
        return made.release();
    PyObject* made = PyObject_Vectorcall(self->function, args, flags, keywords);
    if (!made && PyErr_ExceptionMatches(PyExc_AttributeError)) [[unlikely]]
      explain(self->function, args, count, keywords);
    return made;
  });
}

PyObject* spelled_fits(PyObject* self, PyObject* arguments) {
  PyObject *args = nullptr, *kwargs = nullptr;
  if (!PyArg_ParseTuple(arguments, "O!O!", &PyTuple_Type, &args, &PyTuple_Type, &kwargs))
    return nullptr;
  return guarded([&] {
    return PyBool_FromLong(
        fits(spelled(self), PySequence_Fast_ITEMS(args), PyTuple_GET_SIZE(args), kwargs));
  });
}

PyObject* spelled_new(PyTypeObject* type, PyObject* arguments, PyObject*) {
  PyObject *function = nullptr, *keywords = nullptr;
  Py_ssize_t positions = -1, sizes = -1;
  if (!PyArg_ParseTuple(arguments, "OOnn", &function, &keywords, &positions, &sizes))
    return nullptr;
  auto* self = reinterpret_cast<SpelledFunction*>(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  self->vectorcall = spelled_call;
  self->function = Ref::borrow(function).release();
  self->keywords = keywords == Py_None ? nullptr : Ref::borrow(keywords).release();
  self->positions = positions;
  self->sizes = sizes;
  return reinterpret_cast<PyObject*>(self);
}

int spelled_traverse(PyObject* object, visitproc visit, void* arg) {
  const SpelledFunction* self = spelled(object);
  Py_VISIT(self->function);
  Py_VISIT(self->keywords);
  Py_VISIT(self->dict);
  Py_VISIT(Py_TYPE(object));
  return 0;
}

int spelled_clear(PyObject* object) {
  SpelledFunction* self = spelled(object);
  Py_CLEAR(self->function);
  Py_CLEAR(self->keywords);
  Py_CLEAR(self->dict);
  return 0;
}

void spelled_dealloc(PyObject* self) {
  PyObject_GC_UnTrack(self);
  spelled_clear(self);
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* spelled_bind(PyObject* self, PyObject* object, PyObject*) {
  if (object && object != Py_None) return PyMethod_New(self, object);
  Py_INCREF(self);
  return self;
}

PyObject* spelled_repr(PyObject* self) { return PyObject_Repr(spelled(self)->function); }

// What it does not have itself, it has from its function: its name, its module, its documentation.
PyObject* spelled_getattr(PyObject* self, PyObject* name) {
  if (PyObject* own = PyObject_GenericGetAttr(self, name)) return own;
  if (!PyErr_ExceptionMatches(PyExc_AttributeError)) return nullptr;
  PyErr_Clear();
  return PyObject_GetAttr(spelled(self)->function, name);
}

PyObject* get_doc(PyObject* self, void*) {
  return PyObject_GetAttrString(spelled(self)->function, "__doc__");
}
PyObject* get_module(PyObject* self, void*) {
  return PyObject_GetAttrString(spelled(self)->function, "__module__");
}
PyObject* get_wrapped(PyObject* self, void*) {
  return Ref::borrow(spelled(self)->function).release();
}
PyObject* spelled_reduce(PyObject* self, PyObject*) {
  return PyObject_GetAttrString(spelled(self)->function, "__qualname__");
}

PyGetSetDef kGetters[] = {
    {"__doc__", get_doc, nullptr, nullptr, nullptr},
    {"__module__", get_module, nullptr, nullptr, nullptr},
    {"__wrapped__", get_wrapped, nullptr, "The function of Python.", nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};
PyMethodDef kMethods[] = {
    {"__reduce__", spelled_reduce, METH_NOARGS, nullptr},
    {"fits", spelled_fits, METH_VARARGS, "Whether arguments and names of keywords fit."},
    {}};
PyMemberDef kMembers[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(SpelledFunction, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(SpelledFunction, dict), READONLY, nullptr},
    {}};
PyType_Slot kSlots[] = {{Py_tp_new, reinterpret_cast<void*>(spelled_new)},
                        {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
                        {Py_tp_repr, reinterpret_cast<void*>(spelled_repr)},
                        {Py_tp_getattro, reinterpret_cast<void*>(spelled_getattr)},
                        {Py_tp_dealloc, reinterpret_cast<void*>(spelled_dealloc)},
                        {Py_tp_traverse, reinterpret_cast<void*>(spelled_traverse)},
                        {Py_tp_clear, reinterpret_cast<void*>(spelled_clear)},
                        {Py_tp_descr_get, reinterpret_cast<void*>(spelled_bind)},
                        {Py_tp_getset, kGetters},
                        {Py_tp_methods, kMethods},
                        {Py_tp_members, kMembers},
                        {0, nullptr}};
PyType_Spec kSpec = {"oar._C.SpelledFunction", sizeof(SpelledFunction), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                         Py_TPFLAGS_METHOD_DESCRIPTOR,
                     kSlots};

}  // namespace

std::span<const char* const> meanings_of(std::string_view keyword) {
  const std::vector<Spelling>& table = spellings();  // in the order of the keywords
  const auto found = std::ranges::lower_bound(table, keyword, {}, &Spelling::keyword);
  if (found == table.end() || found->keyword != keyword) return {};
  return found->parameters;
}

Ref call_in_other_form(PyObject* function, PyObject* const* args, size_t count,
                       PyObject* keywords) {
  static PyObject* call = [] {
    const Ref module = checked(PyImport_ImportModule("oar._spelling"));
    return checked(PyObject_GetAttrString(module.get(), "call")).release();
  }();
  const Passed all = passed(args, static_cast<Py_ssize_t>(count), keywords);
  Ref made = checked(
      PyObject_CallFunctionObjArgs(call, function, all.positional.get(), all.named.get(), nullptr));
  return made.get() == Py_NotImplemented ? Ref() : std::move(made);
}

void init_spelling(PyObject* module) {
  g_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&kSpec)).release());
  check(PyModule_AddObjectRef(module, "SpelledFunction", reinterpret_cast<PyObject*>(g_type)));
  const Ref table = checked(PyDict_New());
  for (const Spelling& s : spellings()) {
    const Ref meant = checked(PyTuple_New(static_cast<Py_ssize_t>(s.parameters.size())));
    for (size_t i = 0; i < s.parameters.size(); ++i)
      PyTuple_SET_ITEM(meant.get(), static_cast<Py_ssize_t>(i),
                       checked(PyUnicode_FromString(s.parameters[i])).release());
    check(PyDict_SetItemString(table.get(), std::string(s.keyword).c_str(), meant.get()));
  }
  check(PyModule_AddObjectRef(module, "spellings", table.get()));
}

}  // namespace oar::python
