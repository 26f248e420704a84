#include "oar/nn/init.h"

#include <cmath>

#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/random.h"

namespace oar::nn::init {
namespace {

// 16-bit values are drawn in float32 and rounded once, when they are written.
DType draw_dtype(const Tensor& t) { return size_of(t.dtype()) < 4 ? DType::Float32 : t.dtype(); }

double xavier_std(const Tensor& t, double gain) {
  const Fans fans = fans_of(t);
  return gain * std::sqrt(2.0 / std::max(fans.in + fans.out, 1e-12));
}

double kaiming_std(const Tensor& t) { return std::sqrt(2.0 / std::max(fans_of(t).in, 1e-12)); }

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

void kaiming_uniform(const Tensor& t) {
  const double limit = std::sqrt(3.0) * kaiming_std(t);
  uniform(t, -limit, limit);
}

void kaiming_normal(const Tensor& t) { normal(t, 0, kaiming_std(t)); }

}  // namespace oar::nn::init
