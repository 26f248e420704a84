// Paddle's inference models.
#include "graph_models.h"
#include "oar/interop/paddle/import.h"
#include "oar/interop/paddle/write.h"
#include "programs.h"

namespace oar::python {
namespace {

// {name: weight}
PyObject* weights_of(const paddle::Model& model) {
  Ref made = checked(PyDict_New());
  for (const auto& [name, tensor] : model.parameters()) {
    const Ref key = checked(file_text(name));
    const Ref value = checked(wrap(tensor));
    check(PyDict_SetItem(made.get(), key.get(), value.get()));
  }
  return made.release();
}

using Held = std::shared_ptr<const paddle::Model>;
constexpr const char* kCapsule = "oar.paddle_model";

const paddle::Model& held_in(PyObject* capsule) {
  const void* held = PyCapsule_GetPointer(capsule, kCapsule);
  if (!held) throw PythonError{};
  return **static_cast<const Held*>(held);
}

void release_held(PyObject* capsule) {
  delete static_cast<Held*>(PyCapsule_GetPointer(capsule, kCapsule));
}

PyObject* paddle_open_program(PyObject*, PyObject* capsule) {
  return guarded([&] { return wrap_program(held_in(capsule).open_program()); });
}

PyObject* paddle_parameters(PyObject*, PyObject* capsule) {
  return guarded([&] { return weights_of(held_in(capsule)); });
}

// paddle_model(program, parameters): the model, and what the two functions above take
PyObject* paddle_model(PyObject*, PyObject* args) {
  const char *program, *parameters;
  Py_ssize_t program_size, parameters_size;
  if (!PyArg_ParseTuple(args, "y#y#", &program, &program_size, &parameters, &parameters_size))
    return nullptr;
  return guarded([&] {
    const auto model = std::make_shared<const paddle::Model>(
        std::string_view(program, static_cast<size_t>(program_size)),
        std::string_view(parameters, static_cast<size_t>(parameters_size)));
    const Ref graph = checked(wrap_graph(model));
    const Ref file = checked(PyCapsule_New(new Held(model), kCapsule, release_held));
    return PyTuple_Pack(2, graph.get(), file.get());
  });
}

PyObject* is_paddle_program(PyObject*, PyObject* args) {
  const char* bytes;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "y#", &bytes, &size)) return nullptr;
  return guarded(
      [&] { return PyBool_FromLong(paddle::is_program({bytes, static_cast<size_t>(size)})); });
}

// (program, a path whose ending is the format) -> (the program's file, that of the parameters)
PyObject* paddle_files(PyObject*, PyObject* args) {
  PyObject* program;
  const char* path;
  if (!PyArg_ParseTuple(args, "Os", &program, &path)) return nullptr;
  return guarded([&] {
    const paddle::Files files =
        paddle::write_model(native_program(program), paddle::format_of(path));
    const auto bytes = [](const std::string& content) {
      return checked(
          PyBytes_FromStringAndSize(content.data(), static_cast<Py_ssize_t>(content.size())));
    };
    const Ref text = bytes(files.program), parameters = bytes(files.parameters);
    return PyTuple_Pack(2, text.get(), parameters.get());
  });
}

PyMethodDef kPaddleFunctions[] = {{"paddle_files", paddle_files, METH_VARARGS, nullptr},
                                  {"paddle_model", paddle_model, METH_VARARGS, nullptr},
                                  {"paddle_open_program", paddle_open_program, METH_O, nullptr},
                                  {"paddle_parameters", paddle_parameters, METH_O, nullptr},
                                  {"is_paddle_program", is_paddle_program, METH_VARARGS, nullptr},
                                  {}};

}  // namespace

void init_paddle_models(PyObject* module) {
  check(PyModule_AddFunctions(module, kPaddleFunctions));
}

}  // namespace oar::python
