// Pooling over one, two and three axes. Arguments and defaults are those of the Python layers.
#pragma once

#include <optional>
#include <string>

#include "oar/base/api.h"
#include "oar/nn/module.h"
#include "oar/nn/sizes.h"

namespace OAR_API oar {
namespace nn {

template <int N>
struct MaxPoolOptions {
  std::optional<Sizes<N>> stride = std::nullopt;  // default: the window's size
  Padding<N> padding = 0;
  bool ceil_mode = false;
  std::string data_format = kChannelsFirst[N];
};

template <int N>
class MaxPool : public Module {
 public:
  explicit MaxPool(Sizes<N> kernel_size, MaxPoolOptions<N> options = {})
      : kernel_size_(kernel_size), options_(std::move(options)) {}
  Tensor forward(const Tensor& x) override;

 private:
  Sizes<N> kernel_size_;
  MaxPoolOptions<N> options_;
};

template <int N>
struct AvgPoolOptions {
  std::optional<Sizes<N>> stride = std::nullopt;
  Padding<N> padding = 0;
  bool ceil_mode = false;
  bool exclusive = true;  // the border does not count
  std::optional<double> divisor_override = std::nullopt;
  std::string data_format = kChannelsFirst[N];
};

template <int N>
class AvgPool : public Module {
 public:
  explicit AvgPool(Sizes<N> kernel_size, AvgPoolOptions<N> options = {})
      : kernel_size_(kernel_size), options_(std::move(options)) {}
  Tensor forward(const Tensor& x) override;

 private:
  Sizes<N> kernel_size_;
  AvgPoolOptions<N> options_;
};

// Windows that divide x into output_size parts; -1 keeps a size.
template <int N>
class AdaptiveAvgPool : public Module {
 public:
  explicit AdaptiveAvgPool(Sizes<N> output_size, std::string data_format = kChannelsFirst[N])
      : output_size_(output_size), data_format_(std::move(data_format)) {}
  Tensor forward(const Tensor& x) override;

 private:
  Sizes<N> output_size_;
  std::string data_format_;
};

template <int N>
class AdaptiveMaxPool : public Module {
 public:
  explicit AdaptiveMaxPool(Sizes<N> output_size) : output_size_(output_size) {}
  Tensor forward(const Tensor& x) override;

 private:
  Sizes<N> output_size_;
};

using MaxPool1D = MaxPool<1>;
using MaxPool2D = MaxPool<2>;
using MaxPool3D = MaxPool<3>;
using AvgPool1D = AvgPool<1>;
using AvgPool2D = AvgPool<2>;
using AvgPool3D = AvgPool<3>;
using AdaptiveAvgPool1D = AdaptiveAvgPool<1>;
using AdaptiveAvgPool2D = AdaptiveAvgPool<2>;
using AdaptiveAvgPool3D = AdaptiveAvgPool<3>;
using AdaptiveMaxPool1D = AdaptiveMaxPool<1>;
using AdaptiveMaxPool2D = AdaptiveMaxPool<2>;
using AdaptiveMaxPool3D = AdaptiveMaxPool<3>;

extern template class MaxPool<1>;
extern template class MaxPool<2>;
extern template class MaxPool<3>;
extern template class AvgPool<1>;
extern template class AvgPool<2>;
extern template class AvgPool<3>;
extern template class AdaptiveAvgPool<1>;
extern template class AdaptiveAvgPool<2>;
extern template class AdaptiveAvgPool<3>;
extern template class AdaptiveMaxPool<1>;
extern template class AdaptiveMaxPool<2>;
extern template class AdaptiveMaxPool<3>;

}  // namespace nn
}  // namespace oar
