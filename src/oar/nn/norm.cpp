#include "oar/nn/norm.h"

#include "oar/nn/fresh.h"
#include "oar/ops/gen/batch_norm.h"
#include "oar/ops/gen/group_norm.h"
#include "oar/ops/gen/layer_norm.h"

namespace oar::nn {
namespace {

template <int N>
void check_rank(const char* layer, const Tensor& x) {
  const bool fits = x.rank() == N + 2 || (N == 1 && x.rank() == 2);
  user_check(fits, ErrorKind::InvalidArgument, "{}{}D expects an input with {} axes, but got {}.",
             layer, N,
             N == 1   ? "2 or 3"
             : N == 2 ? "4"
                      : "5",
             x.describe());
}

// The op for all numbers of axes has two names of orders.
template <int N>
const char* order_of(const std::string& data_format) {
  return data_format == kChannelsLast[N] || data_format == "NHWC" ? "NHWC" : "NCHW";
}

}  // namespace

LayerNorm::LayerNorm(std::vector<int64_t> normalized_shape, double epsilon, bool elementwise_affine)
    : normalized_shape_(std::move(normalized_shape)), epsilon_(epsilon) {
  if (!elementwise_affine) return;
  int64_t size = 1;
  for (const int64_t d : normalized_shape_) size *= d;
  weight = register_parameter("weight", filled({size}, 1));
  bias = register_parameter("bias", filled({size}, 0), Role::Bias);
}

Tensor LayerNorm::forward(const Tensor& x) {
  return layer_norm(x, normalized_shape_, weight, bias, epsilon_);
}

RMSNorm::RMSNorm(std::vector<int64_t> normalized_shape, double epsilon)
    : normalized_shape_(std::move(normalized_shape)), epsilon_(epsilon) {
  weight = register_parameter("weight", filled(Shape(as_dims(normalized_shape_)), 1));
}

Tensor RMSNorm::forward(const Tensor& x) {
  return rms_norm(x, normalized_shape_, weight, epsilon_);
}

template <int N>
BatchNorm<N>::BatchNorm(int64_t num_features, BatchNormOptions<N> options)
    : options_(std::move(options)) {
  check_positive("num_features", num_features);
  if (options_.affine) {
    weight = register_parameter("weight", filled({num_features}, 1));
    bias = register_parameter("bias", filled({num_features}, 0), Role::Bias);
  }
  mean = register_buffer("_mean", filled({num_features}, 0));
  variance = register_buffer("_variance", filled({num_features}, 1));
}

template <int N>
std::string BatchNorm<N>::kind() const {
  return format("batch_norm{}d", N);
}

template <int N>
Tensor BatchNorm<N>::forward(const Tensor& x) {
  check_rank<N>("BatchNorm", x);
  return batch_norm(x, mean, variance, weight, bias, is_training(), options_.momentum,
                    options_.epsilon, order_of<N>(options_.data_format), options_.use_global_stats);
}

template <int N>
InstanceNorm<N>::InstanceNorm(int64_t num_features, InstanceNormOptions<N> options)
    : options_(std::move(options)) {
  check_positive("num_features", num_features);
  if (!options_.affine) return;
  scale = register_parameter("scale", filled({num_features}, 1));
  bias = register_parameter("bias", filled({num_features}, 0), Role::Bias);
}

template <int N>
std::string InstanceNorm<N>::kind() const {
  return format("instance_norm{}d", N);
}

template <int N>
Tensor InstanceNorm<N>::forward(const Tensor& x) {
  check_rank<N>("InstanceNorm", x);
  return instance_norm(x, {}, {}, scale, bias, true, options_.momentum, options_.epsilon,
                       options_.data_format);
}

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, double epsilon, bool affine,
                     std::string data_format)
    : num_groups_(num_groups), epsilon_(epsilon), data_format_(std::move(data_format)) {
  check_positive("num_groups", num_groups);
  check_positive("num_channels", num_channels);
  if (!affine) return;
  weight = register_parameter("weight", filled({num_channels}, 1));
  bias = register_parameter("bias", filled({num_channels}, 0), Role::Bias);
}

Tensor GroupNorm::forward(const Tensor& x) {
  return group_norm(x, num_groups_, epsilon_, weight, bias, data_format_);
}

template class BatchNorm<1>;
template class BatchNorm<2>;
template class BatchNorm<3>;
template class InstanceNorm<1>;
template class InstanceNorm<2>;
template class InstanceNorm<3>;

}  // namespace oar::nn
