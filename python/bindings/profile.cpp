// Profiles, the path of the layer that runs, and anomaly mode.
#include "oar/ops/core/profile.h"

#include <unordered_map>

#include "common.h"
#include "frames.h"
#include "oar/autograd/origin.h"
#include "oar/ops/core/work.h"

namespace oar::python {
namespace {

using timeline::Event;
using timeline::Kind;

double flops_of(const Op& op, Args args, TensorList results) {
  try {
    return cost_of(op, args, results).flops;
  } catch (const Error&) {  // a call whose sizes nobody knows
    return 0;
  }
}

// ---- Python's own functions ------------------------------------------------------------------

// What the profile calls a function; null if it is not the user's.
const char* name_of_code(PyCodeObject* code) {
  // The objects are kept, so that no other gets their address.
  static auto* const names = new std::unordered_map<PyCodeObject*, const char*>();
  if (const auto found = names->find(code); found != names->end()) return found->second;
  const char* path = PyUnicode_AsUTF8(code->co_filename);
  const char* name = nullptr;
  if (path && is_users_file(path)) {
    const char* function = PyUnicode_AsUTF8(code->co_qualname);
    const std::string_view file(path);
    const std::string text = format("{} ({}:{})", function ? function : "?",
                                    file.substr(file.rfind('/') + 1), code->co_firstlineno);
    name = timeline::kept(text);
  }
  PyErr_Clear();  // a path or a name that is no text
  Py_INCREF(code);
  names->emplace(code, name);
  return name;
}

struct OpenFrame {
  const char* name;
  int64_t begin_ns;
};

int see_frame(PyObject*, PyFrameObject* frame, int what, PyObject*) {
  thread_local std::vector<OpenFrame> open;
  thread_local uint64_t generation = 0;
  if (what != PyTrace_CALL && what != PyTrace_RETURN) return 0;
  if (generation != timeline::generation()) {
    generation = timeline::generation();
    open.clear();
  }
  if (what == PyTrace_CALL) {
    const Ref code(reinterpret_cast<PyObject*>(PyFrame_GetCode(frame)));
    open.push_back({name_of_code(reinterpret_cast<PyCodeObject*>(code.get())), timeline::now_ns()});
    return 0;
  }
  if (open.empty()) return 0;  // it was called before the profile started
  const OpenFrame ended = open.back();
  open.pop_back();
  if (!ended.name || !timeline::is_running()) return 0;
  Event event;
  event.name = ended.name;
  event.begin_ns = ended.begin_ns;
  event.end_ns = timeline::now_ns();
  event.layer = current_layer();
  event.kind = Kind::Range;
  event.range_type = static_cast<uint8_t>(timeline::RangeType::PythonOp);
  timeline::add(event);
  return 0;
}

// ---- start and stop --------------------------------------------------------------------------

bool g_sees_frames = false;  // else the profile function of the interpreter is not ours

// profile_start(shapes, memory, flops, python, most_events)
PyObject* profile_start(PyObject*, PyObject* args) {
  int shapes, memory, flops, python;
  Py_ssize_t most;
  if (!PyArg_ParseTuple(args, "ppppn", &shapes, &memory, &flops, &python, &most)) return nullptr;
  return guarded([&] {
    ProfileOptions options;
    options.shapes = shapes != 0;
    options.memory = memory != 0;
    options.flops = flops ? flops_of : nullptr;
    options.most_events = static_cast<size_t>(most);
    start_profile(options);
    g_sees_frames = python != 0;
    if (python) PyEval_SetProfile(see_frame, nullptr);
    return Ref::borrow(Py_None).release();
  });
}

// One Python string for each native one.
class Texts {
 public:
  PyObject* get(const char* text) {
    Ref& made = made_[text];
    if (!made) made = checked(PyUnicode_FromString(text));
    return made.get();
  }

 private:
  std::unordered_map<const char*, Ref> made_;
};

PyObject* row_of(const Event& e, Texts& texts) {
  return Py_BuildValue("(iOLLIIOOiLLd)", static_cast<int>(e.kind), texts.get(e.name), e.begin_ns,
                       e.end_ns, e.thread, e.depth, texts.get(e.operands),
                       texts.get(to_string(e.layer)), static_cast<int>(e.range_type), e.bytes,
                       e.live, e.flops);
}

// ([(kind, name, begin, end, thread, depth, operands, layer, range type, bytes, live bytes, flops)], dropped, start)
PyObject* profile_stop(PyObject*, PyObject*) {
  return guarded([&] {
    if (std::exchange(g_sees_frames, false)) PyEval_SetProfile(nullptr, nullptr);
    const timeline::Recording recording = stop_profile();
    Texts texts;
    Ref list = checked(PyList_New(static_cast<Py_ssize_t>(recording.events.size())));
    for (size_t i = 0; i < recording.events.size(); ++i)
      PyList_SET_ITEM(list.get(), static_cast<Py_ssize_t>(i),
                      checked(row_of(recording.events[i], texts)).release());
    return checked(Py_BuildValue("(OKL)", list.get(), recording.dropped, recording.start_ns))
        .release();
  });
}

PyObject* profile_is_running(PyObject*, PyObject*) {
  return PyBool_FromLong(timeline::is_running());
}

// ---- ranges ----------------------------------------------------------------------------------

// When a range begins: (nanoseconds, profile); None if no profile runs.
PyObject* range_begin(PyObject*, PyObject*) {
  if (!timeline::is_running()) Py_RETURN_NONE;
  profile_this_thread();
  return Py_BuildValue("(LK)", timeline::now_ns(), timeline::generation());
}

void add_range(const char* name, timeline::RangeType type, PyObject* token) {
  long long begin;
  unsigned long long generation;
  if (!PyArg_ParseTuple(token, "LK", &begin, &generation)) throw PythonError{};
  if (!timeline::is_running() || generation != timeline::generation()) return;
  Event event;
  event.name = timeline::kept(name);
  event.begin_ns = begin;
  event.end_ns = timeline::now_ns();
  event.layer = current_layer();
  event.depth = timeline::depth();
  event.kind = Kind::Range;
  event.range_type = static_cast<uint8_t>(type);
  timeline::add(event);
}

// range_end(name, type, what range_begin returned)
PyObject* range_end(PyObject*, PyObject* args) {
  const char* name;
  int type;
  PyObject* token;
  if (!PyArg_ParseTuple(args, "siO", &name, &type, &token)) return nullptr;
  return guarded([&] {
    if (token != Py_None) add_range(name, static_cast<timeline::RangeType>(type), token);
    return Ref::borrow(Py_None).release();
  });
}

// ---- layers ----------------------------------------------------------------------------------

LayerPath path_of(PyObject* text) {
  Py_ssize_t size;
  const char* utf8 = PyUnicode_AsUTF8AndSize(text, &size);
  if (!utf8) throw PythonError{};
  return layer_path({utf8, static_cast<size_t>(size)});
}

// enter_layer(path): as range_begin, and the calls of this thread are the layer's.
PyObject* enter_layer(PyObject*, PyObject* path) {
  return guarded([&] {
    oar::detail::current_layer_path = path_of(path);
    return range_begin(nullptr, nullptr);
  });
}

// leave_layer(outer path, what enter_layer returned)
PyObject* leave_layer(PyObject*, PyObject* args) {
  PyObject *outer, *token;
  if (!PyArg_ParseTuple(args, "UO", &outer, &token)) return nullptr;
  return guarded([&] {
    if (token != Py_None)
      add_range(to_string(current_layer()), timeline::RangeType::Forward, token);
    oar::detail::current_layer_path = path_of(outer);
    return Ref::borrow(Py_None).release();
  });
}

PyObject* current_layer_text(PyObject*, PyObject*) {
  return PyUnicode_FromString(to_string(current_layer()));
}

PyObject* set_keep_layers(PyObject*, PyObject* keep) {
  keep_layers(PyObject_IsTrue(keep) == 1);
  Py_RETURN_NONE;
}

// ---- anomaly mode ----------------------------------------------------------------------------

PyObject* set_anomaly(PyObject*, PyObject* args) {
  int enabled, check_nan;
  if (!PyArg_ParseTuple(args, "pp", &enabled, &check_nan)) return nullptr;
  set_anomaly_mode({enabled != 0, check_nan != 0});
  Py_RETURN_NONE;
}

PyObject* get_anomaly(PyObject*, PyObject*) {
  const AnomalyMode mode = anomaly_mode();
  return Py_BuildValue("(OO)", mode.enabled ? Py_True : Py_False,
                       mode.check_nan ? Py_True : Py_False);
}

PyMethodDef kFunctions[] = {{"profile_start", profile_start, METH_VARARGS, nullptr},
                            {"profile_stop", profile_stop, METH_NOARGS, nullptr},
                            {"profile_is_running", profile_is_running, METH_NOARGS, nullptr},
                            {"profile_range_begin", range_begin, METH_NOARGS, nullptr},
                            {"profile_range_end", range_end, METH_VARARGS, nullptr},
                            {"enter_layer", enter_layer, METH_O, nullptr},
                            {"leave_layer", leave_layer, METH_VARARGS, nullptr},
                            {"current_layer", current_layer_text, METH_NOARGS, nullptr},
                            {"keep_layers", set_keep_layers, METH_O, nullptr},
                            {"set_anomaly_mode", set_anomaly, METH_VARARGS, nullptr},
                            {"anomaly_mode", get_anomaly, METH_NOARGS, nullptr},
                            {}};

}  // namespace

void init_profile(PyObject* module) { check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace oar::python
