// Operators that ONNX Runtime adds to the standard (com.microsoft), as its optimiser writes them.
#include "oar/interop/onnx/heads.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

Values fused_matmul(const Call& c) {
  if (c.flag("transBatchA") || c.flag("transBatchB")) c.refuse("it moves batch axes");
  const Tensor made = matmul(c.tensor(0), c.tensor(1), c.flag("transA"), c.flag("transB"));
  const double alpha = c.number("alpha", 1);
  return {alpha == 1 ? made : made * alpha};
}
Values bias_gelu(const Call& c) { return {gelu(c.tensor(0) + c.tensor(1), false)}; }
Values fast_gelu(const Call& c) {
  return {gelu(c.has(1) ? c.tensor(0) + c.tensor(1) : c.tensor(0), true)};
}
Values quick_gelu(const Call& c) {
  const Tensor& x = c.tensor(0);
  return {x * sigmoid(x * c.number("alpha", 1.702))};
}
Tensor activated(const Call& c, const Tensor& x) {
  const std::string kind = c.text("activation", "");
  const Attribute* given = c.node.find("activation_params");
  const auto parameter = [&](size_t i, double otherwise) {
    return given && i < given->numbers.size() ? static_cast<double>(given->numbers[i]) : otherwise;
  };
  if (kind.empty()) return x;
  if (kind == "Relu") return relu(x);
  if (kind == "Tanh") return tanh(x);
  if (kind == "Sigmoid") return sigmoid(x);
  if (kind == "LeakyRelu") return leaky_relu(x, parameter(0, 0.01));
  if (kind == "Clip") return clip(x, Scalar(parameter(0, -3.4e38)), Scalar(parameter(1, 3.4e38)));
  if (kind == "HardSigmoid") return hardsigmoid(x, parameter(0, 0.2), parameter(1, 0.5));
  c.refuse("its activation is " + kind);
}
Values fused_conv(const Call& c) {
  const auto axes = static_cast<size_t>(c.tensor(0).rank()) - 2;
  const std::vector<int64_t> ones(axes, 1),
      pads = c.list("pads", std::vector<int64_t>(2 * axes, 0));
  if (c.text("auto_pad", "NOTSET") != "NOTSET" || pads.size() != 2 * axes)
    c.refuse("its padding is not explicit");
  std::vector<Dim> padding;
  for (size_t i = 0; i < axes; ++i)
    padding.insert(padding.end(), {Dim(pads[i]), Dim(pads[axes + i])});
  Tensor made = conv(c.tensor(0), c.tensor(1), c.maybe(2), c.list("strides", ones), padding,
                     c.list("dilations", ones), c.integer("group", 1));
  if (c.has(3)) made = made + c.tensor(3);
  return {activated(c, made)};
}

Tensor normalised(const Call& c, const Tensor& x, size_t weight, size_t bias) {
  return layer_norm(x, Shape{x.dim(-1)}, c.tensor(weight), c.maybe(bias),
                    c.number("epsilon", 1e-5));
}
// x + skip (+ bias), normalised; the sum is the fourth result.
Values skip_layer_norm(const Call& c) {
  const Tensor all = c.has(4) ? c.tensor(0) + c.tensor(1) + c.tensor(4) : c.tensor(0) + c.tensor(1);
  return {normalised(c, all, 2, 3), Item(), Item(), all};
}
Values simplified_norm(const Call& c) {
  const Tensor& x = c.tensor(0);
  return {rms_norm(x, Shape{x.dim(-1)}, c.tensor(1), c.number("epsilon", 1e-5))};
}
Values skip_simplified(const Call& c) {
  const Tensor all = c.has(3) ? c.tensor(0) + c.tensor(1) + c.tensor(3) : c.tensor(0) + c.tensor(1);
  return {rms_norm(all, Shape{all.dim(-1)}, c.tensor(2), c.number("epsilon", 1e-5)), Item(), Item(),
          all};
}
Values embed_layer_norm(const Call& c) {
  const auto looked_up = [&](const Tensor& ids, size_t table) {
    return embedding_lookup(ids, c.tensor(table));
  };
  const Tensor& ids = c.tensor(0);
  const Tensor places =
      c.has(8) ? c.tensor(8) : unsqueeze(range(0, ids.dim(1).value(), 1, DType::Int64), {0});
  Tensor all = looked_up(ids, 2) + looked_up(places, 3);
  if (c.has(1) && c.has(4)) all = all + looked_up(c.tensor(1), 4);
  const Tensor mask = c.has(7)
                          ? cast(sum(c.tensor(7), IntArgs({1}), DType::Int32, false), DType::Int32)
                          : zeros({ids.dim(0)}, DType::Int32);
  return {normalised(c, all, 5, 6), mask, all};
}

// A mask of [batch, keys] or [batch, queries, keys] whose zeros hide keys.
Tensor bias_of_mask(const Call& c, const Tensor& mask, DType dtype) {
  if (mask.rank() == 1) c.refuse("its mask holds lengths");
  const Tensor hidden =
      cast(equal(mask, zeros_like(mask)), dtype) * c.number("mask_filter_value", -10000.0);
  return mask.rank() == 2   ? unsqueeze(hidden, {1, 2})
         : mask.rank() == 3 ? unsqueeze(hidden, {1})
                            : hidden;
}
Values packed_attention(const Call& c) {
  const int64_t heads = c.integer("num_heads", 0);
  if (heads <= 0 || c.has(4) || c.given("qkv_hidden_sizes") || c.flag("do_rotary"))
    c.refuse("it has past states, other sizes or rotations");
  Tensor all = matmul(c.tensor(0), c.tensor(1));
  if (c.has(2)) all = all + c.tensor(2);
  const std::vector<Tensor> parts = chunk(all, 3, -1);
  AttentionCall a{.query = split_heads(parts[0], heads),
                  .key = split_heads(parts[1], heads),
                  .value = split_heads(parts[2], heads),
                  .bias = {}};
  if (c.has(3)) a.bias = bias_of_mask(c, c.tensor(3), all.dtype());
  if (c.has(5)) a.bias = a.bias.defined() ? a.bias + c.tensor(5) : c.tensor(5);
  a.causal = c.flag("unidirectional");
  a.scale = c.number("scale", 1 / std::sqrt(static_cast<double>(a.query.dim(3).value())));
  return {join_heads(attend(std::move(a)).out)};
}
Values multi_head(const Call& c) {
  const int64_t heads = c.integer("num_heads", 0);
  if (heads <= 0 || !c.has(1) || !c.has(2) || c.tensor(1).rank() != 3)
    c.refuse("its query, key and value are packed");
  Tensor q = c.tensor(0), k = c.tensor(1), v = c.tensor(2);
  if (c.has(3)) {
    const std::vector<Tensor> bias =
        split_sections(c.tensor(3), {q.dim(2).value(), k.dim(2).value(), v.dim(2).value()}, 0);
    q = q + bias[0];
    k = k + bias[1];
    v = v + bias[2];
  }
  AttentionCall a{.query = split_heads(q, heads),
                  .key = split_heads(k, heads),
                  .value = split_heads(v, heads),
                  .bias = {}};
  if (c.has(6)) {
    a.offset = c.tensor(6).dim(2);
    a.key = concat({c.tensor(6), a.key}, 2);
    a.value = concat({c.tensor(7), a.value}, 2);
  }
  const Tensor key = a.key, value = a.value;
  if (c.has(4)) a.bias = bias_of_mask(c, c.tensor(4), q.dtype());
  if (c.has(5)) a.bias = a.bias.defined() ? a.bias + c.tensor(5) : c.tensor(5);
  a.causal = c.flag("unidirectional");
  a.scale = c.number("scale", 1 / std::sqrt(static_cast<double>(a.query.dim(3).value())));
  return {join_heads(attend(std::move(a)).out), key, value};
}
Values rotary(const Call& c) {
  const Tensor &x = c.tensor(0), &place = c.tensor(1), &cos = c.tensor(2);
  const bool flat = x.rank() == 3;
  const int64_t rotated_size = c.integer("rotary_embedding_dim", 0), size = 2 * cos.dim(1).value();
  const int64_t heads = c.integer("num_heads", 0);
  if (flat && rotated_size > 0 && heads == 0) c.refuse("it does not say how many heads it has");
  const Dim count = heads > 0 ? Dim(heads) : flat ? floor_div(x.dim(2), size) : x.dim(1);
  const Tensor heads_last =
      flat ? reshape(x, {x.dim(0), x.dim(1), count, floor_div(x.dim(2), count)})
           : transpose(x, {0, 2, 1, 3});
  const Dim steps = heads_last.dim(1);
  Tensor places = cast(place, DType::Int64);
  if (place.numel() == Dim(1))  // of the first step
    places = reshape(places, {1, 1}) + unsqueeze(range(0, steps.value(), 1, DType::Int64), {0});
  const auto of = [&](size_t i) {
    return reshape(index_select(c.tensor(i), reshape(places, {-1}), 0),
                   {places.dim(0), steps, cos.dim(1)});
  };
  const Tensor made = rotated(heads_last, of(2), of(3), c.flag("interleaved"));
  return {flat ? reshape(made, x.shape()) : transpose(made, {0, 2, 1, 3})};
}

// ---- quantised ---------------------------------------------------------------------------------

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
  if (c.flag("channels_last")) c.refuse("its channels are last");
  std::vector<int64_t> axes;
  for (int64_t i = 2; i < c.tensor(0).rank(); ++i) axes.push_back(i);
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
// Weights [n, blocks, bytes] of 4 or 8 bits with a scale per block.
Values product_of_bits(const Call& c) {
  const int64_t n = c.integer("N", 0), k = c.integer("K", 0), bits = c.integer("bits", 4),
                block = c.integer("block_size", 0);
  if (bits != 4 && bits != 8) c.refuse("its weights have neither 4 nor 8 bits");
  if (n <= 0 || k <= 0 || block < 16 || c.has(4)) c.refuse("its blocks are unusual");
  const int64_t blocks = (k + block - 1) / block;
  const auto unpacked = [&](const Tensor& packed, int64_t count) {  // along the last axis
    Tensor wide = cast(packed, DType::Int32);
    if (bits == 8) return wide;
    const Tensor sixteen = full({}, 16, DType::Int32);
    const Tensor both = stack({remainder(wide, sixteen), floor_divide(wide, sixteen)}, -1);
    return slice(flatten(both, -2, -1), {-1}, {0}, {count});
  };
  const Tensor weights =
      cast(unpacked(reshape(c.tensor(1), {n, blocks, -1}), block), DType::Float32);
  Tensor point = full({}, bits == 4 ? 8.0 : 128.0, DType::Float32);
  if (c.has(3) && is_floating(c.tensor(3).dtype()))
    point = cast(reshape(c.tensor(3), {n, blocks, 1}), DType::Float32);
  else if (c.has(3))
    point = cast(reshape(unpacked(reshape(c.tensor(3), {n, -1}), blocks), {n, blocks, 1}),
                 DType::Float32);
  const Tensor scale = cast(reshape(c.tensor(2), {n, blocks, 1}), DType::Float32);
  const Tensor dense =
      slice(reshape((weights - point) * scale, {n, blocks * block}), {1}, {0}, {k});
  const DType dtype = c.tensor(0).dtype();
  const Tensor made = matmul(c.tensor(0), cast(dense, dtype), false, true);
  return {c.has(5) ? made + c.tensor(5) : made};
}

constexpr std::string_view kDomain = "com.microsoft";
constexpr Converter kConverters[] = {
    {"FusedMatMul", fused_matmul, kDomain},
    {"BiasGelu", bias_gelu, kDomain},
    {"FastGelu", fast_gelu, kDomain},
    {"QuickGelu", quick_gelu, kDomain},
    {"FusedConv", fused_conv, kDomain},
    {"SkipLayerNormalization", skip_layer_norm, kDomain},
    {"SimplifiedLayerNormalization", simplified_norm},
    {"SimplifiedLayerNormalization", simplified_norm, kDomain},
    {"SkipSimplifiedLayerNormalization", skip_simplified, kDomain},
    {"EmbedLayerNormalization", embed_layer_norm, kDomain},
    {"Attention", packed_attention, kDomain},
    {"MultiHeadAttention", multi_head, kDomain},
    {"RotaryEmbedding", rotary, kDomain},
    {"QLinearAdd", quantised_binary<add>, kDomain},
    {"QLinearMul", quantised_binary<multiply>, kDomain},
    {"QLinearSigmoid", quantised_sigmoid, kDomain},
    {"QLinearLeakyRelu", quantised_leaky, kDomain},
    {"QLinearGlobalAveragePool", quantised_mean, kDomain},
    {"QLinearConcat", quantised_concat, kDomain},
    {"DynamicQuantizeMatMul", dynamic_product, kDomain},
    {"MatMulIntegerToFloat", integer_product_to_float, kDomain},
    {"MatMulNBits", product_of_bits, kDomain},
};

}  // namespace

std::span<const Converter> contrib_converters() { return kConverters; }

}  // namespace oar::onnx
