#include "oar/ocr/reader.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/parallel.h"
#include "oar/media/resize.h"
#include "oar/ocr/crop.h"
#include "oar/ocr/detect.h"
#include "oar/ocr/picture.h"
#include "oar/ocr/recognise.h"

namespace oar::ocr {
namespace {

constexpr double kFlat = 8;  // images wider than this times their height get margins

// What the networks see of an image, and how to get back from there.
struct View {
  Tensor image;
  double scale_x = 1, scale_y = 1;
  int64_t margin = 0;  // above and below
};

void resize_to(View& view, double ratio) {
  const media::ImageSize size = media::size_of_image(view.image);
  const auto side = [&](int64_t old) {
    const double wanted = std::trunc(static_cast<double>(old) * ratio);
    return std::max<int64_t>(static_cast<int64_t>(std::nearbyint(wanted / 32)), 1) * 32;
  };
  const int64_t height = side(size.height), width = side(size.width);
  view.image = media::resize(view.image, height, width, media::Interpolation::Linear);
  view.scale_x *= static_cast<double>(size.width) / static_cast<double>(width);
  view.scale_y *= static_cast<double>(size.height) / static_cast<double>(height);
}

// Lines that fill an image to its borders are found better with a margin.
void add_margin(View& view, int64_t least_height) {
  const media::ImageSize size = media::size_of_image(view.image);
  const auto height = static_cast<double>(size.height), width = static_cast<double>(size.width);
  if (size.height > least_height && width / height <= kFlat) return;
  const int64_t wanted = 2 * std::max(static_cast<int64_t>(width / kFlat), least_height);
  view.margin = std::abs(wanted - size.height) / 2;
  Tensor larger = media::empty_image(size.height + 2 * view.margin, size.width, 3);
  const auto bytes = static_cast<size_t>(view.margin * size.row());
  auto* out = larger.data<uint8_t>();
  std::memset(out, 0, bytes);
  std::memcpy(out + bytes, view.image.data<uint8_t>(), static_cast<size_t>(size.numel()));
  std::memset(out + bytes + static_cast<size_t>(size.numel()), 0, bytes);
  view.image = larger;
}

View view_of(const Tensor& image, const Options& options) {
  View view{in_colour(image)};
  const media::ImageSize size = media::size_of_image(view.image);
  const int64_t longer = std::max(size.height, size.width);
  if (longer > options.longest_side)
    resize_to(view, static_cast<double>(options.longest_side) / static_cast<double>(longer));
  const media::ImageSize now = media::size_of_image(view.image);
  const int64_t shorter = std::min(now.height, now.width);
  if (shorter < options.shortest_side)
    resize_to(view, static_cast<double>(options.shortest_side) / static_cast<double>(shorter));
  add_margin(view, options.shortest_side);
  return view;
}

Quad on_image(const Quad& box, const View& view, const media::ImageSize& size) {
  Quad result;
  for (size_t i = 0; i < 4; ++i) {
    const double x = static_cast<double>(box[i].x) * view.scale_x;
    const double y =
        (static_cast<double>(box[i].y) - static_cast<double>(view.margin)) * view.scale_y;
    result[i] = {static_cast<float>(std::clamp(x, 0.0, static_cast<double>(size.width))),
                 static_cast<float>(std::clamp(y, 0.0, static_cast<double>(size.height)))};
  }
  return result;
}

bool is_blank(const std::string& text) {
  return text.find_first_not_of(" \t") == std::string::npos || text == "\u3000";
}

Dictionary dictionary_of(const ModelFiles& files, const Network& recognition) {
  if (!files.dictionary.empty()) return Dictionary(read_file(files.dictionary));
  const auto found = recognition.notes().find("character");
  user_check(found != recognition.notes().end(), ErrorKind::NotFound,
             "{} holds no dictionary.\nhint: Pass it as a text file with one character per line, "
             "named dict.txt, in the same folder.",
             files.recognition);
  return Dictionary(found->second);
}

}  // namespace

struct Reader::Parts {
  std::shared_ptr<const Network> detection, direction, recognition;
  Dictionary dictionary;
  Options options;
};

Reader Reader::load(const ModelFiles& files, const Options& options) {
  auto recognition = load_network(files.recognition);
  Dictionary dictionary = dictionary_of(files, *recognition);
  Reader reader;
  reader.parts_ = std::make_shared<const Parts>(
      Parts{load_network(files.detection),
            files.direction.empty() ? nullptr : load_network(files.direction),
            std::move(recognition), std::move(dictionary), options});
  return reader;
}

std::vector<Line> Reader::read(const Tensor& image) const {
  const Parts& parts = *parts_;
  const View view = view_of(image, parts.options);
  const std::vector<FoundBox> boxes = detect(*parts.detection, view.image, parts.options.detect);
  std::vector<Tensor> pictures(boxes.size());
  parallel_for(0, static_cast<int64_t>(boxes.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i)
      pictures[i] = crop(view.image, boxes[i].corners);
  });
  std::vector<bool> turned(boxes.size());
  if (parts.direction) turned = upside_down(*parts.direction, pictures, parts.options.classify);
  for (size_t i = 0; i < boxes.size(); ++i)
    if (turned[i]) pictures[i] = turned_around(pictures[i]);
  const std::vector<Reading> readings =
      recognise(*parts.recognition, parts.dictionary, pictures, parts.options.recognise);
  const media::ImageSize size = media::size_of_image(image);
  std::vector<Line> lines;
  for (size_t i = 0; i < boxes.size(); ++i) {
    const Reading& reading = readings[i];
    if (is_blank(reading.text) || reading.score < parts.options.recognise.threshold) continue;
    lines.push_back(
        {reading.text, reading.score, on_image(boxes[i].corners, view, size), turned[i]});
  }
  return lines;
}

}  // namespace oar::ocr
