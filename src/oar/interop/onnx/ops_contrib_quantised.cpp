// Quantised operators that ONNX Runtime adds to the standard (com.microsoft). They compute with the real numbers that the integers stand
// for, and round as the integer kernels do.
#include "oar/interop/onnx/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

Tensor real(const Tensor& x, const Tensor& scale, const Tensor& point) {
  Tensor value = cast(x, DType::Float32);
  if (point.defined()) value = value - cast(point, DType::Float32);
  return value * scale;
}
Tensor small(const Tensor& x, const Tensor& scale, const Tensor& point, DType dtype) {
  Tensor made = oar::round(x / scale);
  if (point.defined()) made = made + cast(point, DType::Float32);
  const bool is_signed = dtype == DType::Int8;
  return cast(clip(made, Scalar(is_signed ? -128.0 : 0.0), Scalar(is_signed ? 127.0 : 255.0)),
              dtype);
}
template <Tensor (*op)(const Tensor&, const Tensor&)>
Values quantised_binary(const Call& c) {
  const Tensor a = real(c.tensor(0), c.tensor(1), c.maybe(2)),
               b = real(c.tensor(3), c.tensor(4), c.maybe(5));
  return {small(op(a, b), c.tensor(6), c.maybe(7), c.tensor(0).dtype())};
}
Values quantised_unary(const Call& c, const Tensor& made) {
  return {small(made, c.tensor(3), c.maybe(4), c.tensor(0).dtype())};
}
Tensor first_real(const Call& c) { return real(c.tensor(0), c.tensor(1), c.maybe(2)); }
Values quantised_sigmoid(const Call& c) { return quantised_unary(c, sigmoid(first_real(c))); }
Values quantised_leaky(const Call& c) {
  return quantised_unary(c, leaky_relu(first_real(c), c.number("alpha", 0.01)));
}
Values quantised_mean(const Call& c) {
  const int64_t first = c.flag("channels_last") ? 1 : 2;
  std::vector<int64_t> axes;
  for (int64_t i = 0; i < c.tensor(0).rank() - 2; ++i) axes.push_back(first + i);
  return quantised_unary(c, mean(first_real(c), IntArgs(axes), true));
}
Values quantised_concat(const Call& c) {
  std::vector<Tensor> parts;
  for (size_t i = 2; i + 2 < c.count(); i += 3)
    parts.push_back(real(c.tensor(i), c.tensor(i + 1), c.maybe(i + 2)));
  return {small(concat(parts, c.integer("axis", 0)), c.tensor(0), c.maybe(1), c.tensor(2).dtype())};
}
Values dynamic_product(const Call& c) {
  const Tensor &a = c.tensor(0), &b = c.tensor(1);
  const Tensor zero = zeros({}, a.dtype());
  const Tensor most = maximum(max(a), zero), least = minimum(min(a), zero);
  const Tensor scale = (most - least) * (1.0 / 255.0);
  const Tensor point = clip(oar::round(zero - least / scale), Scalar(0.0), Scalar(255.0));
  const Tensor rounded = clip(oar::round(a / scale) + point, Scalar(0.0), Scalar(255.0)) - point;
  Tensor made = matmul(rounded * scale, real(b, c.tensor(2), c.maybe(3)));
  return {c.has(4) ? made + c.tensor(4) : made};
}
Values integer_product_to_float(const Call& c) {
  const Tensor made = matmul(real(c.tensor(0), c.tensor(2), c.maybe(4)),
                             real(c.tensor(1), c.tensor(3), c.maybe(5)));
  return {c.has(6) ? made + c.tensor(6) : made};
}

// ---- windows, softmax, choices -------------------------------------------------------------------

Tensor to_first(const Tensor& x) { return moveaxis(x, {-1}, {1}); }
Tensor to_last(const Tensor& x) { return moveaxis(x, {1}, {-1}); }

Values quantised_pool(const Call& c) {
  const bool last = c.flag("channels_last");
  const Tensor x = first_real(c);
  const Values made =
      find_converter("", "AveragePool")->convert(c.with({Item(last ? to_first(x) : x)}));
  return quantised_unary(c, last ? to_last(made[0].tensor) : made[0].tensor);
}
// With channels last, the weight is as ever.
Values quantised_conv(const Call& c) {
  const bool last = c.flag("channels_last");
  Values inputs;
  for (size_t i = 0; i < c.count(); ++i) inputs.push_back(c.has(i) ? c.item(i) : Item());
  if (last) inputs[0] = to_first(c.tensor(0));
  const Values made = find_converter("", "QLinearConv")->convert(c.with(std::move(inputs)));
  return {last ? to_last(made[0].tensor) : made[0].tensor};
}
// Before version 13 of Softmax the axis and all after it are one.
Values quantised_softmax(const Call& c) {
  const Tensor x = first_real(c);
  const bool old = c.integer("opset", 13) < 13;
  const int64_t axis = c.integer("axis", old ? 1 : -1);
  if (!old) return quantised_unary(c, softmax(x, axis));
  const int64_t first = axis < 0 ? axis + x.rank() : axis;
  if (first == x.rank() - 1) return quantised_unary(c, softmax(x, -1));
  return quantised_unary(c, reshape(softmax(flatten(x, first, -1), -1), x.shape()));
}
Values quantised_reduce_mean(const Call& c) {
  std::vector<int64_t> axes = c.list("axes");
  if (axes.empty())
    for (int64_t i = 0; i < c.tensor(0).rank(); ++i) axes.push_back(i);
  return quantised_unary(c, mean(first_real(c), IntArgs(axes), c.flag("keepdims", true)));
}
Values quantised_where(const Call& c) {
  const Tensor x = real(c.tensor(1), c.tensor(2), c.maybe(3)),
               y = real(c.tensor(4), c.tensor(5), c.maybe(6));
  return {small(where(c.tensor(0), x, y), c.tensor(7), c.maybe(8), c.tensor(1).dtype())};
}
Values quantised_max_pool(const Call& c) {
  const DType dtype = c.tensor(0).dtype();
  const Tensor x = cast(to_first(c.tensor(0)), DType::Float32);
  const Values made = find_converter("", "MaxPool")->convert(c.with({Item(x)}));
  return {cast(to_last(made[0].tensor), dtype)};
}

// ---- products ------------------------------------------------------------------------------------

// The third operand is int32, in units of the product of both scales. Without a scale of its own, the result is real.
Values quantised_gemm(const Call& c) {
  const auto side = [&](size_t i, const char* turns) {
    const Tensor x = real(c.tensor(i), c.tensor(i + 1), c.maybe(i + 2));
    return c.flag(turns) ? transpose(x, {1, 0}) : x;
  };
  const double alpha = c.number("alpha", 1);
  // A scale for each column of B, which may come transposed.
  const Tensor b =
      c.flag("transB") && c.tensor(4).rank() == 1 && c.tensor(4).numel() != Dim(1)
          ? transpose(real(c.tensor(3), unsqueeze(c.tensor(4), {1}),
                           c.has(5) && c.tensor(5).rank() == 1 ? unsqueeze(c.tensor(5), {1})
                                                               : c.maybe(5)),
                      {1, 0})
          : side(3, "transB");
  Tensor made = matmul(side(0, "transA"), b) * alpha;
  if (c.has(6))
    made = made + cast(c.tensor(6), DType::Float32) * (c.tensor(1) * c.tensor(4)) * alpha;
  if (!c.has(7)) return {made};
  return {
      small(made, c.tensor(7), c.maybe(8), c.has(8) ? c.tensor(8).dtype() : c.tensor(0).dtype())};
}

// Two numbers in each byte, each a place in a table of sixteen; the first one is in the upper half. A scale for each block.
Values product_of_table(const Call& c) {
  constexpr double kFp4[] = {0,    0.0052083333,  2.0 / 3,  1,  1.0 / 3,  0.5,  1.0 / 6,  0.25,
                             -0.0, -0.0052083333, -2.0 / 3, -1, -1.0 / 3, -0.5, -1.0 / 6, -0.25};
  constexpr double kNf4[] = {-1.0,
                             -0.6961928009986877,
                             -0.5250730514526367,
                             -0.39491748809814453,
                             -0.28444138169288635,
                             -0.18477343022823334,
                             -0.09105003625154495,
                             0.0,
                             0.07958029955625534,
                             0.16093020141124725,
                             0.24611230194568634,
                             0.33791524171829224,
                             0.44070982933044434,
                             0.5626170039176941,
                             0.7229568362236023,
                             1.0};
  const int64_t n = c.integer("N", 0), k = c.integer("K", 0), block = c.integer("block_size", 0),
                kind = c.integer("quant_type", 1);
  if (n <= 0 || k <= 0 || block < 16 || (kind != 0 && kind != 1))
    c.refuse("its blocks or its type are unusual");
  const std::vector<double> numbers(kind == 0 ? std::begin(kFp4) : std::begin(kNf4),
                                    kind == 0 ? std::end(kFp4) : std::end(kNf4));
  const Tensor table = Tensor::from_vector(numbers, Shape{16}, DType::Float32);
  const Tensor bytes = cast(reshape(c.tensor(1), {-1}), DType::Int32),
               sixteen = full({}, 16, DType::Int32);
  const Tensor places =
      flatten(stack({floor_divide(bytes, sixteen), remainder(bytes, sixteen)}, -1), 0, 1);
  const int64_t count = n * k, blocks = (count + block - 1) / block;
  Tensor dense = index_select(table, slice(places, {0}, {0}, {count}), 0);
  const Tensor scale = cast(reshape(c.tensor(2), {blocks, 1}), DType::Float32);
  dense = pad_constant(dense, {0, blocks * block - count}, 0.0);
  dense = slice(flatten(reshape(dense, {blocks, block}) * scale, 0, 1), {0}, {0}, {count});
  const bool turned = c.flag("transB", true);
  const Tensor weight =
      cast(reshape(dense, turned ? Shape{n, k} : Shape{k, n}), c.tensor(0).dtype());
  return {matmul(c.tensor(0), weight, false, turned)};
}

// Rows of a table whose numbers have a scale for each block along an axis. Only the rows that are looked up become real.
Values rows_of_blocks(const Call& c) {
  const Tensor& data = c.tensor(0);
  const int64_t rank = data.rank(), bits = c.integer("bits", 4),
                block = c.integer("block_size", 128);
  const auto counted_axis = [&](const char* name, int64_t otherwise) {
    const int64_t axis = c.integer(name, otherwise);
    return axis < 0 ? axis + rank : axis;
  };
  const int64_t along = counted_axis("gather_axis", 0), by = counted_axis("quantize_axis", 1);
  const bool bytes = data.dtype() == DType::UInt8;  // with two numbers in each if they have 4 bits
  if ((bits != 4 && bits != 8) || block < 16 || along == by || by != rank - 1)
    c.refuse("its numbers have neither 4 nor 8 bits, or its blocks are unusual");
  const Tensor places = reshape(cast(c.tensor(1), DType::Int64), {-1});
  const auto unpacked = [&](const Tensor& rows) {
    if (!bytes || bits == 8) return cast(rows, DType::Float32);
    const Tensor wide = cast(rows, DType::Int32), sixteen = full({}, 16, DType::Int32);
    return cast(flatten(stack({remainder(wide, sixteen), floor_divide(wide, sixteen)}, -1), -2, -1),
                DType::Float32);
  };
  const auto rows = [&](const Tensor& t) {  // packed numbers cannot be indexed
    const bool packed = t.dtype() == DType::Int4 || t.dtype() == DType::UInt4;
    return index_select(packed ? cast(t, DType::Int32) : t, places, along);
  };
  const Tensor picked = unpacked(rows(data));
  const Tensor scales = rows(c.tensor(2));
  const int64_t length = picked.dim(-1).value(), blocks = scales.dim(-1).value();
  const auto spread = [&](const Tensor& t) {  // an element for each number of its block
    return slice(repeat_interleave(t, block, -1), {-1}, {0}, {length});
  };
  const bool is_signed = data.dtype() == DType::Int4;
  Tensor point = full({},
                      bytes && bits == 8    ? 128.0
                      : is_signed || !bytes ? 0.0
                                            : 8.0,
                      DType::Float32);
  if (c.has(3)) point = spread(slice(unpacked(rows(c.tensor(3))), {-1}, {0}, {blocks}));
  Tensor made = cast((picked - point) * spread(cast(scales, DType::Float32)), scales.dtype());
  std::vector<Dim> shape(made.dims().begin(), made.dims().begin() + along);
  for (const Dim d : c.tensor(1).dims()) shape.push_back(d);
  shape.insert(shape.end(), made.dims().begin() + along + 1, made.dims().end());
  return {reshape(made, shape)};
}

constexpr std::string_view kDomain = "com.microsoft";
constexpr Converter kConverters[] = {
    {"QLinearAdd", quantised_binary<add>, kDomain},
    {"QLinearMul", quantised_binary<multiply>, kDomain},
    {"QLinearSigmoid", quantised_sigmoid, kDomain},
    {"QLinearLeakyRelu", quantised_leaky, kDomain},
    {"QLinearGlobalAveragePool", quantised_mean, kDomain},
    {"QLinearAveragePool", quantised_pool, kDomain},
    {"QLinearConv", quantised_conv, kDomain},
    {"QLinearSoftmax", quantised_softmax, kDomain},
    {"QLinearReduceMean", quantised_reduce_mean, kDomain},
    {"QLinearWhere", quantised_where, kDomain},
    {"QLinearConcat", quantised_concat, kDomain},
    {"NhwcMaxPool", quantised_max_pool, kDomain},
    {"QGemm", quantised_gemm, kDomain},
    {"DynamicQuantizeMatMul", dynamic_product, kDomain},
    {"MatMulIntegerToFloat", integer_product_to_float, kDomain},
    {"MatMulBnb4", product_of_table, kDomain},
    {"GatherBlockQuantized", rows_of_blocks, kDomain},
};

}  // namespace

std::span<const Converter> contrib_quantised_converters() { return kConverters; }

}  // namespace oar::onnx
