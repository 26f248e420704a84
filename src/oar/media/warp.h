// Rotations, shears and perspectives: each pixel of the result is computed at its place in the source.
#pragma once

#include <array>
#include <vector>

#include "oar/media/resize.h"

namespace OAR_API oar {
namespace media {

struct Warp {
  // From the column and row of the result, and 1, to those of the source times a common factor. Row by row.
  std::array<double, 9> matrix{};
  int64_t height = 0;
  int64_t width = 0;
  Interpolation interpolation = Interpolation::Nearest;
  std::vector<double> fill;  // for each channel, outside of the source
};
// Elements are uint8, float32 or float64.
Tensor warp(const Tensor& image, const Warp& how);

}  // namespace media
}  // namespace oar
