// Convolutions and transposed convolutions over one, two and three axes. Arguments and defaults are those of the Python layers.
#pragma once

#include <optional>
#include <string>

#include "oar/base/api.h"
#include "oar/nn/module.h"
#include "oar/nn/sizes.h"

namespace OAR_API oar {
namespace nn {

template <int N>
struct ConvOptions {
  Sizes<N> stride = 1;
  Padding<N> padding = 0;
  Sizes<N> dilation = 1;
  int64_t groups = 1;
  bool has_bias = true;
  std::string padding_mode = "zeros";  // or "reflect", "replicate", "circular"
  std::string data_format = kChannelsFirst[N];
};

// The weight is [out_channels, in_channels / groups, window...]; x is [N, C, size...].
template <int N>
class Conv : public Module {
 public:
  Conv(int64_t in_channels, int64_t out_channels, Sizes<N> kernel_size,
       ConvOptions<N> options = {});
  Tensor forward(const Tensor& x) override;

  Tensor weight;
  Tensor bias;  // undefined without one

 protected:
  std::string kind() const override;

 private:
  ConvOptions<N> options_;
};

template <int N>
struct ConvTransposeOptions {
  Sizes<N> stride = 1;
  Padding<N> padding = 0;
  Sizes<N> output_padding = 0;
  Sizes<N> dilation = 1;
  int64_t groups = 1;
  bool has_bias = true;
  std::string data_format = kChannelsFirst[N];
};

// The weight is [in_channels, out_channels / groups, window...].
template <int N>
class ConvTranspose : public Module {
 public:
  ConvTranspose(int64_t in_channels, int64_t out_channels, Sizes<N> kernel_size,
                ConvTransposeOptions<N> options = {});
  Tensor forward(const Tensor& x) override;
  // With this size of the result, in place of output_padding.
  Tensor forward(const Tensor& x, const Sizes<N>& output_size);

  Tensor weight;
  Tensor bias;

 protected:
  std::string kind() const override;

 private:
  Tensor run(const Tensor& x, const std::optional<Sizes<N>>& output_size);
  ConvTransposeOptions<N> options_;
};

using Conv1D = Conv<1>;
using Conv2D = Conv<2>;
using Conv3D = Conv<3>;
using Conv1DTranspose = ConvTranspose<1>;
using Conv2DTranspose = ConvTranspose<2>;
using Conv3DTranspose = ConvTranspose<3>;
using Conv2DOptions = ConvOptions<2>;

extern template class Conv<1>;
extern template class Conv<2>;
extern template class Conv<3>;
extern template class ConvTranspose<1>;
extern template class ConvTranspose<2>;
extern template class ConvTranspose<3>;

}  // namespace nn
}  // namespace oar
