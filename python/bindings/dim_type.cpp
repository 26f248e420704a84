// `oar.Dim`: a symbolic size as Python sees it while capturing. Known sizes are plain ints.
#include "common.h"
#include "native_docs.h"
#include "oar/tensor/dim_assume.h"

namespace oar::python {
namespace {

struct PyDim {
  PyObject_HEAD int64_t word;
};
PyTypeObject* g_type = nullptr;

bool is_dim(PyObject* object) { return g_type && Py_TYPE(object) == g_type; }
Dim dim_of(PyObject* object) { return Dim::from_word(reinterpret_cast<PyDim*>(object)->word); }

template <class F>
PyObject* arithmetic(PyObject* a, PyObject* b, F f) {
  const auto fits = [](PyObject* o) { return is_dim(o) || PyLong_Check(o); };
  if (!fits(a) || !fits(b)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&] { return from_dim(f(to_dim(a), to_dim(b))); });
}
PyObject* add(PyObject* a, PyObject* b) {
  return arithmetic(a, b, [](Dim x, Dim y) { return x + y; });
}
PyObject* subtract(PyObject* a, PyObject* b) {
  return arithmetic(a, b, [](Dim x, Dim y) { return x - y; });
}
PyObject* multiply(PyObject* a, PyObject* b) {
  return arithmetic(a, b, [](Dim x, Dim y) { return x * y; });
}
PyObject* floordiv(PyObject* a, PyObject* b) {
  return arithmetic(a, b, [](Dim x, Dim y) { return floor_div(x, y); });
}
PyObject* modulo(PyObject* a, PyObject* b) {
  return arithmetic(a, b, [](Dim x, Dim y) { return floor_mod(x, y); });
}
PyObject* negative(PyObject* a) {
  return guarded([&] { return from_dim(Dim(0) - dim_of(a)); });
}

PyObject* compare(PyObject* a, PyObject* b, int how) {
  if (!is_dim(b) && !PyLong_Check(b)) Py_RETURN_NOTIMPLEMENTED;
  return guarded([&]() -> PyObject* {
    const Dim x = to_dim(a), y = to_dim(b);
    // Paddle writes an open size as -1, and programs compare with it.
    if ((x.is_symbolic() && y == Dim(-1)) && (how == Py_EQ || how == Py_NE))
      return PyBool_FromLong(how == Py_EQ);
    switch (how) {
      case Py_EQ:
        return PyBool_FromLong(same_by_hints(x, y));
      case Py_NE:
        return PyBool_FromLong(!same_by_hints(x, y));
      case Py_LT:
        return PyBool_FromLong(known_less(x, y));
      case Py_GE:
        return PyBool_FromLong(!known_less(x, y));
      case Py_GT:
        return PyBool_FromLong(known_less(y, x));
      default:
        return PyBool_FromLong(!known_less(y, x));
    }
  });
}
PyObject* repr(PyObject* self) { return PyUnicode_FromString(dim_of(self).str().c_str()); }
Py_hash_t hash(PyObject* self) {
  return static_cast<Py_hash_t>(reinterpret_cast<PyDim*>(self)->word);
}
// Allows a size where an int is expected; to_dim recognises the object before this is called.
PyObject* index(PyObject* self) {
  return guarded([&] { return PyLong_FromLongLong(dim_of(self).value()); });
}
PyObject* hint(PyObject* self, PyObject*) { return PyLong_FromLongLong(dim_of(self).hint()); }

PyObject* make(PyTypeObject*, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"name", "hint", "at_least", nullptr};
  const char* name;
  long long size = 2, at_least = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "s|LL:Dim", const_cast<char**>(names), &name,
                                   &size, &at_least))
    return nullptr;
  return guarded([&] { return from_dim(Dim::symbol(name, size, at_least)); });
}

// Dim.left_open(name, hint): a size that a static program leaves open.
PyObject* left_open(PyObject*, PyObject* args) {
  const char* name;
  long long size;
  if (!PyArg_ParseTuple(args, "sL:left_open", &name, &size)) return nullptr;
  return guarded([&] { return from_dim(open_size(name, size)); });
}

PyObject* is_told(PyObject* self, void*) { return PyBool_FromLong(is_told_by_runs(dim_of(self))); }

PyGetSetDef kProperties[] = {
    {"is_told", is_told, nullptr,
     "Whether it is known only at run time: it depends on the values of tensors.", nullptr},
    {}};
PyMethodDef kMethods[] = {{"hint", hint, METH_NOARGS, "A size that was seen."},
                          {"left_open", left_open, METH_VARARGS | METH_STATIC,
                           "left_open(name, hint): a size that a static program leaves open."},
                          {}};
PyType_Slot kSlots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                        {Py_tp_repr, reinterpret_cast<void*>(repr)},
                        {Py_tp_hash, reinterpret_cast<void*>(hash)},
                        {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                        {Py_tp_methods, kMethods},
                        {Py_tp_getset, kProperties},
                        {Py_nb_add, reinterpret_cast<void*>(add)},
                        {Py_nb_subtract, reinterpret_cast<void*>(subtract)},
                        {Py_nb_multiply, reinterpret_cast<void*>(multiply)},
                        {Py_nb_floor_divide, reinterpret_cast<void*>(floordiv)},
                        {Py_nb_remainder, reinterpret_cast<void*>(modulo)},
                        {Py_nb_negative, reinterpret_cast<void*>(negative)},
                        {Py_nb_index, reinterpret_cast<void*>(index)},
                        {Py_nb_int, reinterpret_cast<void*>(index)},
                        {Py_tp_doc, const_cast<char*>(docs::kDim)},
                        {0, nullptr}};
PyType_Spec kSpec = {"oar.Dim", sizeof(PyDim), 0, Py_TPFLAGS_DEFAULT, kSlots};

[[noreturn]] void fail_beyond_range(PyObject* number) {
  PyErr_Clear();
  const Ref text = checked(PyObject_Str(number));
  fail(ErrorKind::InvalidArgument, "{} does not fit an integer of 64 bits.",
       PyUnicode_AsUTF8(text.get()));
}

}  // namespace

Dim to_dim(PyObject* object) {
  if (PyLong_Check(object)) [[likely]] {
    const long long value = PyLong_AsLongLong(object);
    if (value == -1 && PyErr_Occurred()) fail_beyond_range(object);
    user_check(value > -(int64_t{1} << 62), ErrorKind::InvalidArgument,
               "{} is too small a number here.", value);
    return Dim(int64_t{value});
  }
  if (is_dim(object)) return dim_of(object);
  if (is_tensor(object)) {
    const Tensor& t = tensor_of(object);
    const bool whole = is_integral(t.dtype()) && t.dtype() != DType::Bool;
    user_check(whole && t.numel() == Dim(1), ErrorKind::InvalidType,
               "an integer is expected, not {}.", t.describe());
    return t.is_dense() ? Dim(t.item_int()) : known_sizes(t)[0];
  }
  const Ref number = checked(PyNumber_Index(object));
  return to_dim(number.get());
}

PyObject* from_dim(Dim d) {
  if (d.is_known()) return PyLong_FromLongLong(d.word());
  auto* object = PyObject_New(PyDim, g_type);
  if (!object) throw PythonError{};
  object->word = d.word();
  return reinterpret_cast<PyObject*>(object);
}

void init_dim_type(PyObject* module) {
  g_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&kSpec)).release());
  check(PyModule_AddObjectRef(module, "Dim", reinterpret_cast<PyObject*>(g_type)));
}

}  // namespace oar::python
