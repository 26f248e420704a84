#include "call_key.h"

#include <algorithm>
#include <array>

#include "oar/autograd/record.h"
#include "oar/base/scope_guard.h"
#include "oar/device/device.h"
#include "oar/ops/core/autocast.h"
#include "oar/ops/core/dispatcher.h"

namespace oar::python {
namespace {

PyObject* g_ordered_dict = nullptr;
PyObject* g_make_name = nullptr;      // namedtuples have `_make`
PyObject* g_to_bytes_name = nullptr;  // NumPy's numbers have `tobytes`

bool is_named_tuple(PyObject* value) {
  return PyTuple_Check(value) && _PyType_Lookup(Py_TYPE(value), g_make_name) != nullptr;
}
bool is_numpy_type(PyTypeObject* type) {
  return std::string_view(type->tp_name).starts_with("numpy.");
}

}  // namespace

void CallKey::raw(const void* data, size_t size) {
  const auto* from = static_cast<const char*>(data);
  for (size_t i = 0; i < size; ++i) bytes_.push_back(from[i]);
}

void CallKey::address(PyObject* object) {
  number(object);
  named_.push_back(object);
}

void CallKey::write_modes() {
  const Device device = devices::current();
  const AutocastState& cast = autocast_state();
  const char modes[] = {static_cast<char>(grad_enabled()), static_cast<char>(default_dtype()),
                        static_cast<char>(cast.enabled), static_cast<char>(device.type),
                        static_cast<char>(device.index)};
  raw(modes, sizeof modes);
  if (!cast.enabled) return;
  number(cast.dtype);
  number(cast.level);
  number(cast.promote);
  for (const auto* list : {&cast.low, &cast.full}) {
    number(list->size());
    for (const std::string& name : *list) raw(name.c_str(), name.size() + 1);
  }
}

bool CallKey::read(PyObject* args, PyObject* kwargs) {
  constexpr uint32_t kInvolved = kWrapped | kDistributed | kFunctionalise | kCapture;
  write_modes();
  write(args);
  if (kwargs && PyDict_GET_SIZE(kwargs) > 0) write(kwargs);
  return dense_ && ((layers_ | t_layers.on) & ~t_layers.off & kInvolved) == 0;
}

// An object that occurred before is written by its position: a function may test whether two arguments are the same.
bool CallKey::write_again(PyObject* value) {
  const auto found = std::find(seen_.begin(), seen_.end(), value);
  if (found == seen_.end()) {
    seen_.push_back(value);
    return false;
  }
  bytes_.push_back('@');
  number(static_cast<uint32_t>(found - seen_.begin()));
  return true;
}

void CallKey::write(PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  if (is_tensor(value)) {
    if (write_again(value)) return;
    bytes_.push_back(type == tensor_type() ? 'T' : 'U');
    if (type != tensor_type()) address(reinterpret_cast<PyObject*>(type));
    return write_tensor(value);
  }
  if (value == Py_None) return bytes_.push_back('N');
  if (value == Py_True || value == Py_False) return bytes_.push_back(value == Py_True ? '1' : '0');
  if (PyLong_CheckExact(value) || PyFloat_CheckExact(value) || PyComplex_CheckExact(value))
    return write_number(value);
  if (PyUnicode_CheckExact(value)) return write_text(value);
  const bool is_list = PyList_CheckExact(value);
  if (is_list || PyTuple_CheckExact(value) || is_named_tuple(value)) {
    if (write_again(value)) return;
    bytes_.push_back('(');
    address(reinterpret_cast<PyObject*>(type));
    return write_items(value, is_list ? PyList_GET_SIZE(value) : PyTuple_GET_SIZE(value));
  }
  if (PyDict_CheckExact(value) || reinterpret_cast<PyObject*>(type) == g_ordered_dict) {
    if (write_again(value)) return;
    bytes_.push_back('{');
    address(reinterpret_cast<PyObject*>(type));
    return write_dict(value);
  }
  write_other(value);
}

void CallKey::write_tensor(PyObject* object) {
  const Tensor& t = tensor_of(object);
  tensors_.push_back(t);
  objects_.push_back(object);
  dense_ = dense_ && t.is_dense();
  if (!dense_) return;
  layers_ |= t->flags;
  const char kind[] = {static_cast<char>(t.dtype()), static_cast<char>(t.rank()),
                       static_cast<char>(stop_gradient(t)), static_cast<char>(t.device().type),
                       static_cast<char>(t.device().index)};
  raw(kind, sizeof kind);
  for (Dim d : t.dims()) sizes_.push_back(d.value());
}

void CallKey::write_items(PyObject* sequence, Py_ssize_t count) {
  number(count);
  if (Py_EnterRecursiveCall(" in the arguments of a static function") != 0) throw PythonError{};
  const ScopeGuard leave([] { Py_LeaveRecursiveCall(); });
  const bool is_list = PyList_Check(sequence);
  for (Py_ssize_t i = 0; i < count; ++i)
    write(is_list ? PyList_GET_ITEM(sequence, i) : PyTuple_GET_ITEM(sequence, i));
}

void CallKey::write_dict(PyObject* dict) {
  number(PyDict_GET_SIZE(dict));
  if (Py_EnterRecursiveCall(" in the arguments of a static function") != 0) throw PythonError{};
  const ScopeGuard leave([] { Py_LeaveRecursiveCall(); });
  const auto entry = [&](PyObject* key, PyObject* value) {
    if (PyUnicode_CheckExact(key))
      write_text(key);
    else if (PyLong_CheckExact(key))
      write_number(key);
    else
      bytes_.push_back('o'), address(key);
    write(value);
  };
  PyObject *key, *value;
  if (PyDict_CheckExact(dict)) {
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) entry(key, value);
    return;
  }
  const Ref keys = checked(PySequence_List(dict));  // an OrderedDict has its own order
  for (Py_ssize_t i = 0; i < PyList_GET_SIZE(keys.get()); ++i) {
    key = PyList_GET_ITEM(keys.get(), i);
    value = PyDict_GetItemWithError(dict, key);
    if (!value) throw PythonError{};
    entry(key, value);
  }
}

// To the bit: 0.0 is not -0.0.
void CallKey::write_number(PyObject* value) {
  if (PyFloat_CheckExact(value)) {
    bytes_.push_back('d');
    return number(PyFloat_AS_DOUBLE(value));
  }
  if (PyComplex_CheckExact(value)) {
    bytes_.push_back('c');
    return number(PyComplex_AsCComplex(value));
  }
  int overflow = 0;
  const long long small = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (!overflow) {
    bytes_.push_back('i');
    return number(small);
  }
  bytes_.push_back('I');
  write_text(checked(_PyLong_Format(value, 16)).get());
}

void CallKey::write_text(PyObject* text) {
  bytes_.push_back('s');
  number(static_cast<int>(PyUnicode_KIND(text)));
  number(PyUnicode_GET_LENGTH(text));
  raw(PyUnicode_DATA(text), static_cast<size_t>(PyUnicode_GET_LENGTH(text) * PyUnicode_KIND(text)));
}

void CallKey::write_other(PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  const auto bytes = [&](PyObject* content) {
    number(PyBytes_GET_SIZE(content));
    raw(PyBytes_AS_STRING(content), static_cast<size_t>(PyBytes_GET_SIZE(content)));
  };
  if (PyBytes_CheckExact(value)) {
    bytes_.push_back('b');
    return bytes(value);
  }
  if (PySlice_Check(value)) {
    const auto* slice = reinterpret_cast<PySliceObject*>(value);
    const bool plain = std::ranges::all_of(
        std::array{slice->start, slice->stop, slice->step},
        [](PyObject* part) { return part == Py_None || PyLong_CheckExact(part); });
    bytes_.push_back(plain ? ':' : 'o');
    if (!plain) return address(value);
    for (PyObject* part : {slice->start, slice->stop, slice->step}) write(part);
    return;
  }
  if (is_numpy_type(type) && std::string_view(type->tp_name) == "numpy.ndarray") {
    made_.push_back(checked(wrap(to_tensor(value, std::nullopt))));
    bytes_.push_back('A');
    return write_tensor(made_.back().get());
  }
  if (is_numpy_type(type) && _PyType_Lookup(type, g_to_bytes_name)) {
    const Ref content = checked(PyObject_CallMethodNoArgs(value, g_to_bytes_name));
    bytes_.push_back('n');
    address(reinterpret_cast<PyObject*>(type));
    return bytes(content.get());
  }
  bytes_.push_back('o');
  address(value);
}

// ---- the Python type ----------------------------------------------------------------------------

namespace {

struct PyKey {
  PyObject_HEAD std::string bytes;
  std::vector<PyObject*> named;
};
PyTypeObject* g_type = nullptr;
PyKey& key_of(PyObject* self) { return *reinterpret_cast<PyKey*>(self); }

int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  for (PyObject* object : key_of(self).named) Py_VISIT(object);
  return 0;
}
void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  PyKey& key = key_of(self);
  for (PyObject* object : key.named) Py_DECREF(object);
  key.bytes.~basic_string();
  key.named.~vector();
  type->tp_free(self);
  Py_DECREF(type);
}
Py_hash_t hash(PyObject* self) {
  const auto h = static_cast<Py_hash_t>(std::hash<std::string>{}(key_of(self).bytes));
  return h == -1 ? -2 : h;
}
PyObject* compare(PyObject* self, PyObject* other, int op) {
  if (Py_TYPE(other) != g_type || (op != Py_EQ && op != Py_NE)) Py_RETURN_NOTIMPLEMENTED;
  return PyBool_FromLong((key_of(self).bytes == key_of(other).bytes) == (op == Py_EQ));
}

PyType_Slot kSlots[] = {
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_tp_richcompare, reinterpret_cast<void*>(compare)},
    {Py_tp_doc, const_cast<char*>("What a call depends on, except contents and sizes.")},
    {0, nullptr}};
PyType_Spec kSpec = {"oar._C.CallKey", sizeof(PyKey), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                     kSlots};

template <class List, class Make>
Ref tuple_of(const List& list, Make&& make) {
  Ref tuple = checked(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
  for (size_t i = 0; i < list.size(); ++i)
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), checked(make(list[i])).release());
  return tuple;
}

// call_key(args, kwargs) -> (key, tensors, sizes); None if the function must be called as it is.
PyObject* call_key(PyObject*, PyObject* given) {
  PyObject *args, *kwargs;
  if (!PyArg_ParseTuple(given, "O!O!", &PyTuple_Type, &args, &PyDict_Type, &kwargs)) return nullptr;
  return guarded([&]() -> PyObject* {
    CallKey key;
    if (!key.read(args, kwargs)) Py_RETURN_NONE;
    const Ref wrapped = checked(wrap_key(key));
    const Ref sizes = tuple_of(key.sizes(), [](int64_t n) { return PyLong_FromLongLong(n); });
    const Ref tensors = tuple_of(key.objects(), [](PyObject* t) { return Py_NewRef(t); });
    return Py_BuildValue("(ONO)", wrapped.get(), PySequence_List(tensors.get()), sizes.get());
  });
}

PyMethodDef kFunctions[] = {{"call_key", call_key, METH_VARARGS, nullptr}, {}};

}  // namespace

PyObject* wrap_key(const CallKey& key) {
  Ref self = checked(g_type->tp_alloc(g_type, 0));
  PyKey& made = key_of(self.get());
  new (&made.bytes) std::string(key.bytes());
  new (&made.named) std::vector<PyObject*>(key.named().begin(), key.named().end());
  for (PyObject* object : made.named) Py_INCREF(object);
  return self.release();
}

std::string_view key_bytes(PyObject* key) {
  user_check(Py_TYPE(key) == g_type, ErrorKind::InvalidType, "a CallKey is expected, not a {}.",
             Py_TYPE(key)->tp_name);
  return key_of(key).bytes;
}

void init_call_keys(PyObject* module) {
  g_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&kSpec)).release());
  check(PyModule_AddObjectRef(module, "CallKey", reinterpret_cast<PyObject*>(g_type)));
  const Ref collections = checked(PyImport_ImportModule("collections"));
  g_ordered_dict = checked(PyObject_GetAttrString(collections.get(), "OrderedDict")).release();
  g_make_name = checked(PyUnicode_InternFromString("_make")).release();
  g_to_bytes_name = checked(PyUnicode_InternFromString("tobytes")).release();
  check(PyModule_AddFunctions(module, kFunctions));
}

}  // namespace oar::python
