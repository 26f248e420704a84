#include "oar/media/pixels.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "oar/base/error.h"

namespace oar::media {
namespace {

void look_up_planes(const uint8_t* in, const ImageSize& size, const float* tables, float* out) {
  const int64_t pixels = size.height * size.width;
  if (size.channels == 3) {  // one pass over the bytes
    const float *red = tables, *green = tables + 256, *blue = tables + 512;
    for (int64_t i = 0; i < pixels; ++i, in += 3) {
      out[i] = red[in[0]];
      out[i + pixels] = green[in[1]];
      out[i + 2 * pixels] = blue[in[2]];
    }
    return;
  }
  for (int64_t c = 0; c < size.channels; ++c)
    for (int64_t i = 0; i < pixels; ++i)
      out[c * pixels + i] = tables[c * 256 + in[i * size.channels + c]];
}

// kChannels is the number of channels, or 0 if it is not known in advance.
template <int kChannels>
void reverse_pixels(const uint8_t* row, int64_t width, int64_t channels, uint8_t* out) {
  const int64_t count = kChannels > 0 ? kChannels : channels;
  for (int64_t x = 0; x < width; ++x)
    for (int64_t c = 0; c < count; ++c) out[x * count + c] = row[(width - 1 - x) * count + c];
}

// What OpenCV multiplies by instead of dividing, with 12 bits after the point.
constexpr int kDivisionBits = 12;
struct Divisions {
  std::array<int, 256> saturation{}, hue{};
  Divisions() {
    for (int i = 1; i < 256; ++i) {
      saturation[static_cast<size_t>(i)] =
          static_cast<int>(std::lrint((255 << kDivisionBits) / (1. * i)));
      hue[static_cast<size_t>(i)] = static_cast<int>(std::lrint((256 << kDivisionBits) / (6. * i)));
    }
  }
};

struct Hsv {
  int hue, saturation, value;
};

Hsv hsv_of(int b, int g, int r, const Divisions& by) {
  const int value = std::max({b, g, r});
  const int spread = value - std::min({b, g, r});
  constexpr int half = 1 << (kDivisionBits - 1);
  int hue = value == r ? g - b : value == g ? b - r + 2 * spread : r - g + 4 * spread;
  hue = (hue * by.hue[static_cast<size_t>(spread)] + half) >> kDivisionBits;
  if (hue < 0) hue += 256;
  return {std::min(hue, 255),
          (spread * by.saturation[static_cast<size_t>(value)] + half) >> kDivisionBits, value};
}

void write_bgr(const Hsv& from, uint8_t* out) {
  const float saturation = static_cast<float>(from.saturation) * (1.F / 255.F);
  const float value = static_cast<float>(from.value) * (1.F / 255.F);
  float hue = static_cast<float>(from.hue) *
              (6.F / 255.F);  // OpenCV counts 256 steps one way and 255 the other
  const int sector = static_cast<int>(std::floor(hue)) % 6;
  hue -= std::floor(hue);
  const float levels[4] = {value, value * (1.F - saturation), value * (1.F - saturation * hue),
                           value * (1.F - saturation * (1.F - hue))};
  constexpr int kSectors[6][3] = {{1, 3, 0}, {1, 0, 2}, {3, 0, 1}, {0, 2, 1}, {0, 1, 3}, {2, 1, 0}};
  for (int c = 0; c < 3; ++c) {
    const float level = saturation == 0 ? value : levels[kSectors[sector][c]];
    out[c] = static_cast<uint8_t>(std::clamp<long>(std::lrint(level * 255.F), 0, 255));
  }
}

}  // namespace

Tensor look_up(const Tensor& image, const Tensor& tables, bool channels_first) {
  check_bytes(image);
  const ImageSize size = size_of_image(image);
  internal_check(tables.dtype() == DType::Float32 && tables.rank() == 2 && tables.is_contiguous() &&
                     tables.dim(0).value() == size.channels && tables.dim(1).value() == 256,
                 "the tables are {}", tables.describe());
  const auto* in = image.data<uint8_t>();
  const auto* entries = tables.data<float>();
  if (channels_first) {
    Tensor out = Tensor::empty(Shape{size.channels, size.height, size.width}, DType::Float32);
    look_up_planes(in, size, entries, out.data<float>());
    return out;
  }
  Tensor out = empty_image(size.height, size.width, size.channels, DType::Float32);
  auto* target = out.data<float>();
  for (int64_t i = 0; i < size.numel(); ++i) target[i] = entries[i % size.channels * 256 + in[i]];
  return out;
}

Tensor flip(const Tensor& image, bool horizontally) {
  check_bytes(image);
  const ImageSize size = size_of_image(image);
  Tensor out = empty_image(size.height, size.width, size.channels);
  const auto* in = image.data<uint8_t>();
  auto* target = out.data<uint8_t>();
  for (int64_t y = 0; y < size.height; ++y, target += size.row()) {
    const uint8_t* row = in + (horizontally ? y : size.height - 1 - y) * size.row();
    if (!horizontally)
      std::copy_n(row, size.row(), target);
    else if (size.channels == 3)
      reverse_pixels<3>(row, size.width, 3, target);
    else
      reverse_pixels<0>(row, size.width, size.channels, target);
  }
  return out;
}

Tensor shift_hue(const Tensor& image, int shift) {
  static const Divisions divisions;
  check_bytes(image);
  const ImageSize size = size_of_image(image);
  user_check(size.channels == 3, ErrorKind::InvalidArgument,
             "a hue needs three channels; the image has {}.", size.channels);
  Tensor out = empty_image(size.height, size.width, 3);
  const auto* in = image.data<uint8_t>();
  auto* target = out.data<uint8_t>();
  for (int64_t i = 0; i < size.height * size.width; ++i, in += 3, target += 3) {
    Hsv colour = hsv_of(in[0], in[1], in[2], divisions);
    colour.hue = ((colour.hue + shift) % 256 + 256) % 256;
    write_bgr(colour, target);
  }
  return out;
}

}  // namespace oar::media
