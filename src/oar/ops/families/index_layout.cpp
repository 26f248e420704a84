#include "oar/ops/families/index_layout.h"

#include "oar/ops/core/infer.h"

namespace oar {

IndexLayout index_layout(SmallVector<int64_t, 6> taken, int64_t rank) {
  IndexLayout layout{std::move(taken), {}, {}};
  const auto& t = layout.taken;
  const bool block = t.back() - t.front() + 1 == static_cast<int64_t>(t.size());
  for (int64_t axis = 0; axis < rank; ++axis) {
    if (std::find(t.begin(), t.end(), axis) != t.end()) continue;
    (block && axis < t.front() ? layout.before : layout.after).push_back(axis);
  }
  return layout;
}

Shape indexed_shape(const IndexLayout& layout, Dims x, const Shape& index) {
  Shape shape;
  for (int64_t axis : layout.before) shape.push_back(x[static_cast<size_t>(axis)]);
  for (Dim d : index) shape.push_back(d);
  for (int64_t axis : layout.after) shape.push_back(x[static_cast<size_t>(axis)]);
  return shape;
}

void fail_out_of_range(int64_t index, int64_t axis, int64_t size) {
  fail(ErrorKind::OutOfRange, "index {} is out of range for axis {} of size {}.", index, axis,
       size);
}

}  // namespace oar
