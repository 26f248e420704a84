// Boxes on a picture.
#pragma once

#include <span>

#include "oar/ocr/reader.h"

namespace OAR_API oar {
namespace ocr {

// A copy of the image, of uint8 with three channels, with the boxes of the lines in different colours.
Tensor drawn(const Tensor& image, std::span<const Line> lines);

}  // namespace ocr
}  // namespace oar
