// Flags, threads, memory, random state, devices, the registry.
#include "common.h"
#include "frames.h"
#include "oar/base/crash_handler.h"
#include "oar/base/flags.h"
#include "oar/base/host_language.h"
#include "oar/base/parallel.h"
#include "oar/base/scope_guard.h"
#include "oar/base/string_util.h"
#include "oar/base/version.h"
#include "oar/device/device.h"
#include "oar/device/generator.h"
#include "oar/formats/safetensors.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/launch_queue.h"
#include "oar/ops/core/trait_names.h"
#include "oar/tensor/allocator.h"
#include "oar/tensor/dlpack.h"

extern "C" void _Py_DumpTraceback(int fd, PyThreadState* state);

namespace oar::python {
namespace {

PyObject* text(std::string_view s) {
  return PyUnicode_FromStringAndSize(s.data(), static_cast<Py_ssize_t>(s.size()));
}

PyObject* get_flag(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    const char* wanted = PyUnicode_AsUTF8(name);
    for (const FlagInfo& info : list_flags()) {
      if (info.flag.name != wanted) continue;
      switch (info.flag.type) {
        case FlagType::Bool:
          return PyBool_FromLong(flag<bool>(wanted));
        case FlagType::Int:
          return PyLong_FromLong(flag<int>(wanted));
        case FlagType::Double:
          return PyFloat_FromDouble(flag<double>(wanted));
        case FlagType::String:
          return text(flag<std::string>(wanted));
      }
    }
    flag_text(wanted);  // raises with the nearest name
    Py_RETURN_NONE;
  });
}
PyObject* put_flag(PyObject*, PyObject* args) {
  const char* name;
  PyObject* value;
  if (!PyArg_ParseTuple(args, "sO", &name, &value)) return nullptr;
  return guarded([&]() -> PyObject* {
    const Ref shown = checked(PyObject_Str(value));
    set_flag(name, PyUnicode_AsUTF8(shown.get()));
    Py_RETURN_NONE;
  });
}
PyObject* all_flags(PyObject*, PyObject*) {
  return guarded([&] {
    Ref list = checked(PyList_New(0));
    for (const FlagInfo& info : list_flags()) {
      const std::string name(info.flag.name), doc(info.flag.doc), initial(info.flag.default_value);
      const Ref row = checked(
          Py_BuildValue("(ssss)", name.c_str(), info.value.c_str(), initial.c_str(), doc.c_str()));
      check(PyList_Append(list.get(), row.get()));
    }
    return list.release();
  });
}

PyObject* seed(PyObject*, PyObject* value) {
  return guarded([&]() -> PyObject* {
    const LaunchNow now;  // earlier calls draw from the old stream
    generator::seed(PyLong_AsUnsignedLongLongMask(value));
    Py_RETURN_NONE;
  });
}
PyObject* rng_state(PyObject*, PyObject*) {
  return guarded([&] {
    const LaunchNow now;
    const RandomState s = generator::state(devices::current());
    return Py_BuildValue("(KK)", s.seed, s.offset);
  });
}
PyObject* put_rng_state(PyObject*, PyObject* args) {
  unsigned long long seed_value, offset;
  if (!PyArg_ParseTuple(args, "KK", &seed_value, &offset)) return nullptr;
  return guarded([&]() -> PyObject* {
    const LaunchNow now;
    generator::set_state({seed_value, offset}, devices::current());
    Py_RETURN_NONE;
  });
}

PyObject* get_threads(PyObject*, PyObject*) { return PyLong_FromLong(num_threads()); }
PyObject* put_threads(PyObject*, PyObject* value) {
  return guarded([&]() -> PyObject* {
    const long n = PyLong_AsLong(value);
    if (n == -1 && PyErr_Occurred()) throw PythonError{};
    user_check(n >= 1 && n < 100000, ErrorKind::InvalidArgument,
               "the number of threads must be at least 1, not {}.", n);
    set_num_threads(static_cast<int>(n));
    Py_RETURN_NONE;
  });
}

PyObject* get_default_dtype(PyObject*, PyObject*) {
  return PyUnicode_FromString(name_of(default_dtype()));
}
PyObject* put_default_dtype(PyObject*, PyObject* value) {
  return guarded([&]() -> PyObject* {
    DType t;
    if (!to_dtype(value, &t)) throw PythonError{};
    set_default_dtype(t);
    Py_RETURN_NONE;
  });
}

PyObject* memory_stats(PyObject*, PyObject*) {
  const MemoryStats s = cpu_allocator::stats();
  return Py_BuildValue("{s:L,s:L,s:L,s:L,s:L}", "allocated", s.allocated, "peak_allocated",
                       s.peak_allocated, "reserved", s.reserved, "peak_reserved", s.peak_reserved,
                       "allocations", s.allocations);
}
PyObject* reset_peak(PyObject*, PyObject*) {
  cpu_allocator::reset_peak();
  Py_RETURN_NONE;
}
PyObject* disable_crash_handler(PyObject*, PyObject*) {
  remove_crash_handler();
  Py_RETURN_NONE;
}
PyObject* release_cached(PyObject*, PyObject*) {
  return PyLong_FromLongLong(cpu_allocator::release_cached());
}

PyObject* set_device(PyObject*, PyObject* name) {
  return guarded([&]() -> PyObject* {
    devices::set_current(devices::parse(PyUnicode_AsUTF8(name)));
    Py_RETURN_NONE;
  });
}
PyObject* get_device(PyObject*, PyObject*) {
  return guarded([&] { return text(devices::to_string(devices::current())); });
}
PyObject* device_names(PyObject*, PyObject*) {
  return guarded([&] {
    Ref list = checked(PyList_New(0));
    for (const DeviceType* type : devices::all()) {
      const Ref row = checked(Py_BuildValue("(si)", type->name(), type->count()));
      check(PyList_Append(list.get(), row.get()));
    }
    return list.release();
  });
}
PyObject* load_plugin(PyObject*, PyObject* path) {
  return guarded([&] { return text(devices::load_plugin(PyUnicode_AsUTF8(path)).name()); });
}

PyObject* make_tensor(PyObject*, PyObject* args) {
  PyObject *data, *dtype;
  if (!PyArg_ParseTuple(args, "OO", &data, &dtype)) return nullptr;
  return guarded([&] {
    std::optional<DType> wanted;
    if (dtype != Py_None) {
      DType t;
      if (!to_dtype(dtype, &t)) throw PythonError{};
      wanted = t;
    }
    try {
      return wrap(to_tensor(data, wanted));
    } catch (Error& error) {
      error.with_op(called_function("to_tensor"));
      throw;
    }
  });
}
PyObject* from_numpy(PyObject*, PyObject* array) {
  return guarded([&] { return wrap(from_array(array, false)); });
}
PyObject* from_capsule(PyObject*, PyObject* capsule) {
  return guarded([&]() -> PyObject* {
    const bool versioned = PyCapsule_IsValid(capsule, "dltensor_versioned");
    const char* name = versioned ? "dltensor_versioned" : "dltensor";
    user_check(PyCapsule_IsValid(capsule, name), ErrorKind::InvalidArgument,
               "the capsule holds no DLPack tensor, or it has been used already.");
    void* managed = PyCapsule_GetPointer(capsule, name);
    // First: from_dlpack owns the tensor from here on, even if it rejects it.
    PyCapsule_SetName(capsule, versioned ? "used_dltensor_versioned" : "used_dltensor");
    return wrap(versioned ? from_dlpack(static_cast<DLManagedTensorVersioned*>(managed))
                          : from_dlpack(static_cast<DLManagedTensor*>(managed)));
  });
}

PyObject* op_by_name(PyObject*, PyObject* name) {
  return guarded([&] { return op_function(get_op(PyUnicode_AsUTF8(name))); });
}
// {name: bit} of the traits in a record.
PyObject* trait_bits(PyObject*, PyObject*) {
  return guarded([&] {
    Ref bits = checked(PyDict_New());
    for (const auto& [trait, name] : trait_names()) {
      const Ref bit = checked(PyLong_FromUnsignedLong(static_cast<unsigned>(trait)));
      check(PyDict_SetItemString(bits.get(), std::string(name).c_str(), bit.get()));
    }
    return bits.release();
  });
}

// A dict for every op: its name, family, schema and what else its record says.
PyObject* op_records(PyObject*, PyObject*) {
  return guarded([&] {
    Ref list = checked(PyList_New(0));
    for (const Op* op : Registry::get().all()) {
      const OpDef& d = op->def();
      const Ref row = checked(Py_BuildValue(
          "{s:s,s:s,s:s,s:z,s:z,s:I,s:z,s:z,s:z,s:O,s:O}", "name", op->name().c_str(), "family",
          op->family().c_str(), "schema", op->schema().visible_str().c_str(), "brief", d.brief,
          "python", d.python, "traits", static_cast<unsigned>(d.traits), "numpy", d.numpy, "dtypes",
          d.dtypes, "inplace_of", op->inplace_of() ? op->inplace_of()->name().c_str() : nullptr,
          "has_vjp", d.vjp ? Py_True : Py_False, "has_decompose",
          d.decompose ? Py_True : Py_False));
      check(PyList_Append(list.get(), row.get()));
    }
    return list.release();
  });
}

}  // namespace

PyObject* from_value(const Value& v) {
  switch (v.tag) {
    case OAR_TAG_NONE:
      Py_RETURN_NONE;
    case OAR_TAG_TENSOR:
      return wrap(v.as_tensor());
    case OAR_TAG_TENSORS:
      return wrap_list(v.as_tensors());
    case OAR_TAG_BOOL:
      return PyBool_FromLong(v.as_bool());
    case OAR_TAG_INT:
      return from_dim(Dim::from_word(v.as_int()));
    case OAR_TAG_DOUBLE:
      return PyFloat_FromDouble(v.as_double());
    case OAR_TAG_COMPLEX:
      return PyComplex_FromDoubles(v.doubles[0], v.doubles[1]);
    case OAR_TAG_STRING:
      return text(v.as_string());
    case OAR_TAG_DTYPE:
      return wrap_dtype(v.as_dtype());
    case OAR_TAG_INTS: {
      Ref list = checked(PyList_New(v.count));
      for (int i = 0; i < v.count; ++i)
        PyList_SET_ITEM(list.get(), i, from_dim(Dim::from_word(v.integers[i])));
      return list.release();
    }
    case OAR_TAG_DOUBLES: {
      Ref list = checked(PyList_New(v.count));
      for (int i = 0; i < v.count; ++i)
        PyList_SET_ITEM(list.get(), i, PyFloat_FromDouble(v.doubles[i]));
      return list.release();
    }
    default:
      Py_RETURN_NONE;
  }
}

namespace {

// Marks an operand that gets no gradient from its op, and one that holds matrices.
void mark_operand(PyObject* argument, const Sample& sample, size_t position) {
  const auto* spec = position < sample.args.size()
                         ? std::get_if<TensorSpec>(&sample.args[position].content())
                         : nullptr;
  if (!spec) return;
  if (!spec->differentiable) check(PyObject_SetAttrString(argument, "fixed", Py_True));
  if (!spec->is_matrix()) return;
  const Ref structure =
      checked(PyUnicode_FromString(spec->hermitian ? "hermitian matrix" : "matrix"));
  check(PyObject_SetAttrString(argument, "structure", structure.get()));
}

// The op's samples as lists of arguments in the given dtype.
PyObject* op_samples(PyObject*, PyObject* args) {
  const char* name;
  PyObject* dtype;
  if (!PyArg_ParseTuple(args, "sO", &name, &dtype)) return nullptr;
  return guarded([&] {
    DType type;
    if (!to_dtype(dtype, &type)) throw PythonError{};
    const Op& op = get_op(name);
    Ref list = checked(PyList_New(0));
    uint64_t number = 1;
    if (op.def().samples) {
      for (const Sample& sample : op.def().samples()) {
        const Frame frame = sample.make(op.schema(), type, number++);
        Ref row = checked(PyList_New(0));
        size_t position = 0;
        for (const Value& v : frame.args().first(op.schema().visible_count())) {
          const Ref argument(from_value(v));
          mark_operand(argument.get(), sample, position++);
          check(PyList_Append(row.get(), argument.get()));
        }
        check(PyList_Append(list.get(), row.get()));
      }
    }
    return list.release();
  });
}

PyObject* validate(PyObject*, PyObject*) {
  return guarded([&] {
    Ref list = checked(PyList_New(0));
    for (const std::string& line : Registry::get().validate()) {
      const Ref entry(text(line));
      check(PyList_Append(list.get(), entry.get()));
    }
    return list.release();
  });
}

// The Python lines on a fatal signal. faulthandler's writer takes no lock and allocates nothing.
void print_python_lines(int fd) {
  if (PyThreadState* state = PyGILState_GetThisThreadState()) _Py_DumpTraceback(fd, state);
}

// Only Python's main thread sees signals; on others this is false.
bool user_interrupted() {
  const GilHold gil;
  return PyErr_CheckSignals() < 0;
}

void block_without_gil(FunctionRef<void()> block) {
  if (!PyGILState_Check()) return block();
  const GilRelease release;
  block();
}

constexpr HostLanguage kPython = {.interrupted = user_interrupted,
                                  .block = block_without_gil,
                                  .current_line = users_line,
                                  .current_lines = users_lines,
                                  .add_note = add_note,
                                  .print_lines = print_python_lines};

// nearest_name(name, candidates): the one that a typing error turns into the name; "" if none is near.
PyObject* nearest(PyObject*, PyObject* args) {
  const char* name;
  PyObject* candidates;
  if (!PyArg_ParseTuple(args, "sO!", &name, &PyList_Type, &candidates)) return nullptr;
  return guarded([&] {
    std::vector<std::string> known;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(candidates); ++i) {
      const char* candidate = PyUnicode_AsUTF8(PyList_GET_ITEM(candidates, i));
      if (!candidate) throw PythonError{};
      known.emplace_back(candidate);
    }
    return text(nearest_name(name, known));
  });
}

// What the bytes of a safetensors file hold: ([(name, dtype, shape, begin, end)], metadata).
PyObject* safetensors_index(PyObject*, PyObject* file) {
  Py_buffer bytes;
  if (PyObject_GetBuffer(file, &bytes, PyBUF_SIMPLE) != 0) return nullptr;
  const ScopeGuard release([&] { PyBuffer_Release(&bytes); });
  return guarded([&] {
    const SafetensorsIndex index =
        parse_safetensors({static_cast<const char*>(bytes.buf), static_cast<size_t>(bytes.len)});
    Ref entries = checked(PyList_New(0)), metadata = checked(PyDict_New());
    for (const SafetensorsIndex::Entry& entry : index.entries) {
      Ref shape = checked(PyTuple_New(entry.shape.rank()));
      for (int i = 0; i < entry.shape.rank(); ++i)
        PyTuple_SET_ITEM(shape.get(), i, PyLong_FromLongLong(entry.shape[i].word()));
      const Ref row = checked(Py_BuildValue("(NsOnn)", text(entry.name), entry.stored.c_str(),
                                            shape.get(), static_cast<Py_ssize_t>(entry.begin),
                                            static_cast<Py_ssize_t>(entry.end)));
      check(PyList_Append(entries.get(), row.get()));
    }
    for (const auto& [key, value] : index.metadata) {
      const Ref name = checked(text(key)), content = checked(text(value));
      check(PyDict_SetItem(metadata.get(), name.get(), content.get()));
    }
    return checked(Py_BuildValue("(OO)", entries.get(), metadata.get())).release();
  });
}

PyMethodDef kFunctions[] = {{"nearest_name", nearest, METH_VARARGS, nullptr},
                            {"get_flag", get_flag, METH_O, nullptr},
                            {"set_flag", put_flag, METH_VARARGS, nullptr},
                            {"list_flags", all_flags, METH_NOARGS, nullptr},
                            {"seed", seed, METH_O, nullptr},
                            {"rng_state", rng_state, METH_NOARGS, nullptr},
                            {"set_rng_state", put_rng_state, METH_VARARGS, nullptr},
                            {"get_num_threads", get_threads, METH_NOARGS, nullptr},
                            {"set_num_threads", put_threads, METH_O, nullptr},
                            {"get_default_dtype", get_default_dtype, METH_NOARGS, nullptr},
                            {"set_default_dtype", put_default_dtype, METH_O, nullptr},
                            {"memory_stats", memory_stats, METH_NOARGS, nullptr},
                            {"reset_peak_memory", reset_peak, METH_NOARGS, nullptr},
                            {"release_cached_memory", release_cached, METH_NOARGS, nullptr},
                            {"remove_crash_handler", disable_crash_handler, METH_NOARGS, nullptr},
                            {"set_device", set_device, METH_O, nullptr},
                            {"get_device", get_device, METH_NOARGS, nullptr},
                            {"device_types", device_names, METH_NOARGS, nullptr},
                            {"load_plugin", load_plugin, METH_O, nullptr},
                            {"make_tensor", make_tensor, METH_VARARGS, nullptr},
                            {"from_numpy", from_numpy, METH_O, nullptr},
                            {"from_dlpack_capsule", from_capsule, METH_O, nullptr},
                            {"op", op_by_name, METH_O, nullptr},
                            {"op_records", op_records, METH_NOARGS, nullptr},
                            {"trait_bits", trait_bits, METH_NOARGS, nullptr},
                            {"op_samples", op_samples, METH_VARARGS, nullptr},
                            {"safetensors_index", safetensors_index, METH_O, nullptr},
                            {"validate_registry", validate, METH_NOARGS, nullptr},
                            {}};

}  // namespace

void init_framework(PyObject* module) {
  check(PyModule_AddFunctions(module, kFunctions));
  check(PyModule_AddStringConstant(module, "version", version()));
  install_host_language(&kPython);
}

}  // namespace oar::python
