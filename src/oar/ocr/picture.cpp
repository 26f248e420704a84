#include "oar/ocr/picture.h"

#include <algorithm>
#include <cstring>
#include <optional>

#include "oar/base/error.h"
#include "oar/media/decode.h"

namespace oar::ocr {
namespace {

// Numbers in the Exif part of a file. It may be hostile: outside of it every number is missing.
class Exif {
 public:
  explicit Exif(std::string_view bytes) : bytes_(bytes), little_(bytes.starts_with("II")) {}
  bool valid() const { return bytes_.starts_with("II") || bytes_.starts_with("MM"); }
  std::optional<uint64_t> number(uint64_t at, uint64_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) return std::nullopt;
    uint64_t value = 0;
    for (uint64_t i = 0; i < size; ++i)
      value = value << 8 | static_cast<uint8_t>(bytes_[at + (little_ ? size - 1 - i : i)]);
    return value;
  }

 private:
  std::string_view bytes_;
  bool little_;
};

int orientation_in(const Exif& exif) {
  constexpr uint64_t kOrientation = 0x0112, kEntryBytes = 12;
  const auto start = exif.number(4, 4);
  const auto count = start ? exif.number(*start, 2) : std::nullopt;
  if (!exif.valid() || !count) return 1;
  for (uint64_t i = 0; i < *count; ++i) {
    const uint64_t entry = *start + 2 + kEntryBytes * i;
    const auto tag = exif.number(entry, 2), value = exif.number(entry + 8, 2);
    if (!tag || !value) return 1;
    if (*tag == kOrientation) return static_cast<int>(*value);
  }
  return 1;
}

// How a camera was held, from 1 (upright) to 8, by a JPEG file's Exif part.
int orientation_of(std::string_view file) {
  constexpr std::string_view kExif("Exif\0\0", 6);
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(file[at]); };
  for (size_t at = 2; at + 4 <= file.size() && byte(at) == 0xFF;) {
    const int marker = byte(at + 1);
    const size_t length = static_cast<size_t>(byte(at + 2)) << 8 | byte(at + 3);
    const std::string_view segment = file.substr(at + 4, length < 2 ? 0 : length - 2);
    if (marker == 0xE1 && segment.starts_with(kExif))
      return orientation_in(Exif(segment.substr(kExif.size())));
    if (marker == 0xDA || length < 2) break;  // the pixels begin, or it is no marker
    at += 2 + length;
  }
  return 1;
}

Tensor upright(const Tensor& image, int orientation) {
  if (orientation < 2 || orientation > 8) return image;
  const media::ImageSize in = media::size_of_image(image);
  const bool across = orientation >= 5;  // rows become columns
  const bool flip_x = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool flip_y = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  Tensor out =
      media::empty_image(across ? in.width : in.height, across ? in.height : in.width, in.channels);
  const media::ImageSize to = media::size_of_image(out);
  auto* target = out.data<uint8_t>();
  for (int64_t y = 0; y < to.height; ++y)
    for (int64_t x = 0; x < to.width; ++x, target += in.channels) {
      const int64_t column = flip_x ? to.width - 1 - x : x, row = flip_y ? to.height - 1 - y : y;
      const int64_t from = across ? column * in.width + row : row * in.width + column;
      std::memcpy(target, image.data<uint8_t>() + from * in.channels,
                  static_cast<size_t>(in.channels));
    }
  return out;
}

// White behind dark pixels, black behind bright ones; only pixels that can be seen count.
float background_of(const uint8_t* pixels, int64_t count) {
  double sum = 0;
  int64_t seen = 0;
  for (int64_t i = 0; i < count; ++i, pixels += 4) {
    if (pixels[3] == 0) continue;
    sum += 0.299 * pixels[0] + 0.587 * pixels[1] + 0.114 * pixels[2];
    ++seen;
  }
  return seen == 0 || sum / static_cast<double>(seen) < 128 ? 255.F : 0.F;
}

void blend(const uint8_t* in, int64_t count, uint8_t* out) {
  const float background = background_of(in, count);
  for (int64_t i = 0; i < count; ++i, in += 4) {
    const float alpha = static_cast<float>(in[3]) / 255.F;
    for (int c = 0; c < 3; ++c)
      *out++ = static_cast<uint8_t>(static_cast<float>(in[c]) * alpha + background * (1 - alpha));
  }
}

// Gray, or gray with transparency on white.
void spread(const uint8_t* in, int64_t count, int64_t channels, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i, in += channels, out += 3) {
    const int white = channels == 2 ? 255 - in[1] : 0;
    const int gray = channels == 2 && in[1] == 0 ? 0 : in[0];
    std::memset(out, std::min(gray + white, 255), 3);
  }
}

}  // namespace

Tensor in_colour(const Tensor& image) {
  const media::ImageSize size = media::size_of_image(image);
  media::check_bytes(image);
  user_check(size.channels <= 4, ErrorKind::InvalidArgument,
             "an image of {} has {} channels; one to four are read.", image.describe(),
             size.channels);
  if (size.channels == 3) return image;
  Tensor out = media::empty_image(size.height, size.width, 3);
  const int64_t count = size.height * size.width;
  if (size.channels == 4)
    blend(image.data<uint8_t>(), count, out.data<uint8_t>());
  else
    spread(image.data<uint8_t>(), count, size.channels, out.data<uint8_t>());
  return out;
}

Tensor read_picture(std::string_view file) {
  const Tensor image = media::decode_image(file, media::Channels::AsInFile);
  const bool jpeg = media::format_of(file) == media::Format::Jpeg;
  return in_colour(jpeg ? upright(image, orientation_of(file)) : image);
}

}  // namespace oar::ocr
