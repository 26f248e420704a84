#include "oar/nn/init.h"

#include <cmath>

#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/diagonals.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/qr.h"
#include "oar/ops/gen/random.h"
#include "oar/ops/gen/shape.h"

namespace oar::nn::init {
namespace {

// 16-bit values are drawn in float32 and rounded once, when they are written.
DType draw_dtype(const Tensor& t) { return size_of(t.dtype()) < 4 ? DType::Float32 : t.dtype(); }

double xavier_std(const Tensor& t, double gain) {
  const Fans fans = fans_of(t);
  return gain * std::sqrt(2.0 / std::max(fans.in + fans.out, 1e-12));
}

double kaiming_std(const Tensor& t, const KaimingOptions& options) {
  const std::string_view mode = options.mode;
  user_check(mode == "fan_in" || mode == "fan_out", ErrorKind::InvalidArgument,
             "mode is '{}'.\nhint: Pass fan_in or fan_out.", mode);
  const Fans fans = fans_of(t);
  return gain_of(options.nonlinearity, options.negative_slope) /
         std::sqrt(std::max(mode == "fan_in" ? fans.in : fans.out, 1e-12));
}

}  // namespace

Fans fans_of(const Tensor& t) {
  const auto size = [&](int axis) { return static_cast<double>(t.dim(axis).value()); };
  if (t.rank() < 2) {
    const double n = t.rank() == 0 ? 1 : size(0);
    return {n, n};
  }
  if (t.rank() == 2) return {size(0), size(1)};
  double window = 1;
  for (int axis = 2; axis < t.rank(); ++axis) window *= size(axis);
  return {size(1) * window, size(0) * window};
}

void constant(const Tensor& t, double value) {
  const NoGrad off;
  copy_into(t, Tensor::scalar(value, t.dtype()));
}

void uniform(const Tensor& t, double low, double high) {
  user_check(low <= high, ErrorKind::InvalidArgument, "low ({}) must not be above high ({}).", low,
             high);
  const NoGrad off;
  copy_into(t, oar::uniform(t.dims(), draw_dtype(t), low, high));
}

void normal(const Tensor& t, double mean, double std) {
  const NoGrad off;
  const Tensor drawn = randn(t.dims(), draw_dtype(t)) * std;
  copy_into(t, mean == 0 ? drawn : drawn + mean);
}

void truncated_normal(const Tensor& t, double mean, double std, double a, double b) {
  const NoGrad off;
  copy_into(t, oar::truncated_normal(t.dims(), mean, std, a, b, draw_dtype(t)));
}

void xavier_uniform(const Tensor& t, double gain) {
  const double limit = std::sqrt(3.0) * xavier_std(t, gain);
  uniform(t, -limit, limit);
}

void xavier_normal(const Tensor& t, double gain) { normal(t, 0, xavier_std(t, gain)); }

void kaiming_uniform(const Tensor& t, const KaimingOptions& options) {
  const double limit = std::sqrt(3.0) * kaiming_std(t, options);
  uniform(t, -limit, limit);
}

void kaiming_normal(const Tensor& t, const KaimingOptions& options) {
  normal(t, 0, kaiming_std(t, options));
}

double gain_of(std::string_view nonlinearity, double negative_slope) {
  if (nonlinearity == "linear" || nonlinearity == "sigmoid" || nonlinearity.starts_with("conv"))
    return 1;
  if (nonlinearity == "tanh") return 5.0 / 3.0;
  if (nonlinearity == "relu") return std::sqrt(2.0);
  if (nonlinearity == "leaky_relu") return std::sqrt(2.0 / (1 + negative_slope * negative_slope));
  if (nonlinearity == "selu") return 3.0 / 4.0;
  fail(ErrorKind::InvalidArgument,
       "there is no gain for '{}'.\nhint: Pass linear, sigmoid, tanh, relu, leaky_relu or selu.",
       nonlinearity);
}

void orthogonal(const Tensor& t, double gain) {
  user_check(t.rank() >= 2, ErrorKind::InvalidArgument,
             "an orthogonal weight has 2 axes or more, but {} has fewer.", t.describe());
  const NoGrad off;
  const int64_t rows = t.dim(0).value(), columns = t.numel().value() / std::max<int64_t>(rows, 1);
  const auto [q, r] =
      qr_parts(randn({std::max(rows, columns), std::min(rows, columns)}, DType::Float64));
  // The signs make the result unique.
  const Tensor signs =
      where(less_than(diagonal(r), literal(0.0)), full({}, Scalar(-1.0), DType::Float64),
            full({}, Scalar(1.0), DType::Float64));
  Tensor made = q * signs;
  if (rows < columns) made = transpose(made, {1, 0});
  copy_into(t, reshape(made, t.dims()) * gain);
}

void assign(const Tensor& t, const Tensor& values) {
  user_check(values.defined() && same(values.numel(), t.numel()), ErrorKind::InvalidArgument,
             "{} does not fit {}.", values.describe(), t.describe());
  const NoGrad off;
  copy_into(t, reshape(values, t.dims()));
}

void dirac(const Tensor& t, int64_t groups) {
  user_check(t.rank() >= 3 && t.rank() <= 5, ErrorKind::InvalidArgument,
             "a convolution's weight has 3 to 5 axes, but {} has others.", t.describe());
  user_check(groups > 0 && t.dim(0).value() % groups == 0, ErrorKind::InvalidArgument,
             "{} output channels cannot be split into {} groups.", t.dim(0).value(), groups);
  const int64_t outputs = t.dim(0).value() / groups, inputs = t.dim(1).value();
  int64_t window = 1, centre = 0;
  for (int axis = 2; axis < t.rank(); ++axis) {
    const int64_t size = t.dim(axis).value();
    window *= size;
    centre = centre * size + size / 2;
  }
  std::vector<float> values(static_cast<size_t>(t.numel().value()), 0.0F);
  for (int64_t group = 0; group < groups; ++group)
    for (int64_t channel = 0; channel < std::min(outputs, inputs); ++channel)
      values[static_cast<size_t>(((group * outputs + channel) * inputs + channel) * window +
                                 centre)] = 1;
  assign(t, Tensor::from_vector(values, t.dims(), DType::Float32));
}

}  // namespace oar::nn::init
