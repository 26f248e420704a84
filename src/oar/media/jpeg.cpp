#include "oar/media/jpeg.h"

#include "oar/base/error.h"
#include "oar/media/codec_library.h"

#ifdef OAR_JPEG_LIBRARY

#include <jpeglib.h>  // needs cstdio in front

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>
#include <vector>

namespace oar::media {
namespace {

// A progressive file can repeat itself without end.
constexpr int kMostScans = 500;
// Each block of 8 x 8 pixels takes at least one bit, unless the code is arithmetic. A file that claims more is not whole, and must
// not make us allocate what it claims.
constexpr int64_t kMostPixelsPerByte = 8 * 64;

struct JpegFunctions {
  decltype(::jpeg_std_error)* std_error;
  decltype(::jpeg_CreateDecompress)* create;
  decltype(::jpeg_destroy_decompress)* destroy;
  decltype(::jpeg_read_header)* read_header;
  decltype(::jpeg_calc_output_dimensions)* calc_output_dimensions;
  decltype(::jpeg_start_decompress)* start;
  decltype(::jpeg_crop_scanline)* crop_scanline;
  decltype(::jpeg_skip_scanlines)* skip_scanlines;
  decltype(::jpeg_read_scanlines)* read_scanlines;
  decltype(::jpeg_resync_to_restart)* resync_to_restart;
};

JpegFunctions load_jpeg() {
  const CodecLibrary library(
      OAR_JPEG_LIBRARY,
      "Install libjpeg-turbo, on Debian `apt-get install libjpeg62-turbo`, or Pillow.");
  JpegFunctions table{};
  library.find(table.std_error, "jpeg_std_error");
  library.find(table.create, "jpeg_CreateDecompress");
  library.find(table.destroy, "jpeg_destroy_decompress");
  library.find(table.read_header, "jpeg_read_header");
  library.find(table.calc_output_dimensions, "jpeg_calc_output_dimensions");
  library.find(table.start, "jpeg_start_decompress");
  library.find(table.crop_scanline, "jpeg_crop_scanline");
  library.find(table.skip_scanlines, "jpeg_skip_scanlines");
  library.find(table.read_scanlines, "jpeg_read_scanlines");
  library.find(table.resync_to_restart, "jpeg_resync_to_restart");
  return table;
}

const JpegFunctions& jpeg() {
  static const JpegFunctions table = load_jpeg();
  return table;
}

// One file being decoded. The library leaves a call that fails by longjmp. So each step is a function of its own without
// objects to destroy, and returns whether it succeeded.
class JpegDecoder {
 public:
  explicit JpegDecoder(std::string_view file);
  ~JpegDecoder() { jpeg().destroy(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  ImageInfo read_header();
  Tensor decode(const JpegRequest& request);

 private:
  // What one read of rows is about: rows [top, top + height) and, of each, `bytes` bytes from `first`.
  struct Rows {
    int64_t top;
    int64_t height;
    size_t first;
    size_t bytes;
    bool whole;  // all of a row is wanted
  };

  void expect(bool success);
  bool try_create();
  bool try_header();
  bool try_start();
  bool try_crop(JDIMENSION* left, JDIMENSION* width);
  bool try_rows(const Rows& rows, uint8_t* row, uint8_t* out);
  void choose_output(const JpegRequest& request);
  Tensor read_window(const Window& window);

  static JpegDecoder& of(j_common_ptr info) {
    return *static_cast<JpegDecoder*>(info->client_data);
  }
  static void on_error(j_common_ptr info);
  static void on_message(j_common_ptr, int) {}  // a warning: the library goes on, as others let it
  static void on_progress(j_common_ptr info);
  static void on_source(j_decompress_ptr) {}
  static boolean on_end_of_file(j_decompress_ptr info);
  static void on_skip(j_decompress_ptr info, long count);

  int64_t file_bytes_;
  jpeg_decompress_struct info_{};
  jpeg_error_mgr errors_{};
  jpeg_source_mgr source_{};
  jpeg_progress_mgr progress_{};
  std::jmp_buf escape_{};
  char message_[JMSG_LENGTH_MAX] = "";
};

JpegDecoder::JpegDecoder(std::string_view file) : file_bytes_(static_cast<int64_t>(file.size())) {
  const JpegFunctions& library = jpeg();
  info_.err = library.std_error(&errors_);
  info_.client_data = this;
  errors_.error_exit = on_error;
  errors_.emit_message = on_message;
  if (!try_create()) {
    library.destroy(&info_);
    expect(false);
  }
  info_.client_data = this;  // creation clears it in some versions
  source_.next_input_byte = reinterpret_cast<const JOCTET*>(file.data());
  source_.bytes_in_buffer = file.size();
  source_.init_source = on_source;
  source_.term_source = on_source;
  source_.fill_input_buffer = on_end_of_file;
  source_.skip_input_data = on_skip;
  source_.resync_to_restart = library.resync_to_restart;
  info_.src = &source_;
  progress_.progress_monitor = on_progress;
  info_.progress = &progress_;
}

void JpegDecoder::on_error(j_common_ptr info) {
  JpegDecoder& self = of(info);
  if (self.message_[0] == '\0') self.errors_.format_message(info, self.message_);
  std::longjmp(self.escape_, 1);
}

boolean JpegDecoder::on_end_of_file(j_decompress_ptr info) {
  JpegDecoder& self = of(reinterpret_cast<j_common_ptr>(info));
  std::snprintf(self.message_, sizeof self.message_, "the file ends too early");
  std::longjmp(self.escape_, 1);
}

void JpegDecoder::on_skip(j_decompress_ptr info, long count) {
  if (count <= 0) return;
  jpeg_source_mgr& source = *info->src;
  if (static_cast<size_t>(count) > source.bytes_in_buffer) on_end_of_file(info);
  source.next_input_byte += count;
  source.bytes_in_buffer -= static_cast<size_t>(count);
}

void JpegDecoder::on_progress(j_common_ptr info) {
  if (reinterpret_cast<j_decompress_ptr>(info)->input_scan_number <= kMostScans) return;
  JpegDecoder& self = of(info);
  std::snprintf(self.message_, sizeof self.message_, "it has more than %d scans", kMostScans);
  std::longjmp(self.escape_, 1);
}

void JpegDecoder::expect(bool success) {
  user_check(success, ErrorKind::InvalidArgument, "the JPEG file cannot be decoded: {}.", message_);
}

bool JpegDecoder::try_create() {
  if (setjmp(escape_)) return false;
  jpeg().create(&info_, JPEG_LIB_VERSION, sizeof info_);
  return true;
}

bool JpegDecoder::try_header() {
  if (setjmp(escape_)) return false;
  jpeg().read_header(&info_, TRUE);
  return true;
}

bool JpegDecoder::try_start() {
  if (setjmp(escape_)) return false;
  jpeg().start(&info_);
  return true;
}

bool JpegDecoder::try_crop(JDIMENSION* left, JDIMENSION* width) {
  if (setjmp(escape_)) return false;
  jpeg().crop_scanline(&info_, left, width);
  return true;
}

bool JpegDecoder::try_rows(const Rows& rows, uint8_t* row, uint8_t* out) {
  if (setjmp(escape_)) return false;
  // Interpolated colours of the first rows after a gap are not those of the whole image, so two blocks are read in vain.
  const int64_t block = int64_t{info_.max_v_samp_factor} * info_.min_DCT_scaled_size;
  const int64_t skipped = rows.top / block * block - 2 * block;
  if (skipped > 0) jpeg().skip_scanlines(&info_, static_cast<JDIMENSION>(skipped));
  while (info_.output_scanline < static_cast<JDIMENSION>(rows.top + rows.height)) {
    const int64_t y = int64_t{info_.output_scanline} - rows.top;
    uint8_t* place = y < 0 ? row : out + static_cast<size_t>(y) * rows.bytes;
    JSAMPROW target[1] = {rows.whole ? place : row};
    if (jpeg().read_scanlines(&info_, target, 1) != 1) return false;
    if (y >= 0 && !rows.whole) std::memcpy(place, row + rows.first, rows.bytes);
  }
  return true;
}

ImageInfo JpegDecoder::read_header() {
  expect(try_header());
  ImageInfo found{info_.image_height, info_.image_width, info_.num_components};
  const bool known = info_.jpeg_color_space == JCS_GRAYSCALE || info_.jpeg_color_space == JCS_RGB ||
                     info_.jpeg_color_space == JCS_YCbCr;
  found.readable = known && (found.channels == 1 || found.channels == 3);
  user_check(found.height > 0 && found.width > 0 && found.height <= kMostPixels / found.width,
             ErrorKind::InvalidArgument,
             "the JPEG file claims {} x {} pixels; at most {} are read.", found.height, found.width,
             kMostPixels);
  user_check(info_.arith_code || found.height * found.width / kMostPixelsPerByte <= file_bytes_,
             ErrorKind::InvalidArgument,
             "the JPEG file cannot be decoded: it claims {} x {} pixels, and has {} bytes.",
             found.height, found.width, file_bytes_);
  return found;
}

void JpegDecoder::choose_output(const JpegRequest& request) {
  const bool gray = request.channels == Channels::Gray ||
                    (request.channels == Channels::AsInFile && info_.num_components == 1);
  info_.out_color_space = gray ? JCS_GRAYSCALE : JCS_RGB;
  info_.scale_num = 1;
  info_.scale_denom = static_cast<unsigned>(request.shrink);
  // As Pillow decodes: exact transform, interpolated colours.
  info_.dct_method = JDCT_ISLOW;
  info_.do_fancy_upsampling = TRUE;
}

Tensor JpegDecoder::read_window(const Window& window) {
  const auto channels = static_cast<size_t>(info_.output_components);
  const int64_t width = info_.output_width;
  Rows rows{window.top, window.height, 0, static_cast<size_t>(window.width) * channels,
            window.width == width};
  if (!rows.whole) {
    // Whole blocks are decoded; one more on each side, because colours are interpolated across their borders.
    const int64_t block = int64_t{info_.max_h_samp_factor} * info_.min_DCT_scaled_size;
    const int64_t begin = std::max<int64_t>(0, window.left - block);
    const int64_t end = std::min(width, window.left + window.width + block);
    auto left = static_cast<JDIMENSION>(begin);
    auto wide = static_cast<JDIMENSION>(end - begin);
    expect(try_crop(&left, &wide));
    internal_check(int64_t{left} <= window.left &&
                       int64_t{left} + int64_t{info_.output_width} >= window.left + window.width,
                   "libjpeg-turbo returned columns [{}, {}) for [{}, {})", left,
                   left + info_.output_width, window.left, window.left + window.width);
    rows.first = static_cast<size_t>(window.left - int64_t{left}) * channels;
  }
  std::vector<uint8_t> row(static_cast<size_t>(info_.output_width) * channels);
  Tensor out = empty_image(window.height, window.width, info_.output_components);
  expect(try_rows(rows, row.data(), out.data<uint8_t>()));
  return out;
}

Tensor JpegDecoder::decode(const JpegRequest& request) {
  const ImageInfo found = read_header();
  user_check(
      found.readable, ErrorKind::Unsupported,
      "the JPEG file has {} channels of another kind than gray or colour.\nhint: Convert it, or "
      "read it with Pillow.",
      found.channels);
  if (request.window) check_window(*request.window, found.height, found.width);
  choose_output(request);
  expect(try_start());
  const Window whole{0, 0, info_.output_height, info_.output_width};
  return read_window(request.window.value_or(whole));
}

}  // namespace

bool is_jpeg(std::string_view file) { return file.substr(0, 3) == "\xff\xd8\xff"; }

ImageInfo jpeg_info(std::string_view file) {
  JpegDecoder decoder(file);
  return decoder.read_header();
}

Tensor decode_jpeg(std::string_view file, const JpegRequest& request) {
  const int shrink = request.shrink;
  internal_check(shrink == 1 || ((shrink == 2 || shrink == 4 || shrink == 8) && !request.window),
                 "a JPEG file cannot be decoded to 1/{} of its size", shrink);
  JpegDecoder decoder(file);
  return decoder.decode(request);
}

}  // namespace oar::media

#else

namespace oar::media {

bool is_jpeg(std::string_view file) { return file.substr(0, 3) == "\xff\xd8\xff"; }
ImageInfo jpeg_info(std::string_view) { fail_without_library("JPEG", "libjpeg62-turbo-dev"); }
Tensor decode_jpeg(std::string_view, const JpegRequest&) {
  fail_without_library("JPEG", "libjpeg62-turbo-dev");
}

}  // namespace oar::media

#endif
