#include "oar/media/resample.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "oar/base/error.h"
#include "oar/media/weighted_rows.h"

namespace oar::media {
namespace {

double sinc(double x) {
  if (x == 0) return 1;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double box_filter(double x) { return x > -0.5 && x <= 0.5 ? 1 : 0; }

double bilinear_filter(double x) { return std::max(0.0, 1 - std::abs(x)); }

double hamming_filter(double x) {
  x = std::abs(x);
  if (x >= 1) return 0;
  return sinc(x) * (0.54 + 0.46 * std::cos(x * std::numbers::pi));
}

double bicubic_filter(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

double lanczos_filter(double x) { return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0; }

struct FilterRow {
  std::string_view name;
  Filter filter;
  double
      support;  // how far it reaches, in pixels of the result or of the source, whichever are larger
  double (*value)(double);
};
constexpr FilterRow kFilters[] = {
    {"nearest", Filter::Nearest, 0, nullptr},
    {"box", Filter::Box, 0.5, box_filter},
    {"bilinear", Filter::Bilinear, 1, bilinear_filter},
    {"hamming", Filter::Hamming, 1, hamming_filter},
    {"bicubic", Filter::Bicubic, 2, bicubic_filter},
    {"lanczos", Filter::Lanczos, 3, lanczos_filter},
};

// The weights of one axis: source positions [begin, end) as `out_size` new positions.
AxisWeights axis_weights(int64_t in_size, double begin, double end, int64_t out_size,
                         const FilterRow& filter) {
  const double scale = (end - begin) / static_cast<double>(out_size);
  const double widening = std::max(scale, 1.0);
  const double support = filter.support * widening;
  AxisWeights axis(out_size, static_cast<int64_t>(std::ceil(support)) * 2 + 1);
  std::vector<double> exact(static_cast<size_t>(axis.most_taps()));
  for (int64_t i = 0; i < out_size; ++i) {
    const double center = begin + (static_cast<double>(i) + 0.5) * scale;
    const int64_t first =
        std::max<int64_t>(0, static_cast<int64_t>(std::floor(center - support + 0.5)));
    const int64_t last =
        std::min(in_size, static_cast<int64_t>(std::floor(center + support + 0.5)));
    const int64_t count = std::max<int64_t>(0, last - first);
    double sum = 0;
    for (int64_t k = 0; k < count; ++k) {
      const double x = (static_cast<double>(k + first) - center + 0.5) * (1 / widening);
      sum += exact[static_cast<size_t>(k)] = filter.value(x);
    }
    if (sum != 0)
      for (int64_t k = 0; k < count; ++k) exact[static_cast<size_t>(k)] /= sum;
    axis.set(i, first, {exact.data(), static_cast<size_t>(count)});
  }
  return axis;
}

Tensor nearest(const Tensor& image, int64_t height, int64_t width, const Box& box) {
  const ImageSize size = size_of_image(image);
  const double step_x = (box.right - box.left) / static_cast<double>(width);
  const double step_y = (box.bottom - box.top) / static_cast<double>(height);
  std::vector<int64_t> columns(static_cast<size_t>(width));
  double at = box.left + step_x * 0.5;
  for (int64_t& column : columns) {
    column = std::min(static_cast<int64_t>(at), size.width - 1) * size.channels;
    at += step_x;
  }
  Tensor out = empty_image(height, width, size.channels);
  auto* target = out.data<uint8_t>();
  double row = box.top + step_y * 0.5;
  for (int64_t y = 0; y < height; ++y, row += step_y) {
    const auto* source =
        image.data<uint8_t>() + std::min(static_cast<int64_t>(row), size.height - 1) * size.row();
    for (const int64_t column : columns)
      for (int64_t c = 0; c < size.channels; ++c) *target++ = source[column + c];
  }
  return out;
}

// Rows [first, last) of the image, with new columns.
Tensor with_columns(const Tensor& image, const AxisWeights& axis, int64_t first, int64_t last) {
  const ImageSize size = size_of_image(image);
  Tensor out = empty_image(last - first, axis.size(), size.channels);
  weigh_columns(image.data<uint8_t>() + first * size.row(), size, last - first, axis,
                out.data<uint8_t>());
  return out;
}

// New rows from those of the image, which begins at row `first` of the axis.
Tensor with_rows(const Tensor& image, const AxisWeights& axis, int64_t first) {
  const ImageSize size = size_of_image(image);
  Tensor out = empty_image(axis.size(), size.width, size.channels);
  weigh_rows(image.data<uint8_t>(), size.row(), first, axis, out.data<uint8_t>());
  return out;
}

}  // namespace

Filter filter_of(std::string_view name) {
  for (const FilterRow& row : kFilters)
    if (row.name == name) return row.filter;
  fail(
      ErrorKind::InvalidArgument,
      "interpolation is '{}'; it can be 'nearest', 'box', 'bilinear', 'hamming', 'bicubic' or 'lanczos'.",
      name);
}

Tensor resample(const Tensor& image, int64_t height, int64_t width, Filter filter,
                const std::optional<Box>& part) {
  check_bytes(image);
  const ImageSize size = size_of_image(image);
  check_output_size(height, width);
  const double in_height = static_cast<double>(size.height),
               in_width = static_cast<double>(size.width);
  const Box box = part.value_or(Box{0, 0, in_width, in_height});
  user_check(box.left >= 0 && box.top >= 0 && box.right <= in_width && box.bottom <= in_height &&
                 box.left < box.right && box.top < box.bottom,
             ErrorKind::OutOfRange,
             "the box ({}, {}, {}, {}) is not inside an image of {} x {} pixels.", box.left,
             box.top, box.right, box.bottom, size.height, size.width);
  if (filter == Filter::Nearest) return nearest(image, height, width, box);
  const FilterRow& chosen = kFilters[static_cast<int>(filter)];
  const bool wider = width != size.width || box.left != 0 || box.right != in_width;
  const bool taller = height != size.height || box.top != 0 || box.bottom != in_height;
  if (!wider && !taller) {
    Tensor same = empty_image(height, width, size.channels);
    std::copy_n(image.data<uint8_t>(), size.numel(), same.data<uint8_t>());
    return same;
  }
  std::optional<AxisWeights> horizontal, vertical;
  if (wider) horizontal = axis_weights(size.width, box.left, box.right, width, chosen);
  if (taller) vertical = axis_weights(size.height, box.top, box.bottom, height, chosen);
  // The order matters for the rounding in between. Newer versions of Pillow begin with the axis that shrinks.
  if (wider && taller && width > size.width && height < size.height)
    return with_columns(with_rows(image, *vertical, 0), *horizontal, 0, height);
  if (!taller) return with_columns(image, *horizontal, 0, size.height);
  if (!wider) return with_rows(image, *vertical, 0);
  const int64_t first = vertical->first_used();
  return with_rows(with_columns(image, *horizontal, first, vertical->last_used()), *vertical,
                   first);
}

}  // namespace oar::media
