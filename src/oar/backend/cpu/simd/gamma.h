// The logarithm of the gamma function.
#pragma once

#include "oar/backend/cpu/simd/logarithms.h"

namespace oar::cpu::functions {
namespace {

// log(gamma(2 + v)) / (v (v + 1)) for -1 < v < 1/2: the zeros at 1 and 2 are taken out.
OAR_SIMD_INLINE float lgamma_near_2(float v) {
  const float c[] = {0.4227843285f,   -0.1003172919f,   0.03296500444f,  -0.01238542981f,
                     0.005001559388f, -0.002087759785f, 0.000899023551f, -0.0005221983301f,
                     0.000155465721f, 0.0001320187876f, 0.0002296128805f};
  return polynomial(v, c);
}
// The remainder of Stirling's formula, (x - 1/2) (log(x) - 1) + (log(2 pi) - 1) / 2 + ..., times x, in 1 / x^2.
OAR_SIMD_INLINE float lgamma_correction(float q) {
  const float c[] = {0.08333332092f, -0.002776772017f, 0.0007709414349f, -0.0003880980657f};
  return polynomial(q, c);
}

// log(gamma(x)) for normal x > 0, up to kMostLgamma. Below 1.2 by way of x + 1, where the logarithm of x
// cancels near 1: there it is x - 1 and little more, and the former is taken off what it is added to.
inline constexpr float kMostLgamma = 4e36f;
OAR_SIMD_INLINE float lgamma_of_positive(float x) {
  const Logarithm<float> l = logarithm_of_normal(x);
  const bool low = x < 1.2f, about_1 = l.exponent == 0;
  const float from_1 = x - 1, v = low ? from_1 : x - 2;
  const float near = lgamma_near_2(v);
  const float log_rest = joined(Logarithm<float>{l.exponent, about_1 ? 0.0f : l.f, l.rest});
  const float below = fma(from_1, fma(x, near, about_1 ? -1.0f : 0.0f), -log_rest);
  const float both = from_1 * v, middle = fma(both, near, fma(from_1, v, -both) * near);
  // log(x) - 1 in two parts. Their sum is exact while the first is small.
  const float whole = fma(l.exponent, kLn2High<float>, -1.0f), high = whole + l.f;
  const float small = ((whole - high) + l.f) + fma(l.exponent, kLn2Low<float>, l.rest);
  const float r = 1 / x;
  constexpr float kConstant = 0.418938547f,
                  kConstantLow = float(0.41893853320467274178 - double(kConstant));
  const float rest =
      fma(x, small, fma(small, -0.5f, fma(r, lgamma_correction(r * r), kConstantLow)));
  const float above = fma(x, high, fma(high, -0.5f, kConstant)) + rest;
  const float to_2 = low ? below : middle;
  return x < 2.5f ? to_2 : above;
}

}  // namespace
}  // namespace oar::cpu::functions
