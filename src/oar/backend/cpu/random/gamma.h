// Gamma numbers: rejection from a transformed normal number (Marsaglia and Tsang, 2000). Shapes below 1 are drawn with
// shape + 1 and multiplied by a power of a uniform number.
#pragma once

#include <cmath>

#include "oar/backend/cpu/random/normal.h"
#include "oar/backend/cpu/random/random_stream.h"
#include "oar/backend/cpu/simd/exponentials.h"

namespace oar::cpu {

// Each element has its own part of the stream. The first try, which nearly always succeeds, is computed for a group of
// elements together; so an element has the same number wherever the work is cut.
template <class C>
class GammaDraw {
  static constexpr uint64_t kPerTry = sizeof(C) / 4;  // blocks
  static constexpr uint64_t kTries = 64;              // practically never reached

 public:
  static constexpr uint64_t kBlocks = kTries * kPerTry;

  explicit GammaDraw(const Stream& stream) : stream_(stream) {}

  // The numbers of elements at, at + 1 ... of the whole tensor; at most kGroup.
  void group(int64_t at, const C* shape, int64_t count, C* made) const {
    Block bits[kPerTry][kGroup];
    const uint64_t first = static_cast<uint64_t>(at) * kBlocks;
    for (uint64_t b = 0; b < kPerTry; ++b)
      philox_group(stream_.seed, stream_.offset + first + b, bits[b], kBlocks);
    C shapes[kGroup];
    std::fill(std::copy_n(shape, count, shapes), shapes + kGroup, C(1));
    C units[4][kGroup];
    for (int64_t k = 0; k < kGroup; ++k) read_units(&bits[0][k], units, k);
    normals_of<2 * kGroup>(units[0]);
    C power[kGroup];
    bool sure[kGroup];
    for (int64_t k = 0; k < kGroup; ++k) {
      const Shape s(shapes[k]);
      const C x = units[0][k], square = x * x;
      power[k] = shapes[k] < 1 ? functions::exp(functions::log(1 - units[3][k]) / shapes[k]) : C(1);
      sure[k] = (s.slope * x > -1) & (units[2][k] > C(0.0331) * square * square);
      shapes[k] = s.number(x);
    }
    for (int64_t k = 0; k < count; ++k) {
      if (!sure[k] && !accepted(shape[k], units[0][k], units[2][k]))
        shapes[k] = later_try(first + static_cast<uint64_t>(k) * kBlocks, shape[k]);
      const C number = std::isinf(shape[k]) ? shape[k] : shapes[k] * power[k];
      made[k] = shape[k] > 0 ? number : C(0);
    }
  }

 private:
  struct Shape {
    C d, slope;
    explicit Shape(C shape)
        : d((shape < 1 ? shape + 1 : shape) - C(1) / 3), slope(1 / std::sqrt(9 * d)) {}
    // d (1 + slope x)^3, to the last digits of d for large shapes.
    C number(C x) const {
      const C t = slope * x;
      return d + d * t * (3 + t * (3 + t));
    }
  };

  // A try's numbers: two for the normal one, one that decides, one for the power.
  static void read_units(const Block* bits, C (*units)[kGroup], int64_t k) {
    for (size_t i = 0; i < 4; ++i) {
      if constexpr (sizeof(C) == 8) {
        const Block& block = bits[i / 2 * static_cast<size_t>(kGroup)];
        units[i][k] = unit_double(block[i % 2 * 2], block[i % 2 * 2 + 1]);
      } else {
        units[i][k] = unit_float((*bits)[i]);
      }
    }
  }
  static bool accepted(C shape, C x, C u) {
    const double d = (shape < 1 ? shape + 1.0 : shape) - 1.0 / 3, t = x / std::sqrt(9 * d);
    if (t <= -1) return false;
    const double w = t * (3 + t * (3 + t));
    return std::log1p(-static_cast<double>(u)) < 0.5 * x * x + d * (std::log1p(w) - w);
  }
  C later_try(uint64_t first, C shape) const {
    const Shape s(shape);
    for (uint64_t attempt = 1; attempt < kTries; ++attempt) {
      Block bits[kPerTry * kGroup];
      for (uint64_t b = 0; b < kPerTry; ++b)
        bits[b * kGroup] = stream_.block(first + attempt * kPerTry + b);
      C units[4][kGroup];
      read_units(bits, units, 0);
      C pair[] = {units[0][0], units[1][0]};
      normals_of<2>(pair);
      if (accepted(shape, pair[0], units[2][0])) return s.number(pair[0]);
    }
    return s.d;
  }

  Stream stream_;
};

}  // namespace oar::cpu
