#include "oar/ops/window.h"

namespace oar {

bool is_channels_last(std::string_view data_format) {
  user_check(data_format == "NCHW" || data_format == "NHWC", ErrorKind::InvalidArgument,
             "data_format must be 'NCHW' or 'NHWC', not '{}'.", data_format);
  return data_format == "NHWC";
}

void check_windows(Ints numbers, const char* argument) {
  user_check(numbers.size() == 2, ErrorKind::InvalidArgument, "{} {} must have two numbers.",
             argument, to_string(numbers));
  for (int64_t n : numbers)
    user_check(n >= 1, ErrorKind::InvalidArgument, "{} must be at least 1, not {}.", argument, n);
}

void check_padding(Dims padding) {
  user_check(padding.size() == 4, ErrorKind::InvalidArgument,
             "padding {} must have four numbers: top, bottom, left, right.", to_string(padding));
  for (Dim d : padding)
    user_check(d.is_symbolic() || d.word() >= 0, ErrorKind::InvalidArgument,
               "padding must not be negative, but is {}.", to_string(padding));
}

Dim window_count(Dim size, Dim window, int64_t stride, Dim padding, int64_t dilation, bool ceil,
                 const char* axis) {
  user_check(window.is_symbolic() || window.word() >= 1, ErrorKind::InvalidArgument,
             "the window has {} {}; it needs at least 1.", axis, window.str());
  const Dim reach = (window - Dim(1)) * Dim(dilation) + Dim(1);
  const Dim room = size + padding - reach;
  user_check(
      !(room.is_known() && room.word() < 0), ErrorKind::InvalidArgument,
      "a window of {} {} (dilation included) does not fit into {}, padding included.\nhint: Pad "
      "the input, or use a smaller window.",
      axis, reach.str(), (size + padding).str());
  return floor_div(ceil ? room + Dim(stride - 1) : room, Dim(stride)) + Dim(1);
}

Shape resolve_padding(std::string_view algorithm, Ints given, const Shape& image,
                      const Shape& window, Ints stride) {
  if (algorithm == "VALID") return {0, 0, 0, 0};
  if (algorithm == "SAME") {
    Shape pads;
    for (size_t i = 0; i < 2; ++i) {
      const Dim step(stride[i]);
      const Dim total =
          max_of((ceil_div(image[i], step) - Dim(1)) * step + window[i] - image[i], Dim(0));
      const Dim before = floor_div(total, Dim(2));
      pads.push_back(before);
      pads.push_back(total - before);
    }
    return pads;
  }
  user_check(algorithm == "EXPLICIT", ErrorKind::InvalidArgument,
             "padding must be numbers, 'SAME' or 'VALID', not '{}'.", algorithm);
  user_check(
      given.size() == 1 || given.size() == 2 || given.size() == 4, ErrorKind::InvalidArgument,
      "padding {} has {} numbers.\nhint: Pass one, [height, width] or [top, bottom, left, right].",
      to_string(given), given.size());
  if (given.size() == 4) return Shape(given);
  return {given[0], given[0], given.back(), given.back()};
}

}  // namespace oar
