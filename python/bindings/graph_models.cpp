// Models of other frameworks, and those of Caffe, TensorFlow, TFLite and PyTorch.
#include "graph_models.h"

#include "oar/interop/caffe/import.h"
#include "oar/interop/keras/import.h"
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
  for (const int64_t size : *port.shape) {
    const Ref entry = checked(PyLong_FromLongLong(size));
    check(PyList_Append(made.get(), entry.get()));
  }
  return made.release();
}

// (name, dtype, shape) for each input; None for what the file leaves open
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

PyObject* run(PyObject* self, PyObject* list) {
  return guarded([&] {
    const std::vector<Tensor> given = listed_tensors(list);
    std::vector<Tensor> results;
    {
      const GilRelease release;
      results = graph_of(self).run(given);
    }
    return list_of(results);
  });
}

PyObject* program(PyObject* self, PyObject* list) {
  return guarded([&] { return wrap_program(graph_of(self).program(listed_tensors(list))); });
}

PyMethodDef kGraphMethods[] = {{"run", run, METH_O, "Runs it on a list of tensors."},
                               {"program", program, METH_O, "The program for inputs like these."},
                               {}};
PyGetSetDef kGraphGetters[] = {{"inputs", inputs, nullptr, nullptr, nullptr},
                               {"outputs", outputs, nullptr, nullptr, nullptr},
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

// A model of TorchScript takes any arguments: a graph for each structure of them, as JSON.
using Forms = std::function<GraphModel(std::string_view)>;
constexpr char kFormsName[] = "oar.interop.forms";

void free_forms(PyObject* capsule) {
  delete static_cast<Forms*>(PyCapsule_GetPointer(capsule, kFormsName));
}
PyObject* wrap_forms(Forms forms) {
  auto kept = std::make_unique<Forms>(std::move(forms));
  PyObject* made = PyCapsule_New(kept.get(), kFormsName, free_forms);
  Forms* const owned = kept.release();
  if (!made) delete owned;
  return made;
}

// torch_form(forms, arguments) -> model
PyObject* torch_form(PyObject*, PyObject* args) {
  PyObject* capsule;
  const char* text;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "Os#", &capsule, &text, &size)) return nullptr;
  return guarded([&] {
    const auto* forms = static_cast<const Forms*>(PyCapsule_GetPointer(capsule, kFormsName));
    if (!forms) throw PythonError{};
    return wrap_graph(std::make_shared<const GraphModel>((*forms)(viewed(text, size))));
  });
}

// torch_model(bytes) -> (model, weights by name, its forms for other arguments or None)
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
    const Ref forms =
        model.arranged ? checked(wrap_forms(std::move(model.arranged))) : Ref(Py_NewRef(Py_None));
    return PyTuple_Pack(3, graph.get(), weights.get(), forms.get());
  });
}

PyMethodDef kGraphFunctions[] = {{"caffe_model", caffe_model, METH_VARARGS, nullptr},
                                 {"tensorflow_model", tensorflow_model, METH_VARARGS, nullptr},
                                 {"keras_model", keras_model, METH_O, nullptr},
                                 {"hdf5_tensors", hdf5_tensors, METH_VARARGS, nullptr},
                                 {"tflite_model", tflite_model, METH_VARARGS, nullptr},
                                 {"torch_model", torch_model, METH_VARARGS, nullptr},
                                 {"torch_form", torch_form, METH_VARARGS, nullptr},
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
