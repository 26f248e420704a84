// Normalisation layers.
#pragma once

#include "oar/base/api.h"
#include "oar/nn/module.h"

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

// Over batch and space of images [N, C, H, W]. While training, the running statistics keep
// `momentum` of their old value.
class BatchNorm2D : public Module {
 public:
  explicit BatchNorm2D(int64_t num_features, double momentum = 0.9, double epsilon = 1e-5);
  Tensor forward(const Tensor& x) override;

  Tensor weight, bias;
  Tensor mean, variance;  // in files "_mean" and "_variance", as Paddle calls them

 private:
  double momentum_, epsilon_;
};

}  // namespace nn
}  // namespace oar
