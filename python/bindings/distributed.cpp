// Groups of processes: rendezvous, groups, calls and the tasks that they return.
#include "common.h"
#include "holder.h"
#include "oar/distributed/engines.h"
#include "oar/distributed/groups.h"
#include "oar/distributed/stores.h"
#include "oar/tensor/hooks.h"

namespace oar::python {
namespace {

namespace dist = distributed;

// ---- Arguments ---------------------------------------------------------------------------------

std::optional<dist::Milliseconds> milliseconds(PyObject* given) {
  if (given == Py_None) return std::nullopt;
  const long long count = PyLong_AsLongLong(given);
  if (count == -1 && PyErr_Occurred()) throw PythonError{};
  return dist::Milliseconds(count);
}

// ---- Stores ------------------------------------------------------------------------------------

// store_open(address, timeout_ms)
PyObject* store_open(PyObject*, PyObject* args) {
  const char* address;
  long long timeout;
  if (!PyArg_ParseTuple(args, "sL", &address, &timeout)) return nullptr;
  return guarded([&] {
    std::shared_ptr<dist::Store> store;
    {
      const GilRelease release;
      store = dist::open_store(address, dist::Milliseconds(timeout));
    }
    return hold(std::move(store));
  });
}

// store_serve(host, port): a server that lives as long as the object.
PyObject* store_serve(PyObject*, PyObject* args) {
  const char* host;
  unsigned short port;
  if (!PyArg_ParseTuple(args, "sH", &host, &port)) return nullptr;
  return guarded(
      [&] { return hold(std::shared_ptr<dist::StoreServer>(dist::serve_store(host, port))); });
}

PyObject* server_port(PyObject* self, PyObject*) {
  return PyLong_FromLong(held_by<dist::StoreServer>(self).port());
}

PyObject* store_set(PyObject* self, PyObject* args) {
  const char* key;
  Py_buffer value;
  if (!PyArg_ParseTuple(args, "sy*", &key, &value)) return nullptr;
  const std::string content(static_cast<const char*>(value.buf), static_cast<size_t>(value.len));
  PyBuffer_Release(&value);
  return guarded([&]() -> PyObject* {
    {
      const GilRelease release;
      held_by<dist::Store>(self).set(key, content);
    }
    Py_RETURN_NONE;
  });
}

// find(key): bytes or None
PyObject* store_find(PyObject* self, PyObject* args) {
  const char* key;
  if (!PyArg_ParseTuple(args, "s", &key)) return nullptr;
  return guarded([&]() -> PyObject* {
    std::optional<std::string> value;
    {
      const GilRelease release;
      value = held_by<dist::Store>(self).find(key);
    }
    if (!value) Py_RETURN_NONE;
    return PyBytes_FromStringAndSize(value->data(), static_cast<Py_ssize_t>(value->size()));
  });
}

// get(key, timeout_ms): waits
PyObject* store_get(PyObject* self, PyObject* args) {
  const char* key;
  long long timeout;
  if (!PyArg_ParseTuple(args, "sL", &key, &timeout)) return nullptr;
  return guarded([&] {
    std::string value;
    {
      const GilRelease release;
      value = held_by<dist::Store>(self).get(key, dist::Milliseconds(timeout));
    }
    return PyBytes_FromStringAndSize(value.data(), static_cast<Py_ssize_t>(value.size()));
  });
}

PyObject* store_add(PyObject* self, PyObject* args) {
  const char* key;
  long long amount;
  if (!PyArg_ParseTuple(args, "sL", &key, &amount)) return nullptr;
  return guarded([&] {
    int64_t sum;
    {
      const GilRelease release;
      sum = held_by<dist::Store>(self).add(key, amount);
    }
    return PyLong_FromLongLong(sum);
  });
}

PyObject* store_own_address(PyObject* self, PyObject*) {
  return guarded(
      [&] { return PyUnicode_FromString(held_by<dist::Store>(self).own_address().c_str()); });
}

// ---- Groups and tasks --------------------------------------------------------------------------

// group_make(number, engine, ranks, rank, name, store or None, timeout_ms)
PyObject* group_make(PyObject*, PyObject* args) {
  long long number, timeout;
  const char *engine, *name;
  PyObject *ranks, *store;
  int rank;
  if (!PyArg_ParseTuple(args, "LsO!isOL", &number, &engine, &PyList_Type, &ranks, &rank, &name,
                        &store, &timeout))
    return nullptr;
  return guarded([&]() -> PyObject* {
    dist::GroupOptions options;
    options.backend = engine;
    options.name = name;
    options.rank = rank;
    options.timeout = dist::Milliseconds(timeout);
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(ranks); ++i) {
      options.ranks.push_back(static_cast<int>(PyLong_AsLong(PyList_GET_ITEM(ranks, i))));
      if (PyErr_Occurred()) throw PythonError{};
    }
    if (store != Py_None) options.store = reinterpret_cast<Holder<dist::Store>*>(store)->held;
    {
      const GilRelease release;
      dist::add_group(number, dist::ProcessGroup::make(std::move(options)));
    }
    Py_RETURN_NONE;
  });
}

PyObject* group_remove(PyObject*, PyObject* number) {
  const long long which = PyLong_AsLongLong(number);
  if (which == -1 && PyErr_Occurred()) return nullptr;
  return guarded([&]() -> PyObject* {
    const GilRelease release;
    if (const auto group = dist::find_group(which)) group->close();
    dist::remove_group(which);
    return Py_NewRef(Py_None);
  });
}

dist::Memory memory_of(const Tensor& t) {
  user_check(
      t.is_dense() && t.device().is_cpu() && t.is_contiguous(), ErrorKind::InvalidArgument,
      "only contiguous dense tensors in the memory of the host are sent, not {}.\nhint: Call contiguous(), and "
      "to_dense() for sparse tensors.",
      t.describe());
  note_read(t);
  return {t->data, static_cast<size_t>(byte_count(t->numel, t.dtype()))};
}

void add_pieces(PyObject* list, std::vector<dist::Memory>& to, dist::Request& request) {
  for (const Tensor& t : tensors_of(list)) {
    user_check(request.keeps.empty() || request.keeps[0].dtype() == t.dtype(),
               ErrorKind::InvalidType,
               "the tensors have the dtypes {} and {}.\nhint: Cast them to one.",
               name_of(request.keeps[0].dtype()), name_of(t.dtype()));
    to.push_back(memory_of(t));
    request.keeps.emplace_back(
        t->alias());  // without its Python object: another thread lets go of it
  }
}

// group_start(number, collective, outputs, inputs, op, peer, tag): a task.
PyObject* group_start(PyObject*, PyObject* args) {
  long long number;
  const char* what;
  PyObject *outputs, *inputs;
  int op, peer;
  unsigned tag;
  if (!PyArg_ParseTuple(args, "LsOOiiI", &number, &what, &outputs, &inputs, &op, &peer, &tag))
    return nullptr;
  return guarded([&] {
    const auto group = dist::find_group(number);
    user_check(group != nullptr, ErrorKind::InvalidArgument,
               "[{}] there is no group {} here.\nhint: Call init_parallel_env() first.", what,
               number);
    dist::Request request;
    request.what = dist::collective_of(what);
    request.op = static_cast<dist::ReduceOp>(op);
    request.peer = peer;
    request.tag = tag;

    add_pieces(outputs, request.out, request);
    for (const Tensor& t : request.keeps) t->storage->bump_version();
    add_pieces(inputs, request.in, request);
    if (!request.keeps.empty()) {
      request.dtype = request.keeps[0].dtype();
      request.shape = request.keeps[0].describe();
    }
    std::shared_ptr<dist::Task> task;
    {
      const GilRelease release;
      task = group->start(std::move(request));
    }
    return hold(std::move(task));
  });
}

PyObject* task_wait(PyObject* self, PyObject* timeout) {
  return guarded([&]() -> PyObject* {
    const std::optional<dist::Milliseconds> limit = milliseconds(timeout);
    {
      const GilRelease release;
      held_by<dist::Task>(self).wait(limit);
    }
    Py_RETURN_NONE;
  });
}

PyObject* task_is_done(PyObject* self, PyObject*) {
  return guarded([&] {
    bool done;
    {
      const GilRelease release;
      done = held_by<dist::Task>(self).is_done();
    }
    return PyBool_FromLong(done);
  });
}

PyObject* has_engine(PyObject*, PyObject* args) {
  const char* name;
  if (!PyArg_ParseTuple(args, "s", &name)) return nullptr;
  return guarded([&] { return PyBool_FromLong(dist::has_engine(name)); });
}

PyObject* add_engine(PyObject*, PyObject* args) {
  const char *name, *path;
  if (!PyArg_ParseTuple(args, "ss", &name, &path)) return nullptr;
  return guarded([&]() -> PyObject* {
    dist::add_engine(name, path);
    Py_RETURN_NONE;
  });
}

PyMethodDef kStoreMethods[] = {{"set", store_set, METH_VARARGS, nullptr},
                               {"find", store_find, METH_VARARGS, nullptr},
                               {"get", store_get, METH_VARARGS, nullptr},
                               {"add_to", store_add, METH_VARARGS, nullptr},
                               {"own_address", store_own_address, METH_NOARGS, nullptr},
                               {}};
PyMethodDef kServerMethods[] = {{"port", server_port, METH_NOARGS, nullptr}, {}};
PyMethodDef kTaskMethods[] = {
    {"wait", task_wait, METH_O, nullptr}, {"is_done", task_is_done, METH_NOARGS, nullptr}, {}};
PyMethodDef kFunctions[] = {{"store_open", store_open, METH_VARARGS, nullptr},
                            {"store_serve", store_serve, METH_VARARGS, nullptr},
                            {"group_make", group_make, METH_VARARGS, nullptr},
                            {"group_remove", group_remove, METH_O, nullptr},
                            {"group_start", group_start, METH_VARARGS, nullptr},
                            {"has_engine", has_engine, METH_VARARGS, nullptr},
                            {"add_engine", add_engine, METH_VARARGS, nullptr},
                            {}};

}  // namespace

void init_distributed(PyObject* module) {
  add_type<dist::Store>(module, "oar._C.Store", kStoreMethods);
  add_type<dist::StoreServer>(module, "oar._C.StoreServer", kServerMethods);
  add_type<dist::Task>(module, "oar._C.GroupTask", kTaskMethods);
  check(PyModule_AddFunctions(module, kFunctions));
}

}  // namespace oar::python
