#include "oar/ocr/crop.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "oar/base/error.h"
#include "oar/media/taps.h"

namespace oar::ocr {
namespace {

constexpr int kTaps = 4;

uint8_t rounded(float value) {
  return static_cast<uint8_t>(std::clamp<long>(std::lrint(value), 0, 255));
}

// A place between pixels: the one before it, and how far it is from there.
struct Place {
  int64_t before;
  float fraction;

  explicit Place(double at) {
    constexpr double kFar = 1 << 30;
    const double whole = std::floor(std::clamp(at, -kFar, kFar));
    before = static_cast<int64_t>(whole);
    fraction = static_cast<float>(at - whole);
  }
};

// A pixel of the image between its own, by 16 neighbours; beyond the border its last ones are repeated.
class Sampler {
 public:
  explicit Sampler(const Tensor& image)
      : size_(media::size_of_image(image)), data_(image.data<uint8_t>()) {}

  void sample(const Place& x, const Place& y, uint8_t* out) const {
    if (x.fraction == 0 && y.fraction == 0) return copy(x.before, y.before, out);
    const media::TapWeights wx = media::cubic_weights(x.fraction);
    const media::TapWeights wy = media::cubic_weights(y.fraction);
    std::array<int64_t, kTaps> columns;
    for (size_t j = 0; j < kTaps; ++j)
      columns[j] = 3 * clamped(x.before - 1 + static_cast<int64_t>(j), size_.width);
    std::array<float, 3> sums{};
    for (size_t i = 0; i < kTaps; ++i) {
      const uint8_t* row =
          data_ + clamped(y.before - 1 + static_cast<int64_t>(i), size_.height) * size_.row();
      for (size_t j = 0; j < kTaps; ++j)
        for (size_t c = 0; c < 3; ++c)
          sums[c] += wy[i] * wx[j] * static_cast<float>(row[columns[j] + static_cast<int64_t>(c)]);
    }
    for (size_t c = 0; c < 3; ++c) out[c] = rounded(sums[c]);
  }

 private:
  static int64_t clamped(int64_t at, int64_t size) { return std::clamp<int64_t>(at, 0, size - 1); }
  void copy(int64_t column, int64_t row, uint8_t* out) const {
    std::memcpy(out,
                data_ + clamped(row, size_.height) * size_.row() + clamped(column, size_.width) * 3,
                3);
  }

  media::ImageSize size_;
  const uint8_t* data_;
};

int64_t longer(const Quad& box, size_t a, size_t b, size_t c, size_t d) {
  const auto length = [&](size_t i, size_t j) {
    const float x = box[i].x - box[j].x, y = box[i].y - box[j].y;
    return std::sqrt(x * x + y * y);
  };
  return std::max<int64_t>(static_cast<int64_t>(std::max(length(a, b), length(c, d))), 1);
}

// Each pixel of the image, at the place where `where` puts it.
template <class F>
Tensor moved(const Tensor& image, int64_t height, int64_t width, F&& where) {
  const media::ImageSize size = media::size_of_image(image);
  Tensor out = media::empty_image(height, width, size.channels);
  const auto* in = image.data<uint8_t>();
  for (int64_t y = 0; y < size.height; ++y)
    for (int64_t x = 0; x < size.width; ++x, in += size.channels)
      std::memcpy(out.data<uint8_t>() + where(y, x) * size.channels, in,
                  static_cast<size_t>(size.channels));
  return out;
}

}  // namespace

std::array<double, 9> to_box(const Quad& box, double width, double height) {
  const auto x = [&](size_t i) { return static_cast<double>(box[i].x); };
  const auto y = [&](size_t i) { return static_cast<double>(box[i].y); };
  // On the unit square (Heckbert, 1989).
  const double dx1 = x(1) - x(2), dx2 = x(3) - x(2), sx = x(0) - x(1) + x(2) - x(3);
  const double dy1 = y(1) - y(2), dy2 = y(3) - y(2), sy = y(0) - y(1) + y(2) - y(3);
  const double area = dx1 * dy2 - dx2 * dy1;
  user_check(area != 0, ErrorKind::InvalidArgument, "three corners of a box are on one line.");
  const double g = (sx * dy2 - dx2 * sy) / area, h = (dx1 * sy - sx * dy1) / area;
  return {(x(1) - x(0) + g * x(1)) / width,
          (x(3) - x(0) + h * x(3)) / height,
          x(0),
          (y(1) - y(0) + g * y(1)) / width,
          (y(3) - y(0) + h * y(3)) / height,
          y(0),
          g / width,
          h / height,
          1};
}

Tensor crop(const Tensor& image, const Quad& box) {
  const int64_t width = longer(box, 0, 1, 2, 3), height = longer(box, 0, 3, 1, 2);
  const std::array<double, 9> m =
      to_box(box, static_cast<double>(width), static_cast<double>(height));
  const Sampler sampler(image);
  Tensor out = media::empty_image(height, width, 3);
  auto* target = out.data<uint8_t>();
  for (int64_t row = 0; row < height; ++row)
    for (int64_t column = 0; column < width; ++column, target += 3) {
      const auto x = static_cast<double>(column), y = static_cast<double>(row);
      const double w = m[6] * x + m[7] * y + m[8];
      const double factor = w == 0 ? 0 : 1 / w;
      sampler.sample(Place((m[0] * x + m[1] * y + m[2]) * factor),
                     Place((m[3] * x + m[4] * y + m[5]) * factor), target);
    }
  const bool upright = static_cast<double>(height) / static_cast<double>(width) >= 1.5;
  return upright ? turned_left(out) : out;
}

Tensor turned_left(const Tensor& image) {
  const media::ImageSize size = media::size_of_image(image);
  return moved(image, size.width, size.height,
               [&](int64_t y, int64_t x) { return (size.width - 1 - x) * size.height + y; });
}

Tensor turned_around(const Tensor& image) {
  const media::ImageSize size = media::size_of_image(image);
  return moved(image, size.height, size.width, [&](int64_t y, int64_t x) {
    return (size.height - 1 - y) * size.width + size.width - 1 - x;
  });
}

}  // namespace oar::ocr
