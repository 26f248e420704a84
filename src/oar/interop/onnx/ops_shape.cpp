// Shapes, slices, joins, and integers that are sizes.
#include "oar/interop/onnx/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/view.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

int64_t from_end(int64_t axis, int64_t rank) { return axis < 0 ? axis + rank : axis; }

// Sizes as an int64 tensor, which a run computes.
Tensor as_tensor(const std::vector<Dim>& sizes) {
  if (sizes.empty()) return zeros({0}, DType::Int64);
  std::vector<Tensor> parts;
  for (const Dim d : sizes) parts.push_back(product_of({d}, DType::Int64));
  return stack(parts);
}

Values shape_of(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t rank = x.rank();
  const int64_t start = std::clamp<int64_t>(from_end(c.integer("start", 0), rank), 0, rank);
  const int64_t end = std::clamp<int64_t>(from_end(c.integer("end", rank), rank), start, rank);
  std::vector<Dim> sizes;
  for (int64_t i = start; i < end; ++i) sizes.push_back(x.dim(i));
  return {Item(as_tensor(sizes), sizes)};
}
Values size_of(const Call& c) {
  const Dim size = c.tensor(0).numel();
  return {Item(product_of({size}, DType::Int64), {size})};
}

Values reshaped(const Call& c) {
  const Tensor& x = c.tensor(0);
  std::vector<Dim> shape;
  if (c.opset < 5)
    for (const int64_t s : c.list("shape")) shape.push_back(s);
  else
    shape = c.sizes(1);
  if (!c.flag("allowzero"))
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] == Dim(0)) shape[i] = x.dim(static_cast<int64_t>(i));
  const Tensor result = reshape(x, shape);
  if (const auto sizes = is_integral(x.dtype()) ? c.maybe_sizes(0) : std::nullopt)
    return {Item(result, *sizes)};
  return {result};
}
Values flattened(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = from_end(c.integer("axis", 1), x.rank());
  Dim rows = 1;
  for (int64_t i = 0; i < axis; ++i) rows = rows * x.dim(i);
  Dim columns = 1;
  for (int64_t i = axis; i < x.rank(); ++i) columns = columns * x.dim(i);
  return {reshape(x, {rows, columns})};
}
Values same(const Call& c) { return {c.item(0)}; }
Values without_dropout(const Call& c) {
  if (c.has(2) && c.opset >= 12 && !(c.has(1) && c.numbers(1).at(0) == 0) &&
      c.numbers(2).at(0) != 0)
    c.refuse("it is in training mode");
  return {c.item(0), ones_like(c.tensor(0), DType::Bool)};
}
Values transposed(const Call& c) {
  const Tensor& x = c.tensor(0);
  std::vector<int64_t> backwards;
  for (int64_t i = x.rank(); i-- > 0;) backwards.push_back(i);
  return {transpose(x, c.list("perm", backwards))};
}

Item with_sizes_of(const Call& c, const Tensor& result) {
  const auto sizes = is_integral(result.dtype()) ? c.maybe_sizes(0) : std::nullopt;
  return sizes ? Item(result, *sizes) : Item(result);
}
Values unsqueezed(const Call& c) {
  auto axes = c.axes(1);
  if (!axes) c.refuse("it has no axes");
  const int64_t rank = c.tensor(0).rank() + static_cast<int64_t>(axes->size());
  for (int64_t& axis : *axes) axis = from_end(axis, rank);
  std::sort(axes->begin(), axes->end());
  return {with_sizes_of(c, unsqueeze(c.tensor(0), *axes))};
}
Values squeezed(const Call& c) {
  const auto axes = c.axes(1);
  const Tensor& x = c.tensor(0);
  return {with_sizes_of(c, axes ? squeeze(x, IntArgs(*axes)) : squeeze(x))};
}
Values expanded(const Call& c) {
  const Tensor& x = c.tensor(0);
  std::vector<Dim> shape = c.sizes(1);
  const auto rank = static_cast<size_t>(x.rank());
  while (shape.size() < rank) shape.insert(shape.begin(), Dim(1));
  for (size_t i = 0; i < rank; ++i) {  // a size of 1 on either side is the other's
    Dim& wanted = shape[shape.size() - rank + i];
    if (wanted == Dim(1)) wanted = x.dim(static_cast<int64_t>(i));
  }
  return {broadcast_to(x, shape)};
}
Values tiled(const Call& c) { return {tile(c.tensor(0), c.sizes(1))}; }

Values joined(const Call& c) {
  const std::vector<Tensor> parts = c.tensors();
  const Tensor result = concat(parts, c.integer("axis", 1));
  if (!is_integral(result.dtype()) || result.rank() != 1) return {result};
  std::vector<Dim> sizes;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto more = c.maybe_sizes(i);
    if (!more) return {result};
    sizes.insert(sizes.end(), more->begin(), more->end());
  }
  return {Item(result, sizes)};
}

Values split_up(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.integer("axis", 0);
  std::vector<int64_t> sizes = c.list("split");
  if (c.has(1)) sizes = c.integers(1);
  const auto count = static_cast<int64_t>(c.node.outputs.size());
  if (sizes.empty()) {  // equal parts; the last may be smaller
    const int64_t whole = x.dim(axis).value(), part = (whole + count - 1) / count;
    for (int64_t i = 0; i < count; ++i)
      sizes.push_back(std::clamp<int64_t>(whole - i * part, 0, part));
  }
  Values parts;
  for (const Tensor& part : split_sections(x, sizes, axis)) parts.emplace_back(part);
  return parts;
}

// A slice of sizes is a list of sizes.
std::vector<Dim> slice_of(const std::vector<Dim>& list, int64_t start, int64_t end, int64_t step) {
  const auto count = static_cast<int64_t>(list.size());
  const auto bound = [&](int64_t at) {
    return std::clamp<int64_t>(at < 0 ? at + count : at, step > 0 ? 0 : -1,
                               step > 0 ? count : count - 1);
  };
  std::vector<Dim> taken;
  const int64_t stop = step < 0 && end < -count ? -1 : bound(end);
  for (int64_t i = bound(start); step > 0 ? i < stop : i > stop; i += step)
    taken.push_back(list[static_cast<size_t>(i)]);
  return taken;
}
// Bounds that depend on the sizes of a run.
Values sliced_by_sizes(const Call& c) {
  const Tensor& x = c.tensor(0);
  const std::vector<Dim> starts = c.sizes(1), ends = c.sizes(2);
  std::vector<int64_t> axes, steps(starts.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (c.has(3)) axes = c.integers(3);
  if (c.has(4)) steps = c.integers(4);
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    c.refuse("its starts, ends, axes and steps have different lengths");
  SliceIndex index;
  for (int64_t axis = 0; axis < x.rank(); ++axis) {
    size_t i = 0;
    while (i < axes.size() && from_end(axes[i], x.rank()) != axis) ++i;
    if (i == axes.size())
      index.all();
    else if (steps[i] <= 0)
      c.refuse("it goes backwards from a place that depends on the sizes of a run");
    else
      index.range(starts[i], ends[i], steps[i]);
  }
  return {slice_view(x, IntArgs(std::vector<int64_t>(index)))};
}
bool has_open_bounds(const Call& c) {
  for (const size_t i : {1, 2})
    if (const auto sizes = c.maybe_sizes(i))
      if (std::any_of(sizes->begin(), sizes->end(), [](Dim d) { return d.is_symbolic(); }))
        return true;
  return false;
}
Values sliced(const Call& c) {
  const Tensor& x = c.tensor(0);
  const bool old = c.opset < 10;
  if (!old && has_open_bounds(c)) return sliced_by_sizes(c);
  const std::vector<int64_t> starts = old ? c.list("starts") : c.integers(1);
  std::vector<int64_t> ends = old ? c.list("ends") : c.integers(2);
  std::vector<int64_t> axes, steps(starts.size(), 1);
  for (size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (old) axes = c.list("axes", axes);
  if (!old && c.has(3)) axes = c.integers(3);
  if (!old && c.has(4)) steps = c.integers(4);
  const Tensor result = strided_slice(x, axes, starts, ends, steps);
  const auto sizes = is_integral(x.dtype()) && x.rank() == 1 ? c.maybe_sizes(0) : std::nullopt;
  if (!sizes) return {result};
  return {Item(result, slice_of(*sizes, starts.at(0), ends.at(0), steps.at(0)))};
}

Values gathered(const Call& c) {
  const Tensor &x = c.tensor(0), &index = c.tensor(1);
  const int64_t axis = from_end(c.integer("axis", 0), x.rank());
  const auto sizes = is_integral(x.dtype()) && x.rank() == 1 ? c.maybe_sizes(0) : std::nullopt;
  if (sizes && c.item(1).known) {
    std::vector<Dim> taken;
    for (const int64_t i : c.integers(1)) {
      const auto at = static_cast<size_t>(from_end(i, static_cast<int64_t>(sizes->size())));
      if (at >= sizes->size()) c.refuse("an index is out of range");
      taken.push_back((*sizes)[at]);
    }
    return {Item(reshape(as_tensor(taken), index.shape()), taken)};
  }
  std::vector<Dim> shape;
  for (int64_t i = 0; i < axis; ++i) shape.push_back(x.dim(i));
  for (const Dim d : index.dims()) shape.push_back(d);
  for (int64_t i = axis + 1; i < x.rank(); ++i) shape.push_back(x.dim(i));
  const Tensor size = product_of({x.dim(axis)}, index.dtype());
  const Tensor places = where(less_than(index, zeros_like(index)), index + size, index);
  return {reshape(index_select(x, reshape(places, {-1}), axis), shape)};
}

Values constant(const Call& c) {
  const Node& n = c.node;
  if (const Attribute* a = n.find("value"); a && a->tensor.defined()) return {a->tensor};
  if (const Attribute* a = n.find("value_int"); a && a->integer)
    return {Tensor::scalar(*a->integer, DType::Int64)};
  if (const Attribute* a = n.find("value_float"); a && a->number)
    return {Tensor::scalar(static_cast<double>(*a->number), DType::Float32)};
  if (const Attribute* a = n.find("value_ints"))
    return {Tensor::from_vector(a->integers, Shape{static_cast<int64_t>(a->integers.size())},
                                DType::Int64)};
  if (const Attribute* a = n.find("value_floats"))
    return {Tensor::from_vector(a->numbers, Shape{static_cast<int64_t>(a->numbers.size())},
                                DType::Float32)};
  c.refuse("its content is neither a dense tensor nor a number");
}
Values constant_of_shape(const Call& c) {
  const Attribute* a = c.node.find("value");
  const std::vector<Dim> shape = c.sizes(0);
  if (!a || !a->tensor.defined()) return {full(shape, 0.0, DType::Float32)};
  return {broadcast_to(reshape(a->tensor, {1}), shape)};
}
Values numbers_between(const Call& c) {
  if (is_integral(c.tensor(0).dtype())) {
    const int64_t start = c.integers(0).at(0), end = c.integers(1).at(0),
                  step = c.integers(2).at(0);
    return {range(start, end, step, c.tensor(0).dtype())};
  }
  return {range(c.numbers(0).at(0), c.numbers(1).at(0), c.numbers(2).at(0), c.tensor(0).dtype())};
}

Values padded(const Call& c) {
  const Tensor& x = c.tensor(0);
  const std::vector<int64_t> given = c.opset < 11 ? c.list("pads") : c.integers(1);
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < x.rank(); ++i) axes.push_back(i);
  if (c.opset >= 18 && c.has(3)) axes = c.integers(3);
  if (given.size() != 2 * axes.size()) c.refuse("the pads do not fit the axes");
  std::vector<int64_t> pads(2 * static_cast<size_t>(x.rank()));  // (before, after) for each axis
  for (size_t i = 0; i < axes.size(); ++i) {
    const auto axis = static_cast<size_t>(from_end(axes[i], x.rank()));
    pads.at(2 * axis) = given[i];
    pads.at(2 * axis + 1) = given[i + axes.size()];
  }
  const std::string mode = c.text("mode", "constant");
  if (mode != "constant")
    return {pad_edges(x, pads, mode == "edge" ? "replicate" : mode == "wrap" ? "circular" : mode)};
  if (c.opset < 11) return {pad_constant(x, pads, c.number("value", 0))};
  if (!c.has(2)) return {pad_constant(x, pads, 0)};
  if (c.item(2).numbers) return {pad_constant(x, pads, c.numbers(2).at(0))};
  const Tensor inside = cast(pad_constant(ones_like(x, DType::Int32), pads, 0.0), DType::Bool);
  return {where(inside, pad_constant(x, pads, 0.0), reshape(c.tensor(2), Shape{}))};
}

Values depth_to_space(const Call& c) {
  const Tensor& x = c.tensor(0);
  const Dim block = c.integer("blocksize", 1), n = x.dim(0), h = x.dim(2), w = x.dim(3);
  const Dim channels = floor_div(x.dim(1), block * block);
  const bool crd = c.text("mode", "DCR") == "CRD";
  const Tensor parts = crd ? reshape(x, {n, channels, block, block, h, w})
                           : reshape(x, {n, block, block, channels, h, w});
  const Tensor moved =
      crd ? transpose(parts, {0, 1, 4, 2, 5, 3}) : transpose(parts, {0, 3, 4, 1, 5, 2});
  return {reshape(moved, {n, channels, h * block, w * block})};
}
Values space_to_depth(const Call& c) {
  const Tensor& x = c.tensor(0);
  const Dim block = c.integer("blocksize", 1), n = x.dim(0), channels = x.dim(1);
  const Dim h = floor_div(x.dim(2), block), w = floor_div(x.dim(3), block);
  const Tensor parts = reshape(x, {n, channels, h, block, w, block});
  return {reshape(transpose(parts, {0, 3, 5, 1, 2, 4}), {n, channels * block * block, h, w})};
}
Values triangle(const Call& c) {
  const int64_t diagonal = c.has(1) ? c.integers(1).at(0) : 0;
  return {c.flag("upper", true) ? triu(c.tensor(0), diagonal) : tril(c.tensor(0), diagonal)};
}
Values eye_like(const Call& c) {
  const Tensor& x = c.tensor(0);
  const DType dtype = c.given("dtype") ? dtype_of(c.integer("dtype", 1)) : x.dtype();
  const int64_t k = c.integer("k", 0);
  return {cast(triu(tril(ones_like(x, DType::Float32), k), k), dtype)};
}

constexpr Converter kConverters[] = {
    {"Shape", shape_of},
    {"Size", size_of},
    {"Reshape", reshaped},
    {"Flatten", flattened},
    {"Identity", same},
    {"Dropout", without_dropout},
    {"Transpose", transposed},
    {"Unsqueeze", unsqueezed},
    {"Squeeze", squeezed},
    {"Expand", expanded},
    {"Tile", tiled},
    {"Concat", joined},
    {"Split", split_up},
    {"Slice", sliced},
    {"Gather", gathered},
    {"Constant", constant},
    {"ConstantOfShape", constant_of_shape},
    {"Range", numbers_between},
    {"Pad", padded},
    {"DepthToSpace", depth_to_space},
    {"SpaceToDepth", space_to_depth},
    {"Trilu", triangle},
    {"EyeLike", eye_like},
};

}  // namespace

std::span<const Converter> shape_converters() { return kConverters; }

}  // namespace oar::onnx
