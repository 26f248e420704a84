// The geometry of OCR. Expected numbers are those of OpenCV 5.0 and pyclipper 1.4 on the same shapes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "oar/ocr/crop.h"
#include "oar/ocr/detect.h"
#include "oar/ocr/geometry.h"

namespace oar::ocr {
namespace {

Mask mask_of(const std::vector<std::string>& rows) {
  Mask mask{static_cast<int64_t>(rows.size()), static_cast<int64_t>(rows[0].size()), {}};
  for (const std::string& row : rows)
    for (const char c : row) mask.bytes.push_back(c == '#' ? 255 : 0);
  return mask;
}

std::vector<Pixel> sorted(std::vector<Pixel> points) {
  std::sort(points.begin(), points.end(),
            [](const Pixel& a, const Pixel& b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
  return points;
}

// The pixels of a polygon, by the sum over one of them at a time.
Mask filled(std::span<const Pixel> polygon, int64_t size) {
  Mask mask{size, size, std::vector<uint8_t>(static_cast<size_t>(size * size))};
  const double whole = [&] {
    const std::vector<float> ones(mask.bytes.size(), 1.F);
    return mean_inside(ones.data(), size, size, polygon);
  }();
  EXPECT_EQ(whole, 1.0);
  std::vector<float> one(mask.bytes.size());
  for (size_t i = 0; i < one.size(); ++i) {
    one[i] = 1;
    mask.bytes[i] = mean_inside(one.data(), size, size, polygon) > 0 ? 1 : 0;
    one[i] = 0;
  }
  return mask;
}

TEST(OcrBorders, OfRegionsAndHoles) {
  EXPECT_TRUE(trace_borders(mask_of({"...", "..."})).empty());
  const auto single = trace_borders(mask_of({"...", ".#.", "..."}));
  ASSERT_EQ(single.size(), 1U);
  EXPECT_EQ(single[0], (std::vector<Pixel>{{1, 1}}));
  // A ring has two borders: the outer one, and the pixels around its hole.
  const auto ring = trace_borders(mask_of({"#####", "#...#", "#...#", "#####"}));
  ASSERT_EQ(ring.size(), 2U);
  EXPECT_EQ(ring[0].size(), 14U);
  EXPECT_EQ(ring[1].size(), 10U);  // its corners touch the hole at corners only
  // Regions that touch at a corner are one.
  EXPECT_EQ(trace_borders(mask_of({"##..", "..##"})).size(), 1U);
  EXPECT_EQ(trace_borders(mask_of({"##..", "....", "..##"})).size(), 2U);
}

TEST(OcrBorders, OfMaskThatFillsTheImage) {
  const auto borders = trace_borders(mask_of({"###", "###", "###"}));
  ASSERT_EQ(borders.size(), 1U);
  EXPECT_EQ(borders[0].size(), 8U);
  EXPECT_EQ(convex_hull(borders[0]).size(), 4U);
}

TEST(OcrHull, DropsPointsInsideAndOnEdges) {
  const std::vector<Pixel> hull =
      convex_hull({{0, 0}, {2, 0}, {4, 0}, {4, 4}, {0, 4}, {2, 2}, {0, 2}, {0, 0}});
  EXPECT_EQ(sorted(hull), (std::vector<Pixel>{{0, 0}, {0, 4}, {4, 0}, {4, 4}}));
  EXPECT_EQ(convex_hull({{1, 1}, {2, 2}, {3, 3}}).size(), 2U);
  EXPECT_TRUE(convex_hull({}).empty());
}

struct Shape {
  std::vector<Pixel> polygon;
  size_t border;                 // pixels
  std::array<Point, 4> corners;  // of the rectangle around it, by x
  double shorter;
  double mean;
  int64_t pixels;
};
const Shape kShapes[] = {
    {{{19, 39}, {22, 28}, {60, 40}, {57, 51}},
     98,
     {{{18.1F, 39.19F}, {21.8F, 27.46F}, {57.2F, 51.54F}, {60.9F, 39.81F}}},
     12.29620,
     0.5117638889,
     504},
    {{{36, 57}, {22, 36}, {43, 22}, {57, 43}},
     84,
     {{{21.62F, 35.92F}, {35.92F, 57.38F}, {43.08F, 21.62F}, {57.38F, 43.08F}}},
     25.79356,
     0.4504514706,
     680},
    {{{25, 44}, {25, 36}, {55, 36}, {55, 44}},
     76,
     {{{25, 36}, {25, 44}, {55, 36}, {55, 44}}},
     8,
     0.4667992831,
     279},
    {{{27, 17}, {36, 14}, {52, 62}, {43, 65}},
     114,
     {{{26.6F, 16.8F}, {36.2F, 13.6F}, {42.8F, 65.4F}, {52.4F, 62.2F}}},
     10.11929,
     0.4588624539,
     538},
};

TEST(OcrRectangles, AreThoseOfOpenCV) {
  for (const Shape& shape : kShapes) {
    const auto borders = trace_borders(filled(shape.polygon, 80));
    ASSERT_EQ(borders.size(), 1U);
    EXPECT_NEAR(static_cast<double>(borders[0].size()), static_cast<double>(shape.border), 2);
    Rectangle found = smallest_rectangle(convex_hull(borders[0]));
    std::sort(found.corners.begin(), found.corners.end(),
              [](const Point& a, const Point& b) { return a.x != b.x ? a.x < b.x : a.y < b.y; });
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_NEAR(found.corners[i].x, shape.corners[i].x, 0.01F);
      EXPECT_NEAR(found.corners[i].y, shape.corners[i].y, 0.01F);
    }
    EXPECT_NEAR(found.shorter, shape.shorter, 1e-4);
  }
}

TEST(OcrRectangles, OfPointsAndLines) {
  EXPECT_EQ(smallest_rectangle(std::vector<Pixel>{{3, 4}}).shorter, 0);
  EXPECT_EQ(smallest_rectangle(std::vector<Pixel>{{3, 4}, {9, 4}}).shorter, 0);
}

TEST(OcrMeans, AreThoseOfOpenCV) {
  std::vector<float> values;
  for (int i = 0; i < 6400; ++i) values.push_back(static_cast<float>(i * 37 % 1001 / 1000.0));
  for (const Shape& shape : kShapes) {
    const Mask mask = filled(shape.polygon, 80);
    EXPECT_EQ(std::count(mask.bytes.begin(), mask.bytes.end(), 1), shape.pixels);
    EXPECT_NEAR(mean_inside(values.data(), 80, 80, shape.polygon), shape.mean, 1e-6);
  }
}

TEST(OcrMeans, CountOnlyWhatIsInside) {
  const std::vector<float> values(16, 0.5F);
  EXPECT_EQ(
      mean_inside(values.data(), 4, 4, std::vector<Pixel>{{-9, -9}, {9, -9}, {9, 9}, {-9, 9}}),
      0.5);
  EXPECT_EQ(mean_inside(values.data(), 4, 4, std::vector<Pixel>{{7, 7}, {9, 7}, {9, 9}, {7, 9}}),
            0);
}

TEST(OcrGrowth, IsThatOfClipper) {
  const auto hull = [](size_t shape, double by) {
    return sorted(convex_hull(grow(kShapes[shape].polygon, by)));
  };
  EXPECT_EQ(hull(0, 2.3), (std::vector<Pixel>{{17, 38},
                                              {17, 40},
                                              {18, 41},
                                              {20, 27},
                                              {21, 26},
                                              {23, 26},
                                              {56, 53},
                                              {58, 53},
                                              {59, 52},
                                              {61, 38},
                                              {62, 39},
                                              {62, 41}}));
  EXPECT_EQ(hull(1, 7.9), (std::vector<Pixel>{{14, 37},
                                              {15, 33},
                                              {15, 40},
                                              {18, 29},
                                              {29, 61},
                                              {33, 64},
                                              {37, 65},
                                              {39, 15},
                                              {40, 64},
                                              {42, 14},
                                              {46, 15},
                                              {50, 18},
                                              {61, 50},
                                              {64, 39},
                                              {64, 46},
                                              {65, 42}}));
  EXPECT_EQ(hull(2, 2.3),
            (std::vector<Pixel>{
                {23, 36}, {23, 45}, {24, 34}, {25, 46}, {55, 34}, {56, 46}, {57, 35}, {57, 44}}));
  EXPECT_EQ(hull(3, 7.9), (std::vector<Pixel>{{19, 16},
                                              {21, 12},
                                              {25, 10},
                                              {36, 67},
                                              {37, 6},
                                              {38, 71},
                                              {41, 8},
                                              {42, 73},
                                              {43, 12},
                                              {54, 69},
                                              {58, 67},
                                              {60, 63}}));
}

Tensor pattern() {
  Tensor image = media::empty_image(24, 32, 3);
  auto* out = image.data<uint8_t>();
  for (int64_t y = 0; y < 24; ++y)
    for (int64_t x = 0; x < 32; ++x)
      for (int64_t c = 0; c < 3; ++c)
        *out++ = static_cast<uint8_t>((x * x / 3 + y * 7 + x * y / 4 + c * 40) % 256);
  return image;
}

struct Cut {
  Quad box;
  int64_t height, width, sum;
  std::array<int, 8> row;  // the first channel of the fourth row
  int64_t weighted;        // by the place, modulo 97
};

TEST(OcrCrop, IsThatOfOpenCV) {
  const Cut cuts[] = {
      {{{{3, 4}, {27, 7}, {25, 18}, {2, 14}}},
       11,
       24,
       104693,
       {54, 58, 63, 69, 76, 83, 91, 99},
       4967492},
      {{{{4, 5}, {20, 5}, {20, 15}, {4, 15}}},
       10,
       16,
       70378,
       {69, 74, 80, 86, 93, 101, 109, 118},
       3336654},
      {{{{20, 2}, {26, 3}, {23, 20}, {17, 19}}},
       6,
       17,
       32912,
       {191, 199, 210, 218, 238, 247, 179, 33},
       1513691},
      {{{{0, 0}, {31, 2}, {31, 23}, {1, 21}}},
       21,
       31,
       252236,
       {22, 23, 25, 29, 33, 36, 42, 48},
       12097396},
  };
  for (const Cut& cut : cuts) {
    const Tensor found = crop(pattern(), cut.box);
    const media::ImageSize size = media::size_of_image(found);
    ASSERT_EQ(size.height, cut.height);
    ASSERT_EQ(size.width, cut.width);
    int64_t sum = 0, weighted = 0;
    for (int64_t i = 0; i < size.numel(); ++i) {
      sum += found.data<uint8_t>()[i];
      weighted += found.data<uint8_t>()[i] * (i % 97);
    }
    // A few values are halfway between two bytes.
    EXPECT_NEAR(static_cast<double>(sum), static_cast<double>(cut.sum), 4);
    EXPECT_NEAR(static_cast<double>(weighted), static_cast<double>(cut.weighted), 4 * 97);
    for (int64_t x = 0; x < 8; ++x)
      EXPECT_NEAR(found.data<uint8_t>()[3 * size.row() + 3 * x], cut.row[static_cast<size_t>(x)],
                  1);
  }
}

std::vector<uint8_t> bytes_of(const Tensor& image) {
  const auto* begin = image.data<uint8_t>();
  return {begin, begin + image.numel().value()};
}

TEST(OcrCrop, Turns) {
  Tensor image = media::empty_image(2, 3, 1);
  for (uint8_t i = 0; i < 6; ++i) image.data<uint8_t>()[i] = i;
  EXPECT_EQ(bytes_of(turned_around(image)), (std::vector<uint8_t>{5, 4, 3, 2, 1, 0}));
  EXPECT_EQ(bytes_of(turned_left(image)), (std::vector<uint8_t>{2, 5, 1, 4, 0, 3}));
}

}  // namespace
}  // namespace oar::ocr
