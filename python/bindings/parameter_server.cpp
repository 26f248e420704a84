// Parameter servers and their clients. Values and keys are buffers: NumPy arrays of float32 and of 64-bit integers.
#include "oar/parameter_server/parameter_server.h"

#include "common.h"
#include "holder.h"

namespace oar::python {
namespace {

namespace ps = parameter_server;

// A contiguous buffer whose elements have the size of T.
template <class T>
class Buffer {
 public:
  Buffer(PyObject* object, const char* name) {
    constexpr bool kWritable = !std::is_const_v<T>;
    check(PyObject_GetBuffer(object, &view_,
                             (kWritable ? PyBUF_WRITABLE : 0) | PyBUF_C_CONTIGUOUS | PyBUF_FORMAT));
    if (!fits()) {
      const std::string format = view_.format != nullptr ? view_.format : "B";
      PyBuffer_Release(&view_);
      throw Error(ErrorKind::InvalidType,
                  oar::format("{} has elements of the format '{}'.", name, format),
                  sizeof(T) == 8 ? "Pass an array of uint64 or int64." : "Pass one of float32.");
    }
  }
  ~Buffer() { PyBuffer_Release(&view_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::span<T> span() const {
    return {static_cast<T*>(view_.buf), static_cast<size_t>(view_.len) / sizeof(T)};
  }

 private:
  bool fits() const {
    const std::string_view accepted = sizeof(T) == 8 ? "QqLl" : "f";
    return view_.itemsize == sizeof(T) && view_.format != nullptr &&
           accepted.find(view_.format) != std::string_view::npos;
  }
  Py_buffer view_{};
};

template <class T>
std::optional<Buffer<T>>& fill(std::optional<Buffer<T>>& buffer, PyObject* object,
                               const char* name) {
  if (object != Py_None) buffer.emplace(object, name);
  return buffer;
}

template <class Work>
PyObject* run(Work&& work) {
  return guarded([&]() -> PyObject* {
    {
      const GilRelease release;
      work();
    }
    Py_RETURN_NONE;
  });
}

// ---- Servers -----------------------------------------------------------------------------------

// parameter_server_serve(address, token, folder, index, servers, workers, most_message_bytes, log_bytes)
PyObject* serve(PyObject*, PyObject* args) {
  const char *address, *token, *folder;
  ps::ServerOptions options;
  unsigned long long most = 0, log = 0;
  if (!PyArg_ParseTuple(args, "sssIIIKK", &address, &token, &folder, &options.index,
                        &options.servers, &options.workers, &most, &log)) {
    return nullptr;
  }
  options.address = address;
  options.token = token;
  options.folder = folder;
  options.most_message_bytes = most;
  options.log_bytes = log;
  return guarded([&] {
    std::shared_ptr<ps::Server> server;
    {
      const GilRelease release;
      server = ps::serve(options);
    }
    return hold(std::move(server));
  });
}

PyObject* server_port(PyObject* self, PyObject*) {
  return PyLong_FromLong(held_by<ps::Server>(self).port());
}

PyObject* server_wait(PyObject* self, PyObject* args) {
  long long time = 0;
  if (!PyArg_ParseTuple(args, "L", &time)) return nullptr;
  return guarded([&] {
    bool ended = false;
    {
      const GilRelease release;
      ended = held_by<ps::Server>(self).wait(ps::Milliseconds(time));
    }
    return PyBool_FromLong(ended ? 1 : 0);
  });
}

PyObject* server_checkpoint(PyObject* self, PyObject*) {
  return run([&] { held_by<ps::Server>(self).checkpoint(); });
}

PyObject* server_load(PyObject* self, PyObject* args) {
  const char* folder;
  if (!PyArg_ParseTuple(args, "s", &folder)) return nullptr;
  return run([&] { held_by<ps::Server>(self).load(folder); });
}

// ---- Clients -----------------------------------------------------------------------------------

// parameter_server_connect(servers, token, worker, timeout_ms)
PyObject* connect(PyObject*, PyObject* args) {
  PyObject* servers;
  const char* token;
  ps::ClientOptions options;
  long long timeout = 0;
  if (!PyArg_ParseTuple(args, "OsIL", &servers, &token, &options.worker, &timeout)) return nullptr;
  options.token = token;
  options.timeout = ps::Milliseconds(timeout);
  return guarded([&] {
    const Ref listed = checked(PySequence_List(servers));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(listed.get()); ++i) {
      const char* address = PyUnicode_AsUTF8(PyList_GET_ITEM(listed.get(), i));
      if (address == nullptr) throw PythonError{};
      options.servers.emplace_back(address);
    }
    std::shared_ptr<ps::Client> client;
    {
      const GilRelease release;
      client = ps::connect(options);
    }
    return hold(std::move(client));
  });
}

// create_table(name, sparse, width, on_disk, cache_bytes, (rule, learning_rate, beta1, beta2, epsilon, initial_accumulator),
// (initial, value, scale, seed), (counts_shows, show, click, decay, least_score, most_unseen), (entry, threshold))
PyObject* client_create_table(PyObject* self, PyObject* args) {
  const char* name;
  ps::TableOptions o;
  int sparse = 0, on_disk = 0, counts_shows = 0;
  unsigned rule = 0, initial = 0, entry = 0;
  unsigned long long width = 0, cache = 0, seed = 0;
  if (!PyArg_ParseTuple(args, "spKpK(Ifffff)(IffK)(pffffI)(If)", &name, &sparse, &width, &on_disk,
                        &cache, &rule, &o.rule.learning_rate, &o.rule.beta1, &o.rule.beta2,
                        &o.rule.epsilon, &o.rule.initial_accumulator, &initial, &o.initial.value,
                        &o.initial.scale, &seed, &counts_shows, &o.score.show_coefficient,
                        &o.score.click_coefficient, &o.score.decay, &o.score.least_score,
                        &o.score.most_unseen, &entry, &o.entry.threshold)) {
    return nullptr;
  }
  o.name = name;
  o.sparse = sparse != 0;
  o.width = width;
  o.on_disk = on_disk != 0;
  o.cache_bytes = cache;
  o.rule.kind = static_cast<ps::RuleKind>(rule);
  o.initial.kind = static_cast<ps::InitialKind>(initial);
  o.initial.seed = seed;
  o.score.counts_shows = counts_shows != 0;
  o.entry.kind = static_cast<ps::EntryKind>(entry);
  return run([&] { held_by<ps::Client>(self).create_table(o); });
}

PyObject* client_pull_dense(PyObject* self, PyObject* args) {
  const char* table;
  PyObject* values;
  if (!PyArg_ParseTuple(args, "sO", &table, &values)) return nullptr;
  return guarded([&] {
    const Buffer<float> out(values, "values");
    return run([&] { held_by<ps::Client>(self).pull_dense(table, out.span()); });
  });
}

PyObject* client_set_dense(PyObject* self, PyObject* args) {
  const char* table;
  PyObject* values;
  if (!PyArg_ParseTuple(args, "sO", &table, &values)) return nullptr;
  return guarded([&] {
    const Buffer<const float> in(values, "values");
    return run([&] { held_by<ps::Client>(self).set_dense(table, in.span()); });
  });
}

// push_dense(table, gradients, learning_rate, later)
PyObject* client_push_dense(PyObject* self, PyObject* args) {
  const char* table;
  PyObject* gradients;
  float rate = 0.0F;
  int later = 0;
  if (!PyArg_ParseTuple(args, "sOfp", &table, &gradients, &rate, &later)) return nullptr;
  return guarded([&] {
    const Buffer<const float> in(gradients, "gradients");
    return run([&] { held_by<ps::Client>(self).push_dense(table, in.span(), rate, later != 0); });
  });
}

// pull_sparse(table, keys, values)
PyObject* client_pull_sparse(PyObject* self, PyObject* args) {
  const char* table;
  PyObject *keys, *values;
  if (!PyArg_ParseTuple(args, "sOO", &table, &keys, &values)) return nullptr;
  return guarded([&] {
    const Buffer<const uint64_t> in(keys, "keys");
    const Buffer<float> out(values, "values");
    return run([&] { held_by<ps::Client>(self).pull_sparse(table, in.span(), out.span()); });
  });
}

// push_sparse(table, keys, gradients, shows, clicks, learning_rate, later)
PyObject* client_push_sparse(PyObject* self, PyObject* args) {
  const char* table;
  PyObject *keys, *gradients, *shows, *clicks;
  float rate = 0.0F;
  int later = 0;
  if (!PyArg_ParseTuple(args, "sOOOOfp", &table, &keys, &gradients, &shows, &clicks, &rate,
                        &later)) {
    return nullptr;
  }
  return guarded([&] {
    const Buffer<const uint64_t> key_view(keys, "keys");
    const Buffer<const float> gradient_view(gradients, "gradients");
    std::optional<Buffer<const float>> show_view, click_view;
    ps::SparsePush push{key_view.span(), gradient_view.span(), {}, {}};
    if (fill(show_view, shows, "shows")) push.shows = show_view->span();
    if (fill(click_view, clicks, "clicks")) push.clicks = click_view->span();
    return run([&] { held_by<ps::Client>(self).push_sparse(table, push, rate, later != 0); });
  });
}

PyObject* client_arrive(PyObject* self, PyObject* args) {
  const char* channel;
  int apply = 0;
  if (!PyArg_ParseTuple(args, "sp", &channel, &apply)) return nullptr;
  return run([&] { held_by<ps::Client>(self).arrive(channel, apply != 0); });
}

// save(table, folder, delta)
PyObject* client_save(PyObject* self, PyObject* args) {
  const char *table, *folder;
  int delta = 0;
  if (!PyArg_ParseTuple(args, "ssp", &table, &folder, &delta)) return nullptr;
  const ps::SaveMode mode = delta != 0 ? ps::SaveMode::Delta : ps::SaveMode::Base;
  return run([&] { held_by<ps::Client>(self).save(table, folder, mode); });
}

PyObject* client_load(PyObject* self, PyObject* args) {
  const char *table, *folder;
  if (!PyArg_ParseTuple(args, "ss", &table, &folder)) return nullptr;
  return run([&] { held_by<ps::Client>(self).load(table, folder); });
}

PyObject* client_shrink(PyObject* self, PyObject* args) {
  const char* table;
  if (!PyArg_ParseTuple(args, "s", &table)) return nullptr;
  return run([&] { held_by<ps::Client>(self).shrink(table); });
}

// size(table): rows, bytes in memory, keys without a row; None if there is no such table
PyObject* client_size(PyObject* self, PyObject* args) {
  const char* table;
  if (!PyArg_ParseTuple(args, "s", &table)) return nullptr;
  return guarded([&]() -> PyObject* {
    ps::TableSize size;
    {
      const GilRelease release;
      size = held_by<ps::Client>(self).size(table);
    }
    if (!size.exists) Py_RETURN_NONE;
    return Py_BuildValue("KKK", static_cast<unsigned long long>(size.rows),
                         static_cast<unsigned long long>(size.bytes),
                         static_cast<unsigned long long>(size.candidates));
  });
}

PyObject* client_checkpoint(PyObject* self, PyObject*) {
  return run([&] { held_by<ps::Client>(self).checkpoint(); });
}

PyObject* client_stop(PyObject* self, PyObject*) {
  return run([&] { held_by<ps::Client>(self).stop(); });
}

// parameter_server_missing(): why there are none; empty if there are.
PyObject* missing(PyObject*, PyObject*) {
  return guarded([] {
    const std::string why = ps::why_missing();
    return PyUnicode_FromStringAndSize(why.data(), static_cast<Py_ssize_t>(why.size()));
  });
}

PyMethodDef kServerMethods[] = {{"port", server_port, METH_NOARGS, nullptr},
                                {"wait", server_wait, METH_VARARGS, nullptr},
                                {"checkpoint", server_checkpoint, METH_NOARGS, nullptr},
                                {"load", server_load, METH_VARARGS, nullptr},
                                {}};
PyMethodDef kClientMethods[] = {{"create_table", client_create_table, METH_VARARGS, nullptr},
                                {"pull_dense", client_pull_dense, METH_VARARGS, nullptr},
                                {"set_dense", client_set_dense, METH_VARARGS, nullptr},
                                {"push_dense", client_push_dense, METH_VARARGS, nullptr},
                                {"pull_sparse", client_pull_sparse, METH_VARARGS, nullptr},
                                {"push_sparse", client_push_sparse, METH_VARARGS, nullptr},
                                {"arrive", client_arrive, METH_VARARGS, nullptr},
                                {"save", client_save, METH_VARARGS, nullptr},
                                {"load", client_load, METH_VARARGS, nullptr},
                                {"shrink", client_shrink, METH_VARARGS, nullptr},
                                {"size", client_size, METH_VARARGS, nullptr},
                                {"checkpoint", client_checkpoint, METH_NOARGS, nullptr},
                                {"stop", client_stop, METH_NOARGS, nullptr},
                                {}};
PyMethodDef kFunctions[] = {{"parameter_server_serve", serve, METH_VARARGS, nullptr},
                            {"parameter_server_connect", connect, METH_VARARGS, nullptr},
                            {"parameter_server_missing", missing, METH_NOARGS, nullptr},
                            {}};

}  // namespace

void init_parameter_server(PyObject* module) {
  add_type<ps::Server>(module, "oar._C.ParameterServer", kServerMethods);
  add_type<ps::Client>(module, "oar._C.ParameterClient", kClientMethods);
  check(PyModule_AddFunctions(module, kFunctions));
}

}  // namespace oar::python
