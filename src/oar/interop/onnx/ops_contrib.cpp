// Operators that ONNX Runtime adds to the standard (com.microsoft), as its optimiser writes them.
#include "oar/interop/onnx/heads.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

// The first axis of an operand may stand between its batch axes and the last one.
Tensor with_batch_first(const Tensor& x, bool moves) {
  return moves && x.rank() > 2 ? moveaxis(x, {0}, {-2}) : x;
}
Values fused_matmul(const Call& c) {
  const Tensor made = matmul(with_batch_first(c.tensor(0), c.flag("transBatchA")),
                             with_batch_first(c.tensor(1), c.flag("transBatchB")), c.flag("transA"),
                             c.flag("transB"));
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
  const Values made =
      find_converter("", "Conv")->convert(c.with({c.item(0), c.item(1), Item(c.maybe(2))}));
  return {activated(c, c.has(3) ? made[0].tensor + c.tensor(3) : made[0].tensor)};
}
// Images with channels last; the weight is as ever.
Values fused_conv_of_last(const Call& c) {
  const auto first = [&](size_t i) {
    return Item(c.has(i) ? moveaxis(c.tensor(i), {-1}, {1}) : Tensor());
  };
  const Values made = fused_conv(c.with({first(0), c.item(1), Item(c.maybe(2)), first(3)}));
  return {moveaxis(made[0].tensor, {1}, {-1})};
}
Tensor activated_by_name(const Call& c, const Tensor& x) {
  const std::string kind = c.text("activation", "");
  const double alpha = c.number("activation_alpha", kind == "HardSigmoid" ? 0.2 : 0.01);
  if (kind == "LeakyRelu") return leaky_relu(x, alpha);
  if (kind == "HardSigmoid") return hardsigmoid(x, alpha, c.number("activation_beta", 0.5));
  return activated(c, x);
}
Values fused_gemm(const Call& c) {
  return {activated_by_name(c, find_converter("", "Gemm")->convert(c)[0].tensor)};
}
Values fused_matmul_activation(const Call& c) {
  return {activated_by_name(c, fused_matmul(c)[0].tensor)};
}
// The axis and all after it are one.
Values bias_softmax(const Call& c) {
  const Tensor x = c.tensor(0) + c.tensor(1);
  const int64_t given = c.integer("axis", 1), axis = given < 0 ? given + x.rank() : given;
  if (axis == x.rank() - 1) return {softmax(x, -1)};
  return {reshape(softmax(flatten(x, axis, -1), -1), x.shape())};
}
Values bias_add(const Call& c) { return {c.tensor(0) + c.tensor(1) + c.tensor(2)}; }
Values bias_split_gelu(const Call& c) {
  const std::vector<Tensor> halves = chunk(c.tensor(0) + c.tensor(1), 2, -1);
  return {halves[0] * gelu(halves[1], false)};
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
      c.has(8) ? c.tensor(8) : unsqueeze(cast(counted(ids.dim(1)), DType::Int64), {0});
  Tensor all = looked_up(ids, 2) + looked_up(places, 3);
  if (c.has(1) && c.has(4)) all = all + looked_up(c.tensor(1), 4);
  const Tensor mask = c.has(7)
                          ? cast(sum(c.tensor(7), IntArgs({1}), DType::Int32, false), DType::Int32)
                          : zeros({ids.dim(0)}, DType::Int32);
  return {normalised(c, all, 5, 6), mask, all};
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
    {"TransposeMatMul", fused_matmul, kDomain},
    {"FusedMatMulActivation", fused_matmul_activation, kDomain},
    {"FusedGemm", fused_gemm, kDomain},
    {"BiasGelu", bias_gelu, kDomain},
    {"BiasSoftmax", bias_softmax, kDomain},
    {"BiasAdd", bias_add, kDomain},
    {"BiasSplitGelu", bias_split_gelu, kDomain},
    {"FastGelu", fast_gelu, kDomain},
    {"QuickGelu", quick_gelu, kDomain},
    {"FusedConv", fused_conv, kDomain},
    {"NhwcFusedConv", fused_conv_of_last, kDomain},
    {"NhwcConv", fused_conv_of_last, kDomain},
    {"SkipLayerNormalization", skip_layer_norm, kDomain},
    {"SimplifiedLayerNormalization", simplified_norm},
    {"SimplifiedLayerNormalization", simplified_norm, kDomain},
    {"SkipSimplifiedLayerNormalization", skip_simplified, kDomain},
    {"EmbedLayerNormalization", embed_layer_norm, kDomain},
    {"MatMulNBits", product_of_bits, kDomain},
};

}  // namespace

std::span<const Converter> contrib_converters() { return kConverters; }

}  // namespace oar::onnx
