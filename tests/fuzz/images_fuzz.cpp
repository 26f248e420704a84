// Any bytes at all: either an Error, or an image of the size that its header says.
#include <cstdio>
#include <cstdlib>

#include "../cpp/image_files.h"
#include "driver.h"
#include "oar/base/error.h"
#include "oar/media/decode.h"

namespace {

using oar::media::Channels;

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

// Larger ones are decoded as well as small ones, only slower.
constexpr int64_t kMostFuzzedPixels = 1 << 20;

void check_size(const oar::Tensor& image, int64_t height, int64_t width) {
  if (image.dim(0).value() != height || image.dim(1).value() != width)
    broken("an image has another size than its header says");
  unsigned sum = 0;
  const auto* bytes = image.data<uint8_t>();
  for (int64_t i = 0; i < image.numel().value(); ++i) sum += bytes[i];
  [[maybe_unused]] volatile unsigned sink = sum;
}

template <class F>
void attempt(F&& decode) {
  try {
    decode();
  } catch (const oar::Error& error) {
    if (error.kind() == oar::ErrorKind::Internal) broken(error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, so that a sanitizer sees a read beyond it.
  const std::vector<char> exact(data, data + size);
  const std::string_view file(exact.data(), exact.size());
  attempt([&] {
    const oar::media::ImageInfo info = oar::media::image_info(file);
    if (info.height * info.width > kMostFuzzedPixels) return;
    for (const Channels channels : {Channels::AsInFile, Channels::Gray, Channels::Rgb})
      attempt(
          [&] { check_size(oar::media::decode_image(file, channels), info.height, info.width); });
    // A window whose place depends on the input.
    const int64_t top = exact.back() & 15, left = exact[size / 2] & 15;
    const oar::media::Window window{top % info.height, left % info.width,
                                    (info.height - top % info.height + 1) / 2,
                                    (info.width - left % info.width + 1) / 2};
    attempt([&] {
      check_size(oar::media::decode_image(file, Channels::Rgb, window), window.height,
                 window.width);
    });
    for (const bool shrink : {false, true})
      attempt([&] {
        check_size(oar::media::decode_resized(file, {0, 0, info.height, info.width},
                                              {.height = 3,
                                               .width = 2,
                                               .filter = oar::media::Filter::Bilinear,
                                               .shrink = shrink}),
                   3, 2);
      });
  });
  return 0;
}

std::vector<std::string> seeds() {
  using namespace oar::image_files;
  return {colour_jpeg(), progressive_jpeg(), gray_jpeg(), colour_png(), palette_png(), deep_png()};
}

std::vector<std::string> dictionary() {
  const auto bytes = [](std::initializer_list<int> values) {
    std::string text;
    for (const int value : values) text += static_cast<char>(value);
    return text;
  };
  return {bytes({0xff, 0xd8}),
          bytes({0xff, 0xd9}),
          bytes({0xff, 0xda, 0, 8}),
          bytes({0xff, 0xc0, 0, 17}),
          bytes({0xff, 0xc2, 0, 17}),
          bytes({0xff, 0xc4}),
          bytes({0xff, 0xdd, 0, 4, 0, 1}),
          bytes({0xff, 0xee, 0, 14}),
          bytes({0xff, 0xff}),
          bytes({0xff, 0}),
          bytes({0, 1, 0, 1}),
          bytes({0x7f, 0xff, 0xff, 0xff}),
          "IHDR",
          "IDAT",
          "PLTE",
          "tRNS",
          "IEND",
          "zTXt",
          "iCCP",
          "Adobe"};
}
