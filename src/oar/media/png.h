// PNG files with 1 to 8 bits per channel, by libpng. A file may be hostile: any bytes are an image or an Error.
#pragma once

#include <string>
#include <string_view>

#include "oar/media/image.h"

namespace OAR_API oar {
namespace media {

bool is_png(std::string_view file);
ImageInfo png_info(std::string_view file);
// A palette becomes colours. Gray and Rgb drop the transparency.
Tensor decode_png(std::string_view file, Channels channels = Channels::AsInFile);

// The file of an image of uint8 with one (gray) to four channels.
std::string encode_png(const Tensor& image);

}  // namespace media
}  // namespace oar
