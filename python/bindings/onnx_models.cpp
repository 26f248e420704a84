// ONNX models.
#include "graph_models.h"
#include "oar/interop/onnx/export.h"
#include "oar/interop/onnx/import.h"
#include "programs.h"

namespace oar::python {
namespace {

// onnx_model(bytes, folder of external data)
PyObject* onnx_model(PyObject*, PyObject* args) {
  const char *bytes, *folder;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "y#s", &bytes, &size, &folder)) return nullptr;
  return guarded([&] {
    return wrap_graph(std::make_shared<const onnx::Model>(
        std::string_view(bytes, static_cast<size_t>(size)), folder));
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

void init_onnx_models(PyObject* module) { check(PyModule_AddFunctions(module, kFunctions)); }

}  // namespace oar::python
