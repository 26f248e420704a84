#include "oar/ocr/planes.h"

#include <algorithm>
#include <array>

#include "oar/base/parallel.h"

namespace oar::ocr {
namespace {

std::array<float, 256> make_levels() {
  std::array<float, 256> levels{};
  for (size_t i = 0; i < levels.size(); ++i)
    levels[i] = (static_cast<float>(i) / 255.F - 0.5F) / 0.5F;
  return levels;
}

}  // namespace

Tensor empty_batch(int64_t count, int64_t height, int64_t width) {
  return Tensor::empty({count, 3, height, width}, DType::Float32);
}

void put_planes(const Tensor& image, Tensor& batch, int64_t index) {
  static const std::array<float, 256> levels = make_levels();
  const media::ImageSize size = media::size_of_image(image);
  const int64_t height = batch.dim(2).value(), width = batch.dim(3).value();
  float* planes = batch.data<float>() + index * 3 * height * width;
  parallel_for(0, size.height, 64, [&](int64_t begin, int64_t end) {
    for (int64_t y = begin; y < end; ++y) {
      const uint8_t* in = image.data<uint8_t>() + y * size.row();
      float* blue = planes + y * width;
      float* green = blue + height * width;
      float* red = green + height * width;
      for (int64_t x = 0; x < size.width; ++x) {
        red[x] = levels[in[3 * x]];
        green[x] = levels[in[3 * x + 1]];
        blue[x] = levels[in[3 * x + 2]];
      }
      for (float* row : {blue, green, red}) std::fill(row + size.width, row + width, 0.F);
    }
  });
}

}  // namespace oar::ocr
