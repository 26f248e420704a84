#include "oar/ops/families/window.h"

namespace oar {
namespace {

// height, width: an axis by the name that users give it.
const char* axis_name(size_t i, size_t spatial) {
  if (spatial == 1) return "length";
  constexpr const char* kNames[] = {"depth", "height", "width"};
  return kNames[3 - spatial + i];
}

struct Formats {
  const char *first, *last;
};
// A stride, a dilation, a window or a margin: kernels multiply them by positions in an image.
constexpr int64_t kFarthest = INT32_MAX;

constexpr Formats kFormats[] = {{"NCL", "NLC"}, {"NCHW", "NHWC"}, {"NCDHW", "NDHWC"}};

}  // namespace

Shape ImageAxes::image(Dim batch, Dim channels, Dims sizes) const {
  Shape shape{batch};
  if (!channels_last) shape.push_back(channels);
  for (Dim d : sizes) shape.push_back(d);
  if (channels_last) shape.push_back(channels);
  return shape;
}

ImageAxes axes_of(std::string_view data_format, size_t spatial) {
  const Formats& names = kFormats[spatial - 1];
  user_check(data_format == names.first || data_format == names.last, ErrorKind::InvalidArgument,
             "data_format must be '{}' or '{}', not '{}'.", names.first, names.last, data_format);
  return {spatial, data_format == names.last};
}

ImageAxes axes_of_rank(int rank, bool channels_last) {
  user_check(rank >= 3 && rank <= 5, ErrorKind::InvalidArgument,
             "an image has a batch, channels and one to three spatial axes, not {} axes in all.",
             rank);
  return {static_cast<size_t>(rank) - 2, channels_last};
}

void check_windows(Ints numbers, size_t spatial, const char* argument) {
  user_check(numbers.size() == spatial, ErrorKind::InvalidArgument,
             "{} {} has {} numbers; it needs one for each of {} spatial axes.", argument,
             to_string(numbers), numbers.size(), spatial);
  for (int64_t n : numbers) {
    user_check(n >= 1, ErrorKind::InvalidArgument, "{} must be at least 1, but is {}.", argument,
               to_string(numbers));
    user_check(n <= kFarthest, ErrorKind::InvalidArgument, "{} must be at most {}, but is {}.",
               argument, kFarthest, to_string(numbers));
  }
}

void check_padding(Dims padding, size_t spatial) {
  user_check(padding.size() == 2 * spatial, ErrorKind::InvalidArgument,
             "padding {} has {} numbers; it needs two for each of {} spatial axes.",
             to_string(padding), padding.size(), spatial);
  for (Dim d : padding) {
    user_check(d.is_symbolic() || d.word() >= 0, ErrorKind::InvalidArgument,
               "padding must not be negative, but is {}.\nhint: To cut the image, slice it first.",
               to_string(padding));
    user_check(d.is_symbolic() || d.word() <= kFarthest, ErrorKind::InvalidArgument,
               "padding must be at most {}, but is {}.", kFarthest, to_string(padding));
  }
}

Dim window_count(Dim size, Dim window, int64_t stride, Dim padding, int64_t dilation, bool ceil,
                 size_t i, size_t spatial) {
  const char* axis = axis_name(i, spatial);
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
  const size_t spatial = image.size();
  if (algorithm == "VALID") return Shape(2 * spatial, Dim(0));
  if (algorithm == "SAME") {
    Shape pads;
    for (size_t i = 0; i < spatial; ++i) {
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
  user_check(given.size() == 1 || given.size() == spatial || given.size() == 2 * spatial,
             ErrorKind::InvalidArgument,
             "padding {} has {} numbers.\nhint: Pass one, one for each of {} spatial axes, or two "
             "for each: [before, after, …].",
             to_string(given), given.size(), spatial);
  if (given.size() == 2 * spatial) return Shape(given);
  Shape pads;
  for (size_t i = 0; i < spatial; ++i)
    for (int side = 0; side < 2; ++side) pads.push_back(given[given.size() == 1 ? 0 : i]);
  return pads;
}

}  // namespace oar
