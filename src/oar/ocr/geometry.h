// Shapes in the plane: borders of regions, hulls, rectangles, polygons that grow. Rows grow downwards, as in images.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "oar/base/api.h"

namespace OAR_API oar {
namespace ocr {

struct Pixel {
  int64_t x = 0;
  int64_t y = 0;
  bool operator==(const Pixel&) const = default;
};

struct Point {
  float x = 0;
  float y = 0;
  bool operator==(const Point&) const = default;
};

// The corners of a box; clockwise from the one at the top left, unless said otherwise.
using Quad = std::array<Point, 4>;

// A picture of bytes; a byte other than 0 belongs to a region. Pixels that touch at a corner are connected.
struct Mask {
  int64_t height = 0;
  int64_t width = 0;
  std::vector<uint8_t> bytes;
};

// The borders of all regions and of their holes: pixels of the regions, in the order of a walk around (Suzuki and Abe, 1985).
std::vector<std::vector<Pixel>> trace_borders(const Mask& mask);

// The corners of the smallest convex polygon around the points, without those on its edges.
std::vector<Pixel> convex_hull(std::vector<Pixel> points);

struct Rectangle {
  Quad corners;        // in the order of a walk around
  double shorter = 0;  // its shorter side
};
// The rectangle of least area around a convex polygon, by rotating calipers: one of its sides lies on an edge.
Rectangle smallest_rectangle(std::span<const Pixel> hull);

double area_of(const Quad& quad);
double perimeter_of(const Quad& quad);

// A polygon grown by a distance, with round corners, whose points are pixels. Points of the arcs are at most a quarter of a pixel
// inside of the true arc. Only its hull is meant for use: a part where the polygon is not convex is not cleaned up.
std::vector<Pixel> grow(std::span<const Pixel> polygon, double distance);

// The mean of `values`, of the size height x width, over a polygon with its borders.
double mean_inside(const float* values, int64_t height, int64_t width,
                   std::span<const Pixel> polygon);

}  // namespace ocr
}  // namespace oar
