#include "oar/cli/image_input.h"

#include <charconv>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/string_util.h"
#include "oar/media/decode.h"
#include "oar/media/pixels.h"
#include "oar/media/resample.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/flip.h"
#include "oar/ops/gen/shape.h"

namespace oar::cli {
namespace {

using interop::Port;

// What the image is to become. -1: as the image has it.
struct Wanted {
  bool channels_first = true, batched = true;
  int64_t height = -1, width = -1, channels = -1;
};

bool could_be_channels(int64_t size) { return size == 1 || size == 3 || size == 4; }

Wanted wanted_by(const Port& input, const std::string& layout) {
  user_check(
      layout.empty() || layout == "chw" || layout == "hwc", ErrorKind::InvalidArgument,
      "there is no layout '{}'.\nhint: --layout is chw (channels first) or hwc (channels last).",
      layout);
  Wanted wanted;
  wanted.channels_first = layout != "hwc";
  if (!input.shape) return wanted;
  const std::vector<int64_t>& shape = *input.shape;
  user_check(shape.size() == 3 || shape.size() == 4, ErrorKind::InvalidArgument,
             "the input {} has {} axes, so it takes no image.\nhint: Pass an .npy file.",
             input.str(), shape.size());
  wanted.batched = shape.size() == 4;
  const size_t at = wanted.batched ? 1 : 0;
  if (layout.empty())
    wanted.channels_first = !could_be_channels(shape[at + 2]) || could_be_channels(shape[at]);
  const size_t rows = wanted.channels_first ? at + 1 : at;
  wanted.height = shape[rows];
  wanted.width = shape[rows + 1];
  wanted.channels = shape[wanted.channels_first ? at : at + 2];
  return wanted;
}

void take_size(Wanted& wanted, const std::string& text) {
  if (text.empty()) return;
  const std::vector<std::string_view> words = split(text, 'x');
  std::vector<int64_t> sizes;
  for (const std::string_view word : words) {
    int64_t size = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), size);
    if (error == std::errc() && end == word.data() + word.size() && size > 0) sizes.push_back(size);
  }
  user_check(
      sizes.size() == words.size() && sizes.size() <= 2, ErrorKind::InvalidArgument,
      "'{}' is no size of an image.\nhint: --size 224, or --size 480x640 for height and width.",
      text);
  wanted.height = sizes.front();
  wanted.width = sizes.back();
}

double entry(const std::vector<double>& list, size_t channel, double otherwise,
             const char* option) {
  user_check(
      list.size() <= 1 || channel < list.size(), ErrorKind::InvalidArgument,
      "--{} has {} numbers, but the image has more channels.\nhint: Pass one, or one for each channel.",
      option, list.size());
  return list.empty() ? otherwise : list.size() == 1 ? list[0] : list[channel];
}

// What each byte becomes, for each channel.
Tensor tables_for(int64_t channels, double scale, const InputOptions& options) {
  std::vector<float> numbers;
  for (int64_t c = 0; c < channels; ++c) {
    const auto place = static_cast<size_t>(options.bgr ? channels - 1 - c : c);
    const double mean = entry(options.mean, place, 0, "mean"),
                 deviation = entry(options.std, place, 1, "std");
    user_check(deviation != 0, ErrorKind::InvalidArgument, "--std has a zero.");
    for (int byte = 0; byte < 256; ++byte)
      numbers.push_back(static_cast<float>((byte * scale - mean) / deviation));
  }
  return Tensor::from_vector(numbers, Shape{channels, 256}, DType::Float32);
}

}  // namespace

Tensor image_input(const std::string& file, const Port& input, const InputOptions& options) {
  Wanted wanted = wanted_by(input, options.layout);
  take_size(wanted, options.size);
  user_check(
      wanted.channels == -1 || wanted.channels == 1 || wanted.channels == 3,
      ErrorKind::InvalidArgument,
      "the input {} has {} channels, so it takes no image.\nhint: Pass --layout, or an .npy file.",
      input.str(), wanted.channels);
  Tensor image = media::decode_image(
      read_file(file), wanted.channels == 1 ? media::Channels::Gray : media::Channels::Rgb);
  const int64_t height = wanted.height < 0 ? image.dim(0).value() : wanted.height;
  const int64_t width = wanted.width < 0 ? image.dim(1).value() : wanted.width;
  if (image.dim(0) != Dim(height) || image.dim(1) != Dim(width))
    image = media::resample(image, height, width, media::Filter::Bilinear);
  const double usual = is_floating(input.likely_dtype()) ? 1.0 / 255 : 1.0;
  const double scale = options.scale == 0 ? usual : options.scale;
  const int64_t channels = image.dim(2).value();
  Tensor made = media::look_up(image, tables_for(channels, scale, options), wanted.channels_first);
  if (options.bgr) made = flip(made, {wanted.channels_first ? 0 : 2});
  if (made.dtype() != input.likely_dtype()) made = cast(made, input.likely_dtype());
  if (!wanted.batched) return made;
  Shape shape{1};
  for (const Dim d : made.dims()) shape.push_back(d);
  return reshape(made, shape);
}

}  // namespace oar::cli
