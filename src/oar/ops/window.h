// Windows that slide over images: what convolution and pooling have in common.
#pragma once

#include <string_view>

#include "oar/ops/infer.h"

namespace oar {

// NHWC or NCHW; an error otherwise.
bool is_channels_last(std::string_view data_format);
// Two numbers, all at least 1.
void check_windows(Ints numbers, const char* argument);
// Four numbers, none negative.
void check_padding(Dims padding);
// Places of a window along an axis; an error where it does not fit even once. `ceil` also counts a
// last place that reaches over the edge.
Dim window_count(Dim size, Dim window, int64_t stride, Dim padding, int64_t dilation, bool ceil,
                 const char* axis);
// [top, bottom, left, right] from the public forms: EXPLICIT with 1, 2 or 4 numbers, SAME or VALID.
Shape resolve_padding(std::string_view algorithm, Ints given, const Shape& image,
                      const Shape& window, Ints stride);

}  // namespace oar
