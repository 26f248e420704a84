// What max_pool.cpp and avg_pool.cpp share.
#pragma once

#include <optional>

#include "oar/ops/families/window.h"

namespace oar {

using Numbers = SmallVector<int64_t, 6>;

inline void check_rank(const Tensor& x, size_t spatial) {
  user_check(
      x.rank() == static_cast<int>(spatial) + 2, ErrorKind::InvalidArgument,
      "x must have {} axes, but its shape is {}.\nhint: unsqueeze(0) adds a batch to a single "
      "image.",
      spatial + 2, to_string(x.dims()));
}
// Of ops that take any number of spatial axes.
inline size_t spatial_of(const Tensor& x) { return axes_of_rank(x.rank(), false).spatial; }

inline Numbers stride_of(const std::optional<Ints>& stride, const Numbers& window) {
  return stride && !stride->empty() ? expand_ints(*stride, window.size(), "stride") : window;
}

// The public forms of the arguments, resolved.
struct ResolvedWindows {
  ImageAxes axes;
  Numbers window, stride;
  Shape padding;

  template <class A>
  ResolvedWindows(const A& a, size_t spatial) : axes(axes_of(a.data_format, spatial)) {
    check_rank(a.x, spatial);
    window = expand_ints(a.kernel_size, spatial, "kernel_size");
    stride = stride_of(a.stride, window);
    check_windows(Ints(window), spatial, "kernel_size");
    check_windows(Ints(stride), spatial, "stride");
    user_check(a.padding_algorithm != "VALID" || !a.ceil_mode, ErrorKind::InvalidArgument,
               "ceil_mode adds windows at the edge, which padding 'VALID' excludes.\nhint: Pass "
               "ceil_mode=False, or padding as numbers.");
    padding = resolve_padding(a.padding_algorithm, a.padding, axes.sizes(a.x.dims()),
                              Shape(Ints(window)), Ints(stride));
  }
};

inline ImageAxes image_axes(const Shape& x, bool channels_last) {
  return axes_of_rank(x.rank(), channels_last);
}

// Positions of a window along spatial axis i. As in Paddle, a window that is larger than the image and its padding by
// less than a stride counts once and is cut at the edge. An open size is taken to be large enough: a program refuses to run at
// a smaller one.
inline Dim pooled_count(Dim size, int64_t window, int64_t stride, Dim padding, bool ceil, size_t i,
                        size_t spatial) {
  const Dim room = size + padding - Dim(window);
  const bool cut = room.is_known() && room.word() < 0 && room.word() > -stride;
  if (cut && !(size == Dim(0))) return Dim(1);
  return window_count(size, Dim(window), stride, padding, 1, ceil, i, spatial);
}

// The result of windows that slide over an image.
template <class A>
Shape pooled(const Shape& x, const A& a) {
  const ImageAxes axes = image_axes(x, a.channels_last);
  check_windows(a.kernel_size, axes.spatial, "kernel_size");
  check_windows(a.stride, axes.spatial, "stride");
  check_padding(a.padding, axes.spatial);
  Shape sizes;
  for (size_t i = 0; i < axes.spatial; ++i)
    sizes.push_back(pooled_count(axes.size(x, i), a.kernel_size[i], a.stride[i],
                                 a.padding[2 * i] + a.padding[2 * i + 1], a.ceil_mode, i,
                                 axes.spatial));
  return axes.image(x[0], x[axes.channel()], sizes);
}

// … of as many windows as output_size says.
inline Shape divided(const Shape& x, Dims output_size, bool channels_last) {
  const ImageAxes axes = image_axes(x, channels_last);
  user_check(output_size.size() == axes.spatial, ErrorKind::InvalidArgument,
             "output_size {} must have one number for each of {} spatial axes.",
             to_string(output_size), axes.spatial);
  const bool is_empty = x[0] == Dim(0) || x[axes.channel()] == Dim(0);
  for (size_t i = 0; i < axes.spatial; ++i) {
    user_check(output_size[i].is_symbolic() || output_size[i].word() >= 0,
               ErrorKind::InvalidArgument, "output_size {} must not be negative.",
               to_string(output_size));
    const bool fillable = !(axes.size(x, i) == Dim(0)) || output_size[i] == Dim(0);
    user_check(fillable || is_empty, ErrorKind::InvalidArgument,
               "an image of shape {} has no pixels to fill an output of {}.", x.str(),
               to_string(output_size));
  }
  return axes.image(x[0], x[axes.channel()], output_size);
}

inline void check_same_images(const Shape& x, const Shape& grad, bool channels_last) {
  const ImageAxes axes = image_axes(x, channels_last);
  user_check(x.rank() == grad.rank() && same(x[0], grad[0]) &&
                 same(x[axes.channel()], grad[axes.channel()]),
             ErrorKind::InvalidArgument, "x_shape {} has other images than grad of shape {}.",
             x.str(), grad.str());
}

// -1 keeps the size of the image.
inline Shape output_of(const Tensor& x, Ints output_size, const ImageAxes& axes) {
  check_rank(x, axes.spatial);
  const Numbers sizes = expand_ints(output_size, axes.spatial, "output_size");
  Shape shape;
  for (size_t i = 0; i < axes.spatial; ++i)
    shape.push_back(sizes[i] == -1 ? axes.size(x.dims(), i) : Dim(sizes[i]));
  return shape;
}

}  // namespace oar
