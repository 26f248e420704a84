// x times the share of a normal distribution below x, and its form with a tanh.
#pragma once

#include "oar/backend/cpu/simd/exponentials.h"

namespace oar::cpu::functions {
namespace {

// The share is 1 / (1 + e^-K(x)) and near to 0 K(x) is x (linear + cubic x^2 + ...), a form that loses
// nothing for negative x. In the form with a tanh that is all of it. Exponents are as large as 100 and an
// error of one becomes one of the result, so they are products a (b + b_low).
template <class T>
struct GeluExponent {
  T a, b, b_low;
};
// Of the linear term so few bits that what the sum has more than it is exact.
template <class T>
inline constexpr T kGeluLinear = kIsFloat<T> ? T(1.595703125) : T(0x1.988453p+0);
template <class T>
inline constexpr T kGeluLinearLow = T(1.59576912160573071176L - kGeluLinear<T>);
template <class T>
OAR_SIMD_INLINE GeluExponent<T> gelu_exponent(T x, T square, T lost, T cubic, T low) {
  const T sum = fma(cubic, square, kGeluLinear<T>);
  return {-x, sum, fma(cubic, square, kGeluLinear<T> - sum) + fma(cubic, lost, low)};
}
template <class T>
OAR_SIMD_INLINE GeluExponent<T> gelu_tanh_exponent(T x) {
  constexpr T kCubic = T(0.0713548162726002487763L),
              kCubicLow = T(0.0713548162726002487763L - kCubic);
  const T square = x * x, lost = fma(x, x, -square);
  return gelu_exponent(x, square, lost, kCubic, fma(kCubicLow, square, kGeluLinearLow<T>));
}
template <class T>
OAR_SIMD_INLINE Halvings<T> without_powers_of_2(const GeluExponent<T>& e) {
  const T shifted = fma(e.a * e.b, T(1.44269504088896340736L), kShifter<T>);
  const T n = shifted - kShifter<T>;
  const T nearly = fma(e.a, e.b, n * -kLn2High<T>);
  const T small = fma(e.a, e.b_low, n * -kLn2Low<T>), rest = nearly + small;
  return {rest, (nearly - rest) + small,
          bits_as<BitsOf<T>>(shifted) - bits_as<BitsOf<T>>(kShifter<T>)};
}

// ---- With a tanh ----------------------------------------------------------------------------------

// For |x| up to kMostGeluTanh, where all powers are normal numbers.
template <class T>
inline constexpr T kMostGeluTanh = kIsFloat<T> ? 10 : 20;
template <class T>
OAR_SIMD_INLINE T normal_gelu_tanh(T x) {
  const Halvings<T> h = without_powers_of_2(gelu_tanh_exponent(x));
  const T power = power_of_2<T>(h.n);
  // 2^24 + 1 (2^53 + 1) has one bit too many.
  const T sum = 1 + power, lost = 1 - (sum - power);
  return x / (sum + fma(power, expm1_near_0(h.rest, h.lost), lost));
}
// Beyond it, it is x e^K(x) or x.
template <class T>
OAR_SIMD_INLINE T far_gelu_tanh(T x) {
  constexpr T kLow = kIsFloat<T> ? T(-11) : T(-21.6);
  const Halvings<T> h = without_powers_of_2(gelu_tanh_exponent(at_least(x, kLow)));
  const T below = x < kLow ? x * 0 : times_exp(x, -h.rest, -h.lost, BitsOf<T>{0} - h.n);
  return x > 0 ? x : below;
}

// ---- With the error function ---------------------------------------------------------------------

// (K(x) / x - linear) / x^2 for |x| up to kTailStart, in x^2.
inline constexpr float kTailStart = 2, kTailShift = 1.0f;
OAR_SIMD_INLINE float gelu_cubic(float square) {
  const float c[] = {0.0726711005f,    -7.354652917e-05f, -0.0001049111816f,
                     6.105545708e-06f, 1.247939796e-08f,  -1.28300659e-08f};
  return polynomial(square, c);
}
// The tail of a normal distribution beyond s >= kTailStart, times s e^(s^2 / 2); w = 1 / (s + kTailShift).
OAR_SIMD_INLINE float tail_of_normal(float w) {
  const float c[] = {0.3989406526f, 0.0001445824601f, -0.4038967192f, -0.7093418837f,
                     -0.917309761f, 8.826914787f,     -15.14167404f,  9.04330349f};
  return polynomial(w, c);
}
// 2^(n + kUp) is a normal number; |x| is bounded to `size`.
template <uint32_t kUp>
OAR_SIMD_INLINE float gelu_of(float x, float size) {
  constexpr float kDown = 1 / float(uint64_t{1} << kUp);
  const float square = size * size, lost = fma(size, size, -square);
  const bool near = size < kTailStart;
  const GeluExponent<float> middle =
      gelu_exponent(x, square, lost, gelu_cubic(square), kGeluLinearLow<float>);
  const Halvings<float> h = without_powers_of_2(GeluExponent<float>{
      near ? middle.a : -0.5f, near ? middle.b : square, near ? middle.b_low : lost});
  const float excess = expm1_near_0(h.rest, h.lost), power = power_of_2<float>(h.n + kUp) * kDown;
  // One division for both: the result, or w.
  const float ratio =
      (near ? x : 1.0f) / (near ? fma(power, excess, 1 + power) : size + kTailShift);
  const float tail = tail_of_normal(ratio);
  const float beyond = fma(tail, excess, tail) * power_of_2<float>(h.n + kUp) * kDown;
  const float far = (x < 0 ? -0.0f : x) - beyond;
  return near ? ratio : far;
}
// For |x| up to kMostGelu the result is a normal number.
inline constexpr float kMostGelu = 13;
OAR_SIMD_INLINE float normal_gelu(float x) { return gelu_of<0>(x, magnitude(x)); }
OAR_SIMD_INLINE float gelu(float x) {
  const float made = gelu_of<63>(x, at_most(magnitude(x), 15));
  return x < -15 ? x * 0 : made;
}
OAR_SIMD_INLINE double gelu(double x) {
  return x * (__builtin_erfc(x * -0.70710678118654752440) / 2);
}

// The share of a normal distribution below x, plus x times its density: the slope of gelu. For x <= 0 the
// share is erfc(a) / 2 with a = -x / sqrt(2), and erfc(a) = e^(-a^2) / (1 + 2a) times a polynomial in
// (a - 4) / (a + 4).
template <class T>
OAR_SIMD_INLINE T bell(T x) {
  const T size = at_most(magnitude(x), kIsFloat<T> ? 15 : 40);
  const T square = size * size, made = exp_of_negative(T(-0.5) * square);
  return fma(made, T(-0.5) * fma(size, size, -square), made);
}
OAR_SIMD_INLINE float normal_share(float x, float bell_of_x) {
  const float a = at_most(magnitude(x) * 0.70710678118654752f, 10.5f);
  const float below = fma(a, 2.0f, 1.0f), inverse = 1 / ((a + 4) * below);
  const float q = (a - 4) * (below * inverse);
  const float c[] = {0.6164975595f,   -0.0698105662f,  0.00768980025f,   0.034048939365f,
                     -0.05051852965f, 0.046860824275f, -0.03318030078f,  0.018606216425f,
                     -0.00800739036f, 0.002539189029f, -0.000553032486f, -0.00031649610835f};
  const float tail = bell_of_x * polynomial(q, c) * ((a + 4) * inverse);
  return x < 0 ? tail : 1 - tail;
}
OAR_SIMD_INLINE double normal_share(double x, double) {
  return __builtin_erfc(x * -0.70710678118654752440) / 2;
}

}  // namespace
}  // namespace oar::cpu::functions
