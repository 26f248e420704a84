// Python types for objects of ours that are held by a pointer.
#pragma once

#include <cstring>
#include <memory>

#include "common.h"

namespace oar::python {

// A Python object that owns a pointer to one of ours.
template <class T>
struct Holder {
  PyObject_HEAD std::shared_ptr<T> held;
};

template <class T>
PyTypeObject* g_type = nullptr;

template <class T>
T& held_by(PyObject* self) {
  return *reinterpret_cast<Holder<T>*>(self)->held;
}

template <class T>
PyObject* hold(std::shared_ptr<T> object) {
  auto* self = reinterpret_cast<Holder<T>*>(checked(g_type<T>->tp_alloc(g_type<T>, 0)).release());
  new (&self->held) std::shared_ptr<T>(std::move(object));
  return reinterpret_cast<PyObject*>(self);
}

template <class T>
void drop(PyObject* self) {
  {
    std::shared_ptr<T> last = std::move(reinterpret_cast<Holder<T>*>(self)->held);
    const GilRelease release;  // threads may have to end
    last.reset();
  }
  reinterpret_cast<Holder<T>*>(self)->held.~shared_ptr();
  PyTypeObject* type = Py_TYPE(self);
  type->tp_free(self);
  Py_DECREF(type);
}

template <class T>
void add_type(PyObject* module, const char* path, PyMethodDef* methods) {
  PyType_Slot slots[] = {
      {Py_tp_dealloc, reinterpret_cast<void*>(drop<T>)}, {Py_tp_methods, methods}, {0, nullptr}};
  PyType_Spec spec{path, sizeof(Holder<T>), 0,
                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots};
  Ref type = checked(PyType_FromSpec(&spec));
  g_type<T> = reinterpret_cast<PyTypeObject*>(type.get());
  Py_INCREF(type.get());
  check(PyModule_AddObject(module, std::strrchr(path, '.') + 1, type.release()));
}

}  // namespace oar::python
