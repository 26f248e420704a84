// Kernels along one axis: the tensor as outer x length x inner, with operands made
// contiguous.
#pragma once

#include "oar/backend/cpu/loops/compact.h"

namespace oar::cpu {

struct AxisSpan {
  int64_t outer = 1, length = 1, inner = 1;

  // A 0-d tensor is one element along any axis.
  AxisSpan(const oar_tensor& x, int64_t axis) {
    if (x.ndim == 0) return;
    axis = normalise_axis(axis, x.ndim);
    for (int i = 0; i < x.ndim; ++i) (i < axis ? outer : i > axis ? inner : length) *= x.shape[i];
  }
  int64_t lines() const { return outer * inner; }
};

// The elements, contiguous, in their own dtype.
template <class T>
using Contiguous = Flat<T>;

// The elements, contiguous, as C, whatever the tensor's dtype; empty if there is no tensor.
template <class C>
class Converted {
 public:
  explicit Converted(const oar_tensor* x) : own_(needs_copy(x) ? x->numel : 0) {
    if (!x) return;
    data_ = needs_copy(x) ? own_.data() : static_cast<const C*>(x->data);
    if (needs_copy(x)) copy_elements(FlatTensor(*x, own_.data(), dtype_for<C>).get(), *x);
  }
  explicit operator bool() const { return data_ != nullptr; }
  const C* data() const { return data_; }
  const C& operator[](int64_t i) const { return data_[i]; }

 private:
  static bool needs_copy(const oar_tensor* x) {
    return x && (static_cast<DType>(x->dtype) != dtype_for<C> || !is_contiguous(*x));
  }
  Scratch<C> own_;
  const C* data_ = nullptr;
};

// A tensor argument that may be None.
inline const oar_tensor* optional_in(const KernelCall& call, int i) {
  return call.has(i) ? &call.in(i) : nullptr;
}

}  // namespace oar::cpu
