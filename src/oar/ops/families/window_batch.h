// Batches of images are more images: merges a batch into their first axis, and splits it again.
#pragma once

#include "oar/ops/families/batching.h"

namespace oar {

// Operand i as [b * n, …].
inline Tensor fold_batch(const BatchCall& c, size_t i) {
  const Tensor t = with_batch(c, i);
  Shape shape{t.dim(0) * t.dim(1)};
  for (Dim d : t.dims().subspan(2)) shape.push_back(d);
  return reshape(t, shape);
}

inline Tensor unfold_batch(const Tensor& t, Dim batch) {
  Shape shape{batch, floor_div(t.dim(0), max_of(batch, Dim(1)))};
  for (Dim d : t.dims().subspan(1)) shape.push_back(d);
  return reshape(t, shape);
}

// A shape attribute with the batch in its first size.
inline Shape folded_shape(Dim batch, Dims sizes) {
  Shape shape(sizes);
  shape[0] = shape[0] * batch;
  return shape;
}

}  // namespace oar
