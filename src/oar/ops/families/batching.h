// Helpers of batching rules. The batch is axis 0 of a batched operand.
#pragma once

#include "oar/ops/core/op_def.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/shape.h"

namespace oar {

// Sizes with the batch first.
inline Shape behind_batch(Dim batch, Dims sizes) {
  Shape shape{batch};
  for (Dim d : sizes) shape.push_back(d);
  return shape;
}

// Operand i with the batch first, repeated if it has none.
inline Tensor with_batch(const BatchCall& c, size_t i) {
  const Tensor& t = c.args[i].as_tensor();
  return c.batched[i] ? t : broadcast_to(t, behind_batch(c.size, t.dims()));
}

// … and with axes of size 1 after the batch, so that `rank` axes follow it, as broadcasting
// from the right needs.
inline Tensor with_batch(const BatchCall& c, size_t i, int rank) {
  const Tensor t = with_batch(c, i);
  Shape shape{c.size};
  for (int missing = rank - (t.rank() - 1); missing > 0; --missing) shape.push_back(1);
  for (Dim d : t.dims().subspan(1)) shape.push_back(d);
  return shape.rank() == t.rank() ? t : reshape(t, shape);
}

// An axis of the unbatched tensor, which has `rank` axes, in the batched one.
inline int64_t behind_batch(int64_t axis, int64_t rank, const char* argument = "axis") {
  return normalise_axis(axis, rank, argument) + 1;
}

}  // namespace oar
