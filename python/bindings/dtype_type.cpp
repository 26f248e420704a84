// `oar.dtype`: one immortal object per element type.
#include "common.h"
#include "native_docs.h"

namespace oar::python {
namespace {

struct PyDType {
  PyObject_HEAD int code;
};

// Paddle's dtypes without numbers. They can be compared and printed; a call that gets one is refused.
constexpr const char* kWithoutNumbers[] = {"pstring", "raw"};
constexpr int kAllCount = kDTypeCount + static_cast<int>(std::size(kWithoutNumbers));

PyTypeObject* g_type = nullptr;
PyObject* g_dtypes[kAllCount];

int number_of(PyObject* self) { return reinterpret_cast<PyDType*>(self)->code; }
bool has_numbers(PyObject* self) { return number_of(self) < kDTypeCount; }
DType code_of(PyObject* self) { return static_cast<DType>(number_of(self)); }
const char* text_of(PyObject* self) {
  return has_numbers(self) ? name_of(code_of(self))
                           : kWithoutNumbers[number_of(self) - kDTypeCount];
}

// The name under which the user imported the library.
std::string g_library = "oar";

PyObject* repr(PyObject* self) {
  return PyUnicode_FromFormat("%s.%s", g_library.c_str(), text_of(self));
}
PyObject* str(PyObject* self) { return repr(self); }
Py_hash_t hash(PyObject* self) { return number_of(self) + 1000003; }

PyObject* compare(PyObject* a, PyObject* b, int op) {
  if (op != Py_EQ && op != Py_NE) Py_RETURN_NOTIMPLEMENTED;
  if (a == b) return PyBool_FromLong(op == Py_EQ);
  DType other;
  bool equal = false;
  if (Py_TYPE(b) == g_type)
    equal = false;
  else if (to_dtype(b, &other))
    equal = has_numbers(a) && other == code_of(a);
  PyErr_Clear();
  return PyBool_FromLong(equal == (op == Py_EQ));
}

PyObject* get_name(PyObject* self, void*) { return PyUnicode_FromString(text_of(self)); }
PyObject* get_itemsize(PyObject* self, void*) {
  if (!has_numbers(self)) return PyLong_FromLong(0);
  return PyLong_FromLongLong(byte_count(1, code_of(self)));
}
PyObject* reduce(PyObject* self, PyObject*) { return Py_BuildValue("O(s)", g_type, text_of(self)); }

PyObject* make(PyTypeObject*, PyObject* args, PyObject*) {
  PyObject* given;
  if (!PyArg_ParseTuple(args, "O:dtype", &given)) return nullptr;
  const char* text = PyUnicode_Check(given) ? PyUnicode_AsUTF8(given) : nullptr;
  for (int i = kDTypeCount; i < kAllCount; ++i)
    if (given == g_dtypes[i] || (text && std::string_view(text) == text_of(g_dtypes[i])))
      return Py_NewRef(g_dtypes[i]);
  DType t;
  if (!to_dtype(given, &t)) return nullptr;
  return wrap_dtype(t);
}

PyGetSetDef kGetters[] = {
    {"name", get_name, nullptr, "The type's name, such as 'float32'.", nullptr},
    {"itemsize", get_itemsize, nullptr, "Bytes of one element, alone.", nullptr},
    {}};
PyMethodDef kMethods[] = {{"__reduce__", reduce, METH_NOARGS, nullptr}, {}};
PyType_Slot kSlots[] = {{Py_tp_repr, reinterpret_cast<void*>(repr)},
                        {Py_tp_str, reinterpret_cast<void*>(str)},
                        {Py_tp_hash, reinterpret_cast<void*>(hash)},
                        {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
                        {Py_tp_new, reinterpret_cast<void*>(make)},
                        {Py_tp_getset, kGetters},
                        {Py_tp_methods, kMethods},
                        {Py_tp_doc, const_cast<char*>(docs::kDType)},
                        {0, nullptr}};
PyType_Spec kSpec = {"oar.dtype", sizeof(PyDType), 0, Py_TPFLAGS_DEFAULT, kSlots};

PyObject* set_library_name(PyObject*, PyObject* name) {
  const char* text = PyUnicode_AsUTF8(name);
  if (!text) return nullptr;
  g_library = text;
  Py_RETURN_NONE;
}

PyMethodDef kFunctions[] = {{"set_library_name", set_library_name, METH_O,
                             "The library's name in messages and dtypes: oar or paddle."},
                            {}};

}  // namespace

const std::string& library_name() { return g_library; }

PyObject* wrap_dtype(DType t) {
  PyObject* object = g_dtypes[static_cast<int>(t)];
  Py_INCREF(object);
  return object;
}

bool to_dtype(PyObject* object, DType* out) {
  if (Py_TYPE(object) == g_type) {
    *out = code_of(object);
    if (has_numbers(object)) return true;
    PyErr_Format(
        PyExc_TypeError,
        "a tensor cannot have the dtype %R: it holds numbers. Keep text in lists and dicts.",
        object);
    return false;
  }
  std::optional<DType> found;
  Ref name;
  if (PyUnicode_Check(object)) {
    name = Ref::borrow(object);
  } else if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) {
    found = DType::Float64;
  } else if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) {
    found = DType::Int64;
  } else if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) {
    found = DType::Bool;
  } else if (object == reinterpret_cast<PyObject*>(&PyComplex_Type)) {
    found = DType::Complex128;
  } else if (PyObject_HasAttrString(object, "__name__")) {  // NumPy's scalar types
    name = Ref(PyObject_GetAttrString(object, "__name__"));
  } else if (PyObject_HasAttrString(object, "name")) {  // NumPy's dtypes
    name = Ref(PyObject_GetAttrString(object, "name"));
  }
  if (!found && name && PyUnicode_Check(name.get()))
    found = dtype_from_name(PyUnicode_AsUTF8(name.get()));
  if (found) {
    *out = *found;
    return true;
  }
  PyErr_Clear();
  PyErr_Format(PyExc_TypeError, "%R is not a dtype. Use one such as 'float32' or %s.int64.", object,
               g_library.c_str());
  return false;
}

void init_dtype_type(PyObject* module) {
  g_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&kSpec)).release());
  check(PyModule_AddObjectRef(module, "dtype", reinterpret_cast<PyObject*>(g_type)));
  check(PyModule_AddFunctions(module, kFunctions));
  for (int i = 0; i < kAllCount; ++i) {
    auto* object = PyObject_New(PyDType, g_type);
    object->code = i;
    g_dtypes[i] = reinterpret_cast<PyObject*>(object);
    check(PyModule_AddObjectRef(module, text_of(g_dtypes[i]), g_dtypes[i]));
  }
}

}  // namespace oar::python
