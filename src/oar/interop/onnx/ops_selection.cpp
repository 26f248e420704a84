// Elements chosen by index, by size or by a condition; quantised numbers.
#include "oar/base/error.h"
#include "oar/interop/onnx/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

// Negative indices count from the end.
Tensor from_start(const Tensor& index, Dim size) {
  return where(less_than(index, zeros_like(index)), index + product_of({size}, index.dtype()),
               index);
}

Values gather_elements(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.integer("axis", 0);
  return {take_along_axis(x, from_start(c.tensor(1), x.dim(axis)), axis, false)};
}
Values scatter_elements(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.integer("axis", 0);
  const std::string how = c.text("reduction", "none");
  const std::string reduce = how == "none"  ? "assign"
                             : how == "max" ? "amax"
                             : how == "min" ? "amin"
                                            : how;
  return {put_along_axis(x, from_start(c.tensor(1), x.dim(axis)), c.tensor(2), axis, reduce, true,
                         false)};
}
Values gather_items(const Call& c) {
  const int64_t batch = c.integer("batch_dims", 0);
  if (batch == 0) return {gather_nd(c.tensor(0), c.tensor(1))};
  // The numbers of the batch come before the indices.
  const Tensor& index = c.tensor(1);
  std::vector<Tensor> parts;
  std::vector<Dim> one(index.dims().begin(), index.dims().end());
  one.back() = 1;
  for (int64_t i = 0; i < batch; ++i) {
    std::vector<Dim> line(one.size(), 1);
    line.at(static_cast<size_t>(i)) = index.dim(i);
    const Tensor numbers = reshape(range(0, index.dim(i).value(), 1, index.dtype()), line);
    parts.push_back(broadcast_to(numbers, one));
  }
  parts.push_back(index);
  return {gather_nd(c.tensor(0), concat(parts, -1))};
}

Values top(const Call& c) {
  const int64_t k = c.opset < 10 ? c.integer("k", 1) : c.integers(1).at(0);
  const auto [values, places] =
      topk(c.tensor(0), k, c.integer("axis", -1), c.flag("largest", true), c.flag("sorted", true));
  return {values, places};
}
Values places_of_nonzero(const Call& c) { return {transpose(nonzero(c.tensor(0)), {1, 0})}; }
Values one_hot_of(const Call& c) {
  const int64_t depth = c.integers(1).at(0);
  const int64_t axis = c.integer("axis", -1);
  const Tensor index = cast(c.tensor(0), DType::Int64);
  const Tensor places = where(less_than(index, zeros_like(index)), index + depth, index);
  const int64_t rank = index.rank() + 1, at = axis < 0 ? axis + rank : axis;
  std::vector<Dim> line(static_cast<size_t>(rank), 1);
  line[static_cast<size_t>(at)] = depth;
  const Tensor is_set =
      equal(unsqueeze(places, {at}), reshape(range(0, depth, 1, DType::Int64), line));
  const std::vector<Tensor> both = unbind(c.tensor(2), 0);
  return {where(is_set, both.at(1), both.at(0))};
}

Values scatter_items(const Call& c) {
  const Tensor &x = c.tensor(0), &index = c.tensor(1), &updates = c.tensor(2);
  const int64_t depth = index.dim(-1).value();
  std::vector<Tensor> indices;
  for (int64_t i = 0; i < depth; ++i)
    indices.push_back(
        from_start(squeeze(slice(index, {-1}, {i}, {i + 1}), IntArgs({-1})), x.dim(i)));
  const std::string how = c.text("reduction", "none");
  if (how == "none" || how == "add") return {index_put(x, indices, updates, how == "add")};
  // Rows of the indexed axes as one, and the place of each update among them.
  Dim rows = 1, rest = 1;
  Tensor place;
  for (int64_t i = 0; i < depth; ++i) {
    const Tensor& index_of = indices[static_cast<size_t>(i)];
    place = place.defined() ? place * x.dim(i).value() + index_of : index_of;
    rows = rows * x.dim(i);
  }
  for (int64_t i = depth; i < x.rank(); ++i) rest = rest * x.dim(i);
  const Tensor values = reshape(updates, {place.numel(), rest});
  const Tensor at = broadcast_to(reshape(place, {-1, 1}), values.shape());
  const std::string reduce = how == "max" ? "amax" : how == "min" ? "amin" : "mul";
  return {reshape(put_along_axis(reshape(x, {rows, rest}), at, values, 0, reduce, true, false),
                  x.shape())};
}
Values compressed(const Call& c) {
  Tensor x = c.tensor(0);
  if (!c.given("axis")) x = reshape(x, {-1});
  const int64_t axis = c.integer("axis", 0);
  const Tensor places = reshape(nonzero(c.tensor(1)), {-1});
  return {index_select(x, places, axis)};
}
// The weight of a pixel at a distance from the place.
Tensor cubic_weight(const Tensor& distance, bool inner) {
  constexpr double kA = -0.75;
  const Tensor square_ = distance * distance;
  if (inner) return (distance * (kA + 2) - (kA + 3)) * square_ + 1.0;
  return ((distance - 5.0) * square_ + distance * 8.0 - 4.0) * kA;
}
// Of 16 pixels, each of which is taken at its own place.
Values sampled_cubic(const Call& c) {
  const Tensor &x = c.tensor(0), &grid = c.tensor(1);
  if (x.rank() != 4) c.refuse("only images can be sampled by cubes");
  const bool aligned = c.flag("align_corners");
  struct Axis {
    Tensor floor, part;
    double scale, shift;  // pixel = grid * scale + shift
  };
  const auto axis_of = [&](int64_t axis, int64_t k) {
    const auto size = static_cast<double>(x.dim(axis).value());
    Axis made;
    made.scale = aligned ? std::max(size - 1, 1e-9) / 2 : size / 2;
    made.shift = (size - 1) / 2;
    const Tensor place =
        squeeze(slice(grid, {3}, {k}, {k + 1}), IntArgs({3})) * made.scale + made.shift;
    made.floor = floor(place);
    made.part = place - made.floor;
    return made;
  };
  const Axis across = axis_of(3, 0), down = axis_of(2, 1);
  const auto weight = [](const Axis& axis, int64_t offset) {
    const Tensor distance = abs(axis.part - static_cast<double>(offset));
    return cubic_weight(distance, offset == 0 || offset == 1);
  };
  const auto pixel = [](const Axis& axis, int64_t offset) {
    return (axis.floor + (static_cast<double>(offset) - axis.shift)) * (1 / axis.scale);
  };
  Tensor total;
  for (int64_t row = -1; row <= 2; ++row)
    for (int64_t column = -1; column <= 2; ++column) {
      const Tensor places = stack({pixel(across, column), pixel(down, row)}, -1);
      const Tensor taken =
          grid_sample(x, places, "nearest", c.text("padding_mode", "zeros"), aligned);
      const Tensor part =
          taken * unsqueeze(weight(across, column) * weight(down, row), IntArgs({1}));
      total = total.defined() ? total + part : part;
    }
  return {total};
}
Values sampled_at_grid(const Call& c) {
  const Tensor& x = c.tensor(0);
  const std::string mode = c.text("mode", "linear");
  if (mode == "cubic" || mode == "bicubic") return sampled_cubic(c);
  return {grid_sample(x, c.tensor(1), mode == "nearest" ? "nearest" : "bilinear",
                      c.text("padding_mode", "zeros"), c.flag("align_corners"))};
}
// Columns of the last axis.
Values features_taken(const Call& c) {
  const Tensor x = c.tensor(0).rank() == 1 ? unsqueeze(c.tensor(0), IntArgs({0})) : c.tensor(0);
  return {index_select(x, reshape(c.tensor(1), {-1}), x.rank() - 1)};
}
Values rois_aligned(const Call& c) {
  if (c.text("mode", "avg") != "avg") c.refuse("it takes maxima");
  const Tensor& x = c.tensor(0);
  // Oar wants the regions of one image after the other, with the number of each; a model may mix them.
  const Tensor batch = cast(c.tensor(2), DType::Int64);
  const Tensor order = argsort(batch, -1, false, true);
  const Tensor counts = cast(bincount(batch, {}, x.dim(0).value()), DType::Int32);
  const std::vector<int64_t> size{c.integer("output_height", 1), c.integer("output_width", 1)};
  const bool aligned =
      c.opset >= 16 && c.text("coordinate_transformation_mode", "half_pixel") == "half_pixel";
  const int64_t ratio = c.integer("sampling_ratio", 0);
  const Tensor made = roi_align(x, index_select(c.tensor(1), order, 0), counts, size,
                                c.number("spatial_scale", 1), ratio == 0 ? -1 : ratio, aligned);
  return {index_select(made, argsort(order), 0)};
}
Values reversed(const Call& c) {
  const int64_t time = c.integer("time_axis", 0), batch = c.integer("batch_axis", 1);
  const Tensor& x = c.tensor(0);
  const int64_t steps = x.dim(time).value();
  std::vector<Dim> along_time(static_cast<size_t>(x.rank()), 1), along_batch = along_time;
  along_time[static_cast<size_t>(time)] = steps;
  along_batch[static_cast<size_t>(batch)] = x.dim(batch);
  const Tensor at = reshape(range(0, steps, 1, DType::Int64), along_time);
  const Tensor length = reshape(cast(c.tensor(1), DType::Int64), along_batch);
  const Tensor place = where(less_than(at, length), length - 1 - at, at + zeros_like(length));
  return {take_along_axis(x, broadcast_to(place, x.shape()), time, false)};
}
Values distinct(const Call& c) {
  if (c.given("axis")) c.refuse("it compares slices");
  if (!c.flag("sorted", true)) c.refuse("it keeps the order of appearance");
  const auto [values, index, inverse, counts] =
      unique_flat(reshape(c.tensor(0), {-1}), true, true, true);
  return {values, index, inverse, counts};
}

// A scale or zero point per channel stands along the axis.
Tensor along(const Call& c, size_t i) {
  const Tensor& t = c.tensor(i);
  if (t.rank() == 0) return t;
  const int64_t rank = c.tensor(0).rank(), axis = c.integer("axis", 1);
  if (t.rank() != 1) c.refuse("it has scales by block");
  if (t.dim(0) == Dim(1)) return reshape(t, Shape{});
  std::vector<Dim> shape(static_cast<size_t>(rank), 1);
  shape.at(static_cast<size_t>(axis < 0 ? axis + rank : axis)) = t.dim(0);
  return reshape(t, shape);
}
struct Range {
  DType dtype;
  double least, most;
};
constexpr Range kRanges[] = {{DType::UInt8, 0, 255},
                             {DType::Int8, -128, 127},
                             {DType::Int16, -32768, 32767},
                             {DType::Int32, -2147483648.0, 2147483647.0}};
Values quantise(const Call& c) {
  const DType dtype = c.has(2)                  ? c.tensor(2).dtype()
                      : c.given("output_dtype") ? dtype_of(c.integer("output_dtype", 2))
                                                : DType::UInt8;
  for (const Range& r : kRanges) {
    if (r.dtype != dtype) continue;
    Tensor rounded =
        oar::round(cast(c.tensor(0), DType::Float32) / cast(along(c, 1), DType::Float32));
    if (c.has(2)) rounded = rounded + cast(along(c, 2), DType::Float32);
    return {cast(clip(rounded, Scalar(r.least), Scalar(r.most)), dtype)};
  }
  c.refuse(format("it quantises to {}", name_of(dtype)));
}
Values dequantise(const Call& c) {
  const DType dtype = c.tensor(1).dtype();
  Tensor x = cast(c.tensor(0), dtype);
  if (c.has(2)) x = x - cast(along(c, 2), dtype);
  return {x * along(c, 1)};
}
Values quantise_dynamically(const Call& c) {
  const Tensor& x = c.tensor(0);
  const Tensor zero = zeros({}, x.dtype());
  const Tensor most = maximum(max(x), zero), least = minimum(min(x), zero);
  const Tensor scale = (most - least) * (1.0 / 255.0);
  const Tensor point = clip(oar::round(zero - least / scale), Scalar(0.0), Scalar(255.0));
  const Tensor made = clip(oar::round(x / scale) + point, Scalar(0.0), Scalar(255.0));
  return {cast(made, DType::UInt8), scale, cast(point, DType::UInt8)};
}
Tensor less_point(const Call& c, size_t tensor, size_t point) {
  Tensor x = cast(c.tensor(tensor), DType::Float64);
  if (!c.has(point)) return x;
  const Tensor p = cast(c.tensor(point), DType::Float64);
  if (p.rank() == 0 || p.dim(0) == Dim(1)) return x - reshape(p, Shape{});
  std::vector<Dim> shape(static_cast<size_t>(x.rank()), 1);
  shape[0] = p.dim(0);
  return x - reshape(p, shape);
}
// Sums of products of small integers are exact in float64.
Tensor integer_conv(const Call& c, const Tensor& x, const Tensor& weight) {
  const auto axes = static_cast<size_t>(x.rank()) - 2;
  const std::vector<int64_t> ones(axes, 1),
      pads = c.list("pads", std::vector<int64_t>(2 * axes, 0));
  if (c.text("auto_pad", "NOTSET") != "NOTSET" || pads.size() != 2 * axes)
    c.refuse("its padding is not explicit");
  std::vector<Dim> padding;
  for (size_t i = 0; i < axes; ++i)
    padding.insert(padding.end(), {Dim(pads[i]), Dim(pads[axes + i])});
  return conv(x, weight, {}, c.list("strides", ones), padding, c.list("dilations", ones),
              c.integer("group", 1));
}
Values conv_integer(const Call& c) {
  return {cast(integer_conv(c, less_point(c, 0, 2), less_point(c, 1, 3)), DType::Int32)};
}
Tensor requantised(const Tensor& sums, const Tensor& scale, const Tensor& point) {
  const Tensor made = oar::round(sums * scale) + cast(point, DType::Float64);
  for (const Range& r : kRanges)
    if (r.dtype == point.dtype()) return cast(clip(made, Scalar(r.least), Scalar(r.most)), r.dtype);
  fail(ErrorKind::Unsupported, "results of dtype {} are not supported.", name_of(point.dtype()));
}
Values qlinear_matmul(const Call& c) {
  const Tensor sums = matmul(less_point(c, 0, 2), less_point(c, 3, 5));
  const Tensor scale = cast(c.tensor(1), DType::Float64) * cast(c.tensor(4), DType::Float64) /
                       cast(c.tensor(6), DType::Float64);
  return {requantised(sums, scale, c.tensor(7))};
}
Values qlinear_conv(const Call& c) {
  Tensor sums = integer_conv(c, less_point(c, 0, 2), less_point(c, 3, 5));
  std::vector<Dim> channel(static_cast<size_t>(sums.rank()), 1);
  channel[1] = -1;
  if (c.has(8)) sums = sums + reshape(cast(c.tensor(8), DType::Float64), channel);
  Tensor scale = cast(c.tensor(1), DType::Float64) * cast(c.tensor(4), DType::Float64) /
                 cast(c.tensor(6), DType::Float64);
  if (scale.rank() == 1) scale = reshape(scale, channel);
  return {requantised(sums, scale, c.tensor(7))};
}
// Products of 8-bit integers, exact in int32. Products of floats are much faster, and as exact while their sums stay below 2^24: 256
// terms of at most 255 * 255 do.
Values integer_product(const Call& c) {
  constexpr int64_t kExactTerms = 256;
  const auto without_zero = [&](size_t i, bool rows) {
    Tensor t = cast(c.tensor(i), DType::Float32);
    if (!c.has(i + 2)) return t;
    const Tensor point = cast(c.tensor(i + 2), DType::Float32);
    return t -
           (rows && point.rank() == 1 && point.dim(0) != Dim(1) ? unsqueeze(point, {1}) : point);
  };
  const Tensor a = without_zero(0, true), b = without_zero(1, false);
  const Dim terms = a.dim(-1);
  if (!terms.is_known()) return {matmul(cast(a, DType::Int32), cast(b, DType::Int32))};
  Tensor sum;
  for (int64_t at = 0; at == 0 || at < terms.value(); at += kExactTerms) {
    const int64_t end = std::min(at + kExactTerms, terms.value());
    const Tensor part =
        cast(matmul(slice(a, {-1}, {at}, {end}), slice(b, {b.rank() == 1 ? -1 : -2}, {at}, {end})),
             DType::Int32);
    sum = sum.defined() ? sum + part : part;
  }
  return {sum};
}

// ONNX's places count the elements of the whole result.
Values unpooled(const Call& c) {
  const Tensor& x = c.tensor(0);
  const auto axes = static_cast<size_t>(x.rank()) - 2;
  const std::vector<int64_t> kernel = c.list("kernel_shape"), ones(axes, 1),
                             stride = c.list("strides", ones),
                             pads = c.list("pads", std::vector<int64_t>(2 * axes, 0));
  if (kernel.size() != axes || stride.size() != axes || pads.size() != 2 * axes)
    c.refuse("strides and pads do not fit the kernel");
  std::vector<Dim> own{x.dim(0), x.dim(1)};
  for (size_t i = 0; i < axes; ++i)
    own.push_back((x.dim(static_cast<int64_t>(i) + 2) - 1) * stride[i] + kernel[i] - pads[i] -
                  pads[axes + i]);
  const std::vector<Dim> wanted = c.has(2) ? c.sizes(2) : own;
  const Shape counted{Dims(own)};
  const Tensor flat = put_along_axis(zeros({counted.numel()}, x.dtype()),
                                     reshape(cast(c.tensor(1), DType::Int64), {-1}),
                                     reshape(x, {-1}), 0, "assign", true, false);
  Tensor made = reshape(flat, counted);
  if (wanted.size() != own.size()) c.refuse("its output shape does not fit");
  std::vector<int64_t> grown(4);
  for (size_t i = 2; i < own.size(); ++i)
    grown.insert(grown.end(), {0, wanted[i].value() - own[i].value()});
  return {wanted == own ? made : pad_constant(made, grown, 0.0)};
}

constexpr Converter kConverters[] = {
    {"MaxUnpool", unpooled},
    {"GatherElements", gather_elements},
    {"ScatterElements", scatter_elements},
    {"Scatter", scatter_elements},
    {"GatherND", gather_items},
    {"TopK", top},
    {"NonZero", places_of_nonzero},
    {"OneHot", one_hot_of},
    {"QuantizeLinear", quantise},
    {"DequantizeLinear", dequantise},
    {"ScatterND", scatter_items},
    {"Compress", compressed},
    {"GridSample", sampled_at_grid},
    {"ArrayFeatureExtractor", features_taken, "ai.onnx.ml"},
    {"RoiAlign", rois_aligned},
    {"ReverseSequence", reversed},
    {"Unique", distinct},
    {"ConvInteger", conv_integer},
    {"QLinearMatMul", qlinear_matmul},
    {"QLinearConv", qlinear_conv},
    {"DynamicQuantizeLinear", quantise_dynamically},
    {"MatMulInteger", integer_product},
};

}  // namespace

std::span<const Converter> selection_converters() { return kConverters; }

}  // namespace oar::onnx
