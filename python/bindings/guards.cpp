// `oar._C.Guards`: what a captured function read outside, and whether it is unchanged.
//
// A captured program replaces a function while every read of the function would return the same value. Each read is one
// guard: an entry of a dictionary, the content of a list, a variable of an enclosing function, an attribute of a class. They are
// checked before every run, so checks are pointer comparisons; dictionaries and classes are skipped while their version is unchanged.
#include "guards.h"

#include <bit>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "oar/autograd/record.h"

namespace oar::python {
namespace {

PyObject* g_absent = nullptr;
PyObject* g_present = nullptr;  // means any value: only its existence counts

// ---- comparing --------------------------------------------------------------------------------

bool same(PyObject* now, PyObject* then);

bool same_items(PyObject* now, PyObject* then) {
  const Py_ssize_t n = PyTuple_GET_SIZE(then);
  if (PyTuple_GET_SIZE(now) != n) return false;
  for (Py_ssize_t i = 0; i < n; ++i)
    if (!same(PyTuple_GET_ITEM(now, i), PyTuple_GET_ITEM(then, i))) return false;
  return true;
}

bool same_bits(double a, double b) {
  return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b);
}

// The same object, or plain values of one type that are equal to the bit: 0.0 is not -0.0, 1 is not True.
bool same(PyObject* now, PyObject* then) {
  if (now == then) return true;
  if (!now || !then || Py_TYPE(now) != Py_TYPE(then)) return false;
  if (PyFloat_CheckExact(now)) {
    return same_bits(PyFloat_AS_DOUBLE(now), PyFloat_AS_DOUBLE(then));
  }
  if (PyComplex_CheckExact(now)) {
    const Py_complex a = PyComplex_AsCComplex(now), b = PyComplex_AsCComplex(then);
    return same_bits(a.real, b.real) && same_bits(a.imag, b.imag);
  }
  if (PyLong_CheckExact(now) || PyUnicode_CheckExact(now) || PyBytes_CheckExact(now))
    return PyObject_RichCompareBool(now, then, Py_EQ) == 1;
  return PyTuple_CheckExact(now) && same_items(now, then);
}

std::string described(PyObject* value) {
  if (!value || value == g_absent) return "absent";
  const bool plain = value == Py_None || PyBool_Check(value) || PyLong_CheckExact(value) ||
                     PyFloat_CheckExact(value) || PyUnicode_CheckExact(value);
  if (plain) {
    const Ref text(PyObject_Repr(value));
    if (const char* utf8 = text ? PyUnicode_AsUTF8(text.get()) : nullptr) return utf8;
    PyErr_Clear();
  }
  return format("a {} at {:#x}", Py_TYPE(value)->tp_name, reinterpret_cast<uintptr_t>(value));
}

uint64_t version_of(PyObject* dict) {
  return reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
}

// 0 if the class has no valid version now.
unsigned version_of(PyTypeObject* type) {
  return type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG ? type->tp_version_tag : 0;
}

// Calls for every key and value, in order: an OrderedDict has its own order. False: an error.
template <class F>
bool each_item(PyObject* dict, F&& body) {
  PyObject *key, *value;
  if (!PyODict_Check(dict)) {
    for (Py_ssize_t at = 0; PyDict_Next(dict, &at, &key, &value);) body(key, value);
    return true;
  }
  const Ref keys(PyODict_Type.tp_iter(dict));
  while (const Ref held = keys ? Ref(PyIter_Next(keys.get())) : Ref())
    if (value = PyDict_GetItemWithError(dict, held.get()); value) body(held.get(), value);
  return !PyErr_Occurred();
}

PyObject* dict_of(PyObject* object) {
  PyObject** place = _PyObject_GetDictPtr(object);
  return place ? *place : nullptr;
}

PyObject* g_registration_count = nullptr;  // abc.get_cache_token

// How often a class was registered as a subclass of an abstract one.
uint64_t registration_count() {
  const Ref count = checked(PyObject_CallNoArgs(g_registration_count));
  return PyLong_AsUnsignedLongLong(count.get());
}

// ---- guards -----------------------------------------------------------------------------------

struct Named {
  PyObject* name;
  PyObject* value;  // null: absent
  const char* label;
};

struct DictGuard {
  PyObject* dict;
  uint64_t version;
  std::vector<Named> entries;
  std::vector<std::pair<PyObject*, PyObject*>> all;
  bool whole = false;
  const char* label = "";

  // The order of an ordered dictionary is not part of its version.
  bool may_have_changed() const {
    return version_of(dict) != version || (whole && all.size() > 1 && PyODict_Check(dict));
  }
};

struct ClassGuard {
  PyTypeObject* type;
  PyObject* mro;
  unsigned version;
  std::vector<Named> attributes;
};

struct Content {
  PyObject* container;
  std::vector<PyObject*> items;
  std::string bytes;  // of arrays
  const char* label;
};

struct Attribute {
  PyObject* owner;
  PyObject* name;  // of a slot: its descriptor
  PyObject* value;
  const char* label;
};

struct ObjectGuard {
  PyObject* object;
  PyTypeObject* type;
  PyObject* dict;
};

struct FunctionGuard {
  PyFunctionObject* function;
  PyObject *code, *defaults, *keywords;
};

struct TensorGuard {
  PyObject* tensor;
  DType dtype;
  Shape shape;
  bool stop_gradient;
  const char* label;
};

class Guards {
 public:
  ~Guards() { clear(); }

  void entry(PyObject* dict, PyObject* key, PyObject* value, PyObject* label) {
    DictGuard& guard = dict_guard(dict);
    for (const Named& e : guard.entries)
      if (e.name == key && (e.value == value || value == g_present)) return;
    keep(key);
    if (value) keep(value);
    guard.entries.push_back({key, value, text(label)});
  }
  void whole_dict(PyObject* dict, PyObject* label) {
    DictGuard& guard = dict_guard(dict);
    if (guard.whole) return;
    guard.whole = true;
    guard.label = text(label);
    if (!each_item(dict, [&](PyObject* key, PyObject* value) {
          guard.all.emplace_back(keep(key), keep(value));
        }))
      throw PythonError{};
  }
  void content(PyObject* container, PyObject* label) {
    if (PyDict_Check(container)) return whole_dict(container, label);
    if (!seen_.insert(container).second) return;
    Content guard{keep(container), {}, {}, text(label)};
    if (!read(container, guard.items, guard.bytes)) throw PythonError{};
    for (PyObject* item : guard.items) keep(item);
    contents_.push_back(std::move(guard));
  }
  void cell(PyObject* cell, PyObject* value, PyObject* label) {
    if (!seen_.insert(cell).second) return;
    cells_.push_back({keep(cell), nullptr, value ? keep(value) : nullptr, text(label)});
  }
  void slot(PyObject* owner, PyObject* descriptor, PyObject* value, PyObject* label) {
    add_once(slots_, owner, descriptor, value, label);
  }
  void value(PyObject* owner, PyObject* name, PyObject* value, PyObject* label) {
    add_once(values_, owner, name, value, label);
  }
  void object(PyObject* object) {
    if (!objects_seen_.insert(object).second) return;
    PyObject* dict = dict_of(object);
    if (dict) keep(dict);
    objects_.push_back({keep(object), Py_TYPE(object), dict});
    keep(reinterpret_cast<PyObject*>(Py_TYPE(object)));
  }
  void class_attribute(PyTypeObject* type, PyObject* name) {
    if (type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE) return;
    ClassGuard& guard = class_guard(type);
    for (const Named& a : guard.attributes)
      if (a.name == name) return;
    PyObject* raw = _PyType_Lookup(type, name);
    if (raw) keep(raw);
    guard.attributes.push_back({keep(name), raw, ""});
    guard.version = version_of(type);
  }
  void bases(PyTypeObject* type) {
    if (!(type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE)) class_guard(type);
  }
  void registrations() { registrations_ = registration_count(); }
  void function(PyObject* function) {
    if (!seen_.insert(function).second) return;
    auto* f = reinterpret_cast<PyFunctionObject*>(keep(function));
    for (PyObject* part : {f->func_code, f->func_defaults, f->func_kwdefaults})
      if (part) keep(part);
    functions_.push_back({f, f->func_code, f->func_defaults, f->func_kwdefaults});
  }
  void tensor(PyObject* tensor, PyObject* label) {
    if (!seen_.insert(tensor).second) return;
    const Tensor& t = tensor_of(tensor);
    tensors_.push_back({keep(tensor), t.dtype(), t.shape(), stop_gradient(t), text(label)});
  }

  // Why the program is no longer valid for the function; empty if it is.
  std::string changed();
  std::vector<const char*> labels() const;
  size_t size() const { return owned_.size(); }

  int traverse(visitproc visit, void* arg) {
    for (PyObject* object : owned_) Py_VISIT(object);
    return 0;
  }
  void clear() {
    dicts_.clear(), classes_.clear(), contents_.clear(), cells_.clear(), slots_.clear();
    values_.clear(), objects_.clear(), functions_.clear(), tensors_.clear();
    const std::vector<PyObject*> owned = std::exchange(owned_, {});
    for (PyObject* object : owned) Py_DECREF(object);
  }

 private:
  PyObject* keep(PyObject* object) {
    Py_INCREF(object);
    owned_.push_back(object);
    return object;
  }
  // Labels are interned by Python and live as long as the guards.
  const char* text(PyObject* label) {
    const char* utf8 = PyUnicode_AsUTF8(keep(label));
    if (!utf8) throw PythonError{};
    return utf8;
  }
  DictGuard& dict_guard(PyObject* dict) {
    auto [found, fresh] = dict_places_.try_emplace(dict, dicts_.size());
    if (fresh) dicts_.push_back({keep(dict), version_of(dict), {}, {}});
    return dicts_[found->second];
  }
  ClassGuard& class_guard(PyTypeObject* type) {
    auto [found, fresh] = class_places_.try_emplace(type, classes_.size());
    if (fresh) {
      keep(reinterpret_cast<PyObject*>(type));
      classes_.push_back({type, keep(type->tp_mro), version_of(type), {}});
    }
    return classes_[found->second];
  }
  void add_once(std::vector<Attribute>& list, PyObject* owner, PyObject* name, PyObject* value,
                PyObject* label) {
    for (const Attribute& a : list)
      if (a.owner == owner && a.name == name) return;
    list.push_back({keep(owner), keep(name), value ? keep(value) : nullptr, text(label)});
  }
  static bool read(PyObject* container, std::vector<PyObject*>& items, std::string& bytes);
  std::string changed_dict(DictGuard& guard) const;
  std::string changed_class(ClassGuard& guard) const;
  std::string changed_content(const Content& guard);
  std::string changed_attributes() const;

  std::vector<PyObject*> owned_;
  std::unordered_set<PyObject*> seen_, objects_seen_;
  std::unordered_map<PyObject*, size_t> dict_places_;
  std::unordered_map<PyTypeObject*, size_t> class_places_;
  std::vector<DictGuard> dicts_;
  std::vector<ClassGuard> classes_;
  std::vector<Content> contents_;
  std::vector<Attribute> cells_, slots_, values_;
  std::vector<ObjectGuard> objects_;
  std::vector<FunctionGuard> functions_;
  std::vector<TensorGuard> tensors_;
  std::vector<PyObject*> scratch_;
  std::optional<uint64_t> registrations_;
};

// The items of a container in order (borrowed), or the bytes of an array.
bool Guards::read(PyObject* container, std::vector<PyObject*>& items, std::string& bytes) {
  if (PyList_Check(container)) {
    const Py_ssize_t n = PyList_GET_SIZE(container);
    for (Py_ssize_t i = 0; i < n; ++i) items.push_back(PyList_GET_ITEM(container, i));
    return true;
  }
  if (PyAnySet_Check(container)) {
    PyObject* item;
    Py_hash_t hash;
    for (Py_ssize_t at = 0; _PySet_NextEntry(container, &at, &item, &hash);) items.push_back(item);
    return true;
  }
  if (PyObject_CheckBuffer(container)) {
    Py_buffer view;
    if (PyObject_GetBuffer(container, &view, PyBUF_FULL_RO) != 0) return false;
    bytes.assign(view.format ? view.format : "");
    for (int i = 0; i < view.ndim; ++i)
      bytes += format(",{}", view.shape ? view.shape[i] : view.len);
    bytes.push_back('\0');
    const size_t header = bytes.size();
    bytes.resize(header + static_cast<size_t>(view.len));
    const int status = PyBuffer_ToContiguous(bytes.data() + header, &view, view.len, 'C');
    PyBuffer_Release(&view);
    return status == 0;
  }
  const Ref iterator(PyObject_GetIter(container));
  if (!iterator) return false;
  while (PyObject* item = PyIter_Next(iterator.get())) {
    items.push_back(item);
    Py_DECREF(item);  // the container holds it
  }
  return !PyErr_Occurred();
}

std::string Guards::changed_dict(DictGuard& guard) const {
  for (const Named& e : guard.entries) {
    PyObject* now = PyDict_GetItemWithError(guard.dict, e.name);
    if (e.value == g_present ? !now : !same(now, e.value))
      return format("{} was {} and is {}", e.label, described(e.value), described(now));
  }
  if (guard.whole) {
    size_t k = 0;
    bool equal = static_cast<size_t>(PyDict_GET_SIZE(guard.dict)) == guard.all.size();
    const auto compare = [&](PyObject* key, PyObject* value) {
      equal = equal && k < guard.all.size() && same(key, guard.all[k].first) &&
              same(value, guard.all[k].second);
      ++k;
    };
    const bool read = !equal || each_item(guard.dict, compare);
    if (!read) PyErr_Clear();
    if (!read || !equal) return format("the content of {} has changed", guard.label);
  }
  guard.version = version_of(guard.dict);
  return {};
}

std::string Guards::changed_class(ClassGuard& guard) const {
  if (guard.type->tp_mro != guard.mro)
    return format("the bases of {} have changed", guard.type->tp_name);
  for (const Named& a : guard.attributes)
    if (PyObject* now = _PyType_Lookup(guard.type, a.name); now != a.value)
      return format("{}.{} was {} and is {}", guard.type->tp_name, PyUnicode_AsUTF8(a.name),
                    described(a.value), described(now));
  guard.version = version_of(guard.type);
  return {};
}

std::string Guards::changed_content(const Content& guard) {
  std::string changed = format("the content of {} has changed", guard.label);
  scratch_.clear();
  std::string bytes;
  if (!read(guard.container, scratch_, bytes)) {
    PyErr_Clear();
    return changed;
  }
  if (bytes != guard.bytes || scratch_.size() != guard.items.size()) return changed;
  for (size_t i = 0; i < scratch_.size(); ++i)
    if (!same(scratch_[i], guard.items[i])) return changed;
  return {};
}

std::string Guards::changed_attributes() const {
  const auto differs = [](const Attribute& a, PyObject* now) {
    return format("{} was {} and is {}", a.label, described(a.value), described(now));
  };
  for (const Attribute& a : slots_) {
    const Ref now(Py_TYPE(a.name)->tp_descr_get(a.name, a.owner,
                                                reinterpret_cast<PyObject*>(Py_TYPE(a.owner))));
    if (!now) PyErr_Clear();
    if (!same(now.get(), a.value)) return differs(a, now.get());
  }
  for (const Attribute& a : values_) {
    const Ref now(PyObject_GetAttr(a.owner, a.name));
    if (!now) PyErr_Clear();
    if (!same(now.get(), a.value)) return differs(a, now.get());
  }
  return {};
}

std::string Guards::changed() {
  for (DictGuard& guard : dicts_)
    if (guard.may_have_changed())
      if (std::string why = changed_dict(guard); !why.empty()) return why;
  for (const ObjectGuard& guard : objects_)
    if (Py_TYPE(guard.object) != guard.type || dict_of(guard.object) != guard.dict)
      return format("the class of a {} has changed", guard.type->tp_name);
  for (ClassGuard& guard : classes_)
    if (const unsigned v = version_of(guard.type); v == 0 || v != guard.version)
      if (std::string why = changed_class(guard); !why.empty()) return why;
  for (const Attribute& a : cells_)
    if (PyObject* now = PyCell_GET(a.owner); now != a.value && !same(now, a.value))
      return format("{} was {} and is {}", a.label, described(a.value), described(now));
  for (const FunctionGuard& g : functions_)
    if (g.function->func_code != g.code || g.function->func_defaults != g.defaults ||
        g.function->func_kwdefaults != g.keywords)
      return format("the function {} has changed", PyUnicode_AsUTF8(g.function->func_name));
  for (const Content& guard : contents_)
    if (std::string why = changed_content(guard); !why.empty()) return why;
  for (const TensorGuard& g : tensors_) {
    const Tensor& t = tensor_of(g.tensor);
    if (t.dtype() != g.dtype || t.shape() != g.shape || stop_gradient(t) != g.stop_gradient)
      return format("{} has changed", g.label);
  }
  if (registrations_ && *registrations_ != registration_count())
    return "a class was registered as another";
  return changed_attributes();
}

std::vector<const char*> Guards::labels() const {
  std::vector<const char*> all;
  for (const DictGuard& d : dicts_) {
    for (const Named& e : d.entries) all.push_back(e.label);
    if (d.whole) all.push_back(d.label);
  }
  for (const Content& c : contents_) all.push_back(c.label);
  for (const auto* list : {&cells_, &slots_, &values_})
    for (const Attribute& a : *list) all.push_back(a.label);
  for (const TensorGuard& t : tensors_) all.push_back(t.label);
  return all;
}

// ---- the Python type --------------------------------------------------------------------------

struct PyGuards {
  PyObject_HEAD Guards guards;
};
PyTypeObject* g_type = nullptr;
Guards& guards_of(PyObject* self) { return reinterpret_cast<PyGuards*>(self)->guards; }

PyObject* make(PyTypeObject* type, PyObject*, PyObject*) {
  auto* self = reinterpret_cast<PyGuards*>(type->tp_alloc(type, 0));
  if (self) new (&self->guards) Guards;
  return reinterpret_cast<PyObject*>(self);
}
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return guards_of(self).traverse(visit, arg);
}
int clear(PyObject* self) {
  guards_of(self).clear();
  return 0;
}
void dealloc(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  guards_of(self).~Guards();
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* or_null(PyObject* value) { return value == g_absent ? nullptr : value; }

// Calls with a fixed number of positional arguments.
template <size_t kCount, class F>
PyObject* with(PyObject* const* args, Py_ssize_t count, F&& body) {
  return guarded([&]() -> PyObject* {
    user_check(count == static_cast<Py_ssize_t>(kCount), ErrorKind::InvalidType,
               "{} arguments are expected, not {}.", kCount, count);
    body(args);
    Py_RETURN_NONE;
  });
}

PyObject* entry(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return with<4>(args, count,
                 [&](auto a) { guards_of(self).entry(a[0], a[1], or_null(a[2]), a[3]); });
}
PyObject* content(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return with<2>(args, count, [&](auto a) { guards_of(self).content(a[0], a[1]); });
}
PyObject* cell(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return with<3>(args, count, [&](auto a) { guards_of(self).cell(a[0], or_null(a[1]), a[2]); });
}
PyObject* slot(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return with<4>(args, count,
                 [&](auto a) { guards_of(self).slot(a[0], a[1], or_null(a[2]), a[3]); });
}
PyObject* value(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return with<4>(args, count,
                 [&](auto a) { guards_of(self).value(a[0], a[1], or_null(a[2]), a[3]); });
}
PyObject* object(PyObject* self, PyObject* of) {
  return guarded([&]() -> PyObject* {
    guards_of(self).object(of);
    Py_RETURN_NONE;
  });
}
PyObject* bases(PyObject* self, PyObject* of) {
  return guarded([&]() -> PyObject* {
    user_check(PyType_Check(of), ErrorKind::InvalidType, "a class is expected.");
    guards_of(self).bases(reinterpret_cast<PyTypeObject*>(of));
    Py_RETURN_NONE;
  });
}
PyObject* registrations(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    guards_of(self).registrations();
    Py_RETURN_NONE;
  });
}
PyObject* class_attribute(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return with<2>(args, count, [&](auto a) {
    guards_of(self).class_attribute(reinterpret_cast<PyTypeObject*>(a[0]), a[1]);
  });
}
// class_entry(cls, name): what the class itself, without its bases, has under a name; guarded from now on.
PyObject* class_entry(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    user_check(count == 2, ErrorKind::InvalidType, "two arguments are expected.");
    auto* type = reinterpret_cast<PyTypeObject*>(args[0]);
    PyObject* found = PyDict_GetItemWithError(type->tp_dict, args[1]);
    if (!(type->tp_flags & Py_TPFLAGS_IMMUTABLETYPE))
      guards_of(self).entry(type->tp_dict, args[1], found, args[1]);
    found = found ? found : g_absent;
    Py_INCREF(found);
    return found;
  });
}
PyObject* function(PyObject* self, PyObject* of) {
  return guarded([&]() -> PyObject* {
    guards_of(self).function(of);
    Py_RETURN_NONE;
  });
}
PyObject* tensor(PyObject* self, PyObject* const* args, Py_ssize_t count) {
  return with<2>(args, count, [&](auto a) { guards_of(self).tensor(a[0], a[1]); });
}
PyObject* changed(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const std::string why = guards_of(self).changed();
    if (why.empty()) Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(why.data(), static_cast<Py_ssize_t>(why.size()), "replace");
  });
}
PyObject* labels(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref list = checked(PyList_New(0));
    for (const char* label : guards_of(self).labels()) {
      const Ref text = checked(PyUnicode_FromString(label));
      check(PyList_Append(list.get(), text.get()));
    }
    return list.release();
  });
}
// lookup(cls, name): what a class or one of its bases has under a name, unbound.
PyObject* lookup(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return guarded([&]() -> PyObject* {
    user_check(count == 2 && PyType_Check(args[0]), ErrorKind::InvalidType,
               "a class and a name are expected.");
    PyObject* found = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(args[0]), args[1]);
    found = found ? found : g_absent;
    Py_INCREF(found);
    return found;
  });
}

PyObject* same_values(PyObject*, PyObject* const* args, Py_ssize_t count) {
  return PyBool_FromLong(count == 2 && same(args[0], args[1]));
}

#define OAR_FAST(f) reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f)), METH_FASTCALL
PyMethodDef kMethods[] = {
    {"entry", OAR_FAST(entry), "entry(dict, key, value or ABSENT, label)"},
    {"content", OAR_FAST(content), "content(container or array, label)"},
    {"cell", OAR_FAST(cell), "cell(cell, value or ABSENT, label)"},
    {"slot", OAR_FAST(slot), "slot(object, descriptor, value or ABSENT, label)"},
    {"value", OAR_FAST(value), "value(object, attribute, value, label)"},
    {"object", object, METH_O, "The object keeps its class and its dictionary."},
    {"bases", bases, METH_O, "The class keeps its bases, and they theirs."},
    {"registrations", registrations, METH_NOARGS,
     "No class is registered as a subclass of an abstract one."},
    {"class_attribute", OAR_FAST(class_attribute), "class_attribute(class, name)"},
    {"class_entry", OAR_FAST(class_entry), "class_entry(class, name) -> the value or ABSENT"},
    {"function", function, METH_O, "The function keeps its code and its defaults."},
    {"tensor", OAR_FAST(tensor), "tensor(tensor, label): dtype, shape and stop_gradient"},
    {"changed", changed, METH_NOARGS, "Which guard fails, in words; None if all hold."},
    {"labels", labels, METH_NOARGS, "What is guarded, in words."},
    {"same", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(same_values)),
     METH_FASTCALL | METH_STATIC,
     "same(a, b): one object, or plain values that are equal to the bit"},
    {"lookup", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(lookup)),
     METH_FASTCALL | METH_STATIC, "lookup(class, name) -> the raw value or ABSENT"},
    {}};
#undef OAR_FAST
PyType_Slot kSlots[] = {{Py_tp_new, reinterpret_cast<void*>(make)},
                        {Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                        {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                        {Py_tp_clear, reinterpret_cast<void*>(clear)},
                        {Py_tp_methods, kMethods},
                        {Py_tp_doc, const_cast<char*>("What a captured function read outside.")},
                        {0, nullptr}};
PyType_Spec kSpec = {"oar._C.Guards", sizeof(PyGuards), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                     kSlots};

PyObject* is_symbolic(PyObject*, PyObject* tensor) {
  return PyBool_FromLong(is_tensor(tensor) && !tensor_of(tensor).is_dense());
}
PyMethodDef kFunctions[] = {
    {"is_symbolic", is_symbolic, METH_O, "Whether a tensor is symbolic now."}, {}};

}  // namespace

void check_guards(PyObject* object) {
  user_check(Py_TYPE(object) == g_type, ErrorKind::InvalidType, "Guards are expected, not a {}.",
             Py_TYPE(object)->tp_name);
}
bool guards_hold(PyObject* guards) { return guards_of(guards).changed().empty(); }

void init_guards(PyObject* module) {
  const Ref abstract = checked(PyImport_ImportModule("abc"));
  g_registration_count =
      checked(PyObject_GetAttrString(abstract.get(), "get_cache_token")).release();
  g_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&kSpec)).release());
  const Ref kind = checked(PyRun_String(
      "type('Absent', (), {'__repr__': lambda self: 'ABSENT', '__slots__': (), '__reduce__': lambda self: 'ABSENT'})",
      Py_eval_input, checked(PyDict_New()).get(), nullptr));
  g_absent = checked(PyObject_CallNoArgs(kind.get())).release();
  check(PyObject_SetAttrString(reinterpret_cast<PyObject*>(g_type), "ABSENT", g_absent));
  g_present = checked(PyObject_CallNoArgs(kind.get())).release();
  check(PyObject_SetAttrString(reinterpret_cast<PyObject*>(g_type), "PRESENT", g_present));
  check(PyModule_AddObjectRef(module, "Guards", reinterpret_cast<PyObject*>(g_type)));
  check(PyModule_AddFunctions(module, kFunctions));
}

}  // namespace oar::python
