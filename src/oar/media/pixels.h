// From bytes to floats, and colours.
#pragma once

#include "oar/media/image.h"

namespace OAR_API oar {
namespace media {

// float32: for each byte its entry in the table of its channel, float32 [channels, 256]. With `channels_first` the result is
// [channels, height, width].
Tensor look_up(const Tensor& image, const Tensor& tables, bool channels_first);

// The image of uint8 with its columns, or else its rows, in reverse order.
Tensor flip(const Tensor& image, bool horizontally);

// Of an image of uint8 in the order blue, green, red: adds to the hue, of which 256 steps are the circle. Rounds as OpenCV.
Tensor shift_hue(const Tensor& image, int shift);

}  // namespace media
}  // namespace oar
