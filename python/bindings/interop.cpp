// Models of other frameworks.
#include "oar/interop/onnx/export.h"
#include "oar/interop/onnx/import.h"
#include "programs.h"

namespace oar::python {
namespace {

struct PyModel {
  PyObject_HEAD std::shared_ptr<const onnx::Model> model;
};
PyTypeObject* g_type = nullptr;

const onnx::Model& model_of(PyObject* self) { return *reinterpret_cast<PyModel*>(self)->model; }

void dealloc(PyObject* self) {
  reinterpret_cast<PyModel*>(self)->model.~shared_ptr();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

PyObject* names(const std::vector<std::string>& list) {
  Ref made = checked(PyList_New(0));
  for (const std::string& name : list) {
    const Ref entry = checked(PyUnicode_FromString(name.c_str()));
    check(PyList_Append(made.get(), entry.get()));
  }
  return made.release();
}
PyObject* inputs(PyObject* self, void*) {
  return guarded([&] { return names(model_of(self).inputs()); });
}
PyObject* outputs(PyObject* self, void*) {
  return guarded([&] { return names(model_of(self).outputs()); });
}

std::vector<Tensor> tensors_of(PyObject* list) {
  const Ref fast = checked(PySequence_Fast(list, "a list of tensors is expected"));
  std::vector<Tensor> tensors;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i)
    tensors.push_back(tensor_of(PySequence_Fast_GET_ITEM(fast.get(), i)));
  return tensors;
}

PyObject* run(PyObject* self, PyObject* list) {
  return guarded([&] {
    const std::vector<Tensor> given = tensors_of(list);
    std::vector<Tensor> results;
    {
      const GilRelease release;
      results = model_of(self).run(given);
    }
    Ref made = checked(PyList_New(0));
    for (const Tensor& t : results) {
      const Ref entry = checked(wrap(t));
      check(PyList_Append(made.get(), entry.get()));
    }
    return made.release();
  });
}

PyObject* program(PyObject* self, PyObject* list) {
  return guarded([&] { return wrap_program(model_of(self).program(tensors_of(list))); });
}

PyMethodDef kMethods[] = {{"run", run, METH_O, "Runs it on a list of tensors."},
                          {"program", program, METH_O, "The program for inputs like these."},
                          {}};
PyGetSetDef kGetters[] = {{"inputs", inputs, nullptr, nullptr, nullptr},
                          {"outputs", outputs, nullptr, nullptr, nullptr},
                          {}};
PyType_Slot kSlots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(dealloc)},
                        {Py_tp_methods, kMethods},
                        {Py_tp_getset, kGetters},
                        {0, nullptr}};
PyType_Spec kSpec = {"oar._C.OnnxModel", sizeof(PyModel), 0,
                     Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, kSlots};

// onnx_model(bytes, folder of external data)
PyObject* onnx_model(PyObject*, PyObject* args) {
  const char *bytes, *folder;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "y#s", &bytes, &size, &folder)) return nullptr;
  return guarded([&] {
    auto model =
        std::make_shared<const onnx::Model>(std::string(bytes, static_cast<size_t>(size)), folder);
    auto* self = PyObject_New(PyModel, g_type);
    if (!self) throw PythonError{};
    new (&self->model) std::shared_ptr<const onnx::Model>(std::move(model));
    return reinterpret_cast<PyObject*>(self);
  });
}

PyObject* onnx_tensor(PyObject*, PyObject* args) {
  const char* bytes;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "y#", &bytes, &size)) return nullptr;
  return guarded([&] { return wrap(onnx::read_tensor({bytes, static_cast<size_t>(size)})); });
}

std::vector<std::string> texts_of(PyObject* list) {
  const Ref fast = checked(PySequence_Fast(list, "a list of names is expected"));
  std::vector<std::string> texts;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
    const char* text = PyUnicode_AsUTF8(PySequence_Fast_GET_ITEM(fast.get(), i));
    if (!text) throw PythonError{};
    texts.emplace_back(text);
  }
  return texts;
}

// onnx_export(program, path, opset, names of inputs, names of outputs, bytes of weights inside the file)
PyObject* onnx_export(PyObject*, PyObject* args) {
  PyObject *program, *inputs, *outputs;
  const char* path;
  long long opset, inside;
  if (!PyArg_ParseTuple(args, "OsLOOL", &program, &path, &opset, &inputs, &outputs, &inside))
    return nullptr;
  return guarded([&] {
    onnx::export_program(native_program(program), path,
                         {.opset = opset,
                          .inputs = texts_of(inputs),
                          .outputs = texts_of(outputs),
                          .most_inside = inside});
    return Py_NewRef(Py_None);
  });
}

PyMethodDef kFunctions[] = {{"onnx_export", onnx_export, METH_VARARGS, nullptr},
                            {"onnx_model", onnx_model, METH_VARARGS, nullptr},
                            {"onnx_tensor", onnx_tensor, METH_VARARGS, nullptr},
                            {}};

}  // namespace

void init_interop(PyObject* module) {
  const Ref type = checked(PyType_FromSpec(&kSpec));
  g_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.get()));
  check(PyModule_AddFunctions(module, kFunctions));
}

}  // namespace oar::python
