#include "oar/media/image.h"

#include "oar/base/error.h"

namespace oar::media {

ImageSize size_of_image(const Tensor& image) {
  user_check(
      image.is_dense() && image.rank() == 3 && image.is_contiguous() && image.device().is_cpu(),
      ErrorKind::InvalidArgument,
      "an image must be a contiguous tensor [height, width, channels] on the CPU, but it is {}.",
      image.describe());
  const ImageSize size{image.dim(0).value(), image.dim(1).value(), image.dim(2).value()};
  user_check(size.numel() > 0, ErrorKind::InvalidArgument, "the image {} has no pixels.",
             image.describe());
  user_check(size.height <= kMostPixels / size.width, ErrorKind::InvalidArgument,
             "an image of {} x {} pixels is too large.\nhint: At most {} pixels are accepted.",
             size.height, size.width, kMostPixels);
  return size;
}

void check_bytes(const Tensor& image) {
  user_check(image.dtype() == DType::UInt8, ErrorKind::InvalidType,
             "the elements of the image must be uint8, but it is {}.", image.describe());
}

void check_output_size(int64_t height, int64_t width) {
  user_check(height > 0 && width > 0, ErrorKind::InvalidArgument,
             "the new size is {} x {}; both must be positive.", height, width);
  user_check(height <= kMostPixels / width, ErrorKind::InvalidArgument,
             "an image of {} x {} pixels is too large.\nhint: At most {} pixels are accepted.",
             height, width, kMostPixels);
}

void check_window(const Window& window, int64_t height, int64_t width) {
  const bool inside = window.top >= 0 && window.left >= 0 && window.height > 0 &&
                      window.width > 0 && window.top <= height - window.height &&
                      window.left <= width - window.width;
  user_check(
      inside, ErrorKind::OutOfRange,
      "the window of {} x {} pixels at row {} and column {} is not inside an image of {} x {} "
      "pixels.",
      window.height, window.width, window.top, window.left, height, width);
}

Tensor empty_image(int64_t height, int64_t width, int64_t channels, DType dtype) {
  return Tensor::empty(Shape{height, width, channels}, dtype);
}

}  // namespace oar::media
