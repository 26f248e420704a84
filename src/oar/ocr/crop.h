// Lines cut out of an image and made straight.
#pragma once

#include <array>

#include "oar/media/image.h"
#include "oar/ocr/geometry.h"

namespace OAR_API oar {
namespace ocr {

// The perspective transform that maps the corners of a picture of this size to the corners of a box, row by row: it takes
// (column, row, 1) of the picture to a point of the image times a common factor.
std::array<double, 9> to_box(const Quad& box, double width, double height);

// The part of an image of uint8 within a box, as a picture of its own; by cubic interpolation. One that is higher
// than 1.5 times its width is turned to the left.
Tensor crop(const Tensor& image, const Quad& box);

Tensor turned_left(const Tensor& image);
Tensor turned_around(const Tensor& image);

}  // namespace ocr
}  // namespace oar
