// From images to what networks take: float32 [count, 3, height, width], blue first, from -1 to 1.
#pragma once

#include "oar/media/image.h"

namespace oar::ocr {

Tensor empty_batch(int64_t count, int64_t height, int64_t width);
// Writes an image of uint8 with three channels, red first, into place `index` of the batch. Columns on the right stay 0.
void put_planes(const Tensor& image, Tensor& batch, int64_t index);

}  // namespace oar::ocr
