// Arithmetic of views: where the elements of a view lie in its base.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/core/op_def.h"

namespace OAR_API oar {

// The full shape of broadcast_to: -1 keeps a size; an error where x does not stretch to it.
Shape broadcast_target(const Tensor& x, Dims shape);
// Every axis once, made positive.
SmallVector<int64_t, 6> checked_permutation(Ints perm, int rank);
// Strides of x seen under another shape; none where the elements are not evenly spaced.
std::optional<ViewSpec> reshape_view(const Tensor& x, const Shape& shape);
// Row-major strides as dims: where elements lie in the order that a user counts them in.
Shape logical_strides(Dims shape);
// OutOfRange unless every element that (shape, strides, offset) names lies in [0, numel). Symbolic
// sizes pass.
void check_strided_bounds(Dims shape, Ints strides, int64_t offset, Dim numel);

// A size as a number, for what cannot go on without one (how many results there are). A symbolic size
// is taken to be what it is at hand, and that is recorded.
int64_t specialised(Dim size);

// An index of slice_view: a flat list of (kind, start, stop, step), one quadruple per item.
//
// A slice's start and stop are Python's: negative numbers count from the end, what lies beyond the
// ends is clamped. They may be symbolic words. kOpenLow and kOpenHigh stand for an end left out.
enum IndexKind : int64_t { kSliceItem = 0, kIntegerItem = 1, kNewAxisItem = 2, kEllipsisItem = 3 };
inline constexpr int64_t kOpenHigh = INT64_MAX;
// The lowest number that does not read as a symbolic dimension.
inline constexpr int64_t kOpenLow = -(int64_t{1} << 62) + 1;

class SliceIndex : public SmallVector<int64_t, 24> {
 public:
  SliceIndex& all() { return item(kSliceItem, 0, kOpenHigh, 1); }
  SliceIndex& reversed() { return item(kSliceItem, kOpenHigh, kOpenLow, -1); }
  SliceIndex& fresh() { return item(kNewAxisItem, 0, 0, 1); }
  SliceIndex& rest() { return item(kEllipsisItem, 0, 0, 1); }
  SliceIndex& range(Dim start, Dim stop, int64_t step = 1) {
    return item(kSliceItem, start.word(), stop.word(), step);
  }
  SliceIndex& at(Dim position) { return item(kIntegerItem, position.word(), 0, 1); }
  // That many axes whole.
  SliceIndex& skip(int64_t count) {
    for (int64_t i = 0; i < count; ++i) all();
    return *this;
  }
  operator std::vector<int64_t>() const { return {begin(), end()}; }  // for samples

 private:
  SliceIndex& item(int64_t kind, int64_t start, int64_t stop, int64_t step) {
    for (int64_t word : {kind, start, stop, step}) push_back(word);
    return *this;
  }
};

// What an index leaves of a shape, and where those elements lie in memory.
Shape sliced_shape(Dims shape, Ints index);
void sliced_view(Ints shape, Ints strides, Ints index, ViewSpec& spec);

}  // namespace oar
