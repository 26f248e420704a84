#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "image_files.h"
#include "oar/base/error.h"
#include "oar/media/decode.h"
#include "oar/media/jpeg.h"
#include "oar/media/pixels.h"
#include "oar/media/png.h"
#include "oar/media/resize.h"
#include "oar/media/warp.h"

namespace oar::media {
namespace {

// Red = 12 x, green = 10 y, blue = 5 (x + y), as in the files.
Tensor gradient(int64_t height, int64_t width) {
  Tensor image = empty_image(height, width, 3);
  auto* bytes = image.data<uint8_t>();
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < width; ++x) {
      *bytes++ = static_cast<uint8_t>(12 * x);
      *bytes++ = static_cast<uint8_t>(10 * y);
      *bytes++ = static_cast<uint8_t>(5 * (x + y));
    }
  return image;
}

int largest_difference(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.describe(), b.describe());
  int largest = 0;
  for (int64_t i = 0; i < a.numel().value(); ++i)
    largest = std::max(largest, std::abs(a.data<uint8_t>()[i] - b.data<uint8_t>()[i]));
  return largest;
}

Tensor part_of(const Tensor& image, const Window& window) {
  const ImageSize size = size_of_image(image);
  Tensor part = empty_image(window.height, window.width, size.channels);
  for (int64_t y = 0; y < window.height; ++y)
    std::copy_n(image.data<uint8_t>() + (window.top + y) * size.row() + window.left * size.channels,
                window.width * size.channels,
                part.data<uint8_t>() + y * window.width * size.channels);
  return part;
}

template <class F>
std::string refusal(F&& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::Internal) << error.what();
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Images, HeadersSayTheSize) {
  const ImageInfo jpeg = image_info(image_files::colour_jpeg());
  EXPECT_EQ(jpeg.height, 24);
  EXPECT_EQ(jpeg.width, 20);
  EXPECT_EQ(jpeg.channels, 3);
  EXPECT_EQ(image_info(image_files::gray_jpeg()).channels, 1);
  EXPECT_EQ(image_info(image_files::palette_png()).channels, 3);
  EXPECT_FALSE(image_info(image_files::deep_png()).readable);
}

TEST(Images, JpegIsNearTheOriginal) {
  EXPECT_LE(largest_difference(decode_jpeg(image_files::colour_jpeg()), gradient(24, 20)), 40);
  EXPECT_EQ(decode_jpeg(image_files::gray_jpeg()).describe(), "uint8[7, 9, 1]");
  EXPECT_EQ(decode_jpeg(image_files::gray_jpeg(), {.channels = Channels::Rgb}).describe(),
            "uint8[7, 9, 3]");
  EXPECT_EQ(decode_jpeg(image_files::colour_jpeg(), {.channels = Channels::Gray}).describe(),
            "uint8[24, 20, 1]");
}

TEST(Images, PngIsTheOriginal) {
  EXPECT_EQ(largest_difference(decode_png(image_files::colour_png()), gradient(5, 6)), 0);
  EXPECT_EQ(decode_png(image_files::palette_png(), Channels::Rgb).describe(), "uint8[5, 6, 3]");
  EXPECT_EQ(decode_png(image_files::colour_png(), Channels::Gray).describe(), "uint8[5, 6, 1]");
  EXPECT_NE(refusal([] { decode_png(image_files::deep_png()); }).find("16 bits"),
            std::string::npos);
}

TEST(Images, AWindowIsThatPartOfTheWhole) {
  for (const std::string& file :
       {image_files::colour_jpeg(), image_files::progressive_jpeg(), image_files::colour_png()}) {
    const Tensor whole = decode_image(file, Channels::Rgb);
    const ImageSize size = size_of_image(whole);
    for (int64_t top = 0; top < size.height; top += 3)
      for (int64_t left = 0; left < size.width; left += 2) {
        const Window window{top, left, (size.height - top + 1) / 2, (size.width - left + 1) / 2};
        EXPECT_EQ(
            largest_difference(decode_image(file, Channels::Rgb, window), part_of(whole, window)),
            0);
      }
  }
  EXPECT_NE(refusal([] {
              decode_image(image_files::colour_jpeg(), Channels::Rgb, Window{20, 0, 5, 5});
            }).find("is not inside an image of 24 x 20"),
            std::string::npos);
}

TEST(Images, ResizedWindowsAreResampledParts) {
  const std::string file = image_files::colour_jpeg();
  const Window window{2, 3, 17, 14};
  const Tensor expected =
      resample(decode_image(file, Channels::Rgb, window), 4, 3, Filter::Bilinear);
  ResizedImage wanted{4, 3, Filter::Bilinear, false};
  EXPECT_EQ(largest_difference(decode_resized(file, window, wanted), expected), 0);
  wanted.shrink = true;  // decoded to a half first
  EXPECT_LE(largest_difference(decode_resized(file, window, wanted), expected), 12);
}

TEST(Images, TruncatedAndForeignFilesAreRefused) {
  const std::string jpeg = image_files::colour_jpeg(), png = image_files::colour_png();
  EXPECT_NE(refusal([&] { decode_jpeg(jpeg.substr(0, jpeg.size() - 40)); }).find("ends too early"),
            std::string::npos);
  EXPECT_NE(refusal([&] { decode_png(png.substr(0, png.size() - 30)); }).find("cannot be decoded"),
            std::string::npos);
  EXPECT_NE(refusal([] { image_info("GIF89a"); }).find("neither a JPEG nor a PNG"),
            std::string::npos);
  for (size_t size = 0; size < 200; ++size)
    EXPECT_NE(refusal([&] { decode_jpeg(jpeg.substr(0, size)); }), "nothing was thrown") << size;
}

TEST(Images, AClaimedSizeDoesNotAllocate) {
  std::string jpeg = image_files::colour_jpeg();
  const size_t header = jpeg.find("\xff\xc0") + 5;
  jpeg.replace(header, 4, "\x28\x00\x28\x00", 4);  // 10240 x 10240
  EXPECT_NE(refusal([&] { decode_jpeg(jpeg); }).find("claims 10240 x 10240 pixels, and has"),
            std::string::npos);
  jpeg.replace(header, 4, "\xff\x00\xff\x00", 4);
  EXPECT_NE(refusal([&] { decode_jpeg(jpeg); }).find("at most"), std::string::npos);
}

TEST(Images, FiltersKeepAConstant) {
  Tensor image = empty_image(13, 11, 3);
  std::fill_n(image.data<uint8_t>(), image.numel().value(), uint8_t{201});
  for (const char* name : {"nearest", "box", "bilinear", "hamming", "bicubic", "lanczos"})
    for (const auto& [height, width] : {std::pair{5, 40}, {40, 5}, {26, 22}, {13, 4}, {1, 1}}) {
      const Tensor resized = resample(image, height, width, filter_of(name));
      for (int64_t i = 0; i < resized.numel().value(); ++i)
        ASSERT_EQ(resized.data<uint8_t>()[i], 201) << name;
    }
  for (const char* name : {"nearest", "bilinear", "bicubic", "lanczos", "area"})
    for (const auto& [height, width] : {std::pair{5, 40}, {40, 5}, {26, 22}, {13, 4}, {1, 1}}) {
      const Tensor resized = resize(image, height, width, interpolation_of(name));
      for (int64_t i = 0; i < resized.numel().value(); ++i)
        ASSERT_NEAR(resized.data<uint8_t>()[i], 201, 1) << name;
    }
}

TEST(Images, ManyChannelsAndOneAgree) {
  // Three channels have vectors of their own; one channel has not.
  const Tensor image = gradient(37, 21);
  const Tensor resized = resample(image, 11, 30, Filter::Bicubic);
  for (int channel = 0; channel < 3; ++channel) {
    Tensor plane = empty_image(37, 21, 1);
    for (int64_t i = 0; i < 37 * 21; ++i)
      plane.data<uint8_t>()[i] = image.data<uint8_t>()[i * 3 + channel];
    const Tensor alone = resample(plane, 11, 30, Filter::Bicubic);
    for (int64_t i = 0; i < 11 * 30; ++i)
      ASSERT_EQ(alone.data<uint8_t>()[i], resized.data<uint8_t>()[i * 3 + channel]);
  }
}

TEST(Images, AWarpMovesPixels) {
  const Tensor image = gradient(6, 7);
  Warp how{{1, 0, 2, 0, 1, 1, 0, 0, 1}, 6, 7, Interpolation::Nearest, {1, 2, 3}};
  const Tensor moved = warp(image, how);
  EXPECT_EQ(moved.data<uint8_t>()[0], 24);  // the pixel at column 2, row 1
  EXPECT_EQ(moved.data<uint8_t>()[1], 10);
  const uint8_t* corner = moved.data<uint8_t>() + moved.numel().value() - 3;
  EXPECT_EQ(corner[2], 3);  // outside
  how.matrix[0] = std::nan("");
  EXPECT_NE(refusal([&] { warp(image, how); }).find("not finite"), std::string::npos);
  how.matrix = {1e300, 1e300, 1e300, 1e300, 1e300, 1e300, 0, 0, 1};
  EXPECT_EQ(warp(image, how).data<uint8_t>()[0], 1);
}

TEST(Images, BytesBecomeFloats) {
  const Tensor image = gradient(2, 2);
  Tensor tables = Tensor::empty(Shape{3, 256}, DType::Float32);
  for (int i = 0; i < 768; ++i) tables.data<float>()[i] = static_cast<float>(i);
  EXPECT_EQ(look_up(image, tables, true).to_vector<float>(),
            (std::vector<float>{0, 12, 0, 12, 256, 256, 266, 266, 512, 517, 517, 522}));
  EXPECT_EQ(look_up(image, tables, false).to_vector<float>(),
            (std::vector<float>{0, 256, 512, 12, 256, 517, 0, 266, 517, 12, 266, 522}));
}

TEST(Images, AFlipIsItsOwnInverse) {
  const Tensor image = gradient(4, 5);
  for (const bool horizontally : {false, true}) {
    EXPECT_NE(largest_difference(flip(image, horizontally), image), 0);
    EXPECT_EQ(largest_difference(flip(flip(image, horizontally), horizontally), image), 0);
  }
}

TEST(Images, AHueTurnsAround) {
  Tensor red = empty_image(1, 1, 3);
  std::fill_n(red.data<uint8_t>(), 2, uint8_t{0});
  red.data<uint8_t>()[2] = 255;  // blue, green, red
  EXPECT_EQ(largest_difference(shift_hue(red, 0), red), 0);
  EXPECT_EQ(shift_hue(red, 128).to_vector<int64_t>()[2], 0);
}

}  // namespace
}  // namespace oar::media
