#include "oar/ocr/draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "oar/ocr/picture.h"

namespace oar::ocr {
namespace {

using Colour = std::array<uint8_t, 3>;
// They differ from each other, and from black and white, for most colour-blind readers, too (Okabe and Ito).
constexpr Colour kColours[] = {
    {213, 94, 0}, {0, 114, 178}, {0, 158, 115}, {204, 121, 167}, {230, 159, 0}};

class Canvas {
 public:
  explicit Canvas(Tensor image) : image_(std::move(image)), size_(media::size_of_image(image_)) {
    const int64_t longer = std::max(size_.height, size_.width);
    reach_ = std::max<int64_t>(longer / 1200, longer > 300 ? 1 : 0);
  }

  void line(const Point& from, const Point& to, const Colour& colour) {
    const float dx = to.x - from.x, dy = to.y - from.y;
    const auto steps =
        std::max<int64_t>(static_cast<int64_t>(std::ceil(std::max(std::abs(dx), std::abs(dy)))), 1);
    for (int64_t i = 0; i <= steps; ++i) {
      const float part = static_cast<float>(i) / static_cast<float>(steps);
      dot(std::lrint(from.x + part * dx), std::lrint(from.y + part * dy), colour);
    }
  }

 private:
  void dot(int64_t x, int64_t y, const Colour& colour) {
    for (int64_t row = std::max<int64_t>(y - reach_, 0);
         row <= std::min(y + reach_, size_.height - 1); ++row)
      for (int64_t column = std::max<int64_t>(x - reach_, 0);
           column <= std::min(x + reach_, size_.width - 1); ++column)
        std::memcpy(image_.data<uint8_t>() + row * size_.row() + column * 3, colour.data(), 3);
  }

  Tensor image_;
  media::ImageSize size_;
  int64_t reach_ = 0;  // pixels on each side of a line
};

}  // namespace

Tensor drawn(const Tensor& image, std::span<const Line> lines) {
  const Tensor colour = in_colour(image);
  const media::ImageSize size = media::size_of_image(colour);
  Tensor copy = media::empty_image(size.height, size.width, 3);
  std::memcpy(copy.data<uint8_t>(), colour.data<uint8_t>(), static_cast<size_t>(size.numel()));
  Canvas canvas(copy);
  for (size_t i = 0; i < lines.size(); ++i)
    for (size_t k = 0; k < 4; ++k)
      canvas.line(lines[i].box[k], lines[i].box[(k + 1) % 4], kColours[i % std::size(kColours)]);
  return copy;
}

}  // namespace oar::ocr
