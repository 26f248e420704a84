// e^x and functions of it: hyperbolic and logistic functions.
#pragma once

#include "oar/backend/cpu/simd/numbers.h"

namespace oar::cpu::functions {
namespace {

// Adding it to a number below 2^21 (2^50) leaves the nearest integer in the lowest bits.
template <class T>
inline constexpr ElementOf<T> kShifter = kIsFloat<T> ? 0x1.8p23 : 0x1.8p52;
// ln 2 in two parts, the first with so few bits that its product with an exponent is exact.
template <class T>
inline constexpr ElementOf<T> kLn2High = kIsFloat<T> ? 0.693359375 : 6.93147180369123816490e-01;
template <class T>
inline constexpr ElementOf<T> kLn2Low =
    kIsFloat<T> ? ElementOf<T>(-2.12194440e-4) : ElementOf<T>(1.90821492927058770002e-10);

// x = n ln 2 + rest + lost, |rest| <= ln 2 / 2.
template <class T>
struct Halvings {
  T rest, lost;
  BitsOf<T> n;  // two's complement
};
template <class T>
OAR_SIMD_INLINE Halvings<T> without_powers_of_2(T x) {
  const T shifted = fma(x, ElementOf<T>(1.44269504088896340736L), kShifter<T>);
  const T n = shifted - kShifter<T>;
  const T nearly = fma(n, -kLn2High<T>, x);
  const T rest = fma(n, -kLn2Low<T>, nearly);
  return {rest, fma(n, -kLn2Low<T>, nearly - rest),
          bits_as<BitsOf<T>>(shifted) - bits_as<WordOf<T>>(kShifter<T>)};
}
// 2^n for the exponents of normal numbers.
template <class T>
OAR_SIMD_INLINE T power_of_2(BitsOf<T> n) {
  return bits_as<T>((n + WordOf<T>(Layout<T>::kBias)) << Layout<T>::kMantissa);
}
// y * 2^n in two factors: n may be beyond the exponents of normal numbers.
template <class T>
OAR_SIMD_INLINE T scaled_by_power_of_2(T y, BitsOf<T> n) {
  constexpr WordOf<T> kOffset = 4096;  // makes n positive, so that the shift halves it
  const BitsOf<T> half = ((n + kOffset) >> 1) - kOffset / 2;
  return y * power_of_2<T>(half) * power_of_2<T>(n - half);
}
// e^(r + lost) - 1 for |r| <= ln 2 / 2.
template <class T>
OAR_SIMD_INLINE T expm1_near_0(T r, T lost = T{}) {
  if constexpr (kIsFloat<T>) {
    const float c[] = {0.5f, 0.1666652059f, 0.04166638642f, 0.008368729373f, 0.001394205193f};
    return r + fma(r * r, polynomial(r, c), lost);
  } else {
    const double c[] = {1.0 / 2,       1.0 / 6,        1.0 / 24,        1.0 / 120,
                        1.0 / 720,     1.0 / 5040,     1.0 / 40320,     1.0 / 362880,
                        1.0 / 3628800, 1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800};
    return r + fma(r * r, polynomial(r, c), lost);
  }
}

// e^x * 2^doublings. NaN passes through the comparisons.
template <class T>
OAR_SIMD_INLINE T exp_times(T x, int doublings) {
  x = at_most(at_least(x, kIsFloat<T> ? -105 : -746), kIsFloat<T> ? 90 : 711);
  const Halvings<T> h = without_powers_of_2(x);
  return scaled_by_power_of_2(1 + expm1_near_0(h.rest, h.lost),
                              h.n + static_cast<WordOf<T>>(doublings));
}
// Not as exact as it could be: the error of the reduction is ignored.
template <class T>
OAR_SIMD_INLINE T exp(T x) {
  x = at_most(at_least(x, kIsFloat<T> ? -105 : -746), kIsFloat<T> ? 89 : 710);
  const Halvings<T> h = without_powers_of_2(x);
  return scaled_by_power_of_2(1 + expm1_near_0(h.rest), h.n);
}
// Whether e^x is neither too large for a number nor too small for a normal one.
template <class T>
OAR_SIMD_INLINE bool has_normal_exp(T x) {
  constexpr T kLow = kIsFloat<T> ? T(-87) : T(-708), kHigh = kIsFloat<T> ? T(88) : T(709);
  return (x >= kLow) & (x <= kHigh);
}
// The same for such x.
template <class T>
OAR_SIMD_INLINE T normal_exp(T x) {
  const Halvings<T> h = without_powers_of_2(x);
  return (1 + expm1_near_0(h.rest)) * power_of_2<T>(h.n);
}
// The same for weights: what would be subnormal is 0, since subnormal numbers cost as much as a hundred
// others, and the largest result is finite. NaN is kept.
template <class T>
OAR_SIMD_INLINE T weight_exp(T x) {
  constexpr ElementOf<T> kLow = kIsFloat<T> ? -87.3 : -708.3, kHigh = kIsFloat<T> ? 88.3 : 709.4;
  const T made = normal_exp(at_most(at_least(x, kLow), kHigh));
  return x < kLow ? T{} : made;
}
// The same for x <= 0. It is scaled up first, so that it rounds once even if it is subnormal.
template <class T>
OAR_SIMD_INLINE T exp_of_negative(T x) {
  constexpr T kDown = kIsFloat<T> ? T(0x1p-32) : T(0x1p-64);
  constexpr BitsOf<T> kUp = kIsFloat<T> ? 32 : 64;
  const Halvings<T> h = without_powers_of_2(at_least(x, kIsFloat<T> ? -105 : -746));
  return (1 + expm1_near_0(h.rest)) * power_of_2<T>(h.n + kUp) * kDown;
}
// x e^(r + n ln 2) for an exponent far below 0, rounded once where the power is below the normal numbers.
template <class T>
OAR_SIMD_INLINE T times_exp(T x, T r, T lost, BitsOf<T> n) {
  constexpr T kDown = kIsFloat<T> ? T(0x1p-64) : T(0x1p-128);
  constexpr BitsOf<T> kUp = kIsFloat<T> ? 64 : 128;
  return fma(x, expm1_near_0(r, lost), x) * power_of_2<T>(n + kUp) * kDown;
}
// x e^x for x <= 0.
template <class T>
OAR_SIMD_INLINE T times_exp(T x) {
  constexpr T kLow = kIsFloat<T> ? T(-110) : T(-760);
  const Halvings<T> h = without_powers_of_2(at_least(x, kLow));
  return x < kLow ? x * 0 : times_exp(x, h.rest, h.lost, h.n);
}
template <class T>
OAR_SIMD_INLINE T expm1(T x) {
  const T bounded = at_most(at_least(x, kIsFloat<T> ? -30 : -60), kIsFloat<T> ? 89 : 710);
  const Halvings<T> h = without_powers_of_2(bounded);
  // At half the size, since 2^n itself may be too large.
  const T half = power_of_2<T>(h.n - WordOf<T>{1});
  const T made = 2 * fma(half, expm1_near_0(h.rest, h.lost), half - ElementOf<T>(0.5));
  return magnitude(x) < ElementOf<T>(kIsFloat<T> ? 0x1p-25 : 0x1p-54) ? x : made;
}

// ---- Hyperbolic functions --------------------------------------------------------------------------

template <class T>
OAR_SIMD_INLINE T tanh(T x) {
  const T size = magnitude(x);
  if constexpr (kIsFloat<T>) {
    // With m = e^(2|x|) - 1: m / (m + 2), in which an error of m shrinks. Near 0 a series.
    const T z = x * x;
    const Halvings<T> h = without_powers_of_2(2 * at_most(size, 10));
    const T power = power_of_2<T>(h.n);
    const T m = fma(power, expm1_near_0(h.rest), power - 1);
    const float c[] = {-0.3333324008f, 0.133242363f, -0.05142999315f};
    const T near = fma(size * z, polynomial(z, c), size), far = m / (m + 2);
    return with_sign(size < 0.25f ? near : far, x);
  } else {
    // With e = e^(-2|x|): 1 - 2e / (1 + e), whose rounding errors are those of the second term.
    const T minus_1 = expm1(-2 * size), e = minus_1 + 1;
    const T near = minus_1 / (-2 - minus_1), far = 1 - 2 * e / (1 + e);
    return with_sign(size < 0.55 ? near : far, x);
  }
}
// x - tanh(x). Near 0 a series, since the two cancel; beyond it x - 1 + 2 / (e^(2x) + 1).
template <class T>
OAR_SIMD_INLINE T tanhshrink(T x) {
  const T size = magnitude(x);
  if constexpr (kIsFloat<T>) {
    constexpr float kThird = 0.333333343f, kThirdLow = float(1.0 / 3 - double(kThird));
    const float c[] = {-0.1333332956f,    0.05396721885f,   -0.02185982279f,
                       0.008818647824f,   -0.003473392688f, 0.001257688971f,
                       -0.0003722502734f, 7.506580732e-05f, -7.349770385e-06f};
    // The cube of x with the errors of its two roundings.
    const T z = x * x, cube = size * z, lost = fma(size, z, -cube) + size * fma(x, x, -z);
    const T share = fma(z, polynomial(z, c), kThird);
    const T near = fma(cube, share, fma(lost, share, cube * kThirdLow));
    const T far = (size - 1) + 2 / (normal_exp(2 * at_most(size, 20)) + 1);
    return with_sign(size < 1.25f ? near : far, x);
  } else {
    return x - tanh(x);
  }
}
template <class T>
OAR_SIMD_INLINE T sinh(T x) {
  const T size = magnitude(x);
  const T half = exp_times(size, -1);
  const T far = with_sign(half - T(0.25) / half, x);
  const T z = x * x;
  T series;
  if constexpr (kIsFloat<T>) {
    const float c[] = {0.1666666649f, 0.008333350597f, 0.0001983606649f, 2.817438332e-6f};
    series = polynomial(z, c);
  } else {
    const double c[] = {1.0 / 6,
                        1.0 / 120,
                        1.0 / 5040,
                        1.0 / 362880,
                        1.0 / 39916800,
                        1.0 / 6227020800.0,
                        1.0 / 1307674368000.0,
                        1.0 / 355687428096000.0};
    series = polynomial(z, c);
  }
  return size < 1 ? fma(x * z, series, x) : far;
}
template <class T>
OAR_SIMD_INLINE T cosh(T x) {
  const T half = exp_times(magnitude(x), -1);
  return half + T(0.25) / half;
}

// ---- Logistic functions ----------------------------------------------------------------------------

// 1 / (1 + e) or e / (1 + e) with e = e^(-|x|). The rounding error of 1 + e is corrected by a
// straight line near 1 / (1 + e).
template <class T>
OAR_SIMD_INLINE T sigmoid(T x) {
  const T e = exp_of_negative(-magnitude(x));
  const T below = 1 + e, lost = e - (below - 1);
  const T rough = (x < 0 ? e : T(1)) / below;
  return fma(rough * fma(below, T(-0.5), T(1.457)), -lost, rough);
}

// x tanh(log(1 + e^x)). With n = e^x and w = n (n + 2) it is x w / (w + 2). The power is a float's, but
// what follows is done in double, whose exponents leave no part of it subnormal.
OAR_SIMD_INLINE float mish(float x) {
  const double bounded = at_most(at_least(x, -110), 20);
  const double shifted = fma(bounded, 1.44269504088896340736, kShifter<double>);
  const auto r =
      static_cast<float>(fma(shifted - kShifter<double>, -0.69314718055994530942, bounded));
  const double power = power_of_2<double>(bits_as<uint64_t>(shifted));
  const double n = fma(power, static_cast<double>(expm1_near_0(r)), power), w = n * (n + 2);
  const auto made = static_cast<float>(x * w / (w + 2));
  return x < -110 ? x * 0 : made;
}
OAR_SIMD_INLINE double mish(double x) {
  const double n = exp(at_most(x, 40)), w = n * (n + 2);
  return x < -40 ? times_exp(x) : x * (w / (w + 2));
}

}  // namespace
}  // namespace oar::cpu::functions
