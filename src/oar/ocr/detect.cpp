#include "oar/ocr/detect.h"

#include <algorithm>
#include <cmath>

#include "oar/base/error.h"
#include "oar/media/resize.h"
#include "oar/ocr/planes.h"

namespace oar::ocr {
namespace {

constexpr int64_t kStep = 32;     // the network halves its input five times
constexpr double kLeastSide = 3;  // of a box, in pixels
constexpr float kLineDistance = 10;

int64_t whole_steps(double size) {
  return std::max<int64_t>(static_cast<int64_t>(std::nearbyint(size / kStep)), 1) * kStep;
}

// The pixels above the threshold, and those to their right and below: lines keep together.
Mask mask_of(const float* map, int64_t rows, int64_t columns, float threshold) {
  Mask mask{rows, columns, std::vector<uint8_t>(static_cast<size_t>(rows * columns))};
  std::vector<uint8_t> above(static_cast<size_t>(columns)), here(above.size());
  for (int64_t y = 0; y < rows; ++y) {
    const float* in = map + y * columns;
    for (size_t x = 0; x < here.size(); ++x) here[x] = in[x] > threshold ? 1 : 0;
    uint8_t* out = mask.bytes.data() + y * columns;
    out[0] = here[0] | above[0];
    for (size_t x = 1; x < here.size(); ++x)
      out[x] = static_cast<uint8_t>(here[x] | above[x] | here[x - 1] | above[x - 1]);
    std::swap(here, above);
  }
  return mask;
}

// Clockwise from the top left, as far as a rotated rectangle has a top left.
Quad ordered(Quad q) {
  std::stable_sort(q.begin(), q.end(), [](const Point& a, const Point& b) { return a.x < b.x; });
  if (q[1].y <= q[0].y) std::swap(q[0], q[1]);  // left: upper, lower
  if (q[3].y <= q[2].y) std::swap(q[2], q[3]);  // right: upper, lower
  return {q[0], q[2], q[3], q[1]};
}

std::array<Pixel, 4> truncated(const Quad& q) {
  std::array<Pixel, 4> pixels;
  for (size_t i = 0; i < 4; ++i)
    pixels[i] = {static_cast<int64_t>(q[i].x), static_cast<int64_t>(q[i].y)};
  return pixels;
}

double score_of(const float* map, int64_t rows, int64_t columns, const Quad& box) {
  // Coordinates are cut relative to the box's own corner, which matters where they are negative.
  float left = box[0].x, top = box[0].y;
  for (const Point& p : box) {
    left = std::min(left, p.x);
    top = std::min(top, p.y);
  }
  const auto clamped = [](float v, int64_t most) {
    return std::clamp<int64_t>(static_cast<int64_t>(std::floor(v)), 0, most - 1);
  };
  const int64_t x0 = clamped(left, columns), y0 = clamped(top, rows);
  std::array<Pixel, 4> corners;
  for (size_t i = 0; i < 4; ++i)
    corners[i] = {static_cast<int64_t>(box[i].x - static_cast<float>(x0)) + x0,
                  static_cast<int64_t>(box[i].y - static_cast<float>(y0)) + y0};
  return mean_inside(map, rows, columns, corners);
}

// A corner in pixels of the image.
float scaled(float value, int64_t from, int64_t to) {
  const float on_image = std::nearbyint(value / static_cast<float>(from) * static_cast<float>(to));
  return std::clamp(on_image, 0.F, static_cast<float>(to - 1));
}

int64_t length(const Point& a, const Point& b) {
  const float x = a.x - b.x, y = a.y - b.y;
  return static_cast<int64_t>(std::sqrt(x * x + y * y));
}

}  // namespace

media::ImageSize detection_size(int64_t height, int64_t width, const DetectOptions& options) {
  const int64_t shorter = std::min(height, width);
  const double ratio = shorter < options.shorter_side ? static_cast<double>(options.shorter_side) /
                                                            static_cast<double>(shorter)
                                                      : 1.0;
  const auto size = [&](int64_t side) {
    return whole_steps(std::trunc(static_cast<double>(side) * ratio));
  };
  return {size(height), size(width), 3};
}

std::vector<FoundBox> boxes_of_map(const float* map, int64_t rows, int64_t columns, int64_t height,
                                   int64_t width, const DetectOptions& options) {
  std::vector<std::vector<Pixel>> borders =
      trace_borders(mask_of(map, rows, columns, options.pixel_threshold));
  // Those found last count if there are too many.
  if (static_cast<int64_t>(borders.size()) > options.most_boxes)
    borders.erase(borders.begin(), borders.end() - options.most_boxes);
  std::vector<FoundBox> found;
  for (auto border = borders.rbegin(); border != borders.rend(); ++border) {
    const Rectangle core = smallest_rectangle(convex_hull(std::move(*border)));
    if (core.shorter < kLeastSide) continue;
    const Quad corners = ordered(core.corners);
    const double score = score_of(map, rows, columns, corners);
    if (score < options.box_threshold) continue;
    const double distance = area_of(corners) * options.growth / perimeter_of(corners);
    const Rectangle grown = smallest_rectangle(convex_hull(grow(truncated(corners), distance)));
    if (grown.shorter < kLeastSide + 2) continue;
    Quad box = grown.corners;
    for (Point& p : box) p = {scaled(p.x, columns, width), scaled(p.y, rows, height)};
    box = ordered(box);
    if (length(box[0], box[1]) <= 3 || length(box[0], box[3]) <= 3) continue;
    found.push_back({box, score});
  }
  return found;
}

void sort_for_reading(std::vector<FoundBox>& boxes) {
  const auto top = [](const FoundBox& b) { return b.corners[0].y; };
  std::stable_sort(boxes.begin(), boxes.end(),
                   [&](const FoundBox& a, const FoundBox& b) { return top(a) < top(b); });
  for (auto line = boxes.begin(); line != boxes.end();) {
    auto end = line + 1;
    while (end != boxes.end() && top(*end) - top(*(end - 1)) < kLineDistance) ++end;
    std::stable_sort(line, end, [](const FoundBox& a, const FoundBox& b) {
      return a.corners[0].x < b.corners[0].x;
    });
    line = end;
  }
}

std::vector<FoundBox> detect(const Network& network, const Tensor& image,
                             const DetectOptions& options) {
  const media::ImageSize size = media::size_of_image(image);
  const media::ImageSize in = detection_size(size.height, size.width, options);
  Tensor input = empty_batch(1, in.height, in.width);
  const bool fits = in.height == size.height && in.width == size.width;
  put_planes(fits ? image : media::resize(image, in.height, in.width, media::Interpolation::Linear),
             input, 0);
  const Tensor map = network.run(input);
  user_check(map.rank() == 4 && map.dtype() == DType::Float32 && map.dim(0).value() == 1 &&
                 map.dim(1).value() == 1 && map.is_contiguous(),
             ErrorKind::InvalidArgument,
             "the network for detection returned {}; a map [1, 1, height, width] of float32 is "
             "expected.\nhint: Pass the detection network of PP-OCR.",
             map.describe());
  std::vector<FoundBox> boxes = boxes_of_map(map.data<float>(), map.dim(2).value(),
                                             map.dim(3).value(), size.height, size.width, options);
  sort_for_reading(boxes);
  return boxes;
}

}  // namespace oar::ocr
