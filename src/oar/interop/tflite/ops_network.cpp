// Convolutions, pooling, products, resizing.
#include "oar/interop/constants.h"
#include "oar/interop/tensorflow_math.h"
#include "oar/interop/tflite/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::tflite {
namespace {

using interop::Window;

// Options begin with padding and the strides of width and height.
Window window_of(const FlatTable& o, std::vector<int64_t> kernel) {
  return {std::move(kernel),
          {o.number<int32_t>(2, 0), o.number<int32_t>(1, 0)},
          {1, 1},
          o.number<int8_t>(0, 0) == 0};
}

// A filter [a, height, width, b] as [a, b, height, width] or [b, a, height, width]. A constant is turned once.
Tensor filter_of(const Call& c, const std::vector<int64_t>& order) {
  if (c.tensor(1).rank() != 4) c.refuse("its filter has other than four axes");
  return interop::permuted_copy(c.constant(1), order);
}

Tensors convolved(const Call& c) {
  const FlatTable& o = c.options();
  const Tensor filter = filter_of(c, {0, 3, 1, 2});
  Window w = window_of(o, {filter.dim(2).value(), filter.dim(3).value()});
  w.dilation = {o.number<int32_t>(5, 1), o.number<int32_t>(4, 1)};
  const int64_t channels = c.tensor(0).dim(-1).value(), each = filter.dim(1).value();
  if (each < 1 || channels % each != 0) c.refuse("its filter does not fit the channels");
  const Tensor made = interop::convolve_last(c.tensor(0), filter, c.maybe(2), w, channels / each);
  return {c.activated(made, o.number<int8_t>(3, 0))};
}

// The filter is [1, height, width, channels * multiplier].
Tensors convolved_by_channel(const Call& c) {
  const FlatTable& o = c.options();
  const Tensor filter = filter_of(c, {3, 0, 1, 2});
  Window w = window_of(o, {filter.dim(2).value(), filter.dim(3).value()});
  w.dilation = {o.number<int32_t>(6, 1), o.number<int32_t>(5, 1)};
  const int64_t channels = c.tensor(0).dim(-1).value();
  const Tensor made = interop::convolve_last(c.tensor(0), filter, c.maybe(2), w, channels);
  return {c.activated(made, o.number<int8_t>(4, 0))};
}

// Inputs: sizes of the result, filter [out, height, width, in], x, maybe a bias.
Tensors convolved_transposed(const Call& c) {
  const FlatTable& o = c.options();
  const Tensor filter = filter_of(c, {3, 0, 1, 2});
  const Window w = window_of(o, {filter.dim(2).value(), filter.dim(3).value()});
  const std::vector<int64_t> sizes = c.integers(0);
  if (sizes.size() != 4) c.refuse("the sizes of its result are not four");
  Tensor made = interop::convolve_transposed_last(c.tensor(2), filter, w, sizes[1], sizes[2]);
  if (c.has(3)) made = made + c.tensor(3);
  return {c.activated(made, o.number<int8_t>(3, 0))};
}

Window pool_window(const Call& c) {
  const FlatTable& o = c.options();
  return window_of(o, {o.number<int32_t>(4, 0), o.number<int32_t>(3, 0)});
}
Tensors max_pooled(const Call& c) {
  return {c.activated(interop::max_pool_last(c.tensor(0), pool_window(c)),
                      c.options().number<int8_t>(5, 0))};
}
Tensors avg_pooled(const Call& c) {
  return {c.activated(interop::avg_pool_last(c.tensor(0), pool_window(c)),
                      c.options().number<int8_t>(5, 0))};
}

Tensors fully_connected(const Call& c) {
  const FlatTable& o = c.options();
  if (o.number<int8_t>(1, 0) != 0) c.refuse("its weights are shuffled");
  const Tensor& weight = c.tensor(1);
  if (weight.rank() != 2) c.refuse("its weights have other than two axes");
  const bool keeps = o.flag(2) && c.tensor(0).dim(-1) == weight.dim(1);
  const Tensor x = keeps ? c.tensor(0) : reshape(c.tensor(0), {-1, weight.dim(1)});
  const Tensor made = matmul(x, weight, false, true);
  return {c.activated(c.has(2) ? made + c.tensor(2) : made, o.number<int8_t>(0, 0))};
}

Tensors multiplied(const Call& c) {
  return {matmul(c.tensor(0), c.tensor(1), c.options().flag(0), c.options().flag(1))};
}

Tensors resized(const Call& c, bool nearest, int align_field, int half_field) {
  const std::vector<int64_t> sizes = c.integers(1);
  if (sizes.size() != 2) c.refuse("its sizes are not two");
  return {interop::resize_last(
      c.tensor(0),
      {sizes[0], sizes[1], nearest, c.options().flag(align_field), c.options().flag(half_field)})};
}
Tensors resized_bilinear(const Call& c) { return resized(c, false, 2, 3); }
Tensors resized_nearest(const Call& c) { return resized(c, true, 0, 1); }

constexpr Converter kConverters[] = {
    {1, avg_pooled},
    {3, convolved},
    {4, convolved_by_channel},
    {9, fully_connected},
    {17, max_pooled},
    {23, resized_bilinear},
    {67, convolved_transposed},
    {97, resized_nearest, Converter::Moves},
    {126, multiplied},
};

}  // namespace

std::span<const Converter> network_converters() { return kConverters; }

}  // namespace oar::tflite
