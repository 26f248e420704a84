// x[...]: basic indexing becomes one slice_view, the rest index_get after it.
#include "oar/ops/gen/index.h"

#include <climits>

#include "common.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/launch_queue.h"
#include "oar/ops/core/view.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"

namespace oar::python {
namespace {

enum Item : int64_t { kSlice = 0, kInteger = 1, kNewAxis = 2, kEllipsis = 3 };

// The two steps of an index: a view, then index tensors on the view's leading axes.
struct Index {
  SmallVector<int64_t, 16> basic;
  std::vector<Tensor> advanced;  // undefined: whole axis
  bool has_advanced = false;
  bool apart = false;  // an empty `...` separates index tensors: their axes come first

  void push(int64_t kind, int64_t start = 0, int64_t stop = 0, int64_t step = 1) {
    for (int64_t word : {kind, start, stop, step}) basic.push_back(word);
  }
};

int64_t bound(PyObject* object, int64_t open) {
  return object == Py_None ? open : to_dim(object).word();
}

void add_slice(Index& index, PyObject* object) {
  auto* slice = reinterpret_cast<PySliceObject*>(object);
  const int64_t step = slice->step == Py_None ? 1 : to_dim(slice->step).value();
  user_check(step != 0, ErrorKind::InvalidArgument, "the step of a slice cannot be 0.");
  const bool forward = step > 0;
  index.push(kSlice, bound(slice->start, forward ? 0 : INT64_MAX),
             bound(slice->stop, forward ? INT64_MAX : kOpenLow), step);
}

// One item of an index of slices, ints, None and `...` only; false for anything else.
bool add_basic(Index& index, PyObject* object) {
  if (PySlice_Check(object))
    add_slice(index, object);
  else if (PyLong_CheckExact(object))
    index.push(kInteger, to_dim(object).word());
  else if (object == Py_None)
    index.push(kNewAxis);
  else if (object == Py_Ellipsis)
    index.push(kEllipsis);
  else
    return false;
  return true;
}

// The usual index, in one pass.
bool parse_basic(Index& index, PyObject* key) {
  if (!PyTuple_Check(key)) return add_basic(index, key);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); ++i)
    if (!add_basic(index, PyTuple_GET_ITEM(key, i))) return false;
  return true;
}

bool is_integer(PyObject* object) {
  if (PyBool_Check(object)) return false;
  if (PyLong_Check(object)) return true;
  if (is_tensor(object)) return false;
  return PyIndex_Check(object) && !PySequence_Check(object);
}

Tensor index_tensor(PyObject* object) {
  user_check(!PyUnicode_Check(object) && !PyDict_Check(object), ErrorKind::InvalidType,
             "an index of type {} does not fit a tensor.\nhint: Index with ints, slices, None, "
             "..., and lists or tensors of ints or bools.",
             Py_TYPE(object)->tp_name);
  Tensor t = is_tensor(object) ? tensor_of(object) : to_tensor(object, std::nullopt);
  // An empty list is an index that takes nothing.
  if (!is_tensor(object) && t.numel() == Dim(0) && is_floating(t.dtype()))
    t = cast(t, DType::Int64);
  user_check(is_integral(t.dtype()) || is_bool(t.dtype()), ErrorKind::InvalidType,
             "an index must consist of integers or bools, not {}.", name_of(t.dtype()));
  return t;
}

int axes_taken(PyObject* object) {
  if (object == Py_None || object == Py_Ellipsis || PyBool_Check(object)) return 0;
  if (is_integer(object) || PySlice_Check(object)) return 1;
  if (is_tensor(object)) return is_bool(tensor_of(object).dtype()) ? tensor_of(object).rank() : 1;
  const Tensor t = index_tensor(object);
  return is_bool(t.dtype()) ? t.rank() : 1;
}

// Index tensors in `advanced` are at the axes of the view that the basic part returns.
Index parse(const Tensor& x, PyObject* key) {
  Index index;
  PyObject* const* items = &key;
  Py_ssize_t count = 1;
  if (PyTuple_Check(key)) {
    items = &PyTuple_GET_ITEM(key, 0);
    count = PyTuple_GET_SIZE(key);
  }
  int taken = 0;
  bool ellipsis = false, any_tensor = false;
  for (Py_ssize_t i = 0; i < count; ++i) {
    taken += axes_taken(items[i]);
    ellipsis |= items[i] == Py_Ellipsis;
    any_tensor |= !(items[i] == Py_None || items[i] == Py_Ellipsis || is_integer(items[i]) ||
                    PySlice_Check(items[i]));
  }
  user_check(taken <= x.rank(), ErrorKind::OutOfRange,
             "{} indices were passed for a tensor of rank {} (shape {}).", taken, x.rank(),
             to_string(x.dims()));
  int axis = 0;  // of the view
  bool interrupted = false;
  const auto whole = [&](int64_t n) {
    for (int64_t k = 0; k < n; ++k) {
      index.push(kSlice, 0, INT64_MAX, 1);
      index.advanced.emplace_back();
      ++axis;
    }
  };
  for (Py_ssize_t i = 0; i < count; ++i) {
    PyObject* object = items[i];
    if (object == Py_Ellipsis) {
      whole(x.rank() - taken);
      interrupted = index.has_advanced;
    } else if (object == Py_None) {
      index.push(kNewAxis);
      index.advanced.emplace_back();
      ++axis;
    } else if (is_integer(object) && !any_tensor) {
      index.push(kInteger, to_dim(object).word());
    } else if (PySlice_Check(object)) {
      add_slice(index, object);
      index.advanced.emplace_back();
      ++axis;
    } else if (PyBool_Check(object)) {
      index.push(kNewAxis);
      index.advanced.push_back(
          Tensor::from_vector(std::vector<int64_t>(object == Py_True ? 1 : 0, 0),
                              Shape{object == Py_True ? 1 : 0}, DType::Int64));
      index.has_advanced = true;
      index.apart |= interrupted;
    } else {
      // With index tensors, an integer becomes one of them, as in NumPy.
      const Tensor t = is_integer(object) ? Tensor::scalar(to_dim(object).value(), DType::Int64)
                                          : index_tensor(object);
      const int64_t span = is_bool(t.dtype()) ? t.rank() : 1;
      index.apart |= interrupted;
      for (int64_t k = 0; k < span; ++k) index.push(kSlice, 0, INT64_MAX, 1);
      index.advanced.push_back(t);
      // A mask covers several axes; index_get counts them from the mask itself.
      index.has_advanced = true;
      axis += static_cast<int>(span);
    }
  }
  return index;
}

bool only_whole_slices(const Index& index) {
  for (size_t i = 0; i < index.basic.size(); i += 4)
    if (index.basic[i] != kSlice || index.basic[i + 1] != 0 || index.basic[i + 2] != INT64_MAX ||
        index.basic[i + 3] != 1)
      return false;
  return true;
}

Ints words(const Index& index) { return {index.basic.data(), index.basic.size()}; }

// The view that the index tensors apply to. If they are separated, their axes come first in it.
Tensor advanced_base(const Tensor& x, Index& index) {
  Tensor view = only_whole_slices(index) ? x : slice_view(x, words(index));
  if (!index.apart) return view;
  SmallVector<int64_t, 6> taken, left;
  std::vector<Tensor> tensors;
  int64_t axis = 0;
  for (const Tensor& t : index.advanced) {
    const int64_t span = t.defined() && is_bool(t.dtype()) ? t.rank() : 1;
    for (int64_t k = 0; k < span; ++k) (t.defined() ? taken : left).push_back(axis++);
    if (t.defined()) tensors.push_back(t);
  }
  for (; axis < view.rank(); ++axis) left.push_back(axis);
  for (int64_t other : left) taken.push_back(other);
  index.advanced = std::move(tensors);
  return transpose(view, taken);
}

// The assigned value takes the tensor's dtype at once: a literal never widens it.
Tensor value_tensor(PyObject* value, const Tensor& x) {
  if (is_tensor(value)) {
    const Tensor& t = tensor_of(value);
    return t.dtype() == x.dtype() ? t : cast(t, x.dtype());
  }
  if (is_number(value)) {
    const Scalar s = to_scalar(value);
    user_check(s.kind() != Scalar::Complex || is_complex(x.dtype()), ErrorKind::InvalidType,
               "a complex number does not fit into a tensor of dtype {}.", name_of(x.dtype()));
  }
  return to_tensor(value, x.dtype());
}

// The user wrote brackets, whatever ops they became.
template <class F>
PyObject* guarded_as_indexing(F&& body) noexcept {
  return guarded([&]() -> PyObject* {
    const CalledName called("indexing");
    try {
      return body();
    } catch (const LateError&) {
      throw;
    } catch (Error& error) {
      error.with_op("indexing");
      throw;
    }
  });
}

}  // namespace

PyObject* tensor_getitem(PyObject* self, PyObject* key) {
  return guarded_as_indexing([&] {
    const Tensor& x = tensor_of(self);
    Index basic;
    if (parse_basic(basic, key)) return wrap(slice_view(x, words(basic)));
    Index index = parse(x, key);
    if (!index.has_advanced) return wrap(slice_view(x, words(index)));
    const Tensor base = advanced_base(x, index);
    return wrap(index_get(base, index.advanced));
  });
}

int tensor_setitem(PyObject* self, PyObject* key, PyObject* value) {
  const auto put = [&]() -> PyObject* {
    const Tensor& x = tensor_of(self);
    user_check(value != nullptr, ErrorKind::InvalidType, "elements of a tensor cannot be deleted.");
    const Tensor v = value_tensor(value, x);
    Index basic;
    if (parse_basic(basic, key)) {
      slice_put_(x, v, words(basic));
      return self;
    }
    Index index = parse(x, key);
    if (!index.has_advanced) {
      slice_put_(x, v, words(index));
      return self;
    }
    const Tensor base = advanced_base(x, index);
    index_put_(base, index.advanced, v, false);
    return self;
  };
  return guarded_as_indexing(put) ? 0 : -1;
}

}  // namespace oar::python
