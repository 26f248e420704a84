// Where the axes of x[indices] come from, for index tensors as NumPy broadcasts and places them.
#pragma once

#include "oar/ops/core/op_def.h"

namespace oar {

// The result's axes are those `before`, then those of the broadcast indices, then those `after`.
struct IndexLayout {
  SmallVector<int64_t, 6> taken;   // axes of x that an index tensor indexes
  SmallVector<int64_t, 6> before;  // other axes; none first if `taken` is not one block
  SmallVector<int64_t, 6> after;
};
// `taken` in ascending order.
IndexLayout index_layout(SmallVector<int64_t, 6> taken, int64_t rank);
Shape indexed_shape(const IndexLayout& layout, Dims x, const Shape& index);

// Throws OutOfRange: the index is not in -size <= index < size.
[[noreturn]] void fail_out_of_range(int64_t index, int64_t axis, int64_t size);

}  // namespace oar
