// Models that run, and those of Caffe, TensorFlow, TFLite and PyTorch.
#include "graph_models.h"

#include "oar/interop/caffe/import.h"
#include "oar/interop/convert.h"
#include "oar/interop/json_value.h"
#include "oar/interop/keras/import.h"
#include "oar/interop/load.h"
#include "oar/interop/pytorch/import.h"
#include "oar/interop/tensorflow/import.h"
#include "oar/interop/tflite/import.h"
#include "programs.h"

namespace oar::python {
namespace {

using interop::GraphModel;

struct PyGraphModel {
  PyObject_HEAD std::shared_ptr<const GraphModel> model;
};
PyTypeObject* g_graph_type = nullptr;

const GraphModel& graph_of(PyObject* self) { return *reinterpret_cast<PyGraphModel*>(self)->model; }

void dealloc(PyObject* self) {
  reinterpret_cast<PyGraphModel*>(self)->model.~shared_ptr();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* dtype_name(const interop::Port& port) {
  return port.dtype ? PyUnicode_FromString(name_of(*port.dtype)) : Py_NewRef(Py_None);
}

PyObject* sizes(const interop::Port& port) {
  if (!port.shape) return Py_NewRef(Py_None);
  Ref made = checked(PyList_New(0));
  for (size_t axis = 0; axis < port.shape->size(); ++axis) {
    const int64_t size = (*port.shape)[axis];
    const Ref entry =
        checked(size < 0 ? file_text(port.size_name(axis)) : PyLong_FromLongLong(size));
    check(PyList_Append(made.get(), entry.get()));
  }
  return made.release();
}

// (name, dtype, shape) for each input. An open size is text; None stands for what the file does not say.
PyObject* inputs(PyObject* self, void*) {
  return guarded([&] {
    Ref made = checked(PyList_New(0));
    for (const interop::Port& port : graph_of(self).inputs()) {
      const Ref name = checked(file_text(port.name));
      const Ref dtype = checked(dtype_name(port));
      const Ref shape = checked(sizes(port));
      const Ref entry = checked(PyTuple_Pack(3, name.get(), dtype.get(), shape.get()));
      check(PyList_Append(made.get(), entry.get()));
    }
    return made.release();
  });
}

PyObject* outputs(PyObject* self, void*) {
  return guarded([&] { return list_of(graph_of(self).outputs()); });
}

// Tensors as the arrangement says, in lists.
PyObject* arranged_in(const JsonValue& value, const std::vector<Tensor>& tensors, size_t& next) {
  if (value.is_object()) return wrap(tensors.at(next++));
  if (!value.is_list()) return Py_NewRef(Py_None);
  Ref made = checked(PyList_New(0));
  for (const JsonValue& item : value.list()) {
    const Ref entry = checked(arranged_in(item, tensors, next));
    check(PyList_Append(made.get(), entry.get()));
  }
  return made.release();
}

PyObject* run(PyObject* self, PyObject* list) {
  return guarded([&] {
    const std::vector<Tensor> given = listed_tensors(list);
    interop::Results results;
    {
      const GilRelease release;
      results = graph_of(self).run_arranged(given);
    }
    if (results.arrangement.empty()) return list_of(results.tensors);
    size_t next = 0;
    return arranged_in(JsonValue::parse(results.arrangement), results.tensors, next);
  });
}

// arranged(arguments): the model for arguments of this structure, as JSON; its inputs are their tensors
PyObject* arranged(PyObject* self, PyObject* text) {
  return guarded([&] {
    Py_ssize_t size;
    const char* arguments = PyUnicode_AsUTF8AndSize(text, &size);
    if (!arguments) throw PythonError{};
    return wrap_graph(std::make_shared<const GraphModel>(
        graph_of(self).arranged({arguments, static_cast<size_t>(size)})));
  });
}

PyObject* takes_more(PyObject* self, void*) {
  return PyBool_FromLong(graph_of(self).takes_more_than_tensors());
}
PyObject* kind(PyObject* self, void*) {
  return PyUnicode_FromString(interop::to_string(graph_of(self).kind()));
}
PyObject* path(PyObject* self, void*) {
  return PyUnicode_DecodeFSDefault(graph_of(self).path().c_str());
}

PyObject* program(PyObject* self, PyObject* list) {
  return guarded([&] { return wrap_program(graph_of(self).program(listed_tensors(list))); });
}

PyMethodDef kGraphMethods[] = {{"run", run, METH_O, "Runs it on a list of tensors."},
                               {"program", program, METH_O, "The program for inputs like these."},
                               {"arranged", arranged, METH_O, "The model for other arguments."},
                               {}};
PyGetSetDef kGraphGetters[] = {{"inputs", inputs, nullptr, nullptr, nullptr},
                               {"outputs", outputs, nullptr, nullptr, nullptr},
                               {"takes_more_than_tensors", takes_more, nullptr, nullptr, nullptr},
                               {"kind", kind, nullptr, nullptr, nullptr},
                               {"path", path, nullptr, nullptr, nullptr},
                               {}};
PyType_Slot kGraphSlots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                             {Py_tp_methods, kGraphMethods},
                             {Py_tp_getset, kGraphGetters},
                             {0, nullptr}};
PyType_Spec kGraphSpec = {"oar._C.GraphModel", sizeof(PyGraphModel), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, kGraphSlots};

std::string_view viewed(const char* bytes, Py_ssize_t size) {
  return {bytes, static_cast<size_t>(size)};
}

// caffe_model(prototxt, caffemodel)
PyObject* caffe_model(PyObject*, PyObject* args) {
  const char *text, *weights;
  Py_ssize_t text_size, weights_size;
  if (!PyArg_ParseTuple(args, "y#y#", &text, &text_size, &weights, &weights_size)) return nullptr;
  return guarded([&] {
    return wrap_graph(std::make_shared<const GraphModel>(
        caffe::read_model(viewed(text, text_size), viewed(weights, weights_size))));
  });
}

PyObject* tflite_model(PyObject*, PyObject* args) {
  const char* bytes;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "y#", &bytes, &size)) return nullptr;
  return guarded([&] {
    return wrap_graph(
        std::make_shared<const GraphModel>(tflite::read_model(std::string(viewed(bytes, size)))));
  });
}

std::vector<std::string> listed_texts(PyObject* list) {
  const Ref fast = checked(PySequence_Fast(list, "a list of names is expected"));
  std::vector<std::string> texts;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
    Py_ssize_t size;
    const char* text = PyUnicode_AsUTF8AndSize(PySequence_Fast_GET_ITEM(fast.get(), i), &size);
    if (!text) throw PythonError{};
    texts.emplace_back(text, static_cast<size_t>(size));
  }
  return texts;
}

// tensorflow_model(path, signature, inputs, outputs)
PyObject* tensorflow_model(PyObject*, PyObject* args) {
  const char *path, *signature;
  PyObject *input_names, *output_names;
  if (!PyArg_ParseTuple(args, "ssOO", &path, &signature, &input_names, &output_names))
    return nullptr;
  return guarded([&] {
    return wrap_graph(std::make_shared<const GraphModel>(tensorflow::load_model(
        path, {signature, listed_texts(input_names), listed_texts(output_names)})));
  });
}

// keras_model(path)
PyObject* keras_model(PyObject*, PyObject* path) {
  const char* text = PyUnicode_AsUTF8(path);
  if (!text) return nullptr;
  return guarded(
      [&] { return wrap_graph(std::make_shared<const GraphModel>(keras::load_model(text))); });
}

// hdf5_tensors(bytes) -> tensors by name
PyObject* hdf5_tensors(PyObject*, PyObject* args) {
  const char* bytes;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "y#", &bytes, &size)) return nullptr;
  return guarded([&] {
    const Ref tensors = checked(PyDict_New());
    for (const keras::NamedTensor& named : keras::read_weights(viewed(bytes, size))) {
      const Ref key = checked(file_text(named.name)), value = checked(wrap(named.tensor));
      check(PyDict_SetItem(tensors.get(), key.get(), value.get()));
    }
    return Py_NewRef(tensors.get());
  });
}

// torch_model(bytes) -> (model, weights by name)
PyObject* torch_model(PyObject*, PyObject* args) {
  const char* bytes;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "y#", &bytes, &size)) return nullptr;
  return guarded([&] {
    pytorch::Model model = pytorch::read_model(viewed(bytes, size));
    const Ref weights = checked(PyDict_New());
    for (const auto& [name, tensor] : model.weights) {
      const Ref key = checked(file_text(name)), value = checked(wrap(tensor));
      check(PyDict_SetItem(weights.get(), key.get(), value.get()));
    }
    const Ref graph =
        checked(wrap_graph(std::make_shared<const GraphModel>(std::move(model.graph))));
    return PyTuple_Pack(2, graph.get(), weights.get());
  });
}

// any_model(path, method, path of weights or "")
PyObject* any_model(PyObject*, PyObject* args) {
  const char *path, *method, *weights;
  if (!PyArg_ParseTuple(args, "sss", &path, &method, &weights)) return nullptr;
  return guarded([&] {
    return wrap_graph(
        std::make_shared<const GraphModel>(interop::load_model(path, {method, weights, false})));
  });
}

// guess_file(path): (kind, "model", "tensors" or "other", the path that is meant)
PyObject* guess_file(PyObject*, PyObject* args) {
  const char* path;
  if (!PyArg_ParseTuple(args, "s", &path)) return nullptr;
  return guarded([&] {
    const std::string file = interop::model_file(path);
    const interop::FileKind kind = interop::guess_kind(file);
    return Py_BuildValue("(sss)", interop::to_string(kind),
                         interop::is_model(kind)        ? "model"
                         : interop::holds_tensors(kind) ? "tensors"
                                                        : "other",
                         file.c_str());
  });
}

std::vector<int64_t> listed_sizes(PyObject* list) {
  const Ref fast = checked(PySequence_Fast(list, "a list of sizes is expected"));
  std::vector<int64_t> sizes;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
    sizes.push_back(PyLong_AsLongLong(PySequence_Fast_GET_ITEM(fast.get(), i)));
    if (sizes.back() == -1 && PyErr_Occurred()) throw PythonError{};
  }
  return sizes;
}

// convert(source, target, path of weights or "", method, {input: sizes}, opset): (calls, tensors, bytes)
PyObject* convert_file(PyObject*, PyObject* args) {
  const char *source, *target, *weights, *method;
  PyObject* shapes;
  long long opset;
  if (!PyArg_ParseTuple(args, "ssssO!L", &source, &target, &weights, &method, &PyDict_Type, &shapes,
                        &opset))
    return nullptr;
  return guarded([&] {
    interop::ConvertOptions options{{method, weights, false}, {}, opset};
    PyObject *name, *sizes;
    for (Py_ssize_t at = 0; PyDict_Next(shapes, &at, &name, &sizes);) {
      const char* text = PyUnicode_AsUTF8(name);
      if (!text) throw PythonError{};
      options.shapes[text] = listed_sizes(sizes);
    }
    const interop::Conversion done = interop::convert(source, target, options);
    return Py_BuildValue("(nnL)", static_cast<Py_ssize_t>(done.calls),
                         static_cast<Py_ssize_t>(done.tensors), static_cast<long long>(done.bytes));
  });
}

PyMethodDef kGraphFunctions[] = {{"caffe_model", caffe_model, METH_VARARGS, nullptr},
                                 {"tensorflow_model", tensorflow_model, METH_VARARGS, nullptr},
                                 {"keras_model", keras_model, METH_O, nullptr},
                                 {"hdf5_tensors", hdf5_tensors, METH_VARARGS, nullptr},
                                 {"tflite_model", tflite_model, METH_VARARGS, nullptr},
                                 {"torch_model", torch_model, METH_VARARGS, nullptr},
                                 {"any_model", any_model, METH_VARARGS, nullptr},
                                 {"guess_file", guess_file, METH_VARARGS, nullptr},
                                 {"convert", convert_file, METH_VARARGS, nullptr},
                                 {}};

}  // namespace

PyObject* wrap_graph(std::shared_ptr<const GraphModel> model) {
  auto* self = PyObject_New(PyGraphModel, g_graph_type);
  if (!self) throw PythonError{};
  new (&self->model) std::shared_ptr<const GraphModel>(std::move(model));
  return reinterpret_cast<PyObject*>(self);
}

PyObject* list_of(const std::vector<std::string>& texts) {
  Ref made = checked(PyList_New(0));
  for (const std::string& text : texts) {
    const Ref entry = checked(file_text(text));
    check(PyList_Append(made.get(), entry.get()));
  }
  return made.release();
}
PyObject* list_of(const std::vector<Tensor>& tensors) {
  Ref made = checked(PyList_New(0));
  for (const Tensor& t : tensors) {
    const Ref entry = checked(wrap(t));
    check(PyList_Append(made.get(), entry.get()));
  }
  return made.release();
}
std::vector<Tensor> listed_tensors(PyObject* list) {
  const Ref fast = checked(PySequence_Fast(list, "a list of tensors is expected"));
  std::vector<Tensor> tensors;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i)
    tensors.push_back(tensor_of(PySequence_Fast_GET_ITEM(fast.get(), i)));
  return tensors;
}

PyObject* file_text(const std::string& text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                              "backslashreplace");
}

void init_graph_models(PyObject* module) {
  const Ref type = checked(PyType_FromSpec(&kGraphSpec));
  g_graph_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.get()));
  check(PyModule_AddFunctions(module, kGraphFunctions));
}

}  // namespace oar::python
