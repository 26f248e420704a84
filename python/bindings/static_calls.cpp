// `oar._C.StaticCall`: calls of a function that has been captured.
//
// A call of a static function finds its program here, without running Python, if it has a form that was captured for such arguments and
// everything outside is unchanged. Every other call goes to `_call_in_python` of the subclass, which captures, falls back, and offers
// the forms that are cached here.
#include <algorithm>

#include "call_key.h"
#include "guards.h"
#include "oar/compiler/trained_program.h"
#include "programs.h"

namespace oar::python {
namespace {

constexpr size_t kMostForms = 8;
constexpr int64_t kOpen = -1;  // any size above 1

// ---- counts -------------------------------------------------------------------------------------

struct Counts {
  PyObject_HEAD unsigned long long captures, whole, segments, eager;
};
PyTypeObject* g_counts_type = nullptr;
Counts* g_total = nullptr;

PyMemberDef kCountsMembers[] = {
    {"captures", T_ULONGLONG, offsetof(Counts, captures), 0, "Programs that were captured."},
    {"whole", T_ULONGLONG, offsetof(Counts, whole), 0, "Calls that ran as one program."},
    {"segments", T_ULONGLONG, offsetof(Counts, segments), 0, "Calls that ran in segments."},
    {"eager", T_ULONGLONG, offsetof(Counts, eager), 0, "Calls that ran as plain Python."},
    {}};
PyType_Slot kCountsSlots[] = {
    {Py_tp_members, kCountsMembers},
    {Py_tp_doc, const_cast<char*>("Captures, and calls by how they ran.")},
    {0, nullptr}};
PyType_Spec kCountsSpec = {"oar._C.CallCounts", sizeof(Counts), 0, Py_TPFLAGS_DEFAULT,
                           kCountsSlots};

Counts* new_counts() {
  return reinterpret_cast<Counts*>(
      checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(g_counts_type))).release());
}

// ---- forms --------------------------------------------------------------------------------------

// A captured form of the function.
struct Form {
  PyObject_HEAD std::vector<int64_t> sizes;
  std::vector<size_t> places;  // indices of the results among those of the program
  bool is_plain, is_tuple, writes;
  PyObject *key, *guards, *program;
  PyObject* run;  // a method in Python that runs it and its effects, if it has any
  unsigned long long used;

  bool is_for(const CallKey& call) const {
    if (key_bytes(key) != call.bytes() || sizes.size() != call.sizes().size()) return false;
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] == kOpen ? call.sizes()[i] < 2 : sizes[i] != call.sizes()[i]) return false;
    return true;
  }
  // Does a run now do what the function would do?
  bool holds(const CallKey& call) const {
    return guards_hold(guards) && trained_program_of(program).misfit(call.tensors()).empty();
  }
};
PyTypeObject* g_form_type = nullptr;
Form& form_of(PyObject* self) { return *reinterpret_cast<Form*>(self); }

// The results are at an index, a tuple of indices for a tuple; None: Python builds them.
void fill_form(Form& form, PyObject* sizes, PyObject* places) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(sizes); ++i) {
    PyObject* size = PyTuple_GET_ITEM(sizes, i);
    form.sizes.push_back(size == Py_None ? kOpen : PyLong_AsLongLong(size));
  }
  form.is_plain = places != Py_None;
  form.is_tuple = PyTuple_Check(places);
  if (form.is_plain && !form.is_tuple) form.places.push_back(PyLong_AsSize_t(places));
  for (Py_ssize_t i = 0; form.is_tuple && i < PyTuple_GET_SIZE(places); ++i)
    form.places.push_back(PyLong_AsSize_t(PyTuple_GET_ITEM(places, i)));
  if (PyErr_Occurred()) throw PythonError{};
}

// Form(key, sizes, guards, program, places, run, writes)
PyObject* make_form(PyTypeObject* type, PyObject* args, PyObject*) {
  PyObject *key, *sizes, *guards, *program, *places, *run;
  int writes;
  if (!PyArg_ParseTuple(args, "OO!OOOOp", &key, &PyTuple_Type, &sizes, &guards, &program, &places,
                        &run, &writes))
    return nullptr;
  return guarded([&]() -> PyObject* {
    key_bytes(key), check_guards(guards), trained_program_of(program);
    Ref self = checked(type->tp_alloc(type, 0));
    Form& form = form_of(self.get());
    new (&form.sizes) std::vector<int64_t>();
    new (&form.places) std::vector<size_t>();
    form.key = Py_NewRef(key);
    form.guards = Py_NewRef(guards);
    form.program = Py_NewRef(program);
    form.run = Py_NewRef(run);
    form.writes = writes != 0;
    fill_form(form, sizes, places);
    return self.release();
  });
}
int traverse_form(PyObject* self, visitproc visit, void* arg) {
  const Form& form = form_of(self);
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(form.key);
  Py_VISIT(form.guards);
  Py_VISIT(form.program);
  Py_VISIT(form.run);
  return 0;
}
int clear_form(PyObject* self) {
  Py_CLEAR(form_of(self).run);  // others refer back here only through it or what guards clear
  return 0;
}
void dealloc_form(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Form& form = form_of(self);
  for (PyObject* part : {form.key, form.guards, form.program, form.run}) Py_XDECREF(part);
  form.sizes.~vector();
  form.places.~vector();
  type->tp_free(self);
  Py_DECREF(type);
}

PyMemberDef kFormMembers[] = {
    {"used", T_ULONGLONG, offsetof(Form, used), 0, "When, by the function's count of calls."}, {}};
PyType_Slot kFormSlots[] = {
    {Py_tp_new, reinterpret_cast<void*>(make_form)},
    {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_form)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse_form)},
    {Py_tp_clear, reinterpret_cast<void*>(clear_form)},
    {Py_tp_members, kFormMembers},
    {Py_tp_doc, const_cast<char*>("A program that replaces a function, with its guards.")},
    {0, nullptr}};
PyType_Spec kFormSpec = {"oar._C.Form", sizeof(Form), 0, Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC,
                         kFormSlots};

// ---- calls --------------------------------------------------------------------------------------

// Counts changes of settings that decide for all functions whether they run as programs: after a change, forms are looked up in Python first.
unsigned long long g_epoch = 0;

struct StaticCall {
  PyObject_HEAD std::vector<PyObject*> forms;  // the most recently used first
  Counts* counts;
  PyObject* lock;  // of Python's threads, reentrant: held by runs that write something outside
  unsigned long long epoch;
};
PyTypeObject* g_call_type = nullptr;
// Names of methods.
PyObject *g_in_python = nullptr, *g_after_unmet = nullptr, *g_acquire = nullptr,
         *g_release = nullptr;
PyObject* g_new_lock = nullptr;
PyObject* g_unmet =
    nullptr;  // the exception of a run that had no effect, where the function will raise
StaticCall& call_of(PyObject* self) { return *reinterpret_cast<StaticCall*>(self); }

PyObject* make_call(PyTypeObject* type, PyObject*, PyObject*) {
  return guarded([&]() -> PyObject* {
    Ref self = checked(type->tp_alloc(type, 0));
    StaticCall& call = call_of(self.get());
    new (&call.forms) std::vector<PyObject*>();
    call.counts = new_counts();
    call.lock = checked(PyObject_CallNoArgs(g_new_lock)).release();
    return self.release();
  });
}
int traverse_call(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  for (PyObject* form : call_of(self).forms) Py_VISIT(form);
  return 0;
}
int forget_forms(PyObject* self) {
  const std::vector<PyObject*> forms = std::exchange(call_of(self).forms, {});
  for (PyObject* form : forms) Py_DECREF(form);
  return 0;
}
void dealloc_call(PyObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  forget_forms(self);
  StaticCall& call = call_of(self);
  Py_XDECREF(call.counts);
  Py_XDECREF(call.lock);
  call.forms.~vector();
  type->tp_free(self);
  Py_DECREF(type);
}

class Locked {
 public:
  explicit Locked(PyObject* lock) : lock_(lock) {
    if (lock_) checked(PyObject_CallMethodNoArgs(lock_, g_acquire));
  }
  ~Locked() {
    if (!lock_) return;
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    const Ref done(PyObject_CallMethodNoArgs(lock_, g_release));
    PyErr_Restore(type, value, trace);
  }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;

 private:
  PyObject* const lock_;
};

PyObject* run_plain(const Form& form, TensorList tensors) {
  std::optional<std::vector<Tensor>> outputs =
      run_or_unmet(trained_program_of(form.program), tensors);
  if (!outputs) return nullptr;
  std::vector<Tensor>& made = *outputs;
  if (!form.is_tuple) return wrap(std::move(made.at(form.places[0])));
  Ref results = checked(PyTuple_New(static_cast<Py_ssize_t>(form.places.size())));
  std::vector<PyObject*> wrapped(made.size(), nullptr);  // a tensor returned twice is one object
  for (size_t i = 0; i < form.places.size(); ++i) {
    PyObject*& result = wrapped.at(form.places[i]);
    if (result)
      Py_INCREF(result);
    else
      result = checked(wrap(made[form.places[i]])).release();
    PyTuple_SET_ITEM(results.get(), static_cast<Py_ssize_t>(i), result);
  }
  return results.release();
}

PyObject* run_form(const Form& form, const CallKey& key) {
  if (form.is_plain) return run_plain(form, key.tensors());
  const auto& objects = key.objects();
  const Ref list = checked(PyList_New(static_cast<Py_ssize_t>(objects.size())));
  for (size_t i = 0; i < objects.size(); ++i)
    PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i), Py_NewRef(objects[i]));
  return PyObject_CallOneArg(form.run, list.get());
}

PyObject* call_method(PyObject* self, PyObject* name, PyObject* args, PyObject* kwargs) {
  const Ref method(PyObject_GetAttr(self, name));
  return method ? PyObject_Call(method.get(), args, kwargs) : nullptr;
}

// Runs the form that is valid for this call; nothing if there is none here. A guard may run Python code, so the list is
// read again after each.
std::optional<PyObject*> run_found(StaticCall& call, const CallKey& key) {
  for (size_t i = 0; i < call.forms.size(); ++i) {
    const Ref kept = Ref::borrow(call.forms[i]);
    Form& form = form_of(kept.get());
    if (!form.is_for(key)) continue;
    const Locked locked(form.writes ? call.lock : nullptr);
    if (!form.holds(key)) continue;
    if (i > 0 && i < call.forms.size() && call.forms[i] == kept.get())
      std::rotate(call.forms.begin(), call.forms.begin() + static_cast<std::ptrdiff_t>(i),
                  call.forms.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    ++g_total->whole;
    form.used = ++call.counts->whole;
    return run_form(form, key);
  }
  return std::nullopt;
}

PyObject* call_static(PyObject* self, PyObject* args, PyObject* kwargs) {
  return guarded([&]() -> PyObject* {
    StaticCall& call = call_of(self);
    if (call.forms.empty() || call.epoch != g_epoch)
      return call_method(self, g_in_python, args, kwargs);
    std::optional<PyObject*> result;
    if (CallKey key; key.read(args, kwargs)) result = run_found(call, key);
    if (!result) return call_method(self, g_in_python, args, kwargs);
    if (*result || !PyErr_ExceptionMatches(g_unmet)) return *result;
    PyErr_Clear();
    return call_method(self, g_after_unmet, args, kwargs);
  });
}

// offer(form): matching calls may run it from now on.
PyObject* offer(PyObject* self, PyObject* form) {
  return guarded([&]() -> PyObject* {
    user_check(Py_TYPE(form) == g_form_type, ErrorKind::InvalidType, "a Form is expected.");
    StaticCall& call = call_of(self);
    if (call.epoch != g_epoch) forget_forms(self);
    call.epoch = g_epoch;
    if (std::find(call.forms.begin(), call.forms.end(), form) != call.forms.end()) Py_RETURN_NONE;
    call.forms.insert(call.forms.begin(), Py_NewRef(form));
    if (call.forms.size() > kMostForms) {
      const Ref last(call.forms.back());
      call.forms.pop_back();
    }
    Py_RETURN_NONE;
  });
}
PyObject* forget(PyObject* self, PyObject*) {
  forget_forms(self);
  Py_RETURN_NONE;
}
PyObject* counts_of(PyObject* self, void*) {
  return Py_NewRef(reinterpret_cast<PyObject*>(call_of(self).counts));
}
PyObject* rules_changed(PyObject*, PyObject*) {
  ++g_epoch;
  Py_RETURN_NONE;
}

PyObject* lock_of(PyObject* self, void*) { return Py_NewRef(call_of(self).lock); }

PyMethodDef kCallMethods[] = {
    {"offer", offer, METH_O, "offer(form): matching calls may run it from now on."},
    {"forget", forget, METH_NOARGS, "Drops all forms: the next call runs Python."},
    {}};
PyGetSetDef kCallGetters[] = {
    {"_counts", counts_of, nullptr, "Captures, and calls by how they ran.", nullptr},
    {"_lock", lock_of, nullptr, "Held while it is captured, and by runs that write.", nullptr},
    {}};
PyType_Slot kCallSlots[] = {{Py_tp_new, reinterpret_cast<void*>(make_call)},
                            {Py_tp_dealloc, reinterpret_cast<void*>(dealloc_call)},
                            {Py_tp_traverse, reinterpret_cast<void*>(traverse_call)},
                            {Py_tp_clear, reinterpret_cast<void*>(forget_forms)},
                            {Py_tp_call, reinterpret_cast<void*>(call_static)},
                            {Py_tp_methods, kCallMethods},
                            {Py_tp_getset, kCallGetters},
                            {Py_tp_doc, const_cast<char*>("The calls of a static function.")},
                            {0, nullptr}};
PyType_Spec kCallSpec = {"oar._C.StaticCall", sizeof(StaticCall), 0,
                         Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_BASETYPE, kCallSlots};

PyMethodDef kFunctions[] = {{"static_rules_changed", rules_changed, METH_NOARGS,
                             "Makes static functions check again whether they run as programs."},
                            {}};

PyTypeObject* add_type(PyObject* module, const char* name, PyType_Spec& spec) {
  auto* type = checked(PyType_FromSpec(&spec)).release();
  check(PyModule_AddObjectRef(module, name, type));
  return reinterpret_cast<PyTypeObject*>(type);
}
PyObject* interned(const char* name) { return checked(PyUnicode_InternFromString(name)).release(); }

}  // namespace

PyObject* unmet_error() { return g_unmet; }

void init_static_calls(PyObject* module) {
  g_counts_type = add_type(module, "CallCounts", kCountsSpec);
  g_form_type = add_type(module, "Form", kFormSpec);
  g_call_type = add_type(module, "StaticCall", kCallSpec);
  g_total = new_counts();
  check(PyModule_AddObjectRef(module, "total_calls", reinterpret_cast<PyObject*>(g_total)));
  g_in_python = interned("_call_in_python");
  g_after_unmet = interned("_call_after_unmet");
  g_acquire = interned("acquire");
  g_release = interned("release");
  const Ref threading = checked(PyImport_ImportModule("threading"));
  g_new_lock = checked(PyObject_GetAttrString(threading.get(), "RLock")).release();
  g_unmet = checked(PyErr_NewExceptionWithDoc(
                        "oar._C.Unmet",
                        "The function would raise here. Nothing has changed yet: it is called as "
                        "Python, which raises.",
                        PyExc_BaseException, nullptr))
                .release();
  check(PyModule_AddObjectRef(module, "Unmet", g_unmet));
  check(PyModule_AddFunctions(module, kFunctions));
}

}  // namespace oar::python
