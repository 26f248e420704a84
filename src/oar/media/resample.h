// Changes the size of an image as Pillow does, to the bit: when it shrinks, every pixel of the source counts.
#pragma once

#include <optional>
#include <string_view>

#include "oar/media/image.h"

namespace OAR_API oar {
namespace media {

enum class Filter { Nearest, Box, Bilinear, Hamming, Bicubic, Lanczos };

// By its name: "nearest", "box", "bilinear", "hamming", "bicubic", "lanczos".
Filter filter_of(std::string_view name);

// A part of an image whose borders may lie inside pixels.
struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

// The image of uint8, or its part in `box`, with a new size.
Tensor resample(const Tensor& image, int64_t height, int64_t width, Filter filter,
                const std::optional<Box>& box = std::nullopt);

}  // namespace media
}  // namespace oar
