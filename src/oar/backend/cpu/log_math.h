// The logarithm as straight-line code, so that a loop around it vectorises.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "oar/backend/cpu/vector_math.h"

namespace oar::cpu {

// log((1 + s) / (1 - s)) for |s| up to 1/3, by its series.
inline float log_ratio(float s) {
  const float q = s * s;
  float p = 2.0f / 15;
  p = p * q + 2.0f / 13;
  p = p * q + 2.0f / 11;
  p = p * q + 2.0f / 9;
  p = p * q + 2.0f / 7;
  p = p * q + 2.0f / 5;
  p = p * q + 2.0f / 3;
  return s * 2 + s * q * p;
}

// log(x) to within 2 units in the last place.
inline float log_of(float x) {
  const bool tiny = x < std::numeric_limits<float>::min();
  const float scaled = tiny ? x * 0x1p24f : x;
  const auto bits = std::bit_cast<int32_t>(scaled);
  // The exponent for which the mantissa lies in [sqrt(1/2), sqrt(2)).
  const int32_t exponent = (bits - 0x3f3504f3) >> 23;
  const float mantissa = std::bit_cast<float>(bits - (exponent << 23));
  const auto n = static_cast<float>(exponent - (tiny ? 24 : 0));
  const float made =
      n * 0.693359375f + (log_ratio((mantissa - 1) / (mantissa + 1)) - n * 2.12194440e-4f);
  const float edge =
      x == 0 ? -std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  const float top = x > std::numeric_limits<float>::max() ? x : made;
  return x > 0 ? top : edge;
}
inline double log_of(double x) { return std::log(x); }

}  // namespace oar::cpu
