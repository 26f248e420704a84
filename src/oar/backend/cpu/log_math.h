// Logarithms as straight-line code, so that a loop around them vectorises.
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

// log(1 + t) for t in [0, 1].
inline float log1p_of(float t) { return log_ratio(t / (2 + t)); }
inline double log1p_of(double t) { return std::log1p(t); }

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

// exp(x) - 1 for x up to 0, exact near it: a polynomial there, the difference elsewhere.
inline float expm1_of(float x) {
  float p = 1.0f / 40320;
  p = p * x + 1.0f / 5040;
  p = p * x + 1.0f / 720;
  p = p * x + 1.0f / 120;
  p = p * x + 1.0f / 24;
  p = p * x + 1.0f / 6;
  p = p * x + 0.5f;
  const float close = x + x * x * p, apart = exp_of(x) - 1;
  return x > -0.5f ? close : apart;
}
inline double expm1_of(double x) { return std::expm1(x); }

// The hyperbolic tangent.
template <class C>
C tanh_of(C x) {
  const C size = x < 0 ? -x : x, fall = expm1_of(-2 * size);
  const C made = -fall / (2 + fall);
  return x < 0 ? -made : made;
}

// log(1 + exp(x)), without overflow.
template <class C>
C softplus_of(C x) {
  return (x > 0 ? x : C(0)) + log1p_of(exp_of(x > 0 ? -x : x));
}
template <class C>
C logistic_of(C x) {
  return 1 / (1 + exp_of(-x));
}

}  // namespace oar::cpu
