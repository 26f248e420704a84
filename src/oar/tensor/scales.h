// Scales turn the elements of a quantised tensor into its values: value = (element - zero_point) *
// scale. They belong to a dense tensor, packed or not: kernels see them as `x->scales`, and the
// quantised layer of the dispatcher (ops/families/quantisation.cpp) rejects calls that would ignore them.
#pragma once

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {

class Scales : public Payload, public oar_scales {
 public:
  Scales(Tensor s, Tensor z) : held_scale_(std::move(s)), held_zero_point_(std::move(z)) {
    scale = held_scale_.impl();
    zero_point = held_zero_point_.impl();
  }
  const Tensor& scale_tensor() const { return held_scale_; }
  const Tensor& zero_point_tensor() const { return held_zero_point_; }  // may be undefined

 private:
  const Tensor held_scale_, held_zero_point_;
};

// The same memory with scales. `scale` has the rank of x, and each of its sizes divides that of x: one
// scale for an axis (1), one per channel (the full size) or one per block of neighbours. `zero_point` may be
// undefined; otherwise it has the shape of `scale`. InvalidArgument if they do not fit.
Tensor with_scales(const Tensor& x, const Tensor& scale, const Tensor& zero_point = {});
// The same memory without them: the elements as numbers.
Tensor without_scales(const Tensor& x);
// Null for a tensor that has none.
const Scales* scales_of(const Tensor& x);

}  // namespace oar
