#include "oar/ocr/geometry.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace oar::ocr {
namespace {

int64_t cross(const Pixel& o, const Pixel& a, const Pixel& b) {
  return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

struct Vector {
  double x;
  double y;
};

double dot(const Vector& a, const Vector& b) { return a.x * b.x + a.y * b.y; }

// The unit vector from a to b.
Vector direction(const Pixel& a, const Pixel& b) {
  const auto x = static_cast<double>(b.x - a.x), y = static_cast<double>(b.y - a.y);
  const double length = std::hypot(x, y);
  return {x / length, y / length};
}

int64_t doubled_area(std::span<const Pixel> polygon) {
  int64_t sum = 0;
  for (size_t i = 0; i < polygon.size(); ++i) {
    const Pixel &a = polygon[i], &b = polygon[(i + 1) % polygon.size()];
    sum += a.x * b.y - a.y * b.x;
  }
  return sum;
}

// The points of an arc around corners, with a fixed angle between them.
class Arcs {
 public:
  explicit Arcs(double radius) : radius_(radius) {
    constexpr double kTolerance = 0.25;
    const double inside = std::min(kTolerance, radius * kTolerance);
    // Points in a full turn.
    double turn = std::numbers::pi / std::acos(1 - inside / radius);
    turn = std::min(turn, radius * std::numbers::pi);
    per_radian_ = turn / (2 * std::numbers::pi);
    sine_ = std::sin(2 * std::numbers::pi / turn);
    cosine_ = std::cos(2 * std::numbers::pi / turn);
  }

  // From the outward normal of the edge before the corner to that of the edge after it.
  void add(const Pixel& corner, Vector before, const Vector& after, std::vector<Pixel>& out) const {
    const double sine = before.x * after.y - before.y * after.x, cosine = dot(before, after);
    if (std::abs(sine * radius_) < 1 && cosine > 0) return out.push_back(moved(corner, before));
    const auto steps =
        std::max<int64_t>(std::llround(per_radian_ * std::abs(std::atan2(sine, cosine))), 1);
    for (int64_t i = 0; i < steps; ++i) {
      out.push_back(moved(corner, before));
      before = {before.x * cosine_ - before.y * sine_, before.x * sine_ + before.y * cosine_};
    }
    out.push_back(moved(corner, after));
  }

 private:
  Pixel moved(const Pixel& p, const Vector& normal) const {
    return {std::llround(static_cast<double>(p.x) + normal.x * radius_),
            std::llround(static_cast<double>(p.y) + normal.y * radius_)};
  }

  double radius_, per_radian_, sine_, cosine_;
};

// The columns of a polygon in each of its rows.
class Rows {
 public:
  explicit Rows(std::span<const Pixel> polygon) {
    const auto [low, high] = std::minmax_element(
        polygon.begin(), polygon.end(), [](const Pixel& a, const Pixel& b) { return a.y < b.y; });
    top_ = low->y;
    spans_.resize(static_cast<size_t>(high->y - low->y) + 1, {INT64_MAX, INT64_MIN});
    for (size_t i = 0; i < polygon.size(); ++i)
      add_line(polygon[i], polygon[(i + 1) % polygon.size()]);
  }
  int64_t top() const { return top_; }
  int64_t count() const { return static_cast<int64_t>(spans_.size()); }
  std::pair<int64_t, int64_t> span(int64_t row) const { return spans_[static_cast<size_t>(row)]; }

 private:
  void add(int64_t x, int64_t y) {
    auto& [first, last] = spans_[static_cast<size_t>(y - top_)];
    first = std::min(first, x);
    last = std::max(last, x);
  }
  // A line of pixels that touch at least at a corner.
  void add_line(const Pixel& from, const Pixel& to) {
    const int64_t dx = to.x - from.x, dy = to.y - from.y;
    const int64_t steps = std::max(std::abs(dx), std::abs(dy));
    add(from.x, from.y);
    for (int64_t i = 1; i <= steps; ++i)
      add(from.x + rounded(dx * i, steps), from.y + rounded(dy * i, steps));
  }
  static int64_t rounded(int64_t number, int64_t by) {
    const int64_t doubled = 2 * number + by;
    return doubled >= 0 ? doubled / (2 * by) : -((-doubled + 2 * by - 1) / (2 * by));
  }

  int64_t top_ = 0;
  std::vector<std::pair<int64_t, int64_t>> spans_;
};

}  // namespace

std::vector<Pixel> convex_hull(std::vector<Pixel> points) {
  std::sort(points.begin(), points.end(),
            [](const Pixel& a, const Pixel& b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
  points.erase(std::unique(points.begin(), points.end()), points.end());
  if (points.size() < 3) return points;
  std::vector<Pixel> hull;
  const auto add = [&](const Pixel& p, size_t keep) {
    while (hull.size() > keep && cross(hull[hull.size() - 2], hull.back(), p) <= 0) hull.pop_back();
    hull.push_back(p);
  };
  for (const Pixel& p : points) add(p, 1);
  const size_t lower = hull.size();
  for (size_t i = points.size() - 1; i-- > 0;) add(points[i], lower);
  hull.pop_back();
  return hull;
}

double area_of(const Quad& quad) {
  double sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    const Point &a = quad[i], &b = quad[(i + 1) % 4];
    sum += static_cast<double>(a.x) * static_cast<double>(b.y) -
           static_cast<double>(a.y) * static_cast<double>(b.x);
  }
  return std::abs(sum) / 2;
}

double perimeter_of(const Quad& quad) {
  double sum = 0;
  for (size_t i = 0; i < 4; ++i) {
    const Point &a = quad[i], &b = quad[(i + 1) % 4];
    sum += std::hypot(static_cast<double>(b.x) - static_cast<double>(a.x),
                      static_cast<double>(b.y) - static_cast<double>(a.y));
  }
  return sum;
}

std::vector<Pixel> grow(std::span<const Pixel> polygon, double distance) {
  std::vector<Pixel> corners;
  for (const Pixel& p : polygon)
    if (corners.empty() || !(corners.back() == p)) corners.push_back(p);
  while (corners.size() > 1 && corners.front() == corners.back()) corners.pop_back();
  if (distance <= 0 || corners.size() < 3 || doubled_area(corners) == 0) return corners;
  if (doubled_area(corners) < 0) std::reverse(corners.begin(), corners.end());
  const size_t n = corners.size();
  std::vector<Vector> normals;  // of the edge from each corner to the next
  for (size_t i = 0; i < n; ++i) {
    const Vector along = direction(corners[i], corners[(i + 1) % n]);
    normals.push_back({along.y, -along.x});
  }
  const Arcs arcs(distance);
  std::vector<Pixel> grown;
  for (size_t i = 0; i < n; ++i) arcs.add(corners[i], normals[(i + n - 1) % n], normals[i], grown);
  return grown;
}

double mean_inside(const float* values, int64_t height, int64_t width,
                   std::span<const Pixel> polygon) {
  const Rows rows(polygon);
  double sum = 0;
  int64_t count = 0;
  for (int64_t i = 0; i < rows.count(); ++i) {
    const int64_t y = rows.top() + i;
    if (y < 0 || y >= height) continue;
    const auto [first, last] = rows.span(i);
    for (int64_t x = std::max<int64_t>(first, 0); x <= std::min(last, width - 1); ++x, ++count)
      sum += static_cast<double>(values[y * width + x]);
  }
  return count == 0 ? 0 : sum / static_cast<double>(count);
}

}  // namespace oar::ocr
