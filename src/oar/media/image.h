// What the files of this folder share. An image is a contiguous tensor [height, width, channels].
#pragma once

#include <cstdint>

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {
namespace media {

// A part of an image, in pixels.
struct Window {
  int64_t top = 0;
  int64_t left = 0;
  int64_t height = 0;
  int64_t width = 0;
};

// The channels of a decoded image.
enum class Channels { AsInFile, Gray, Rgb };

struct ImageInfo {
  int64_t height = 0;
  int64_t width = 0;
  int channels = 0;  // as in the file; a palette counts as 3
  // Whether a decoder of ours reads it. It reads no JPEG with four channels and no PNG with 16 bits.
  bool readable = true;
};

// A file claims its size before it proves it: more pixels than these are refused.
constexpr int64_t kMostPixels = 178956970;

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  int64_t channels = 0;

  int64_t row() const { return width * channels; }
  int64_t numel() const { return height * row(); }
};

// The sizes of an image; an error unless the tensor is one, on the CPU, and holds a pixel.
ImageSize size_of_image(const Tensor& image);
void check_bytes(const Tensor& image);  // that its elements are uint8
void check_output_size(int64_t height, int64_t width);
void check_window(const Window& window, int64_t height, int64_t width);

Tensor empty_image(int64_t height, int64_t width, int64_t channels, DType dtype = DType::UInt8);

}  // namespace media
}  // namespace oar
