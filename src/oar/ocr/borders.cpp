// Borders of regions and of their holes.
#include <array>

#include "oar/ocr/geometry.h"

namespace oar::ocr {
namespace {

// Neighbours of a pixel, clockwise from the one on the right.
constexpr std::array<Pixel, 8> kAround{
    {{1, 0}, {1, 1}, {0, 1}, {-1, 1}, {-1, 0}, {-1, -1}, {0, -1}, {1, -1}}};
constexpr size_t kRight = 0;
constexpr size_t kLeft = 4;

// A copy of the mask with a frame of zeros, on which borders are marked as they are found.
class Tracer {
 public:
  explicit Tracer(const Mask& mask)
      : height_(mask.height), width_(mask.width), row_(mask.width + 2) {
    cells_.resize(static_cast<size_t>((height_ + 2) * row_), kOutside);
    for (int64_t y = 0; y < height_; ++y)
      for (int64_t x = 0; x < width_; ++x)
        if (mask.bytes[static_cast<size_t>(y * width_ + x)] != 0) cell({x, y}) = kFresh;
    for (size_t i = 0; i < kAround.size(); ++i) steps_[i] = kAround[i].y * row_ + kAround[i].x;
  }

  std::vector<std::vector<Pixel>> borders() {
    std::vector<std::vector<Pixel>> found;
    for (int64_t y = 0; y < height_; ++y) {
      Cell* at = &cell({0, y});
      for (int64_t x = 0; x < width_; ++x, ++at) {
        if (*at == kOutside) continue;
        if (*at == kFresh && at[-1] == kOutside)
          found.push_back(follow({x, y}, kLeft));
        else if (*at != kRightmost && at[1] == kOutside)
          found.push_back(follow({x, y}, kRight));
      }
    }
    return found;
  }

 private:
  // A pixel of a region: on no border so far; on one; on one, with the outside to its right.
  enum Cell : uint8_t { kOutside, kFresh, kSeen, kRightmost };

  Cell& cell(const Pixel& p) { return cells_[static_cast<size_t>((p.y + 1) * row_ + p.x + 1)]; }
  static Pixel neighbour(const Pixel& p, size_t side) {
    return {p.x + kAround[side].x, p.y + kAround[side].y};
  }
  bool inside(const Pixel& p, size_t side) { return (&cell(p))[steps_[side]] != kOutside; }

  // Walks along the border that starts at `start`, whose neighbour on this side is outside.
  std::vector<Pixel> follow(const Pixel& start, size_t outside) {
    std::vector<Pixel> border;
    size_t last = outside;
    do {
      last = (last + 1) % 8;  // clockwise
    } while (last != outside && !inside(start, last));
    if (last == outside) {
      cell(start) = kRightmost;
      return {start};
    }
    const Pixel before_start = neighbour(start, last);
    Pixel here = start;
    size_t from = last;  // the side of the pixel that the walk came from
    while (true) {
      bool right_is_outside = false;
      size_t side = from;
      do {
        side = (side + 7) % 8;  // anticlockwise
        if (side == kRight && !inside(here, side)) right_is_outside = true;
      } while (!inside(here, side));
      mark(here, right_is_outside);
      border.push_back(here);
      const Pixel next = neighbour(here, side);
      if (next == start && here == before_start) return border;
      here = next;
      from = (side + 4) % 8;
    }
  }
  void mark(const Pixel& p, bool right_is_outside) {
    if (right_is_outside)
      cell(p) = kRightmost;
    else if (cell(p) == kFresh)
      cell(p) = kSeen;
  }

  int64_t height_, width_, row_;
  std::vector<Cell> cells_;
  std::array<int64_t, 8> steps_{};
};

}  // namespace

std::vector<std::vector<Pixel>> trace_borders(const Mask& mask) { return Tracer(mask).borders(); }

}  // namespace oar::ocr
