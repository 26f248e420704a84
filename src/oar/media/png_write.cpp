#include "oar/base/error.h"
#include "oar/media/codec_library.h"
#include "oar/media/png.h"

#ifdef OAR_PNG_LIBRARY

#include <png.h>

#include <csetjmp>
#include <cstdio>

namespace oar::media {
namespace {

struct PngWriting {
  decltype(::png_create_write_struct)* create_write_struct;
  decltype(::png_create_info_struct)* create_info_struct;
  decltype(::png_destroy_write_struct)* destroy_write_struct;
  decltype(::png_set_write_fn)* set_write_fn;
  decltype(::png_get_io_ptr)* get_io_ptr;
  decltype(::png_get_error_ptr)* get_error_ptr;
  decltype(::png_set_IHDR)* set_ihdr;
  decltype(::png_write_info)* write_info;
  decltype(::png_write_row)* write_row;
  decltype(::png_write_end)* write_end;
};

PngWriting load_writing() {
  const CodecLibrary library(OAR_PNG_LIBRARY,
                             "Install libpng, on Debian `apt-get install libpng16-16`.");
  PngWriting table{};
  library.find(table.create_write_struct, "png_create_write_struct");
  library.find(table.create_info_struct, "png_create_info_struct");
  library.find(table.destroy_write_struct, "png_destroy_write_struct");
  library.find(table.set_write_fn, "png_set_write_fn");
  library.find(table.get_io_ptr, "png_get_io_ptr");
  library.find(table.get_error_ptr, "png_get_error_ptr");
  library.find(table.set_ihdr, "png_set_IHDR");
  library.find(table.write_info, "png_write_info");
  library.find(table.write_row, "png_write_row");
  library.find(table.write_end, "png_write_end");
  return table;
}

const PngWriting& writing() {
  static const PngWriting table = load_writing();
  return table;
}

// As in the decoder: a call that fails leaves by longjmp, so a step has no objects to destroy.
class PngEncoder {
 public:
  explicit PngEncoder(const Tensor& image)
      : data_(image.data<uint8_t>()), size_(size_of_image(image)) {}
  ~PngEncoder() { writing().destroy_write_struct(&writer_, &info_); }
  PngEncoder(const PngEncoder&) = delete;
  PngEncoder& operator=(const PngEncoder&) = delete;

  std::string encode() {
    user_check(try_write(), ErrorKind::Runtime, "the image cannot be written as PNG: {}.",
               message_);
    return std::move(file_);
  }

 private:
  bool try_write() {
    constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA, PNG_COLOR_TYPE_RGB,
                              PNG_COLOR_TYPE_RGB_ALPHA};
    if (setjmp(escape_)) return false;
    writer_ = writing().create_write_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    if (writer_ == nullptr) return false;
    info_ = writing().create_info_struct(writer_);
    if (info_ == nullptr) return false;
    writing().set_write_fn(writer_, this, on_write, on_flush);
    writing().set_ihdr(writer_, info_, static_cast<png_uint_32>(size_.width),
                       static_cast<png_uint_32>(size_.height), 8, kTypes[size_.channels - 1],
                       PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    writing().write_info(writer_, info_);
    for (int64_t y = 0; y < size_.height; ++y)
      writing().write_row(writer_, data_ + y * size_.row());
    writing().write_end(writer_, info_);
    return true;
  }

  static void on_error(png_structp writer, png_const_charp message) {
    auto& self = *static_cast<PngEncoder*>(writing().get_error_ptr(writer));
    std::snprintf(self.message_, sizeof self.message_, "%s", message);
    std::longjmp(self.escape_, 1);
  }
  static void on_warning(png_structp, png_const_charp) {}
  static void on_write(png_structp writer, png_bytep bytes, size_t count) {
    auto& self = *static_cast<PngEncoder*>(writing().get_io_ptr(writer));
    self.file_.append(reinterpret_cast<const char*>(bytes), count);
  }
  static void on_flush(png_structp) {}

  const uint8_t* data_;
  ImageSize size_;
  std::string file_;
  png_structp writer_ = nullptr;
  png_infop info_ = nullptr;
  std::jmp_buf escape_{};
  char message_[128] = "";
};

}  // namespace

std::string encode_png(const Tensor& image) {
  const ImageSize size = size_of_image(image);
  check_bytes(image);
  user_check(size.channels <= 4, ErrorKind::InvalidArgument,
             "an image with {} channels cannot be written as PNG; one to four are possible.",
             size.channels);
  return PngEncoder(image).encode();
}

}  // namespace oar::media

#else

namespace oar::media {

std::string encode_png(const Tensor&) { fail_without_library("PNG", "libpng-dev"); }

}  // namespace oar::media

#endif
