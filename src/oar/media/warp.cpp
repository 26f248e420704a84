#include "oar/media/warp.h"

#include <algorithm>
#include <cmath>

#include "oar/base/error.h"
#include "oar/media/taps.h"

namespace oar::media {
namespace {

struct Point {
  double x;
  double y;
};

Point source_of(const std::array<double, 9>& m, int64_t column, int64_t row) {
  const auto x = static_cast<double>(column), y = static_cast<double>(row);
  const double w = m[6] * x + m[7] * y + m[8];
  const double factor = w == 0 ? 0 : 1 / w;
  return {(m[0] * x + m[1] * y + m[2]) * factor, (m[3] * x + m[4] * y + m[5]) * factor};
}

// Places far outside stay outside; beyond 2^31 a double has no use as a position.
int64_t whole(double place) {
  constexpr double kFar = 1 << 30;
  return static_cast<int64_t>(std::clamp(place, -kFar, kFar));
}

template <class T>
T element_of(double value) {
  if constexpr (std::is_same_v<T, uint8_t>)
    return static_cast<uint8_t>(
        std::clamp<long>(std::lrint(std::clamp(value, -1.0, 256.0)), 0, 255));
  else
    return static_cast<T>(value);
}

template <class T>
class Source {
 public:
  Source(const Tensor& image, const std::vector<double>& fill)
      : data_(image.data<T>()), size_(size_of_image(image)) {
    for (const double value : fill) fill_.push_back(element_of<T>(value));
  }
  int64_t channels() const { return size_.channels; }

  // A pixel, or the filling outside.
  const T* at(int64_t x, int64_t y) const {
    const bool inside = x >= 0 && x < size_.width && y >= 0 && y < size_.height;
    return inside ? data_ + y * size_.row() + x * size_.channels : fill_.data();
  }

 private:
  const T* data_;
  ImageSize size_;
  std::vector<T> fill_;
};

template <class T>
void blend(const Source<T>& source, Point p, Interpolation interpolation, T* out) {
  const int taps = taps_of(interpolation);
  const double left = std::floor(p.x), top = std::floor(p.y);
  const TapWeights wx = tap_weights(interpolation, static_cast<float>(p.x - left));
  const TapWeights wy = tap_weights(interpolation, static_cast<float>(p.y - top));
  const int64_t x0 = whole(left) - taps / 2 + 1, y0 = whole(top) - taps / 2 + 1;
  for (int64_t c = 0; c < source.channels(); ++c) {
    double sum = 0;
    for (int i = 0; i < taps; ++i) {
      double row = 0;
      for (int j = 0; j < taps; ++j)
        row += static_cast<double>(wx[static_cast<size_t>(j)]) *
               static_cast<double>(source.at(x0 + j, y0 + i)[c]);
      sum += row * static_cast<double>(wy[static_cast<size_t>(i)]);
    }
    out[c] = element_of<T>(sum);
  }
}

template <class T>
void warp_elements(const Tensor& image, const Warp& how, Tensor& out) {
  const Source<T> source(image, how.fill);
  T* target = out.data<T>();
  for (int64_t y = 0; y < how.height; ++y)
    for (int64_t x = 0; x < how.width; ++x, target += source.channels()) {
      const Point p = source_of(how.matrix, x, y);
      if (how.interpolation == Interpolation::Nearest) {
        const T* pixel = source.at(whole(std::nearbyint(p.x)), whole(std::nearbyint(p.y)));
        std::copy_n(pixel, source.channels(), target);
      } else {
        blend(source, p, how.interpolation, target);
      }
    }
}

}  // namespace

Tensor warp(const Tensor& image, const Warp& how) {
  const ImageSize size = size_of_image(image);
  check_output_size(how.height, how.width);
  user_check(static_cast<int64_t>(how.fill.size()) == size.channels, ErrorKind::InvalidArgument,
             "fill has {} values; the image has {} channels.", how.fill.size(), size.channels);
  for (const double value : how.matrix)
    user_check(std::isfinite(value), ErrorKind::InvalidArgument,
               "the points or angles make no transform: an entry of its matrix is not finite.");
  Tensor out = empty_image(how.height, how.width, size.channels, image.dtype());
  switch (image.dtype()) {
    case DType::UInt8:
      warp_elements<uint8_t>(image, how, out);
      return out;
    case DType::Float32:
      warp_elements<float>(image, how, out);
      return out;
    case DType::Float64:
      warp_elements<double>(image, how, out);
      return out;
    default:
      fail(ErrorKind::InvalidType,
           "an image of {} cannot be transformed; its elements must be uint8, float32 or float64.",
           image.describe());
  }
}

}  // namespace oar::media
