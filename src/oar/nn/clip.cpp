#include "oar/nn/clip.h"

#include "oar/base/error.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/reduction.h"

namespace oar::nn {
namespace {

// The factor that makes gradients together at most `longest` long, in float32 or wider.
Tensor shortening(TensorList grads, double longest) {
  Tensor total;
  for (const Tensor& grad : grads) {
    const Tensor wide = size_of(grad.dtype()) < 4 ? cast(grad, DType::Float32) : grad;
    const Tensor square = sum(wide * wide);
    total = total.defined() ? total + square : square;
  }
  return longest / oar::clip(sqrt(total), Scalar(longest));
}

}  // namespace

ClipGradByValue::ClipGradByValue(double max, std::optional<double> min)
    : max_(max), min_(min.value_or(-max)) {
  user_check(min_ <= max_, ErrorKind::InvalidArgument, "min {} must not be above max {}.", min_,
             max_);
}

std::vector<Tensor> ClipGradByValue::clip(const std::vector<Tensor>& grads) const {
  std::vector<Tensor> clipped;
  for (const Tensor& grad : grads) clipped.push_back(oar::clip(grad, Scalar(min_), Scalar(max_)));
  return clipped;
}

std::vector<Tensor> ClipGradByNorm::clip(const std::vector<Tensor>& grads) const {
  std::vector<Tensor> clipped;
  for (const Tensor& grad : grads)
    clipped.push_back(grad * cast(shortening({&grad, 1}, clip_norm_), grad.dtype()));
  return clipped;
}

std::vector<Tensor> ClipGradByGlobalNorm::clip(const std::vector<Tensor>& grads) const {
  if (grads.empty()) return {};
  const Tensor factor = shortening(grads, clip_norm_);
  std::vector<Tensor> clipped;
  for (const Tensor& grad : grads) clipped.push_back(grad * cast(factor, grad.dtype()));
  return clipped;
}

}  // namespace oar::nn
