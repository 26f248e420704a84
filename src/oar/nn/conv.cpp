#include "oar/nn/conv.h"

#include <cmath>

#include "oar/nn/fresh.h"
#include "oar/ops/gen/conv.h"
#include "oar/ops/gen/conv_transpose.h"
#include "oar/ops/gen/pad.h"

namespace oar::nn {
namespace {

void check_channels(int64_t in_channels, int64_t out_channels, int64_t groups, int64_t window) {
  check_positive("in_channels", in_channels);
  check_positive("out_channels", out_channels);
  check_positive("groups", groups);
  check_positive("kernel_size", window);
  user_check(in_channels % groups == 0 && out_channels % groups == 0, ErrorKind::InvalidArgument,
             "{} input and {} output channels cannot be split into {} groups.", in_channels,
             out_channels, groups);
}

template <int N>
Shape weight_shape(int64_t first, int64_t second, const Sizes<N>& window) {
  Shape shape{first, second};
  for (const int64_t size : window.list()) shape.push_back(size);
  return shape;
}

// What is put around x before a convolution without a border: pairs for all axes.
template <int N>
std::vector<int64_t> border_of(const ConvOptions<N>& options) {
  std::vector<int64_t> pairs;
  for (const int64_t size : options.padding.list()) pairs.insert(pairs.end(), 2, size);
  const size_t channels = options.data_format == kChannelsLast[N] ? pairs.size() : 0;
  pairs.insert(pairs.begin() + static_cast<std::ptrdiff_t>(channels), 2, 0);
  pairs.insert(pairs.begin(), 2, 0);
  return pairs;
}

}  // namespace

template <int N>
Conv<N>::Conv(int64_t in_channels, int64_t out_channels, Sizes<N> kernel_size,
              ConvOptions<N> options)
    : options_(std::move(options)) {
  check_channels(in_channels, out_channels, options_.groups, kernel_size.smallest());
  user_check(options_.padding_mode == "zeros" || !options_.padding.is_named(),
             ErrorKind::InvalidArgument, "with padding_mode '{}' the padding must be a number.",
             options_.padding_mode);
  const Tensor made =
      unfilled(weight_shape(out_channels, in_channels / options_.groups, kernel_size));
  init::normal(made, 0, std::sqrt(2.0 / static_cast<double>(kernel_size.product() * in_channels)));
  weight = register_parameter("weight", made);
  if (options_.has_bias) bias = register_parameter("bias", filled({out_channels}, 0), Role::Bias);
}

template <int N>
std::string Conv<N>::kind() const {
  return format("conv{}d", N);
}

template <int N>
Tensor Conv<N>::forward(const Tensor& x) {
  const auto& [stride, padding, dilation, groups, has_bias, mode, data_format] = options_;
  const bool plain = mode == "zeros";
  const Tensor padded = plain ? x : pad_edges(x, border_of(options_), mode);
  const Sizes<N> inner = plain ? padding.sizes() : Sizes<N>(0);
  return for_axes<N>(&conv1d, &conv2d, &conv3d)(padded, weight, bias, stride.list(), inner.list(),
                                                dilation.list(), groups, data_format,
                                                padding.algorithm());
}

template <int N>
ConvTranspose<N>::ConvTranspose(int64_t in_channels, int64_t out_channels, Sizes<N> kernel_size,
                                ConvTransposeOptions<N> options)
    : options_(std::move(options)) {
  check_channels(in_channels, out_channels, options_.groups, kernel_size.smallest());
  weight = register_parameter(
      "weight",
      drawn_xavier(weight_shape(in_channels, out_channels / options_.groups, kernel_size)));
  if (options_.has_bias) bias = register_parameter("bias", filled({out_channels}, 0), Role::Bias);
}

template <int N>
std::string ConvTranspose<N>::kind() const {
  return format("conv{}d_transpose", N);
}

template <int N>
Tensor ConvTranspose<N>::forward(const Tensor& x) {
  return run(x, std::nullopt);
}

template <int N>
Tensor ConvTranspose<N>::forward(const Tensor& x, const Sizes<N>& output_size) {
  return run(x, output_size);
}

template <int N>
Tensor ConvTranspose<N>::run(const Tensor& x, const std::optional<Sizes<N>>& output_size) {
  const auto& [stride, padding, output_padding, dilation, groups, has_bias, data_format] = options_;
  std::optional<DimArgs> size;
  if (output_size) size = DimArgs(as_dims(output_size->list()));
  const Sizes<N> beyond = output_size ? Sizes<N>(0) : output_padding;
  // The op for images has dilation and groups in another order, as in Paddle.
  const auto run = [&](auto op, const auto& first, const auto& second) {
    return op(x, weight, bias, stride.list(), padding.list(), beyond.list(), first, second, size,
              data_format, padding.algorithm());
  };
  const IntArgs spread(dilation.list());
  const auto op = for_axes<N>(&conv1d_transpose, &conv2d_transpose, &conv3d_transpose);
  if constexpr (N == 2)
    return run(op, spread, groups);
  else
    return run(op, groups, spread);
}

template class Conv<1>;
template class Conv<2>;
template class Conv<3>;
template class ConvTranspose<1>;
template class ConvTranspose<2>;
template class ConvTranspose<3>;

}  // namespace oar::nn
