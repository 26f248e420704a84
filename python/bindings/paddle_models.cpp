// Paddle's inference models.
#include "oar/interop/paddle/import.h"
#include "oar/interop/paddle/write.h"
#include "programs.h"

namespace oar::python {
namespace {

using PaddleModel = paddle::Model;

struct PyPaddleModel {
  PyObject_HEAD std::shared_ptr<const PaddleModel> model;
};
PyTypeObject* g_paddle_type = nullptr;

const PaddleModel& paddle_of(PyObject* self) {
  return *reinterpret_cast<PyPaddleModel*>(self)->model;
}

void paddle_dealloc(PyObject* self) {
  reinterpret_cast<PyPaddleModel*>(self)->model.~shared_ptr();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// Names in files may be any bytes.
PyObject* file_text(const std::string& text) {
  return PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()),
                              "backslashreplace");
}

// (name, dtype, shape) for each input
PyObject* paddle_inputs(PyObject* self, void*) {
  return guarded([&] {
    Ref made = checked(PyList_New(0));
    for (const paddle::Signature& input : paddle_of(self).inputs()) {
      const Ref shape = checked(PyList_New(0));
      for (const int64_t size : input.shape) {
        const Ref entry = checked(PyLong_FromLongLong(size));
        check(PyList_Append(shape.get(), entry.get()));
      }
      const Ref name = checked(file_text(input.name));
      const Ref dtype = checked(PyUnicode_FromString(name_of(input.dtype)));
      const Ref entry = checked(PyTuple_Pack(3, name.get(), dtype.get(), shape.get()));
      check(PyList_Append(made.get(), entry.get()));
    }
    return made.release();
  });
}

PyObject* paddle_outputs(PyObject* self, void*) {
  return guarded([&] {
    Ref made = checked(PyList_New(0));
    for (const std::string& name : paddle_of(self).outputs()) {
      const Ref entry = checked(file_text(name));
      check(PyList_Append(made.get(), entry.get()));
    }
    return made.release();
  });
}

std::vector<Tensor> given_tensors(PyObject* list) {
  const Ref fast = checked(PySequence_Fast(list, "a list of tensors is expected"));
  std::vector<Tensor> tensors;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i)
    tensors.push_back(tensor_of(PySequence_Fast_GET_ITEM(fast.get(), i)));
  return tensors;
}

PyObject* paddle_run(PyObject* self, PyObject* list) {
  return guarded([&] {
    const std::vector<Tensor> given = given_tensors(list);
    std::vector<Tensor> results;
    {
      const GilRelease release;
      results = paddle_of(self).run(given);
    }
    Ref made = checked(PyList_New(0));
    for (const Tensor& t : results) {
      const Ref entry = checked(wrap(t));
      check(PyList_Append(made.get(), entry.get()));
    }
    return made.release();
  });
}

PyObject* paddle_program(PyObject* self, PyObject* list) {
  return guarded([&] { return wrap_program(paddle_of(self).program(given_tensors(list))); });
}

PyObject* paddle_open_program(PyObject* self, PyObject*) {
  return guarded([&] { return wrap_program(paddle_of(self).open_program()); });
}

PyObject* paddle_parameters(PyObject* self, PyObject*) {
  return guarded([&] {
    Ref made = checked(PyDict_New());
    for (const auto& [name, tensor] : paddle_of(self).parameters()) {
      const Ref key = checked(file_text(name));
      const Ref value = checked(wrap(tensor));
      check(PyDict_SetItem(made.get(), key.get(), value.get()));
    }
    return made.release();
  });
}

PyMethodDef kPaddleMethods[] = {
    {"run", paddle_run, METH_O, "Runs it on a list of tensors."},
    {"program", paddle_program, METH_O, "The program for inputs like these."},
    {"open_program", paddle_open_program, METH_NOARGS, "The program for all sizes."},
    {"parameters", paddle_parameters, METH_NOARGS, "The weights by name."},
    {}};
PyGetSetDef kPaddleGetters[] = {{"inputs", paddle_inputs, nullptr, nullptr, nullptr},
                                {"outputs", paddle_outputs, nullptr, nullptr, nullptr},
                                {}};
PyType_Slot kPaddleSlots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(paddle_dealloc)},
                              {Py_tp_methods, kPaddleMethods},
                              {Py_tp_getset, kPaddleGetters},
                              {0, nullptr}};
PyType_Spec kPaddleSpec = {"oar._C.PaddleModel", sizeof(PyPaddleModel), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, kPaddleSlots};

// paddle_model(program, parameters)
PyObject* paddle_model(PyObject*, PyObject* args) {
  const char *program, *parameters;
  Py_ssize_t program_size, parameters_size;
  if (!PyArg_ParseTuple(args, "y#y#", &program, &program_size, &parameters, &parameters_size))
    return nullptr;
  return guarded([&] {
    auto model = std::make_shared<const PaddleModel>(
        std::string_view(program, static_cast<size_t>(program_size)),
        std::string_view(parameters, static_cast<size_t>(parameters_size)));
    auto* self = PyObject_New(PyPaddleModel, g_paddle_type);
    if (!self) throw PythonError{};
    new (&self->model) std::shared_ptr<const PaddleModel>(std::move(model));
    return reinterpret_cast<PyObject*>(self);
  });
}

PyObject* is_paddle_program(PyObject*, PyObject* args) {
  const char* bytes;
  Py_ssize_t size;
  if (!PyArg_ParseTuple(args, "y#", &bytes, &size)) return nullptr;
  return guarded(
      [&] { return PyBool_FromLong(paddle::is_program({bytes, static_cast<size_t>(size)})); });
}

// (the program's file, that of the parameters)
PyObject* paddle_files(PyObject*, PyObject* program) {
  return guarded([&] {
    const paddle::Files files = paddle::write_model(native_program(program));
    const auto bytes = [](const std::string& content) {
      return checked(
          PyBytes_FromStringAndSize(content.data(), static_cast<Py_ssize_t>(content.size())));
    };
    const Ref text = bytes(files.program), parameters = bytes(files.parameters);
    return PyTuple_Pack(2, text.get(), parameters.get());
  });
}

PyMethodDef kPaddleFunctions[] = {{"paddle_files", paddle_files, METH_O, nullptr},
                                  {"paddle_model", paddle_model, METH_VARARGS, nullptr},
                                  {"is_paddle_program", is_paddle_program, METH_VARARGS, nullptr},
                                  {}};

}  // namespace

void init_paddle_models(PyObject* module) {
  const Ref type = checked(PyType_FromSpec(&kPaddleSpec));
  g_paddle_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.get()));
  check(PyModule_AddFunctions(module, kPaddleFunctions));
}

}  // namespace oar::python
