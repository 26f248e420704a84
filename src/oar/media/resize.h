// Changes the size of an image as OpenCV does: a new pixel is computed from a fixed number of neighbours (Area apart).
#pragma once

#include <string_view>

#include "oar/media/image.h"

namespace OAR_API oar {
namespace media {

enum class Interpolation { Nearest, Linear, Cubic, Lanczos, Area };

// By its name: "nearest", "bilinear", "bicubic", "lanczos", "area".
Interpolation interpolation_of(std::string_view name);

// Elements are uint8, float32 or float64.
Tensor resize(const Tensor& image, int64_t height, int64_t width, Interpolation interpolation);

}  // namespace media
}  // namespace oar
