// Layers that move elements, and reductions.
#include <algorithm>

#include "oar/interop/caffe/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::caffe {
namespace {

using List = std::vector<int64_t>;

// Newer files say `axis`, older ones `concat_dim` or `slice_dim`.
int64_t axis_of(const Call& c, const TextMessage& p, std::string_view old) {
  return c.axis(p.has(old) && !p.has("axis") ? p.integer(old, 1) : p.integer("axis", 1));
}

Tensors concatenated(const Call& c) {
  const int64_t axis = axis_of(c, c.params("concat_param"), "concat_dim");
  return {concat(c.bottoms(), axis)};
}

Tensors sliced(const Call& c) {
  const TextMessage& p = c.params("slice_param");
  const int64_t axis = axis_of(c, p, "slice_dim"), size = c.bottom(0).dim(axis).value();
  const auto count = static_cast<int64_t>(c.layer.tops.size());
  const List points = p.integers("slice_point");
  if (count < 1) c.refuse("it has no tops");
  if (points.empty() && size % count != 0) c.refuse("its input is not divided evenly");
  if (!points.empty() && static_cast<int64_t>(points.size()) != count - 1)
    c.refuse("its slice_point do not fit the tops");
  List sections;
  int64_t from = 0;
  for (int64_t i = 0; i < count; ++i) {
    const int64_t to = i == count - 1   ? size
                       : points.empty() ? (i + 1) * (size / count)
                                        : points[static_cast<size_t>(i)];
    if (to <= from || to > size) c.refuse("its slice_point are not in order");
    sections.push_back(to - from);
    from = to;
  }
  return split(c.bottom(0), sections, axis);
}

Tensors flattened(const Call& c) {
  const TextMessage& p = c.params("flatten_param");
  return {flatten(c.bottom(0), c.axis(p.integer("axis", 1)), c.axis(p.integer("end_axis", -1)))};
}

// 0 keeps a size, -1 is what is left.
Tensors reshaped(const Call& c) {
  const TextMessage& p = c.params("reshape_param");
  const Tensor& x = c.bottom(0);
  const int64_t rank = x.rank(), given = p.integer("axis", 0), count = p.integer("num_axes", -1);
  const int64_t first = given < 0 ? given + rank + 1 : given,
                end = count < 0 ? rank : first + count;
  if (first < 0 || first > rank || end > rank) c.refuse("its axes do not fit the input");
  const List sizes = p.message("shape").integers("dim");
  std::vector<Dim> shape(x.dims().begin(), x.dims().begin() + first);
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int64_t axis = first + static_cast<int64_t>(i);
    if (sizes[i] == 0 && axis >= rank) c.refuse("it keeps a size that is not there");
    if (sizes[i] < -1) c.refuse("a size is negative");
    shape.push_back(sizes[i] == 0 ? x.dim(axis) : Dim(sizes[i]));
  }
  shape.insert(shape.end(), x.dims().begin() + end, x.dims().end());
  return {reshape(x, shape)};
}

Tensors permuted(const Call& c) {
  List order = c.params("permute_param").integers("order");
  for (int64_t axis = 0; axis < c.bottom(0).rank(); ++axis)
    if (std::find(order.begin(), order.end(), axis) == order.end()) order.push_back(axis);
  return {transpose(c.bottom(0), order)};
}

// The first bottom, cut to the sizes of the second.
Tensors cropped(const Call& c) {
  const TextMessage& p = c.params("crop_param");
  const Tensor &x = c.bottom(0), &like = c.bottom(1);
  const int64_t first = c.axis(p.integer("axis", 2));
  const List offsets = p.integers("offset");
  if (like.rank() != x.rank()) c.refuse("its bottoms differ in the number of axes");
  if (offsets.size() > 1 && static_cast<int64_t>(offsets.size()) != x.rank() - first)
    c.refuse("its offsets do not fit the axes");
  List axes, starts, ends;
  for (int64_t axis = first; axis < x.rank(); ++axis) {
    const auto i = static_cast<size_t>(axis - first);
    const int64_t start = offsets.empty() ? 0 : offsets[offsets.size() == 1 ? 0 : i];
    const int64_t end = start + like.dim(axis).value();
    if (start < 0 || end > x.dim(axis).value()) c.refuse("it cuts beyond its input");
    axes.push_back(axis);
    starts.push_back(start);
    ends.push_back(end);
  }
  return {slice(x, axes, starts, ends)};
}

Tensors tiled(const Call& c) {
  const TextMessage& p = c.params("tile_param");
  std::vector<Dim> times(static_cast<size_t>(c.bottom(0).rank()), 1);
  times[static_cast<size_t>(c.axis(p.integer("axis", 1)))] = p.integer("tiles", 1);
  return {tile(c.bottom(0), times)};
}

Tensors shuffled(const Call& c) {
  const Tensor& x = c.bottom(0);
  const int64_t groups = c.params("shuffle_channel_param").integer("group", 1);
  const int64_t channels = x.dim(1).value();
  if (x.rank() != 4 || groups < 1 || channels % groups != 0) c.refuse("its groups do not fit");
  const Tensor grouped =
      reshape(x, {x.dim(0), Dim(groups), Dim(channels / groups), x.dim(2), x.dim(3)});
  const Tensor turned = transpose(grouped, {0, 2, 1, 3, 4});
  return {reshape(turned, {x.dim(0), Dim(channels), x.dim(2), x.dim(3)})};
}

Tensors reduced(const Call& c) {
  const TextMessage& p = c.params("reduction_param");
  const std::string kind = p.text("operation", "SUM");
  List axes;
  for (int64_t axis = c.axis(p.integer("axis", 0)); axis < c.bottom(0).rank(); ++axis)
    axes.push_back(axis);
  const Tensor& x = c.bottom(0);
  const Tensor terms = kind == "ASUM" ? abs(x) : kind == "SUMSQ" ? square(x) : x;
  if (kind != "SUM" && kind != "ASUM" && kind != "SUMSQ" && kind != "MEAN")
    c.refuse(format("its operation is '{}'", kind));
  const Tensor made = kind == "MEAN" ? mean(terms, IntArgs(axes)) : sum(terms, IntArgs(axes));
  return {made * p.number("coeff", 1)};
}

// Along an axis the result keeps the other sizes.
Tensors arg_max(const Call& c) {
  const TextMessage& p = c.params("argmax_param");
  if (!p.has("axis")) c.refuse("it has no axis");
  const int64_t axis = c.axis(p.integer("axis", 1));
  const auto [values, places] = topk(c.bottom(0), p.integer("top_k", 1), axis);
  return {p.flag("out_max_val", false) ? values : cast(places, DType::Float32)};
}

constexpr Converter kConverters[] = {
    {"Concat", concatenated}, {"Slice", sliced},
    {"Flatten", flattened},   {"Reshape", reshaped},
    {"Permute", permuted},    {"Crop", cropped},
    {"Tile", tiled},          {"ShuffleChannel", shuffled},
    {"Reduction", reduced},   {"ArgMax", arg_max},
};

}  // namespace

std::span<const Converter> shape_converters() { return kConverters; }

}  // namespace oar::caffe
