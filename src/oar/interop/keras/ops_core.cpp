// Dense layers, activations, embeddings, and layers that do nothing when a model is used.
#include <cmath>

#include "oar/interop/keras/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::keras {
namespace {

using Function = Tensor (*)(const Tensor&);

struct Named {
  std::string_view name;
  Function function;
};

Tensor sparse_plus(const Tensor& x) {
  const Tensor middle = square(x + 1.0) * 0.25, zero = zeros_like(x), one = ones_like(x);
  return where(less_equal(x, -one), zero, where(greater_equal(x, one), x, middle));
}
// As Keras computes it, which sums the running sums of what is kept.
Tensor sparsemax(const Tensor& x) {
  const int64_t size = x.dim(-1).value();
  const Tensor sorted = flip(sort(x, -1), {-1});
  const Tensor sums = cumsum_along(sorted, -1), place = range(1, size + 1, 1, x.dtype());
  const Tensor inside = greater_than(sorted * place + 1.0, sums);
  const Tensor count = sum(cast(inside, x.dtype()), IntArgs({-1}), std::nullopt, true);
  const Tensor kept = sum(where(inside, sums, zeros_like(sums)), IntArgs({-1}), std::nullopt, true);
  return relu(x - (kept - 1.0) / count);
}

constexpr Named kActivations[] = {
    {"linear", [](const Tensor& x) { return x; }},
    {"relu", [](const Tensor& x) { return relu(x); }},
    {"relu6", [](const Tensor& x) { return relu6(x); }},
    {"sigmoid", [](const Tensor& x) { return sigmoid(x); }},
    {"tanh", [](const Tensor& x) { return tanh(x); }},
    {"softplus", [](const Tensor& x) { return softplus(x); }},
    {"softsign", [](const Tensor& x) { return softsign(x); }},
    {"elu", [](const Tensor& x) { return elu(x); }},
    {"celu", [](const Tensor& x) { return celu(x); }},
    {"selu", [](const Tensor& x) { return selu(x); }},
    {"exponential", [](const Tensor& x) { return exp(x); }},
    {"exp", [](const Tensor& x) { return exp(x); }},
    {"swish", [](const Tensor& x) { return silu(x); }},
    {"silu", [](const Tensor& x) { return silu(x); }},
    {"hard_swish", [](const Tensor& x) { return hardswish(x); }},
    {"hard_silu", [](const Tensor& x) { return hardswish(x); }},
    {"gelu", [](const Tensor& x) { return gelu(x); }},
    {"mish", [](const Tensor& x) { return mish(x); }},
    {"log_sigmoid", [](const Tensor& x) { return log_sigmoid(x); }},
    {"leaky_relu", [](const Tensor& x) { return leaky_relu(x, 0.2); }},
    {"softmax", [](const Tensor& x) { return softmax(x, -1); }},
    {"log_softmax", [](const Tensor& x) { return log_softmax(x, -1); }},
    {"glu", [](const Tensor& x) { return glu(x, -1); }},
    {"squareplus", [](const Tensor& x) { return (x + sqrt(square(x) + 4.0)) / 2.0; }},
    {"hard_tanh", [](const Tensor& x) { return clip(x, Scalar(-1.0), Scalar(1.0)); }},
    {"hard_shrink",
     [](const Tensor& x) {
       return where(greater_than(abs(x), full({}, 0.5, x.dtype())), x, zeros_like(x));
     }},
    {"soft_shrink", [](const Tensor& x) { return relu(x - 0.5) - relu(-x - 0.5); }},
    {"tanh_shrink", [](const Tensor& x) { return x - tanh(x); }},
    {"sparse_plus", sparse_plus},
    {"sparse_sigmoid",
     [](const Tensor& x) { return clip((x + 1.0) * 0.5, Scalar(0.0), Scalar(1.0)); }},
    {"sparsemax", sparsemax},
};

Tensor hard_sigmoid(const Tensor& x, int version) {
  return version < 3 ? hardsigmoid(x, 0.2, 0.5) : relu6(x + 3.0) / 6.0;
}

// ---- layers ------------------------------------------------------------------------------------

Items dense(const Call& c) {
  const Tensor kernel = c.weight("kernel");
  const Tensor bias = c.flag("use_bias", true) ? c.weight("bias") : Tensor{};
  return {activated(c, projected(c.tensor(), kernel, bias))};
}

// "...ab,bc->...ac", whose dots einsum understands.
Items einsum_dense(const Call& c) {
  const std::string equation = c.text("equation");
  const Tensor kernel = c.weight("kernel"), y = einsum(equation, {c.tensor(), kernel});
  return {activated(c, c.has("bias_axes") ? y + c.weight("bias") : y)};
}

Items activation_layer(const Call& c) { return {activated(c, c.tensor())}; }

Items relu_layer(const Call& c) {
  const double slope = c.number("negative_slope", 0), threshold = c.number("threshold", 0);
  const Tensor& x = c.tensor();
  Tensor y;
  if (threshold != 0) {
    const Tensor limit = full({}, threshold, x.dtype());
    y = where(greater_equal(x, limit), x, (x - threshold) * slope);
  } else {
    y = slope == 0 ? relu(x) : leaky_relu(x, slope);
  }
  if (c.has("max_value")) y = clip(y, std::nullopt, Scalar(c.number("max_value", 0)));
  return {y};
}

Items leaky_relu_layer(const Call& c) {
  return {leaky_relu(c.tensor(), c.number("negative_slope", c.number("alpha", 0.3)))};
}

Items prelu_layer(const Call& c) {
  const Tensor &x = c.tensor(), alpha = c.weight("alpha");
  return {relu(x) - relu(-x) * alpha};
}

Items elu_layer(const Call& c) {
  const Tensor& x = c.tensor();
  const double alpha = c.number("alpha", 1);
  return {where(greater_than(x, zeros_like(x)), x, (exp(minimum(x, zeros_like(x))) - 1.0) * alpha)};
}

Items thresholded(const Call& c) { return {thresholded_relu(c.tensor(), c.number("theta", 1))}; }

Items softmax_layer(const Call& c) {
  Tensor x = c.tensor();
  Tensor mask = c.item().mask;
  if (const Given* given = c.named("mask"); given && !given->items.empty())
    mask = given->items[0].tensor;
  if (c.count() > 1) mask = c.tensor(1);
  if (mask.defined() && mask.rank() == x.rank()) x = where(cast(mask, DType::Bool), x, x - 3e38);
  const std::vector<int64_t> axes = c.list("axis");
  if (axes.size() < 2) return {softmax(x, axes.empty() ? -1 : axes[0])};
  const Tensor e = exp(x - max(x, IntArgs(axes), true));
  return {e / sum(e, IntArgs(axes), std::nullopt, true)};
}

Items embedding_layer(const Call& c) {
  const Tensor ids = cast(c.tensor(), DType::Int64), table = c.weight("embeddings");
  Item made(embedding(ids, table));
  if (c.flag("mask_zero", false)) made.mask = not_equal(ids, zeros_like(ids));
  return {made};
}

// The values of steps that do not count are zeros.
Items masking(const Call& c) {
  const Tensor& x = c.tensor();
  const Tensor given = full({}, c.number("mask_value", 0), x.dtype());
  const Tensor counts = any(not_equal(x, given), IntArgs({-1}), true);
  return {{x * cast(counts, x.dtype()), squeeze(counts, IntArgs({-1}))}};
}

Items same(const Call& c) { return c.items(); }

constexpr Converter kConverters[] = {
    {"InputLayer", same, Converter::Own},
    {"Identity", same, Converter::Own},
    {"Dense", dense, Converter::Passes},
    {"EinsumDense", einsum_dense},
    {"Activation", activation_layer, Converter::Passes},
    {"ReLU", relu_layer, Converter::Passes},
    {"LeakyReLU", leaky_relu_layer, Converter::Passes},
    {"PReLU", prelu_layer, Converter::Passes},
    {"ELU", elu_layer, Converter::Passes},
    {"ThresholdedReLU", thresholded, Converter::Passes},
    {"Softmax", softmax_layer, Converter::Passes},
    {"Embedding", embedding_layer, Converter::Own},
    {"Masking", masking, Converter::Own},
    // What matters in training only.
    {"Dropout", same, Converter::Own},
    {"SpatialDropout1D", same, Converter::Own},
    {"SpatialDropout2D", same, Converter::Own},
    {"SpatialDropout3D", same, Converter::Own},
    {"GaussianDropout", same, Converter::Own},
    {"GaussianNoise", same, Converter::Own},
    {"AlphaDropout", same, Converter::Own},
    {"ActivityRegularization", same, Converter::Own},
    {"RandomFlip", same},
    {"RandomRotation", same},
    {"RandomZoom", same},
    {"RandomTranslation", same},
    {"RandomContrast", same},
    {"RandomBrightness", same},
    {"RandomHeight", same},
    {"RandomWidth", same},
    {"RandomHue", same},
    {"RandomSaturation", same},
    {"RandomSharpness", same},
    {"RandomColorJitter", same},
    {"RandomColorDegeneration", same},
    {"RandomGrayscale", same},
    {"RandomShear", same},
    {"RandomPerspective", same},
    {"RandomGaussianBlur", same},
    {"RandomErasing", same},
    {"RandomInvert", same},
    {"RandomPosterization", same},
};

}  // namespace

Tensor activate_function(const Call& c, const Tensor& x, std::string_view name) {
  if (name == "hard_sigmoid") return hard_sigmoid(x, c.layer.version);
  for (const Named& known : kActivations)
    if (known.name == name) return known.function(x);
  c.refuse(format("it has the activation '{}', which Oar does not have", name));
}

Tensor activate(const Call& c, const Tensor& x, const JsonValue* activation) {
  if (!activation || activation->is_none()) return x;
  if (activation->is_text()) return activate_function(c, x, activation->text());
  const JsonValue* config = activation->find("config");
  const std::string& type = activation->at("class_name").text();
  // A function by its name, or a layer.
  if (type == "function" && config && config->is_text())
    return activate_function(c, x, config->text());
  const Items made = c.run(c.inner(*activation, {"activation"}), {Item(x)});
  if (made.size() != 1) c.refuse("its activation does not have one result");
  return made[0].tensor;
}

Tensor activated(const Call& c, const Tensor& x) { return activate(c, x, c.find("activation")); }

std::span<const Converter> core_converters() { return kConverters; }

}  // namespace oar::keras
