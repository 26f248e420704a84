#include "oar/ocr/crop.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "oar/base/error.h"
#include "oar/media/taps.h"

namespace oar::ocr {
namespace {

constexpr int kParts = 32;  // of a pixel
constexpr int kTaps = 4;
constexpr int kOne = 1 << 15;  // the sum of the weights
using Weights = std::array<int16_t, kTaps * kTaps>;

// The products of the weights of both axes, in integers whose sum is exactly one.
Weights weights_at(int x, int y) {
  const media::TapWeights wx = media::cubic_weights(static_cast<float>(x) / kParts);
  const media::TapWeights wy = media::cubic_weights(static_cast<float>(y) / kParts);
  Weights w{};
  int sum = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    const float exact = wy[i / kTaps] * wx[i % kTaps] * kOne;
    w[i] = static_cast<int16_t>(std::clamp<long>(std::lrint(exact), INT16_MIN, INT16_MAX));
    sum += w[i];
  }
  // What rounding left over goes to one of the four taps after the middle: the largest if something is missing, else the least.
  constexpr std::array<size_t, 4> kMiddle{10, 11, 14, 15};
  const auto less = [&](size_t a, size_t b) { return w[a] < w[b]; };
  const size_t place = sum < kOne ? *std::max_element(kMiddle.begin(), kMiddle.end(), less)
                                  : *std::min_element(kMiddle.begin(), kMiddle.end(), less);
  w[place] = static_cast<int16_t>(w[place] + kOne - sum);
  return w;
}

const Weights& weights_of(int64_t x, int64_t y) {
  static const std::vector<Weights> table = [] {
    std::vector<Weights> made;
    for (int i = 0; i < kParts; ++i)
      for (int j = 0; j < kParts; ++j) made.push_back(weights_at(j, i));
    return made;
  }();
  return table[static_cast<size_t>(y * kParts + x)];
}

uint8_t blended(int32_t sum) {
  return static_cast<uint8_t>(std::clamp((sum + kOne / 2) >> 15, 0, 255));
}

// A pixel of the image between its own, by 16 neighbours; beyond the border its last ones are repeated.
class Sampler {
 public:
  explicit Sampler(const Tensor& image)
      : size_(media::size_of_image(image)), data_(image.data<uint8_t>()) {}

  // In 32nds of a pixel.
  void sample(int64_t x, int64_t y, uint8_t* out) const {
    const int64_t column = x >> 5, row = y >> 5;
    const int64_t fx = x & (kParts - 1), fy = y & (kParts - 1);
    if (fx == 0 && fy == 0) return copy(column, row, out);
    const Weights& w = weights_of(fx, fy);
    std::array<int32_t, 3> sums{};
    for (int64_t i = 0; i < kTaps; ++i) {
      const uint8_t* line = data_ + clamped(row - 1 + i, size_.height) * size_.row();
      for (int64_t j = 0; j < kTaps; ++j) {
        const uint8_t* pixel = line + clamped(column - 1 + j, size_.width) * 3;
        const int32_t weight = w[static_cast<size_t>(i * kTaps + j)];
        for (size_t c = 0; c < 3; ++c) sums[c] += weight * pixel[c];
      }
    }
    for (size_t c = 0; c < 3; ++c) out[c] = blended(sums[c]);
  }

 private:
  static int64_t clamped(int64_t at, int64_t size) { return std::clamp<int64_t>(at, 0, size - 1); }
  void copy(int64_t column, int64_t row, uint8_t* out) const {
    std::memcpy(out, data_ + clamped(row, size_.height) * size_.row() +
                         clamped(column, size_.width) * 3, 3);
  }

  media::ImageSize size_;
  const uint8_t* data_;
};

int64_t in_parts(double place) {
  constexpr double kFar = 1 << 30;
  return static_cast<int64_t>(std::lrint(std::clamp(place * kParts, -kFar, kFar)));
}

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
      sampler.sample(in_parts((m[0] * x + m[1] * y + m[2]) * factor),
                     in_parts((m[3] * x + m[4] * y + m[5]) * factor), target);
    }
  const bool upright = static_cast<double>(height) / static_cast<double>(width) >= 1.5;
  return upright ? turned_left(out) : out;
}

Tensor turned_left(const Tensor& image) {
  const media::ImageSize size = media::size_of_image(image);
  return moved(image, size.width, size.height, [&](int64_t y, int64_t x) {
    return (size.width - 1 - x) * size.height + y;
  });
}

Tensor turned_around(const Tensor& image) {
  const media::ImageSize size = media::size_of_image(image);
  return moved(image, size.height, size.width, [&](int64_t y, int64_t x) {
    return (size.height - 1 - y) * size.width + size.width - 1 - x;
  });
}

}  // namespace oar::ocr
