// Layers that normalise.
#include <algorithm>
#include <numeric>

#include "oar/interop/keras/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::keras {
namespace {

using List = std::vector<int64_t>;

// A vector of weights along some axes of a tensor.
Tensor along(const Call& c, const Tensor& weight, const Tensor& x, const List& axes) {
  std::vector<Dim> shape(static_cast<size_t>(x.rank()), 1);
  if (static_cast<size_t>(weight.rank()) != axes.size())
    c.refuse("a weight of it does not fit its axes");
  for (size_t i = 0; i < axes.size(); ++i)
    shape[static_cast<size_t>(axes[i])] = weight.dim(static_cast<int64_t>(i));
  return reshape(weight, shape);
}

List axes_of(const Call& c, const Tensor& x, const List& otherwise) {
  List axes = c.list("axis");
  if (axes.empty()) axes = otherwise;
  for (int64_t& axis : axes) axis = c.axis(axis, x);
  std::sort(axes.begin(), axes.end());
  return axes;
}

Items batch_normalised(const Call& c) {
  const Tensor& x = c.tensor();
  const List axes = axes_of(c, x, {-1});
  const Tensor gamma = c.flag("scale", true) ? c.weight("gamma") : Tensor{};
  const Tensor beta = c.flag("center", true) ? c.weight("beta") : Tensor{};
  const Tensor mean = c.weight("moving_mean"), variance = c.weight("moving_variance");
  const double epsilon = c.number("epsilon", 1e-3);
  // A convolution before it may take it in.
  if (axes.size() == 1 && x.rank() > 2 && (axes[0] == 1 || axes[0] == x.rank() - 1))
    return {batch_norm(x, mean, variance, gamma, beta, false, 0.9, epsilon,
                       axes[0] == 1 ? "NCHW" : "NHWC")};
  Tensor scale = rsqrt(variance + epsilon);
  if (gamma.defined()) scale = scale * gamma;
  Tensor shift = -mean * scale;
  if (beta.defined()) shift = shift + beta;
  return {x * along(c, scale, x, axes) + along(c, shift, x, axes)};
}

// (x - mean) / sqrt(variance + epsilon) over these axes.
Tensor standardised(const Tensor& x, const List& over, double epsilon) {
  const Tensor centred = x - mean(x, IntArgs(over), true);
  return centred * rsqrt(mean(square(centred), IntArgs(over), true) + epsilon);
}

Items layer_normalised(const Call& c) {
  const Tensor& x = c.tensor();
  const List axes = axes_of(c, x, {-1});
  const double epsilon = c.number("epsilon", 1e-3);
  if (c.flag("rms_scaling", false)) {
    const Tensor gamma = c.weight("gamma");
    const Tensor centred = x - mean(x, IntArgs(axes), true);
    const Tensor spread = mean(square(centred), IntArgs(axes), true);
    return {x * rsqrt(spread + epsilon) * along(c, gamma, x, axes)};
  }
  const bool last = axes == List{x.rank() - 1};
  const Tensor gamma = c.flag("scale", true) ? c.weight("gamma") : Tensor{};
  const Tensor beta = c.flag("center", true) ? c.weight("beta") : Tensor{};
  if (last) return {layer_norm(x, {x.dim(-1)}, gamma, beta, epsilon)};
  Tensor y = standardised(x, axes, epsilon);
  if (gamma.defined()) y = y * along(c, gamma, x, axes);
  return {beta.defined() ? y + along(c, beta, x, axes) : y};
}

Items rms_normalised(const Call& c) {
  const Tensor& x = c.tensor();
  const List axes = axes_of(c, x, {-1});
  const Tensor spread = mean(square(x), IntArgs(axes), true);
  const Tensor y = x * rsqrt(spread + c.number("epsilon", 1e-6));
  const Tensor scale = c.maybe_weight("scale");
  return {scale.defined() ? y * along(c, scale, x, axes) : y};
}

Items group_normalised(const Call& c) {
  const Tensor& x = c.tensor();
  const int64_t axis = axes_of(c, x, {-1})[0], channels = x.dim(axis).value();
  int64_t groups = c.integer("groups", 32);
  if (groups == -1) groups = channels;
  if (groups < 1 || channels % groups != 0) c.refuse(format("{} groups do not fit", groups));
  const Tensor gamma = c.flag("scale", true) ? c.weight("gamma") : Tensor{};
  const Tensor beta = c.flag("center", true) ? c.weight("beta") : Tensor{};
  std::vector<Dim> shape;
  List over;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i == axis) shape.emplace_back(groups);
    if (i > 0) over.push_back(static_cast<int64_t>(shape.size()));
    shape.push_back(i == axis ? Dim(channels / groups) : x.dim(i));
  }
  Tensor y = reshape(standardised(reshape(x, shape), over, c.number("epsilon", 1e-3)), x.shape());
  if (gamma.defined()) y = y * along(c, gamma, x, {axis});
  return {beta.defined() ? y + along(c, beta, x, {axis}) : y};
}

// Of keras-contrib and TensorFlow Addons.
Items instance_normalised(const Call& c) {
  const Tensor& x = c.tensor();
  const List own = c.has("axis") ? axes_of(c, x, {}) : List{};
  List over;
  for (int64_t i = 1; i < x.rank(); ++i)
    if (std::find(own.begin(), own.end(), i) == own.end()) over.push_back(i);
  const Tensor gamma = c.flag("scale", true) ? c.weight("gamma") : Tensor{};
  const Tensor beta = c.flag("center", true) ? c.weight("beta") : Tensor{};
  Tensor y = standardised(x, over, c.number("epsilon", 1e-3));
  const auto fit = [&](const Tensor& w) { return own.empty() ? w : along(c, w, x, own); };
  if (gamma.defined()) y = y * fit(gamma);
  return {beta.defined() ? y + fit(beta) : y};
}

Items unit_normalised(const Call& c) {
  const Tensor& x = c.tensor();
  const Tensor squares = sum(square(x), IntArgs(axes_of(c, x, {-1})), std::nullopt, true);
  return {x * rsqrt(clip(squares, Scalar(1e-12)))};
}

// The kernel in the file is the normalised one.
Items spectrally_normalised(const Call& c) {
  const JsonValue* json = c.find("layer");
  if (!json) c.refuse("it has no layer");
  return c.run(c.inner(*json, {"layer"}), c.items());
}

// By a mean and a variance that were computed from data, or are part of the configuration.
Items normalised(const Call& c) {
  const Tensor& x = c.tensor();
  List axes = c.list("axis");
  for (int64_t& axis : axes) axis = c.axis(axis, x);
  const auto given = [&](std::string_view key) {
    const std::vector<double> numbers = c.numbers(key);
    const auto count = static_cast<int64_t>(numbers.size());
    const Tensor t = cast(Tensor::from_vector(numbers, Shape{count}, DType::Float64), x.dtype());
    return count == 1 ? reshape(t, {}) : t;
  };
  const bool configured = c.has("mean");
  const Tensor mean = configured ? given("mean") : c.weight("mean");
  const Tensor variance = configured ? given("variance") : c.weight("variance");
  const auto fit = [&](const Tensor& t) {
    if (t.rank() == 0) return t;
    return static_cast<size_t>(t.rank()) == axes.size() ? along(c, t, x, axes) : t;
  };
  const Tensor real = is_floating(x.dtype()) ? x : cast(x, DType::Float32);
  const Tensor spread = maximum(sqrt(fit(variance)), full({}, 1e-7, real.dtype()));
  if (c.flag("invert", false)) return {real * spread + fit(mean)};
  return {(real - fit(mean)) / spread};
}

constexpr Converter kConverters[] = {
    {"BatchNormalization", batch_normalised, Converter::Passes},
    {"BatchNormalizationV1", batch_normalised, Converter::Passes},
    {"BatchNormalizationV2", batch_normalised, Converter::Passes},
    {"SyncBatchNormalization", batch_normalised, Converter::Passes},
    {"LayerNormalization", layer_normalised, Converter::Passes},
    {"RMSNormalization", rms_normalised, Converter::Passes},
    {"GroupNormalization", group_normalised, Converter::Passes},
    {"InstanceNormalization", instance_normalised, Converter::Passes},
    {"UnitNormalization", unit_normalised, Converter::Passes},
    {"SpectralNormalization", spectrally_normalised, Converter::Own},
    {"Normalization", normalised},
};

}  // namespace

std::span<const Converter> normalisation_converters() { return kConverters; }

}  // namespace oar::keras
