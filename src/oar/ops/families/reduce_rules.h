// What the rules of reductions share.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/core/op_def.h"

namespace OAR_API oar {

// The result of reducing x over `axis` (None: all).
Metas reduced(const Tensor& x, std::optional<Ints> axis, bool keepdim, DType dtype);
// A reduction's result or cotangent, with or without kept axes, broadcast to the shape of x.
Tensor stretch(const Tensor& kept, const Tensor& x, std::optional<Ints> axis);
// Calls of op(x, axis, keepdim): several ranks, 0-d, zero-size, axes kept or not.
inline Samples reduction_samples(TensorSpec (*spec)(SampleShape)) {
  return Samples()
      .add(spec({4, 7}))
      .add(spec({2, 3, 5}), IntVector{1}, true)
      .add(spec({2, 3, 5}), IntVector{0, -1})
      .add(spec({}))
      .add(spec({3, 0, 2}), IntVector{0});
}

}  // namespace oar
