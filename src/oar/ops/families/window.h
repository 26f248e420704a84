// Windows that slide over images: what convolution and pooling have in common. An image has one, two
// or three spatial axes; padding has two numbers for each: [before, after, before, after, …].
#pragma once

#include <string_view>

#include "oar/ops/core/infer.h"

namespace oar {

// Where the axes of images are: [batch, channels, spatial…] or [batch, spatial…, channels].
struct ImageAxes {
  size_t spatial;
  bool channels_last;

  size_t channel() const { return channels_last ? spatial + 1 : 1; }
  size_t first() const { return channels_last ? 1 : 2; }  // of the spatial ones
  Dim size(Dims image, size_t i) const { return image[first() + i]; }
  Shape sizes(Dims image) const { return Shape(image.subspan(first(), spatial)); }
  Shape image(Dim batch, Dim channels, Dims sizes) const;
};

// 'NCHW' or the equivalent for this number of spatial axes; an error otherwise.
ImageAxes axes_of(std::string_view data_format, size_t spatial);
// … of images with `rank` axes; an error if images cannot have so many.
ImageAxes axes_of_rank(int rank, bool channels_last);
// One number for each spatial axis, all at least 1.
void check_windows(Ints numbers, size_t spatial, const char* argument);
// Two numbers for each spatial axis, none negative.
void check_padding(Dims padding, size_t spatial);
// Positions of a window along spatial axis i; an error if it does not fit even once. `ceil` also
// counts a last position that reaches over the edge.
Dim window_count(Dim size, Dim window, int64_t stride, Dim padding, int64_t dilation, bool ceil,
                 size_t i, size_t spatial);
// Padding from the public forms: SAME, VALID, or EXPLICIT with one number, one for each axis or two
// for each.
Shape resolve_padding(std::string_view algorithm, Ints given, const Shape& image,
                      const Shape& window, Ints stride);

inline void check_positive(int64_t number, const char* argument) {
  user_check(number > 0, ErrorKind::InvalidArgument, "{} must be positive, not {}.", argument,
             number);
}

}  // namespace oar
