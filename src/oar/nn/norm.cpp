#include "oar/nn/norm.h"

#include "oar/base/error.h"
#include "oar/nn/init.h"
#include "oar/ops/gen/batch_norm.h"
#include "oar/ops/gen/layer_norm.h"

namespace oar::nn {
namespace {

Tensor filled(int64_t size, double value) {
  const Tensor t = Tensor::empty({size}, default_dtype());
  init::constant(t, value);
  return t;
}

}  // namespace

LayerNorm::LayerNorm(std::vector<int64_t> normalized_shape, double epsilon, bool elementwise_affine)
    : normalized_shape_(std::move(normalized_shape)), epsilon_(epsilon) {
  if (!elementwise_affine) return;
  int64_t size = 1;
  for (const int64_t d : normalized_shape_) size *= d;
  weight = register_parameter("weight", filled(size, 1));
  bias = register_parameter("bias", filled(size, 0));
}

Tensor LayerNorm::forward(const Tensor& x) {
  return layer_norm(x, normalized_shape_, weight, bias, epsilon_);
}

BatchNorm2D::BatchNorm2D(int64_t num_features, double momentum, double epsilon)
    : momentum_(momentum), epsilon_(epsilon) {
  weight = register_parameter("weight", filled(num_features, 1));
  bias = register_parameter("bias", filled(num_features, 0));
  mean = register_buffer("_mean", filled(num_features, 0));
  variance = register_buffer("_variance", filled(num_features, 1));
}

Tensor BatchNorm2D::forward(const Tensor& x) {
  user_check(x.rank() == 4, ErrorKind::InvalidArgument,
             "BatchNorm2D takes images [N, C, H, W], not {}.", x.describe());
  return batch_norm(x, mean, variance, weight, bias, is_training(), momentum_, epsilon_);
}

}  // namespace oar::nn
