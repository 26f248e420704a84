// Operators that move elements, and sizes.
#include <algorithm>
#include <cmath>

#include "oar/interop/tensorflow/call.h"
#include "oar/interop/tensorflow_math.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::tensorflow {
namespace {

using List = std::vector<int64_t>;

Items reshaped(const Call& c) { return {reshape(c.tensor(0), dims_of(c, c.integers(1)))}; }
Items transposed(const Call& c) { return {transpose(c.tensor(0), c.integers(1))}; }

Items squeezed(const Call& c) {
  const Attribute* given = c.attribute("squeeze_dims");
  if (!given) given = c.attribute("axis");
  List axes;
  if (given)
    for (const int64_t axis : given->integers) axes.push_back(c.axis(axis));
  if (axes.empty())
    for (int64_t i = 0; i < c.tensor(0).rank(); ++i)
      if (c.tensor(0).dim(i) == Dim(1)) axes.push_back(i);
  return {axes.empty() ? c.tensor(0) : squeeze(c.tensor(0), IntArgs(axes))};
}
Items expanded(const Call& c) { return {unsqueeze(c.tensor(0), {c.integer(1)})}; }

Items joined(const Call& c, const std::vector<Tensor>& parts, int64_t given, size_t input) {
  const int64_t axis = c.axis(given, input);
  return {parts.size() == 1 ? parts[0] : concat(parts, axis)};
}
Items concatenated(const Call& c) {
  if (c.count() < 2) c.refuse("it has no inputs");
  return joined(c, c.tensors(0, 1), c.integer(c.count() - 1), 0);
}
// The axis comes first.
Items concatenated_old(const Call& c) { return joined(c, c.tensors(1), c.integer(0), 1); }

Items packed(const Call& c) { return {stack(c.tensors(), c.integer("axis", 0))}; }
Items items_of(const std::vector<Tensor>& tensors) { return {tensors.begin(), tensors.end()}; }
Items unpacked(const Call& c) {
  const int64_t axis = c.axis(c.integer("axis", 0));
  return items_of(unstack(c.tensor(0), axis));
}

constexpr int64_t kMostParts = 1 << 16;
Items split_of(const Call& c) {
  const int64_t count = c.integer("num_split", 0);
  const int64_t axis = c.axis(c.integer(0), 1), size = c.tensor(1).dim(axis).value();
  if (count < 1 || count > kMostParts || size % count != 0)
    c.refuse("its input is not divided evenly");
  return items_of(split(c.tensor(1), List(static_cast<size_t>(count), size / count), axis));
}
Items split_by_sizes(const Call& c) {
  return items_of(split(c.tensor(0), c.integers(1), c.axis(c.integer(2))));
}

Items sliced(const Call& c) {
  const Tensor& x = c.tensor(0);
  const List begin = c.integers(1), sizes = c.integers(2);
  if (static_cast<int64_t>(begin.size()) != x.rank() || sizes.size() != begin.size())
    c.refuse("its begin and size do not fit the input");
  List axes, ends;
  for (size_t i = 0; i < begin.size(); ++i) {
    const int64_t size = x.dim(static_cast<int64_t>(i)).value();
    if (sizes[i] < -1 || sizes[i] > size || begin[i] < 0 || begin[i] > size)
      c.refuse("it reaches beyond its input");
    const int64_t end = sizes[i] == -1 ? size : begin[i] + sizes[i];
    if (end > size) c.refuse("it reaches beyond its input");
    axes.push_back(static_cast<int64_t>(i));
    ends.push_back(end);
  }
  return {axes.empty() ? x : slice(x, axes, begin, ends)};
}

Items sliced_with_masks(const Call& c) {
  return {interop::slice_with_masks(
      c.tensor(0), c.integers(1), c.integers(2), c.integers(3),
      {c.integer("begin_mask", 0), c.integer("end_mask", 0), c.integer("ellipsis_mask", 0),
       c.integer("new_axis_mask", 0), c.integer("shrink_axis_mask", 0)})};
}

List paddings_of(const Call& c) {
  const List paddings = c.integers(1);
  if (static_cast<int64_t>(paddings.size()) != 2 * c.tensor(0).rank())
    c.refuse("its paddings do not fit the input");
  for (const int64_t p : paddings)
    if (p < 0 || p > (1 << 24)) c.refuse("a padding is negative or too large");
  return paddings;
}
Items padded(const Call& c) {
  const List paddings = paddings_of(c);
  if (is_integral(c.tensor(0).dtype()))
    return {pad_constant(c.tensor(0), paddings, Scalar(c.has(2) ? c.integer(2) : int64_t{0}))};
  return {pad_constant(c.tensor(0), paddings, Scalar(c.has(2) ? c.number(2) : 0.0))};
}
Items mirrored(const Call& c) {
  return {interop::mirror_pad(c.tensor(0), paddings_of(c), c.text("mode") == "REFLECT")};
}

Items tiled(const Call& c) { return {tile(c.tensor(0), dims_of(c, c.integers(1)))}; }
Items broadcasted(const Call& c) { return {broadcast_to(c.tensor(0), dims_of(c, c.integers(1)))}; }
Items reversed(const Call& c) {
  const List axes = c.axes(1);
  return {axes.empty() ? c.tensor(0) : flip(c.tensor(0), axes)};
}
Items rolled(const Call& c) { return {roll(c.tensor(0), c.integers(1), IntArgs(c.axes(2)))}; }

// ---- sizes -------------------------------------------------------------------------------------

Tensor sizes_of(const Call& c, size_t i) {
  List sizes;
  for (const Dim d : c.tensor(i).dims()) sizes.push_back(d.value());
  return Tensor::from_vector(sizes, Shape{c.tensor(i).rank()}, c.dtype("out_type", DType::Int32));
}
Items shape_of(const Call& c) { return {sizes_of(c, 0)}; }
Items shapes_of(const Call& c) {
  Items all;
  for (size_t i = 0; i < c.count(); ++i) all.emplace_back(sizes_of(c, i));
  return all;
}
Items size_of_all(const Call& c) {
  return {Tensor::scalar(c.tensor(0).numel().value(), c.dtype("out_type", DType::Int32))};
}
Items rank_of(const Call& c) {
  return {Tensor::scalar(static_cast<int64_t>(c.tensor(0).rank()), DType::Int32)};
}
Items broadcast_sizes(const Call& c) {
  List a = c.integers(0), b = c.integers(1);
  if (a.size() < b.size()) std::swap(a, b);
  b.insert(b.begin(), a.size() - b.size(), 1);
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] != b[i] && a[i] != 1 && b[i] != 1) c.refuse("its shapes do not fit each other");
    if (a[i] == 1) a[i] = b[i];
  }
  return {Tensor::from_vector(a, Shape{static_cast<int64_t>(a.size())}, c.tensor(0).dtype())};
}

constexpr int64_t kMostFilled = int64_t{1} << 28;
Items filled(const Call& c) {
  const List sizes = c.integers(0);
  if (elements_of(sizes, "the result of " + c.node.str()) > kMostFilled)
    c.refuse("it has too many elements");
  return {broadcast_to(c.tensor(1), dims_of(c, sizes))};
}
Items range_of(const Call& c) {
  const DType dtype = c.tensor(0).dtype();
  if (is_integral(dtype)) {
    const int64_t first = c.integer(0), end = c.integer(1), step = c.integer(2);
    constexpr int64_t kFar = int64_t{1} << 48;
    if (step == 0 || std::max(std::abs(first), std::abs(end)) > kFar ||
        (end - first) / step > (1 << 24))
      c.refuse("it has too many elements");
    return {range(Scalar(first), Scalar(end), Scalar(step), dtype)};
  }
  const double first = c.number(0), end = c.number(1), step = c.number(2);
  if (!(std::abs((end - first) / step) < (1 << 24))) c.refuse("it has too many elements");
  return {range(Scalar(first), Scalar(end), Scalar(step), dtype)};
}
Items evenly_spaced(const Call& c) {
  const double first = c.number(0), last = c.number(1);
  const int64_t count = c.integer(2);
  if (count < 1 || count > (1 << 24)) c.refuse("it has an impossible number of elements");
  std::vector<double> made;
  for (int64_t i = 0; i < count; ++i)
    made.push_back(i + 1 == count && count > 1
                       ? last
                       : first + (last - first) * static_cast<double>(i) /
                                     static_cast<double>(std::max<int64_t>(count - 1, 1)));
  return {Tensor::from_vector(made, Shape{count}, c.tensor(0).dtype())};
}
Items inverse_order(const Call& c) {
  const List order = c.integers(0);
  List made(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] < 0 || static_cast<size_t>(order[i]) >= order.size())
      c.refuse("its input is no permutation");
    made[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  return {Tensor::from_vector(made, Shape{c.tensor(0).dim(0)}, c.tensor(0).dtype())};
}

// What lies within `lower` diagonals below the middle and `upper` above it; negative: all of them.
Items band_of(const Call& c) {
  const int64_t lower = c.integer(1), upper = c.integer(2);
  Tensor x = c.tensor(0);
  if (lower >= 0) x = triu(x, -lower);
  return {upper >= 0 ? tril(x, upper) : x};
}
Items diagonal_matrix(const Call& c) { return {diag_embed(c.tensor(0))}; }

constexpr Converter kConverters[] = {
    {"Reshape", reshaped},
    {"Transpose", transposed},
    {"Squeeze", squeezed},
    {"ExpandDims", expanded},
    {"ConcatV2", concatenated},
    {"Concat", concatenated_old},
    {"Pack", packed},
    {"Unpack", unpacked},
    {"Split", split_of},
    {"SplitV", split_by_sizes},
    {"Slice", sliced},
    {"StridedSlice", sliced_with_masks},
    {"Pad", padded},
    {"PadV2", padded},
    {"MirrorPad", mirrored},
    {"Tile", tiled},
    {"BroadcastTo", broadcasted},
    {"ReverseV2", reversed},
    {"Roll", rolled},
    {"Shape", shape_of, Converter::Sizes},
    {"ShapeN", shapes_of, Converter::Sizes},
    {"Size", size_of_all, Converter::Sizes},
    {"Rank", rank_of, Converter::Sizes},
    {"BroadcastArgs", broadcast_sizes},
    {"Fill", filled},
    {"Range", range_of},
    {"LinSpace", evenly_spaced},
    {"InvertPermutation", inverse_order},
    {"MatrixBandPart", band_of},
    {"MatrixDiag", diagonal_matrix},
};

}  // namespace

std::span<const Converter> shape_converters() { return kConverters; }

}  // namespace oar::tensorflow
