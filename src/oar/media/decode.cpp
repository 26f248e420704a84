#include "oar/media/decode.h"

#include <cstring>

#include "oar/base/error.h"
#include "oar/media/jpeg.h"
#include "oar/media/png.h"

namespace oar::media {
namespace {

[[noreturn]] void fail_unknown() {
  fail(ErrorKind::Unsupported,
       "the file is neither a JPEG nor a PNG file.\nhint: Convert it, or read it with Pillow.");
}

Tensor crop(const Tensor& image, const Window& window) {
  const ImageSize size = size_of_image(image);
  check_window(window, size.height, size.width);
  Tensor part = empty_image(window.height, window.width, size.channels);
  const auto bytes = static_cast<size_t>(window.width * size.channels);
  for (int64_t y = 0; y < window.height; ++y)
    std::memcpy(part.data<uint8_t>() + static_cast<size_t>(y) * bytes,
                image.data<uint8_t>() + (window.top + y) * size.row() + window.left * size.channels,
                bytes);
  return part;
}

// The filter still has two pixels for each of the result, at least: so it is seen little.
int shrink_for(const Window& window, const ResizedImage& wanted) {
  for (const int shrink : {8, 4, 2})
    if (window.height >= wanted.height * 2 * shrink && window.width >= wanted.width * 2 * shrink)
      return shrink;
  return 1;
}

// The whole file at 1/shrink of its size; the window is a box of it.
Tensor resized_from_small(std::string_view file, const Window& window, const ResizedImage& wanted,
                          int shrink) {
  const ImageInfo info = jpeg_info(file);
  check_window(window, info.height, info.width);
  const Tensor small =
      decode_jpeg(file, {.channels = Channels::Rgb, .window = {}, .shrink = shrink});
  const ImageSize size = size_of_image(small);
  const double x = static_cast<double>(size.width) / static_cast<double>(info.width);
  const double y = static_cast<double>(size.height) / static_cast<double>(info.height);
  const Box box{static_cast<double>(window.left) * x, static_cast<double>(window.top) * y,
                std::min(static_cast<double>(size.width),
                         static_cast<double>(window.left + window.width) * x),
                std::min(static_cast<double>(size.height),
                         static_cast<double>(window.top + window.height) * y)};
  return resample(small, wanted.height, wanted.width, wanted.filter, box);
}

}  // namespace

Format format_of(std::string_view file) {
  return is_jpeg(file) ? Format::Jpeg : is_png(file) ? Format::Png : Format::Other;
}

ImageInfo image_info(std::string_view file) {
  switch (format_of(file)) {
    case Format::Jpeg:
      return jpeg_info(file);
    case Format::Png:
      return png_info(file);
    case Format::Other:
      break;
  }
  fail_unknown();
}

Tensor decode_image(std::string_view file, Channels channels, const std::optional<Window>& window) {
  switch (format_of(file)) {
    case Format::Jpeg:
      return decode_jpeg(file, {.channels = channels, .window = window});
    case Format::Png: {
      const Tensor whole = decode_png(file, channels);
      return window ? crop(whole, *window) : whole;
    }
    case Format::Other:
      break;
  }
  fail_unknown();
}

Tensor decode_resized(std::string_view file, const Window& window, const ResizedImage& wanted) {
  check_output_size(wanted.height, wanted.width);
  const int shrink = wanted.shrink && is_jpeg(file) ? shrink_for(window, wanted) : 1;
  if (shrink > 1) return resized_from_small(file, window, wanted, shrink);
  return resample(decode_image(file, Channels::Rgb, window), wanted.height, wanted.width,
                  wanted.filter);
}

}  // namespace oar::media
