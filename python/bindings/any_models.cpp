// Models whose format is guessed.
#include "graph_models.h"
#include "oar/interop/any_model.h"
#include "programs.h"

namespace oar::python {
namespace {

struct PyAnyModel {
  PyObject_HEAD std::shared_ptr<const interop::AnyModel> model;
};
PyTypeObject* g_any_type = nullptr;

const interop::AnyModel& any_of(PyObject* self) {
  return *reinterpret_cast<PyAnyModel*>(self)->model;
}

void any_dealloc(PyObject* self) {
  reinterpret_cast<PyAnyModel*>(self)->model.~shared_ptr();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

// (name, dtype, shape) for each input. An open size is text; a shape that is not known is None.
PyObject* any_inputs(PyObject* self, void*) {
  return guarded([&] {
    Ref made = checked(PyList_New(0));
    for (const interop::Signature& input : any_of(self).inputs()) {
      Ref shape = input.shape ? checked(PyList_New(0)) : Ref::borrow(Py_None);
      for (size_t axis = 0; input.shape && axis < input.shape->size(); ++axis) {
        const Dim size = (*input.shape)[axis];
        const Ref entry =
            checked(size.is_known() ? PyLong_FromLongLong(size.value()) : file_text(size.str()));
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

PyObject* any_outputs(PyObject* self, void*) {
  return guarded([&] { return list_of(any_of(self).outputs()); });
}

PyObject* any_kind(PyObject* self, void*) {
  return PyUnicode_FromString(interop::to_string(any_of(self).kind()));
}
PyObject* any_path(PyObject* self, void*) {
  return PyUnicode_DecodeFSDefault(any_of(self).path().c_str());
}

PyObject* any_run(PyObject* self, PyObject* list) {
  return guarded([&] {
    const std::vector<Tensor> given = listed_tensors(list);
    std::vector<Tensor> results;
    {
      const GilRelease release;
      results = any_of(self).run(given);
    }
    return list_of(results);
  });
}

PyObject* any_program(PyObject* self, PyObject* list) {
  return guarded([&] { return wrap_program(any_of(self).program(listed_tensors(list))); });
}

PyMethodDef kAnyMethods[] = {{"run", any_run, METH_O, "Runs it on a list of tensors."},
                             {"program", any_program, METH_O, "The program for inputs like these."},
                             {}};
PyGetSetDef kAnyGetters[] = {{"inputs", any_inputs, nullptr, nullptr, nullptr},
                             {"outputs", any_outputs, nullptr, nullptr, nullptr},
                             {"kind", any_kind, nullptr, nullptr, nullptr},
                             {"path", any_path, nullptr, nullptr, nullptr},
                             {}};
PyType_Slot kAnySlots[] = {{Py_tp_dealloc, reinterpret_cast<void*>(any_dealloc)},
                           {Py_tp_methods, kAnyMethods},
                           {Py_tp_getset, kAnyGetters},
                           {0, nullptr}};
PyType_Spec kAnySpec = {"oar._C.AnyModel", sizeof(PyAnyModel), 0,
                        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, kAnySlots};

// any_model(path, method, path of weights or "")
PyObject* any_model(PyObject*, PyObject* args) {
  const char *path, *method, *weights;
  if (!PyArg_ParseTuple(args, "sss", &path, &method, &weights)) return nullptr;
  return guarded([&] {
    auto model = std::make_shared<const interop::AnyModel>(
        interop::AnyModel::load(path, {method, weights, false}));
    auto* self = PyObject_New(PyAnyModel, g_any_type);
    if (!self) throw PythonError{};
    new (&self->model) std::shared_ptr<const interop::AnyModel>(std::move(model));
    return reinterpret_cast<PyObject*>(self);
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

PyMethodDef kAnyFunctions[] = {{"any_model", any_model, METH_VARARGS, nullptr},
                               {"guess_file", guess_file, METH_VARARGS, nullptr},
                               {}};

}  // namespace

void init_any_models(PyObject* module) {
  const Ref type = checked(PyType_FromSpec(&kAnySpec));
  g_any_type = reinterpret_cast<PyTypeObject*>(Py_NewRef(type.get()));
  check(PyModule_AddFunctions(module, kAnyFunctions));
}

}  // namespace oar::python
