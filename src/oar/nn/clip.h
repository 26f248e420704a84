// Gradient clipping, which an optimiser applies before it updates.
#pragma once

#include <optional>
#include <vector>

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {
namespace nn {

class GradClip {
 public:
  virtual ~GradClip() = default;
  // The gradients, clipped.
  virtual std::vector<Tensor> clip(const std::vector<Tensor>& grads) const = 0;
};

// Cuts every element to [min, max]; min is -max unless given.
class ClipGradByValue : public GradClip {
 public:
  explicit ClipGradByValue(double max, std::optional<double> min = std::nullopt);
  std::vector<Tensor> clip(const std::vector<Tensor>& grads) const override;

 private:
  double max_, min_;
};

// Shortens each gradient on its own to at most clip_norm.
class ClipGradByNorm : public GradClip {
 public:
  explicit ClipGradByNorm(double clip_norm) : clip_norm_(clip_norm) {}
  std::vector<Tensor> clip(const std::vector<Tensor>& grads) const override;

 private:
  double clip_norm_;
};

// Shortens all gradients by one factor, so that together they are at most clip_norm long.
class ClipGradByGlobalNorm : public GradClip {
 public:
  explicit ClipGradByGlobalNorm(double clip_norm) : clip_norm_(clip_norm) {}
  std::vector<Tensor> clip(const std::vector<Tensor>& grads) const override;

 private:
  double clip_norm_;
};

}  // namespace nn
}  // namespace oar
