// Normalisation layers. Arguments and defaults are those of the Python layers.
#pragma once

#include <optional>
#include <string>

#include "oar/base/api.h"
#include "oar/nn/module.h"
#include "oar/nn/sizes.h"

namespace OAR_API oar {
namespace nn {

// Over the last axes of each sample, with this shape.
class LayerNorm : public Module {
 public:
  explicit LayerNorm(std::vector<int64_t> normalized_shape, double epsilon = 1e-5,
                     bool elementwise_affine = true);
  explicit LayerNorm(int64_t size, double epsilon = 1e-5, bool elementwise_affine = true)
      : LayerNorm(std::vector<int64_t>{size}, epsilon, elementwise_affine) {}
  Tensor forward(const Tensor& x) override;

  Tensor weight, bias;  // undefined without elementwise_affine

 private:
  std::vector<int64_t> normalized_shape_;
  double epsilon_;
};

// x divided by the root of the mean of its squares, over the last axes.
class RMSNorm : public Module {
 public:
  explicit RMSNorm(std::vector<int64_t> normalized_shape, double epsilon = 1e-5);
  explicit RMSNorm(int64_t size, double epsilon = 1e-5)
      : RMSNorm(std::vector<int64_t>{size}, epsilon) {}
  Tensor forward(const Tensor& x) override;

  Tensor weight;

 protected:
  std::string kind() const override { return "rms_norm"; }

 private:
  std::vector<int64_t> normalized_shape_;
  double epsilon_;
};

template <int N>
struct BatchNormOptions {
  double momentum = 0.9;
  double epsilon = 1e-5;
  bool affine = true;
  std::string data_format = kChannelsFirst[N];
  std::optional<bool> use_global_stats = std::nullopt;
};

// Over batch and space, x is [N, C, size...]; without space too for BatchNorm1D. While training, the running statistics keep
// `momentum` of their old value.
template <int N>
class BatchNorm : public Module {
 public:
  explicit BatchNorm(int64_t num_features, BatchNormOptions<N> options = {});
  BatchNorm(int64_t num_features, double momentum, double epsilon = 1e-5)
      : BatchNorm(num_features, BatchNormOptions<N>{.momentum = momentum, .epsilon = epsilon}) {}
  Tensor forward(const Tensor& x) override;

  Tensor weight, bias;
  Tensor mean, variance;  // in files "_mean" and "_variance", as Paddle calls them

 protected:
  std::string kind() const override;

 private:
  BatchNormOptions<N> options_;
};
using BatchNorm1D = BatchNorm<1>;
using BatchNorm2D = BatchNorm<2>;
using BatchNorm3D = BatchNorm<3>;

template <int N>
struct InstanceNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.9;
  bool affine = true;
  std::string data_format = kChannelsFirst[N];
};

// Over the space of each channel of each sample.
template <int N>
class InstanceNorm : public Module {
 public:
  explicit InstanceNorm(int64_t num_features, InstanceNormOptions<N> options = {});
  Tensor forward(const Tensor& x) override;

  Tensor scale, bias;  // undefined without affine

 protected:
  std::string kind() const override;

 private:
  InstanceNormOptions<N> options_;
};
using InstanceNorm1D = InstanceNorm<1>;
using InstanceNorm2D = InstanceNorm<2>;
using InstanceNorm3D = InstanceNorm<3>;

// Over groups of neighbouring channels of each sample.
class GroupNorm : public Module {
 public:
  GroupNorm(int64_t num_groups, int64_t num_channels, double epsilon = 1e-5, bool affine = true,
            std::string data_format = "NCHW");
  Tensor forward(const Tensor& x) override;

  Tensor weight, bias;

 private:
  int64_t num_groups_;
  double epsilon_;
  std::string data_format_;
};

extern template class BatchNorm<1>;
extern template class BatchNorm<2>;
extern template class BatchNorm<3>;
extern template class InstanceNorm<1>;
extern template class InstanceNorm<2>;
extern template class InstanceNorm<3>;

}  // namespace nn
}  // namespace oar
