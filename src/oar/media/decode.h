// Any image file that a decoder of ours reads.
#pragma once

#include <optional>
#include <string_view>

#include "oar/media/image.h"
#include "oar/media/resample.h"

namespace OAR_API oar {
namespace media {

enum class Format { Other, Jpeg, Png };

Format format_of(std::string_view file);
// An error for files of other formats.
ImageInfo image_info(std::string_view file);
Tensor decode_image(std::string_view file, Channels channels,
                    const std::optional<Window>& window = std::nullopt);

struct ResizedImage {
  int64_t height = 0;
  int64_t width = 0;
  Filter filter = Filter::Bilinear;
  // JPEG files may be decoded to a half, a quarter or an eighth of their size first, if the result is at most half of that. This
  // is faster, and the result differs a little.
  bool shrink = false;
};
// A window of the image in colour, with a new size. What lies outside of the window is not decoded, as far as the format allows.
Tensor decode_resized(std::string_view file, const Window& window, const ResizedImage& wanted);

}  // namespace media
}  // namespace oar
