#include "tensor_methods.h"

#include "native_docs.h"
#include "oar/autograd/engine.h"
#include "oar/autograd/node.h"
#include "oar/compiler/capture/builder.h"
#include "oar/device/device.h"
#include "oar/ops/families/sparse.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/selected_rows.h"
#include "oar/tensor/dlpack.h"
#include "oar/tensor/hooks.h"

namespace oar::python {
namespace {

// ---- properties -----------------------------------------------------------------------------

PyObject* get_shape(PyObject* self, void*) {
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    Ref list = checked(PyList_New(t.rank()));
    for (int i = 0; i < t.rank(); ++i)
      PyList_SET_ITEM(list.get(), i, from_dim(t.dims()[static_cast<size_t>(i)]));
    return list.release();
  });
}
PyObject* get_strides(PyObject* self, void*) {
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    Ref list = checked(PyList_New(t.rank()));
    for (int i = 0; i < t.rank(); ++i)
      PyList_SET_ITEM(list.get(), i, PyLong_FromLongLong(t->strides[i]));
    return list.release();
  });
}
PyObject* get_dtype(PyObject* self, void*) { return wrap_dtype(tensor_of(self).dtype()); }
PyObject* get_offset(PyObject* self, void*) {
  const Tensor& t = tensor_of(self);
  if (!t.is_dense() || !t->data) return PyLong_FromLong(0);
  return PyLong_FromSsize_t(static_cast<const char*>(t->data) -
                            static_cast<const char*>(t->storage->data()));
}
PyObject* get_ndim(PyObject* self, void*) { return PyLong_FromLong(tensor_of(self).rank()); }
PyObject* get_size(PyObject* self, void*) {
  return guarded([&] {
    Ref count = checked(from_dim(tensor_of(self).numel()));
    if (!PyLong_CheckExact(count.get())) return count.release();
    static PyObject* type = [] {
      const Ref module = checked(PyImport_ImportModule("oar._sizes"));
      return checked(PyObject_GetAttrString(module.get(), "TensorSize")).release();
    }();
    return PyObject_CallFunctionObjArgs(type, count.get(), self, nullptr);
  });
}
PyObject* get_stop_gradient(PyObject* self, void*) {
  return PyBool_FromLong(stop_gradient(tensor_of(self)));
}
int put_stop_gradient(PyObject* self, PyObject* value, void*) {
  return guarded_int([&] {
    const bool stop = PyObject_IsTrue(value) != 0;
    if (!stop && stop_gradient(tensor_of(self)))
      if (Builder* builder = Builder::of(tensor_of(self))) builder->note_leaf(tensor_of(self));
    if (stop)
      set_stop_gradient(tensor_of(self), true);
    else
      request_gradient(tensor_of(self));
    return 0;
  });
}
// A capture follows the gradients that its function reads and sets.
using GradientUse = Capture::GradientUse;
void meet_gradient_of(const Tensor& t, GradientUse use) {
  if (Capture* capture = Capture::current()) [[unlikely]]
    capture->meet_gradient_of(t, use);
}

PyObject* get_grad(PyObject* self, void*) {
  return guarded([&] {
    const Tensor &whole = tensor_of(self), &t = carrier_of(whole);
    meet_gradient_of(t, GradientUse::Read);
    History* h = maybe_history(t);
    const Tensor grad = h ? h->grad.get() : Tensor();
    return wrap(grad.defined() && is_sparse(whole) ? with_values(whole, grad) : grad);
  });
}
int put_grad(PyObject* self, PyObject* value, void*) {
  return guarded_int([&] {
    const Tensor &whole = tensor_of(self), &t = carrier_of(whole);
    const bool none = !value || value == Py_None;
    meet_gradient_of(t, none ? GradientUse::SetToNone : GradientUse::Other);
    if (none) {
      if (History* h = maybe_history(t)) h->grad.set(Tensor());
      return 0;
    }
    user_check(is_tensor(value), ErrorKind::InvalidType, "grad must be a tensor or None, not {}.",
               Py_TYPE(value)->tp_name);
    const Tensor g = is_sparse(whole) ? values_for(whole, tensor_of(value)) : tensor_of(value);
    user_check(same(g.shape(), t.shape()), ErrorKind::InvalidArgument,
               "a gradient of shape {} does not fit a tensor of shape {}.", to_string(g.dims()),
               to_string(t.dims()));
    history_of(t).grad.set(g);
    return 0;
  });
}
PyObject* get_is_leaf(PyObject* self, void*) { return PyBool_FromLong(is_leaf(tensor_of(self))); }
PyObject* get_name(PyObject* self, void*) {
  return guarded([&] {
    History& h = history_of(tensor_of(self));
    static std::atomic<uint64_t> count{0};
    if (h.name.empty()) h.name = format("generated_tensor_{}", count++);
    return PyUnicode_FromString(h.name.c_str());
  });
}
int put_name(PyObject* self, PyObject* value, void*) {
  return guarded_int([&] {
    const char* text = PyUnicode_AsUTF8(value);
    if (!text) throw PythonError{};
    history_of(tensor_of(self)).name = text;
    return 0;
  });
}
PyObject* get_persistable(PyObject* self, void*) {
  return PyBool_FromLong(tensor_of(self).has(kPersistable));
}
int put_persistable(PyObject* self, PyObject* value, void*) {
  TensorImpl* impl = tensor_of(self).impl();
  if (PyObject_IsTrue(value))
    impl->flags |= kPersistable;
  else
    impl->flags &= ~uint32_t{kPersistable};
  return 0;
}
PyObject* get_device(PyObject* self, void*) {
  return guarded(
      [&] { return PyUnicode_FromString(devices::to_string(tensor_of(self).device()).c_str()); });
}
PyObject* get_kind(PyObject* self, void*) {
  static constexpr const char* kNames[] = {"dense",      "symbolic",    "selected_rows",
                                           "dual",       "batched",     "sparse_coo",
                                           "sparse_csr", "distributed", "meta"};
  return PyUnicode_FromString(kNames[static_cast<int>(tensor_of(self).kind())]);
}
PyObject* get_inplace_version(PyObject* self, void*) {
  const Tensor& t = tensor_of(self);
  return PyLong_FromUnsignedLong(t->storage ? t->storage->version() : 0);
}
PyObject* bump_inplace_version(PyObject* self, PyObject*) {
  const Tensor& t = tensor_of(self);
  if (t.is_dense()) t->storage->bump_version();
  Py_RETURN_NONE;
}
PyObject* get_grad_node(PyObject* self, void*) {
  return guarded([&]() -> PyObject* {
    const Edge edge = edge_of(tensor_of(self));
    if (!edge.node) Py_RETURN_NONE;
    return PyUnicode_FromString(edge.node->name().c_str());
  });
}

// ---- methods --------------------------------------------------------------------------------

// An array would silently hold all elements.
const Tensor& with_memory(PyObject* self) {
  const Tensor& t = tensor_of(self);
  user_check(
      !is_sparse(t), ErrorKind::InvalidType,
      "a sparse tensor, {}, is not an array.\nhint: Use x.to_dense() for all elements, or x.values().",
      t.describe());
  return t;
}

// numpy(blocking=True): it always waits for the values.
PyObject* numpy(PyObject* self, PyObject* args) {
  int blocking = 1;
  if (!PyArg_ParseTuple(args, "|p:numpy", &blocking)) return nullptr;
  return guarded([&] {
    const Tensor& t = with_memory(self);
    return to_array(t.kind() == Kind::SelectedRows ? selected_rows_to_dense(t) : t, true);
  });
}
PyObject* numpy_view(PyObject* self, PyObject*) {
  return guarded([&] { return to_array(with_memory(self), false); });
}
PyObject* item_method(PyObject* self, PyObject* args) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = with_memory(self);
    if (PyTuple_GET_SIZE(args) == 0) return item(t);
    const Ref key =
        PyTuple_GET_SIZE(args) == 1 ? Ref::borrow(PyTuple_GET_ITEM(args, 0)) : Ref::borrow(args);
    if (PyTuple_GET_SIZE(args) == 1 && PyLong_Check(key.get()) && t.rank() != 1) {
      const Tensor flat = Tensor(t->alias());
      static const Op& reshape = get_op("reshape");
      const Ref shape = checked(Py_BuildValue("[i]", -1));
      PyObject* call[] = {self, shape.get()};
      const Ref row = checked(call_op(reshape, call, 2));
      const Ref element = checked(tensor_getitem(row.get(), key.get()));
      return item(tensor_of(element.get()));
    }
    const Ref element = checked(tensor_getitem(self, key.get()));
    return item(tensor_of(element.get()));
  });
}
PyObject* tolist(PyObject* self, PyObject*) {
  return guarded([&] { return to_list(with_memory(self)); });
}
PyObject* detach_method(PyObject* self, PyObject*) {
  return guarded([&] { return wrap(detach(tensor_of(self))); });
}
PyObject* data_ptr(PyObject* self, PyObject*) {
  return guarded([&] {
    const Tensor& t = tensor_of(self);
    user_check(t.is_dense(), ErrorKind::Runtime, "{} has no memory.", t.describe());
    note_read(t);
    return PyLong_FromVoidPtr(t->data);
  });
}
PyObject* is_contiguous(PyObject* self, PyObject*) {
  return PyBool_FromLong(tensor_of(self).is_contiguous());
}
PyObject* contiguous(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_of(self);
    if (!t.is_contiguous()) return wrap(assign(t));
    Py_INCREF(self);
    return self;
  });
}

PyObject* backward_method(PyObject* self, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"grad_tensor", "retain_graph", nullptr};
  PyObject* given = Py_None;
  int retain = 0;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|Op:backward", const_cast<char**>(names),
                                   &given, &retain))
    return nullptr;
  return guarded([&]() -> PyObject* {
    const Tensor root = tensor_of(self);
    std::vector<Tensor> cotangents;
    if (given != Py_None) {
      user_check(is_tensor(given), ErrorKind::InvalidType, "grad_tensor must be a tensor, not {}.",
                 Py_TYPE(given)->tp_name);
      cotangents.push_back(tensor_of(given));
    }
    return run_backward(TensorList(&root, 1), cotangents, retain != 0);
  });
}

// As in Paddle, a gradient of some rows leaves none when it is cleared: its zeros would be the whole table.
bool holds_rows(const Gradient& grad) {
  if (!grad.is_tensor()) return false;
  const Tensor t = grad.tensor();
  if (t.kind() != Kind::Symbolic) return t.kind() == Kind::SelectedRows;
  Capture* capture = Capture::current();
  return capture && capture->stands_for_rows(t);
}

PyObject* clear_gradient(PyObject* self, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"set_to_zero", nullptr};
  int set_to_zero = 1;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|p:clear_gradient", const_cast<char**>(names),
                                   &set_to_zero))
    return nullptr;
  return guarded([&]() -> PyObject* {
    const Tensor& t = carrier_of(tensor_of(self));
    meet_gradient_of(t, set_to_zero ? GradientUse::Other : GradientUse::SetToNone);
    History* h = maybe_history(t);
    if (!h || !h->grad.defined()) Py_RETURN_NONE;
    if (set_to_zero && !holds_rows(h->grad))
      h->grad.set_to_zeros();
    else
      h->grad.set(Tensor());
    Py_RETURN_NONE;
  });
}

struct PythonHook {
  Callable callable;
  Tensor operator()(const Tensor& grad) const {
    const GilHold gil;
    const Ref argument(wrap(grad));
    const Ref result(PyObject_CallOneArg(callable.get(), argument.get()));
    if (!result) throw_python_error();
    if (result.get() == Py_None) return {};
    user_check(is_tensor(result.get()), ErrorKind::InvalidType,
               "a gradient hook must return a tensor or None, not {}.",
               Py_TYPE(result.get())->tp_name);
    return tensor_of(result.get());
  }
};

PyObject* add_hook(PyObject* self, PyObject* function) {
  return guarded([&] {
    // The region is differentiated by its program, which has no place for a hook.
    user_check(
        !Capture::current() || !Capture::current()->around(), ErrorKind::Unsupported,
        "a hook that is set inside a branch or loop would never be called.\nhint: Set it on a "
        "tensor before the branch or loop, or on its result.");
    const uint64_t id = add_tensor_hook(tensor_of(self), PythonHook{Callable(function)});
    if (!PyObject_GC_IsTracked(self)) PyObject_GC_Track(self);
    return PyLong_FromUnsignedLongLong(id);
  });
}

// The hooks that belong to a tensor.
std::vector<Node::Hook>* own_hooks(const Tensor& t) {
  if (!t.defined() || t.impl()->reference_count() != 1) return nullptr;
  History* history = maybe_history(t);
  if (!history) return nullptr;
  if (!history->node) return &history->leaf_hooks;
  if (history->node->reference_count() != 1 || !history->node->maybe_extras()) return nullptr;
  return &history->node->maybe_extras()->tensor_hooks;
}
PyObject* remove_hook(PyObject* self, PyObject* id) {
  return guarded([&] {
    return PyBool_FromLong(remove_tensor_hook(tensor_of(self), PyLong_AsUnsignedLongLong(id)));
  });
}
PyObject* retain_grads(PyObject* self, PyObject*) {
  return guarded([&]() -> PyObject* {
    retain_grad(tensor_of(self));
    Py_RETURN_NONE;
  });
}

// Takes over content, shape and dtype of another tensor; identity and attributes stay.
PyObject* become(PyObject* self, PyObject* other) {
  return guarded([&]() -> PyObject* {
    user_check(is_tensor(other), ErrorKind::InvalidType, "a tensor is expected, not {}.",
               Py_TYPE(other)->tp_name);
    const Tensor &t = tensor_of(self), &source = tensor_of(other);
    // The history moves too: x.reshape_() is differentiated as the view that x becomes.
    const History* history = maybe_history(source);
    const bool inner = history && history->node && grad_enabled() && !stop_gradient(source);
    const Intrusive<Node> node = inner ? history->node : Intrusive<Node>();
    const uint32_t index = inner ? history->index : 0;
    Capture* const capture = Capture::current();
    const bool plain = t.is_dense() && source.is_dense();
    if (capture && !plain && (t.is_dense() || t.kind() == Kind::Symbolic))
      capture->leave_to_views(t);
    t->become(*source.impl());
    if (inner) set_history(t, node, index);
    Py_RETURN_NONE;
  });
}

void drop_capsule(PyObject* capsule) {
  // Still under its first name: no library has taken the tensor over.
  if (PyCapsule_IsValid(capsule, "dltensor")) {
    auto* managed = static_cast<DLManagedTensor*>(PyCapsule_GetPointer(capsule, "dltensor"));
    managed->deleter(managed);
  }
  if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
    auto* managed =
        static_cast<DLManagedTensorVersioned*>(PyCapsule_GetPointer(capsule, "dltensor_versioned"));
    managed->deleter(managed);
  }
}

PyObject* dlpack(PyObject* self, PyObject* args, PyObject* keywords) {
  static const char* names[] = {"stream", "max_version", "dl_device", "copy", nullptr};
  PyObject *stream = Py_None, *version = Py_None, *device = Py_None, *copy = Py_None;
  if (!PyArg_ParseTupleAndKeywords(args, keywords, "|$OOOO:__dlpack__", const_cast<char**>(names),
                                   &stream, &version, &device, &copy))
    return nullptr;
  return guarded([&]() -> PyObject* {
    const Tensor& t = tensor_of(self);
    user_check(stop_gradient(t), ErrorKind::InvalidArgument,
               "a tensor that requires a gradient is not exported.\nhint: Export x.detach().");
    const bool versioned = version != Py_None && PyTuple_Check(version) &&
                           PyTuple_GET_SIZE(version) > 0 &&
                           PyLong_AsLong(PyTuple_GET_ITEM(version, 0)) >= 1;
    const Tensor exported = copy == Py_True ? assign(t) : t;
    void* managed =
        versioned ? static_cast<void*>(to_dlpack_versioned(exported)) : to_dlpack(exported);
    return PyCapsule_New(managed, versioned ? "dltensor_versioned" : "dltensor", drop_capsule);
  });
}
PyObject* dlpack_device(PyObject*, PyObject*) { return Py_BuildValue("(ii)", 1, 0); }

template <class F>
PyCFunction with_keywords(F f) {
  return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(f));
}

}  // namespace

PyGetSetDef tensor_getters[] = {
    {"shape", get_shape, nullptr, "The sizes, as a list.", nullptr},
    {"strides", get_strides, nullptr, "Elements between neighbours along each axis.", nullptr},
    {"dtype", get_dtype, nullptr, "The element type.", nullptr},
    {"offset", get_offset, nullptr, "Bytes from the start of its memory to the first element.",
     nullptr},
    {"ndim", get_ndim, nullptr, "The number of axes.", nullptr},
    {"size", get_size, nullptr, "The number of elements.", nullptr},
    {"stop_gradient", get_stop_gradient, put_stop_gradient, "Whether gradients end here.", nullptr},
    {"grad", get_grad, put_grad, "The accumulated gradient, or None.", nullptr},
    {"is_leaf", get_is_leaf, nullptr, "Whether no recorded op computed this tensor.", nullptr},
    {"name", get_name, put_name, "The tensor's name.", nullptr},
    {"persistable", get_persistable, put_persistable, "Whether it belongs to a saved model.",
     nullptr},
    {"_device", get_device, nullptr, nullptr, nullptr},
    {"_kind", get_kind, nullptr, nullptr, nullptr},
    {"inplace_version", get_inplace_version, nullptr, "Counts in-place writes.", nullptr},
    {"_grad_node", get_grad_node, nullptr, "The name of the op that computed this tensor, or None.",
     nullptr},
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {}};

PyMethodDef tensor_methods[] = {
    {"numpy", numpy, METH_VARARGS, docs::kNumpy},
    {"_numpy_view", numpy_view, METH_NOARGS, "A NumPy array on the same memory."},
    {"item", item_method, METH_VARARGS, docs::kItem},
    {"tolist", tolist, METH_NOARGS, docs::kToList},
    {"detach", detach_method, METH_NOARGS, docs::kDetach},
    {"data_ptr", data_ptr, METH_NOARGS, docs::kDataPtr},
    {"is_contiguous", is_contiguous, METH_NOARGS, docs::kIsContiguous},
    {"contiguous", contiguous, METH_NOARGS, docs::kContiguous},
    {"backward", with_keywords(backward_method), METH_VARARGS | METH_KEYWORDS, docs::kBackward},
    {"clear_gradient", with_keywords(clear_gradient), METH_VARARGS | METH_KEYWORDS,
     docs::kClearGradient},
    {"_add_hook", add_hook, METH_O, nullptr},
    {"_remove_hook", remove_hook, METH_O, nullptr},
    {"retain_grads", retain_grads, METH_NOARGS, docs::kRetainGrads},
    {"_become", become, METH_O, nullptr},
    {"_bump_inplace_version", bump_inplace_version, METH_NOARGS,
     "Counts a write: gradients that need the old elements are errors."},
    {"__dlpack__", with_keywords(dlpack), METH_VARARGS | METH_KEYWORDS,
     "Exports the memory as a DLPack capsule."},
    {"__dlpack_device__", dlpack_device, METH_NOARGS, nullptr},
    {}};

int visit_hooks(const Tensor& t, visitproc visit, void* arg) {
  if (const auto* hooks = own_hooks(t))
    for (const Node::Hook& hook : *hooks)
      if (const auto* python = hook.function.target<PythonHook>()) Py_VISIT(python->callable.get());
  return 0;
}

void clear_hooks(const Tensor& t) {
  if (auto* hooks = own_hooks(t)) std::exchange(*hooks, {}).clear();
}

}  // namespace oar::python
