// The Python tensor: identity, attributes and subclasses survive a trip through C++.
//
// Normally the Python object owns the native tensor. If the last Python reference is dropped while native
// code still holds the tensor, and the object has state to lose (attributes, a subclass, weak
// references), ownership is reversed: the native tensor keeps the object until it is requested again.
#include "common.h"
#include "native_docs.h"
#include "oar/autograd/node.h"
#include "oar/base/flags.h"
#include "oar/device/device.h"
#include "oar/ops/core/dispatcher.h"
#include "tensor_methods.h"

namespace oar::python {
namespace {

struct PyTensor {
  PyObject_HEAD Tensor tensor;
  PyObject* dict;
  PyObject* weakrefs;
};
PyTypeObject* g_type = nullptr;

PyTensor* as(PyObject* object) { return reinterpret_cast<PyTensor*>(object); }

bool has_state(PyObject* self) {
  return Py_TYPE(self) != g_type || as(self)->weakrefs ||
         (as(self)->dict && PyDict_GET_SIZE(as(self)->dict) > 0);
}

// Called when the reference count has reached zero.
bool resurrect(PyObject* self) {
  PyTensor* t = as(self);
  TensorImpl* impl = t->tensor.impl();
  if (!impl || impl->python != self || impl->reference_count() == 1 || !has_state(self))
    return false;
  Py_SET_REFCNT(self, 1);
  impl->python_owned = true;
  new (&t->tensor) Tensor();  // the reference is dropped below, so that there is no cycle
  impl->release();
  return true;
}

// Every call creates and frees handles, so a few are kept for the next one. Under the GIL.
struct SpareHandles {
  bool keep(PyTensor* t) {
    if (count == std::size(handles)) return false;
    handles[count++] = t;
    return true;
  }
  PyTensor* take() {
    if (count == 0) return PyObject_GC_New(PyTensor, g_type);
    PyTensor* t = handles[--count];
    PyObject_Init(reinterpret_cast<PyObject*>(t), g_type);
    return t;
  }
  PyTensor* handles[64];
  size_t count = 0;
};
SpareHandles g_spare;

void tensor_dealloc(PyObject* self) {
  if (resurrect(self)) return;
  PyTensor* t = as(self);
  PyObject_GC_UnTrack(self);
  if (t->weakrefs) PyObject_ClearWeakRefs(self);
  Py_CLEAR(t->dict);
  if (TensorImpl* impl = t->tensor.impl(); impl && impl->python == self) impl->python = nullptr;
  t->tensor.~Tensor();
  PyTypeObject* type = Py_TYPE(self);
  if (type != g_type || !g_spare.keep(t)) type->tp_free(self);
  Py_DECREF(type);
}

void release_python(void* object) {
  if (!Py_IsInitialized()) return;
  const GilHold gil;
  Py_DECREF(static_cast<PyObject*>(object));
}

int tensor_traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(as(self)->dict);
  return visit_hooks(as(self)->tensor, visit, arg);
}

int tensor_clear(PyObject* self) {
  Py_CLEAR(as(self)->dict);
  clear_hooks(as(self)->tensor);
  return 0;
}

int tensor_setattr(PyObject* self, PyObject* name, PyObject* value) {
  const int status = PyObject_GenericSetAttr(self, name, value);
  // Only a tensor with attributes can be part of a cycle.
  if (status == 0 && as(self)->dict && !PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
  return status;
}

PyObject* tensor_new(PyTypeObject* type, PyObject* args, PyObject* keywords) {
  return guarded([&]() -> PyObject* {
    static const char* names[] = {"value",       "dtype", "place",     "stop_gradient",
                                  "persistable", "name",  "zero_copy", nullptr};
    PyObject *value = nullptr, *dtype = nullptr, *place = nullptr, *stop = nullptr,
             *persistable = nullptr, *name = nullptr, *zero_copy = nullptr;
    if (!PyArg_ParseTupleAndKeywords(args, keywords, "|OOOOOOO:Tensor", const_cast<char**>(names),
                                     &value, &dtype, &place, &stop, &persistable, &name,
                                     &zero_copy))
      throw PythonError{};
    std::optional<DType> wanted;
    if (dtype && dtype != Py_None) {
      DType t;
      if (!to_dtype(dtype, &t)) throw PythonError{};
      wanted = t;
    }
    Tensor tensor = !value || value == Py_None
                        ? Tensor::empty(Shape{0}, wanted.value_or(default_dtype()))
                    : is_tensor(value) ? detach(tensor_of(value))
                                       : to_tensor(value, wanted);
    PyObject* self = type->tp_alloc(type, 0);
    if (!self) throw PythonError{};
    new (&as(self)->tensor) Tensor(std::move(tensor));
    as(self)->tensor->python = self;
    if (stop && stop != Py_None) set_stop_gradient(as(self)->tensor, PyObject_IsTrue(stop) != 0);
    if (name && PyUnicode_Check(name)) history_of(as(self)->tensor).name = PyUnicode_AsUTF8(name);
    return self;
  });
}

int tensor_init(PyObject*, PyObject*, PyObject*) { return 0; }

// Python would give subclasses its own dealloc, which cannot reverse ownership.
PyObject* init_subclass(PyObject* cls, PyObject*, PyObject*) {
  reinterpret_cast<PyTypeObject*>(cls)->tp_dealloc = tensor_dealloc;
  Py_RETURN_NONE;
}

// ---- operators ------------------------------------------------------------------------------

bool is_operand(PyObject* o) {
  return is_tensor(o) || is_number(o) || PyObject_HasAttrString(o, "__array__");
}

PyObject* binary(const Op& op, PyObject* a, PyObject* b) {
  if (!is_operand(a) || !is_operand(b)) Py_RETURN_NOTIMPLEMENTED;
  PyObject* args[] = {a, b};
  return call_op(op, args, 2);
}

#define OAR_BINARY(slot, name)               \
  PyObject* slot(PyObject* a, PyObject* b) { \
    static const Op& op = get_op(name);      \
    return binary(op, a, b);                 \
  }
OAR_BINARY(nb_add, "add")
OAR_BINARY(nb_subtract, "subtract")
OAR_BINARY(nb_multiply, "multiply")
OAR_BINARY(nb_divide, "divide")
OAR_BINARY(nb_floor_divide, "floor_divide")
OAR_BINARY(nb_remainder, "remainder")
OAR_BINARY(nb_and, "bitwise_and")
OAR_BINARY(nb_or, "bitwise_or")
OAR_BINARY(nb_xor, "bitwise_xor")
#undef OAR_BINARY

// The op takes tensors only, the operator arrays as well: array @ tensor comes here too.
PyObject* nb_matmul(PyObject* a, PyObject* b) {
  static const Op& op = get_op("matmul");
  if (is_tensor(a) && is_tensor(b)) return binary(op, a, b);
  return guarded([&]() -> PyObject* {
    const auto as_tensor = [](PyObject* o) {
      if (is_tensor(o) || !PyObject_HasAttrString(o, "__array__")) return Ref(Py_NewRef(o));
      return Ref(wrap(to_tensor(o, std::nullopt)));
    };
    const Ref left = as_tensor(a), right = as_tensor(b);
    return binary(op, left.get(), right.get());
  });
}

PyObject* nb_power(PyObject* a, PyObject* b, PyObject*) {
  static const Op& op = get_op("pow");
  return binary(op, a, b);
}

#define OAR_UNARY(slot, name)           \
  PyObject* slot(PyObject* a) {         \
    static const Op& op = get_op(name); \
    return call_op(op, &a, 1);          \
  }
OAR_UNARY(nb_negative, "neg")
OAR_UNARY(nb_absolute, "abs")
OAR_UNARY(nb_invert, "bitwise_not")
#undef OAR_UNARY

PyObject* richcompare(PyObject* a, PyObject* b, int how) {
  static const Op* ops[] = {&get_op("less_than"),    &get_op("less_equal"),
                            &get_op("equal"),        &get_op("not_equal"),
                            &get_op("greater_than"), &get_op("greater_equal")};
  if (b == Py_None && (how == Py_EQ || how == Py_NE)) return PyBool_FromLong(how == Py_NE);
  return binary(*ops[how], a, b);
}

// Identity: equality is elementwise.
Py_hash_t hash(PyObject* self) { return _Py_HashPointer(self); }

int nb_bool(PyObject* self) {
  return guarded_int([&] {
    const Tensor t = known_value(tensor_of(self));
    user_check(t.numel() == Dim(1), ErrorKind::InvalidArgument,
               "the truth of {} is not one value.\nhint: Use x.any() or x.all().", t.describe());
    return t.item_double() != 0 ||
           (is_complex(t.dtype()) && t.to_vector<std::complex<double>>()[0].imag() != 0);
  });
}

PyObject* nb_int(PyObject* self) {
  const Ref number(item(tensor_of(self)));
  return number ? PyNumber_Long(number.get()) : nullptr;
}
PyObject* nb_float(PyObject* self) {
  const Ref number(item(tensor_of(self)));  // for a complex one Python raises an error
  return number ? PyNumber_Float(number.get()) : nullptr;
}
PyObject* nb_index(PyObject* self) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_of(self);
    user_check(is_integral(t.dtype()) || is_bool(t.dtype()), ErrorKind::InvalidType,
               "only an integer tensor can be used as an index, not {}.", t.describe());
    return PyLong_FromLongLong(known_value(t).item_int());
  });
}

Py_ssize_t length(PyObject* self) {
  const Tensor& t = tensor_of(self);
  if (t.rank() == 0) {
    PyErr_SetString(PyExc_TypeError, "a 0-d tensor has no len().");
    return -1;
  }
  try {
    return t.dims()[0].value();
  } catch (...) {
    set_python_error();
    return -1;
  }
}

int get_buffer(PyObject* self, Py_buffer* view, int flags) {
  return guarded_int([&] { return fill_buffer(self, tensor_of(self), view, flags); });
}

PyType_Slot kSlots[] = {
    {Py_tp_new, reinterpret_cast<void*>(tensor_new)},
    {Py_tp_init, reinterpret_cast<void*>(tensor_init)},
    {Py_tp_dealloc, reinterpret_cast<void*>(tensor_dealloc)},
    {Py_tp_traverse, reinterpret_cast<void*>(tensor_traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(tensor_clear)},
    {Py_tp_setattro, reinterpret_cast<void*>(tensor_setattr)},
    {Py_tp_richcompare, reinterpret_cast<void*>(richcompare)},
    {Py_tp_hash, reinterpret_cast<void*>(hash)},
    {Py_mp_subscript, reinterpret_cast<void*>(tensor_getitem)},
    {Py_mp_ass_subscript, reinterpret_cast<void*>(tensor_setitem)},
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {Py_nb_add, reinterpret_cast<void*>(nb_add)},
    {Py_nb_subtract, reinterpret_cast<void*>(nb_subtract)},
    {Py_nb_multiply, reinterpret_cast<void*>(nb_multiply)},
    {Py_nb_true_divide, reinterpret_cast<void*>(nb_divide)},
    {Py_nb_floor_divide, reinterpret_cast<void*>(nb_floor_divide)},
    {Py_nb_remainder, reinterpret_cast<void*>(nb_remainder)},
    {Py_nb_matrix_multiply, reinterpret_cast<void*>(nb_matmul)},
    {Py_nb_and, reinterpret_cast<void*>(nb_and)},
    {Py_nb_or, reinterpret_cast<void*>(nb_or)},
    {Py_nb_xor, reinterpret_cast<void*>(nb_xor)},
    {Py_nb_power, reinterpret_cast<void*>(nb_power)},
    {Py_nb_negative, reinterpret_cast<void*>(nb_negative)},
    {Py_nb_absolute, reinterpret_cast<void*>(nb_absolute)},
    {Py_nb_invert, reinterpret_cast<void*>(nb_invert)},
    {Py_nb_bool, reinterpret_cast<void*>(nb_bool)},
    {Py_nb_int, reinterpret_cast<void*>(nb_int)},
    {Py_nb_float, reinterpret_cast<void*>(nb_float)},
    {Py_nb_index, reinterpret_cast<void*>(nb_index)},
    {Py_bf_getbuffer, reinterpret_cast<void*>(get_buffer)},
    {Py_bf_releasebuffer, reinterpret_cast<void*>(release_buffer)},
    {Py_tp_getset, tensor_getters},
    {Py_tp_methods, tensor_methods},
    {Py_tp_doc, const_cast<char*>(docs::kTensor)},
    {0, nullptr},
};
PyMemberDef kMembers[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(PyTensor, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyTensor, weakrefs), READONLY, nullptr},
    {}};
PyMethodDef kInitSubclass = {"__init_subclass__", reinterpret_cast<PyCFunction>(init_subclass),
                             METH_VARARGS | METH_KEYWORDS | METH_CLASS, nullptr};

}  // namespace

bool is_tensor(PyObject* object) {
  return Py_TYPE(object) == g_type || PyType_IsSubtype(Py_TYPE(object), g_type);
}
PyTypeObject* tensor_type() { return g_type; }
const Tensor& tensor_of(PyObject* object) { return as(object)->tensor; }

PyObject* wrap(Tensor t) {
  if (!t.defined()) Py_RETURN_NONE;
  TensorImpl* impl = t.impl();
  if (impl->python) {
    auto* self = static_cast<PyObject*>(impl->python);
    if (impl->python_owned) {  // ownership is reversed again; the object's one reference becomes the caller's
      impl->python_owned = false;
      as(self)->tensor = std::move(t);
      return self;
    }
    Py_INCREF(self);
    return self;
  }
  // Not tracked by the collector until it has attributes: see tensor_setattr.
  PyTensor* self = g_spare.take();
  if (!self) throw PythonError{};
  self->dict = nullptr;
  self->weakrefs = nullptr;
  impl->python = self;
  new (&self->tensor) Tensor(std::move(t));
  return reinterpret_cast<PyObject*>(self);
}

PyObject* wrap_list(TensorList list) {
  Ref result = checked(PyList_New(static_cast<Py_ssize_t>(list.size())));
  for (size_t i = 0; i < list.size(); ++i)
    PyList_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), wrap(list[i]));
  return result.release();
}

PyObject* wrap_tuple(TensorList list) {
  Ref result = checked(PyTuple_New(static_cast<Py_ssize_t>(list.size())));
  for (size_t i = 0; i < list.size(); ++i)
    PyTuple_SET_ITEM(result.get(), static_cast<Py_ssize_t>(i), wrap(list[i]));
  return result.release();
}

std::vector<Tensor> tensors_of(PyObject* sequence, bool allow_none) {
  if (is_tensor(sequence)) return {tensor_of(sequence)};
  const Ref fast = checked(PySequence_Fast(sequence, "a tensor or a list of tensors is expected"));
  std::vector<Tensor> list;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); ++i) {
    PyObject* element = PySequence_Fast_GET_ITEM(fast.get(), i);
    if (element == Py_None && allow_none) {
      list.emplace_back();
      continue;
    }
    user_check(is_tensor(element), ErrorKind::InvalidType, "a tensor is expected, not {}.",
               Py_TYPE(element)->tp_name);
    list.push_back(tensor_of(element));
  }
  return list;
}

void init_tensor_type(PyObject* module) {
  std::vector<PyType_Slot> slots(std::begin(kSlots), std::end(kSlots) - 1);
  slots.push_back({Py_tp_members, kMembers});
  slots.push_back({0, nullptr});
  PyType_Spec spec = {"oar.Tensor", sizeof(PyTensor), 0,
                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots.data()};
  g_type = reinterpret_cast<PyTypeObject*>(checked(PyType_FromSpec(&spec)).release());
  const Ref hook = checked(PyDescr_NewClassMethod(g_type, &kInitSubclass));
  check(
      PyObject_SetAttrString(reinterpret_cast<PyObject*>(g_type), "__init_subclass__", hook.get()));
  check(PyModule_AddObjectRef(module, "Tensor", reinterpret_cast<PyObject*>(g_type)));
  set_python_releaser(release_python);
}

}  // namespace oar::python
