// Images from files, as a reader takes them.
#pragma once

#include <string_view>

#include "oar/media/image.h"

namespace OAR_API oar {
namespace ocr {

// A JPEG or PNG file, upright, with three channels. Transparent parts get a background that contrasts with the rest.
Tensor read_picture(std::string_view file);

// Any image of uint8 with one to four channels, with three channels.
Tensor in_colour(const Tensor& image);

}  // namespace ocr
}  // namespace oar
