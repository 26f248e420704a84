#include "oar/media/png.h"

#include "oar/base/error.h"
#include "oar/media/codec_library.h"

namespace oar::media {

bool is_png(std::string_view file) { return file.substr(0, 8) == "\x89PNG\r\n\x1a\n"; }

}  // namespace oar::media

#ifdef OAR_PNG_LIBRARY

#include <png.h>

#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

namespace oar::media {
namespace {

// Memory for one chunk of text or colours; a small file can unpack to gigabytes.
constexpr png_alloc_size_t kMostChunkBytes = 8 << 20;
// What one byte of a packed stream can unpack to, at most. A file that claims more pixels is not whole, and must not make us
// allocate what it claims.
constexpr int64_t kMostBytesPerByte = 1100;

struct PngFunctions {
  decltype(::png_create_read_struct)* create_read_struct;
  decltype(::png_create_info_struct)* create_info_struct;
  decltype(::png_destroy_read_struct)* destroy_read_struct;
  decltype(::png_set_longjmp_fn)* set_longjmp_fn;
  decltype(::png_set_read_fn)* set_read_fn;
  decltype(::png_get_io_ptr)* get_io_ptr;
  decltype(::png_get_error_ptr)* get_error_ptr;
  decltype(::png_error)* error;
  decltype(::png_set_user_limits)* set_user_limits;
  decltype(::png_set_chunk_malloc_max)* set_chunk_malloc_max;
  decltype(::png_read_info)* read_info;
  decltype(::png_get_IHDR)* get_ihdr;
  decltype(::png_set_palette_to_rgb)* set_palette_to_rgb;
  decltype(::png_set_expand_gray_1_2_4_to_8)* set_expand_gray_1_2_4_to_8;
  decltype(::png_set_gray_to_rgb)* set_gray_to_rgb;
  decltype(::png_set_strip_alpha)* set_strip_alpha;
  decltype(::png_set_interlace_handling)* set_interlace_handling;
  decltype(::png_read_update_info)* read_update_info;
  decltype(::png_get_rowbytes)* get_rowbytes;
  decltype(::png_read_image)* read_image;
};

PngFunctions load_png() {
  const CodecLibrary library(OAR_PNG_LIBRARY,
                             "Install libpng, on Debian `apt-get install libpng16-16`, or Pillow.");
  PngFunctions table{};
  library.find(table.create_read_struct, "png_create_read_struct");
  library.find(table.create_info_struct, "png_create_info_struct");
  library.find(table.destroy_read_struct, "png_destroy_read_struct");
  library.find(table.set_longjmp_fn, "png_set_longjmp_fn");
  library.find(table.set_read_fn, "png_set_read_fn");
  library.find(table.get_io_ptr, "png_get_io_ptr");
  library.find(table.get_error_ptr, "png_get_error_ptr");
  library.find(table.error, "png_error");
  library.find(table.set_user_limits, "png_set_user_limits");
  library.find(table.set_chunk_malloc_max, "png_set_chunk_malloc_max");
  library.find(table.read_info, "png_read_info");
  library.find(table.get_ihdr, "png_get_IHDR");
  library.find(table.set_palette_to_rgb, "png_set_palette_to_rgb");
  library.find(table.set_expand_gray_1_2_4_to_8, "png_set_expand_gray_1_2_4_to_8");
  library.find(table.set_gray_to_rgb, "png_set_gray_to_rgb");
  library.find(table.set_strip_alpha, "png_set_strip_alpha");
  library.find(table.set_interlace_handling, "png_set_interlace_handling");
  library.find(table.read_update_info, "png_read_update_info");
  library.find(table.get_rowbytes, "png_get_rowbytes");
  library.find(table.read_image, "png_read_image");
  return table;
}

const PngFunctions& png() {
  static const PngFunctions table = load_png();
  return table;
}

// One file being decoded. The library leaves a call that fails by longjmp. So each step is a function of its own without
// objects to destroy, and returns whether it succeeded.
class PngDecoder {
 public:
  explicit PngDecoder(std::string_view file);
  ~PngDecoder() { png().destroy_read_struct(&reader_, &info_, nullptr); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  ImageInfo read_header();
  Tensor decode(Channels channels);

 private:
  void expect(bool success);
  bool try_create();
  bool try_header();
  bool try_transforms(bool colour, bool drop_alpha);
  bool try_read(png_bytep* rows);

  static void on_error(png_structp reader, png_const_charp message);
  static void on_warning(png_structp, png_const_charp) {}
  static void on_read(png_structp reader, png_bytep out, size_t count);

  std::string_view rest_;
  int64_t file_bytes_;
  png_structp reader_ = nullptr;
  png_infop info_ = nullptr;
  png_uint_32 height_ = 0, width_ = 0;
  int depth_ = 0, colour_type_ = 0;
  std::jmp_buf escape_{};
  char message_[128] = "";
};

PngDecoder::PngDecoder(std::string_view file)
    : rest_(file), file_bytes_(static_cast<int64_t>(file.size())) {
  if (!try_create()) {
    png().destroy_read_struct(&reader_, &info_, nullptr);
    expect(false);
  }
}

void PngDecoder::on_error(png_structp reader, png_const_charp message) {
  auto& self = *static_cast<PngDecoder*>(png().get_error_ptr(reader));
  std::snprintf(self.message_, sizeof self.message_, "%s", message);
  std::longjmp(self.escape_, 1);
}

void PngDecoder::on_read(png_structp reader, png_bytep out, size_t count) {
  auto& self = *static_cast<PngDecoder*>(png().get_io_ptr(reader));
  if (count > self.rest_.size()) png().error(reader, "the file ends too early");
  std::memcpy(out, self.rest_.data(), count);
  self.rest_.remove_prefix(count);
}

void PngDecoder::expect(bool success) {
  user_check(success, ErrorKind::InvalidArgument, "the PNG file cannot be decoded: {}.", message_);
}

bool PngDecoder::try_create() {
  if (setjmp(escape_)) return false;
  reader_ = png().create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
  if (reader_ == nullptr) return false;
  info_ = png().create_info_struct(reader_);
  if (info_ == nullptr) return false;
  png().set_read_fn(reader_, this, on_read);
  png().set_user_limits(reader_, PNG_UINT_31_MAX, PNG_UINT_31_MAX);  // checked below
  png().set_chunk_malloc_max(reader_, kMostChunkBytes);
  return true;
}

bool PngDecoder::try_header() {
  if (setjmp(escape_)) return false;
  png().read_info(reader_, info_);
  png().get_ihdr(reader_, info_, &width_, &height_, &depth_, &colour_type_, nullptr, nullptr,
                 nullptr);
  return true;
}

bool PngDecoder::try_transforms(bool colour, bool drop_alpha) {
  if (setjmp(escape_)) return false;
  if (colour_type_ == PNG_COLOR_TYPE_PALETTE) png().set_palette_to_rgb(reader_);
  if (depth_ < 8) png().set_expand_gray_1_2_4_to_8(reader_);
  if (colour) png().set_gray_to_rgb(reader_);
  if (drop_alpha) png().set_strip_alpha(reader_);
  png().set_interlace_handling(reader_);
  png().read_update_info(reader_, info_);
  return true;
}

bool PngDecoder::try_read(png_bytep* rows) {
  if (setjmp(escape_)) return false;
  png().read_image(reader_, rows);
  return true;
}

ImageInfo PngDecoder::read_header() {
  expect(try_header());
  const bool palette = colour_type_ == PNG_COLOR_TYPE_PALETTE;
  const int colours = (colour_type_ & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1;
  const int alpha = (colour_type_ & PNG_COLOR_MASK_ALPHA) != 0 ? 1 : 0;
  ImageInfo found{height_, width_, palette ? 3 : colours + alpha};
  found.readable = depth_ <= 8;
  user_check(found.height > 0 && found.width > 0 && found.height <= kMostPixels / found.width,
             ErrorKind::InvalidArgument, "the PNG file claims {} x {} pixels; at most {} are read.",
             found.height, found.width, kMostPixels);
  const int64_t bits = found.height * found.width * depth_ * (palette ? 1 : found.channels);
  user_check(bits / 8 / kMostBytesPerByte <= file_bytes_, ErrorKind::InvalidArgument,
             "the PNG file cannot be decoded: it claims {} x {} pixels, and has {} bytes.",
             found.height, found.width, file_bytes_);
  return found;
}

// As other readers compute the brightness of a colour, in integers.
Tensor gray_of(const Tensor& colour) {
  const ImageSize size = size_of_image(colour);
  Tensor gray = empty_image(size.height, size.width, 1);
  const auto* in = colour.data<uint8_t>();
  auto* out = gray.data<uint8_t>();
  for (int64_t i = 0; i < size.height * size.width; ++i, in += 3)
    out[i] = static_cast<uint8_t>((in[0] * 19595 + in[1] * 38470 + in[2] * 7471 + 0x8000) >> 16);
  return gray;
}

Tensor PngDecoder::decode(Channels channels) {
  const ImageInfo found = read_header();
  user_check(
      found.readable, ErrorKind::Unsupported,
      "the PNG file has {} bits per channel.\nhint: Convert it to 8 bits, or read it with Pillow.",
      depth_);
  const bool colour_in_file = found.channels >= 3;
  expect(try_transforms(channels == Channels::Rgb, channels != Channels::AsInFile));
  const size_t row = png().get_rowbytes(reader_, info_);
  const size_t count = row / width_;
  internal_check(row == count * width_ && count >= 1 && count <= 4,
                 "a row of a PNG file has {} bytes", row);
  Tensor out = empty_image(found.height, found.width, static_cast<int64_t>(count));
  std::vector<png_bytep> rows(height_);
  for (size_t y = 0; y < rows.size(); ++y) rows[y] = out.data<uint8_t>() + y * row;
  expect(try_read(rows.data()));
  return channels == Channels::Gray && colour_in_file ? gray_of(out) : out;
}

}  // namespace

ImageInfo png_info(std::string_view file) {
  PngDecoder decoder(file);
  return decoder.read_header();
}

Tensor decode_png(std::string_view file, Channels channels) {
  PngDecoder decoder(file);
  return decoder.decode(channels);
}

}  // namespace oar::media

#else

namespace oar::media {

ImageInfo png_info(std::string_view) { fail_without_library("PNG", "libpng-dev"); }
Tensor decode_png(std::string_view, Channels) { fail_without_library("PNG", "libpng-dev"); }

}  // namespace oar::media

#endif
