#include "oar/nn/pooling.h"

#include "oar/nn/fresh.h"
#include "oar/ops/gen/avg_pool.h"
#include "oar/ops/gen/max_pool.h"

namespace oar::nn {
namespace {

template <int N>
IntArgs stride_of(const std::optional<Sizes<N>>& stride, const Sizes<N>& kernel_size) {
  return IntArgs((stride ? *stride : kernel_size).list());
}

}  // namespace

template <int N>
Tensor MaxPool<N>::forward(const Tensor& x) {
  return for_axes<N>(&max_pool1d, &max_pool2d, &max_pool3d)(
      x, kernel_size_.list(), stride_of(options_.stride, kernel_size_), options_.padding.list(),
      options_.ceil_mode, options_.data_format, options_.padding.algorithm());
}

template <int N>
Tensor AvgPool<N>::forward(const Tensor& x) {
  return for_axes<N>(&avg_pool1d, &avg_pool2d, &avg_pool3d)(
      x, kernel_size_.list(), stride_of(options_.stride, kernel_size_), options_.padding.list(),
      options_.ceil_mode, options_.exclusive, options_.divisor_override, options_.data_format,
      options_.padding.algorithm());
}

template <int N>
Tensor AdaptiveAvgPool<N>::forward(const Tensor& x) {
  return for_axes<N>(&adaptive_avg_pool1d, &adaptive_avg_pool2d, &adaptive_avg_pool3d)(
      x, output_size_.list(), data_format_);
}

template <int N>
Tensor AdaptiveMaxPool<N>::forward(const Tensor& x) {
  return for_axes<N>(&adaptive_max_pool1d, &adaptive_max_pool2d, &adaptive_max_pool3d)(
      x, output_size_.list());
}

template class MaxPool<1>;
template class MaxPool<2>;
template class MaxPool<3>;
template class AvgPool<1>;
template class AvgPool<2>;
template class AvgPool<3>;
template class AdaptiveAvgPool<1>;
template class AdaptiveAvgPool<2>;
template class AdaptiveAvgPool<3>;
template class AdaptiveMaxPool<1>;
template class AdaptiveMaxPool<2>;
template class AdaptiveMaxPool<3>;

}  // namespace oar::nn
