// JPEG files, by libjpeg-turbo. A file may be hostile: any bytes are an image or an Error.
#pragma once

#include <optional>
#include <string_view>

#include "oar/media/image.h"

namespace OAR_API oar {
namespace media {

bool is_jpeg(std::string_view file);
ImageInfo jpeg_info(std::string_view file);

struct JpegRequest {
  Channels channels = Channels::AsInFile;
  // The part that is wanted, in pixels of the whole image; the rest is not computed. Its pixels are those of the whole.
  std::optional<Window> window;
  // 1, 2, 4 or 8: decodes to 1/shrink of the size, rounded up, which is much faster. Then there can be no window.
  int shrink = 1;
};
Tensor decode_jpeg(std::string_view file, const JpegRequest& request = {});

}  // namespace media
}  // namespace oar
