// Arithmetic of views: where the elements of a view are in its base.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/core/op_def.h"

namespace OAR_API oar {

// The full shape of broadcast_to: -1 keeps a size; an error if x does not broadcast to it.
Shape broadcast_target(const Tensor& x, Dims shape);
// Every axis once, made positive.
SmallVector<int64_t, 6> checked_permutation(Ints perm, int rank);
// Strides of x viewed in another shape; none if the elements are not evenly spaced.
std::optional<ViewSpec> reshape_view(const Tensor& x, const Shape& shape);
// Row-major strides as dims: the order in which users count elements.
Shape logical_strides(Dims shape);
// OutOfRange unless every element of (shape, strides, offset) is in [0, numel). Symbolic
// sizes pass.
void check_strided_bounds(Dims shape, Ints strides, int64_t offset, Dim numel);

// A size as a number, for code that needs one (the number of results). A symbolic size is
// replaced by its hint, which is recorded as an assumption.
int64_t specialised(Dim size);

// An index of slice_view: a flat list of (kind, start, stop, step), one quadruple per item.
//
// A slice's start and stop are Python's: negative numbers count from the end, values beyond the
// ends are clamped. They may be symbolic words. kOpenLow and kOpenHigh mean an omitted end.
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
  // Keeps that many axes whole.
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

// The shape of the result of an index, and where its elements are in memory.
Shape sliced_shape(Dims shape, Ints index);
void sliced_view(Ints shape, Ints strides, Ints index, ViewSpec& spec);

}  // namespace oar
