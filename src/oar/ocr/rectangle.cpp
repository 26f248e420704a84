// The smallest rectangle around a hull. Its corners are cut to whole pixels later, so that the last bits count: all steps are in
// float, in the order in which OpenCV takes them, and rectangles come out as there.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "oar/ocr/geometry.h"

namespace oar::ocr {
namespace {

// Clockwise on the screen, from the right end of the top.
std::vector<Point> from_the_top(std::span<const Pixel> hull) {
  const auto first = std::min_element(hull.begin(), hull.end(), [](const Pixel& a, const Pixel& b) {
    return a.y != b.y ? a.y < b.y : a.x > b.x;
  });
  std::vector<Point> points;
  for (size_t i = 0; i < hull.size(); ++i) {
    const Pixel& p = hull[(static_cast<size_t>(first - hull.begin()) + i) % hull.size()];
    points.push_back({static_cast<float>(p.x), static_cast<float>(p.y)});
  }
  return points;
}

// A direction as seen from one of the four sides of the calipers.
Point seen_from(size_t side, const Point& d) {
  switch (side) {
    case 0:
      return d;
    case 1:
      return {d.y, -d.x};
    case 2:
      return {-d.x, -d.y};
    default:
      return {-d.y, d.x};
  }
}

struct Candidate {
  Point base;           // the direction of a side
  float along, across;  // the sizes in its direction and across it
  Point left, bottom;   // points on two sides
};

// Four lines around the hull that turn together; each touches it at a point.
class Calipers {
 public:
  explicit Calipers(std::vector<Point> points) : points_(std::move(points)) {
    for (size_t i = 0; i < points_.size(); ++i) {
      const Point &a = points_[i], &b = points_[(i + 1) % points_.size()];
      edges_.push_back({b.x - a.x, b.y - a.y});
      if (a.y < points_[touch_[kBottom]].y) touch_[kBottom] = i;
      if (a.x > points_[touch_[kRight]].x) touch_[kRight] = i;
      if (a.y > points_[touch_[kTop]].y) touch_[kTop] = i;
      if (a.x < points_[touch_[kLeft]].x) touch_[kLeft] = i;
    }
  }

  // Turns to the next edge of the hull.
  Candidate next() {
    size_t side = 0;  // whose edge comes first
    for (size_t i = 1; i < 4; ++i) {
      const Point a = seen_from(side, edges_[touch_[side]]), b = seen_from(i, edges_[touch_[i]]);
      if (product(a.x, b.y) - product(a.y, b.x) < 0) side = i;
    }
    const Point base = seen_from(side, unit(edges_[touch_[side]]));
    touch_[side] = (touch_[side] + 1) % points_.size();
    const Point &left = at(kLeft), &right = at(kRight), &top = at(kTop), &bottom = at(kBottom);
    return {base, (right.x - left.x) * base.x + (right.y - left.y) * base.y,
            -(top.x - bottom.x) * base.y + (top.y - bottom.y) * base.x, left, bottom};
  }

 private:
  enum Side : size_t { kBottom, kRight, kTop, kLeft };

  static double product(float a, float b) {
    return static_cast<double>(a) * static_cast<double>(b);
  }
  static Point unit(const Point& d) {
    const auto inverse = static_cast<float>(1 / std::sqrt(product(d.x, d.x) + product(d.y, d.y)));
    return {d.x * inverse, d.y * inverse};
  }
  const Point& at(Side side) const { return points_[touch_[side]]; }

  std::vector<Point> points_, edges_;
  std::array<size_t, 4> touch_{};
};

// Where the sides through `left` and `bottom` meet.
Point corner_of(const Candidate& c) {
  const Point &u = c.base, v{-u.y, u.x};
  const float on_left = u.x * c.left.x + c.left.y * u.y;
  const float on_bottom = v.x * c.bottom.x + c.bottom.y * v.y;
  const float inverse = 1.F / (u.x * v.y - v.x * u.y);
  return {(on_left * v.y - on_bottom * u.y) * inverse, (u.x * on_bottom - v.x * on_left) * inverse};
}

float length_of(const Point& d) {
  const auto x = static_cast<double>(d.x), y = static_cast<double>(d.y);
  return static_cast<float>(std::sqrt(x * x + y * y));
}

Rectangle rectangle_of(const Candidate& c) {
  const Point corner = corner_of(c);
  const Point one{c.base.x * c.along, c.base.y * c.along};
  const Point other{-c.base.y * c.across, c.base.x * c.across};
  const Point centre{corner.x + (one.x + other.x) * 0.5F, corner.y + (one.y + other.y) * 0.5F};
  float width = length_of(one), height = length_of(other);
  constexpr double kDegrees = 180 / std::numbers::pi;
  const auto turned =
      static_cast<float>(std::atan2(static_cast<double>(one.y), static_cast<double>(one.x)));
  auto angle = static_cast<float>(static_cast<double>(turned) * 180 / std::numbers::pi);
  for (; angle >= 0; angle -= 90) std::swap(width, height);
  for (; angle < -90; angle += 90) std::swap(width, height);
  const double radians = static_cast<double>(angle) / kDegrees;
  const float b = static_cast<float>(std::cos(radians)) * 0.5F;
  const float a = static_cast<float>(std::sin(radians)) * 0.5F;
  const Point first{centre.x - a * height - b * width, centre.y + b * height - a * width};
  const Point second{centre.x + a * height - b * width, centre.y - b * height - a * width};
  return {{first,
           second,
           {2 * centre.x - first.x, 2 * centre.y - first.y},
           {2 * centre.x - second.x, 2 * centre.y - second.y}},
          static_cast<double>(std::min(width, height))};
}

}  // namespace

Rectangle smallest_rectangle(std::span<const Pixel> hull) {
  if (hull.empty()) return {};
  const std::vector<Point> points = from_the_top(hull);
  if (points.size() < 3) return {{points.front(), points.back(), points.back(), points.front()}, 0};
  Calipers calipers(points);
  Candidate best{};
  float least = std::numeric_limits<float>::max();
  for (size_t i = 0; i < points.size(); ++i) {
    const Candidate found = calipers.next();
    if (const float area = found.along * found.across; area <= least) {
      least = area;
      best = found;
    }
  }
  return rectangle_of(best);
}

}  // namespace oar::ocr
