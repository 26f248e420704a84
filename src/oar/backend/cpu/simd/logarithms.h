// Logarithms, and powers through them.
#pragma once

#include "oar/backend/cpu/simd/exponentials.h"

namespace oar::cpu::functions {
namespace {

// x = 2^exponent (1 + f), sqrt(1/2) <= 1 + f < sqrt(2), and log(1 + f) = f + rest. For positive x.
template <class T>
struct Logarithm {
  T exponent, f, rest;
};
template <class T>
OAR_SIMD_INLINE Logarithm<T> logarithm_of_normal(T x) {
  using Bits = BitsOf<T>;
  constexpr int kMantissa = Layout<T>::kMantissa, kBias = Layout<T>::kBias;
  const Bits root = bits_as<Bits>(T(0.70710678118654752440L));
  const Bits one = bits_as<Bits>(T(1));
  const Bits shifted = bits_as<Bits>(x) + (one - root);
  // As the mantissa of 2^23 (2^52), the integer becomes a number without a conversion.
  const T bias = kIsFloat<T> ? T(0x1p23) : T(0x1p52);
  const T biased = bits_as<T>((shifted >> kMantissa) | bits_as<Bits>(bias));
  const T exponent = biased - (bias + kBias);
  const T f = bits_as<T>((shifted & ((Bits{1} << kMantissa) - 1)) + root) - 1;
  T rest;
  const T half_square = T(0.5) * f * f;
  if constexpr (kIsFloat<T>) {
    const float c[] = {0.3333331044f,  -0.249999866f, 0.2000222644f,  -0.1666925081f, 0.1421866131f,
                       -0.1238435071f, 0.1187295675f, -0.1178979128f, 0.06915392753f};
    rest = fma(f * f * f, polynomial(f, c), -half_square);
  } else {
    // log(1 + f) = 2 atanh(s)
    const double s = f / (2 + f), z = s * s;
    const double c[] = {2.0 / 3,  2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11,
                        2.0 / 13, 2.0 / 15, 2.0 / 17, 2.0 / 19, 2.0 / 21};
    rest = s * fma(z, polynomial(z, c), half_square) - half_square;
  }
  return {exponent, f, rest};
}
template <class T>
OAR_SIMD_INLINE Logarithm<T> logarithm(T x) {
  constexpr T kLifted = kIsFloat<T> ? T(24) : T(54), kLift = kIsFloat<T> ? T(0x1p24) : T(0x1p54);
  const bool tiny = x < Layout<T>::kSmallest;
  Logarithm<T> l = logarithm_of_normal(tiny ? x * kLift : x);
  l.exponent -= tiny ? kLifted : T(0);
  return l;
}
// Whether x is a positive normal number, by one comparison of its bits.
template <class T>
OAR_SIMD_INLINE bool is_positive_normal(T x) {
  using Bits = BitsOf<T>;
  const Bits first = bits_as<Bits>(Layout<T>::kSmallest);
  return bits_as<Bits>(x) - first < bits_as<Bits>(kInfinity<T>) - first;
}
template <class T>
OAR_SIMD_INLINE T joined(const Logarithm<T>& l, T small) {
  return fma(l.exponent, kLn2High<T>, l.f + fma(l.exponent, kLn2Low<T>, small));
}
template <class T>
OAR_SIMD_INLINE T joined(const Logarithm<T>& l) {
  return joined(l, l.rest);
}
// The logarithm of x if x is not a positive number.
template <class T>
OAR_SIMD_INLINE T log_or_special(T x, T made) {
  const T upper = x < kInfinity<T> ? made : x;
  return x > 0 ? upper : x == 0 ? -kInfinity<T> : kNan<T>;
}
template <class T>
OAR_SIMD_INLINE T joined_2(const Logarithm<T>& l) {
  constexpr T kHigh = T(1.44269504088896340736L), kLow = T(1.44269504088896340736L - kHigh);
  const T small = fma(l.f + l.rest, kLow, l.rest * kHigh);
  return l.exponent + fma(l.f, kHigh, small);
}
template <class T>
OAR_SIMD_INLINE T joined_10(const Logarithm<T>& l) {
  constexpr T kHigh = T(0.43429448190325182765L), kLow = T(0.43429448190325182765L - kHigh);
  // log10(2), the first part with few bits.
  constexpr T kTwoHigh = kIsFloat<T> ? T(0.30102539062) : T(3.01029995663611771306e-01);
  constexpr T kTwoLow = T(0.30102999566398119521L - kTwoHigh);
  const T small = fma(l.exponent, kTwoLow, fma(l.f + l.rest, kLow, l.rest * kHigh));
  return fma(l.exponent, kTwoHigh, fma(l.f, kHigh, small));
}
template <class T>
OAR_SIMD_INLINE T log(T x) {
  return log_or_special(x, joined(logarithm(x)));
}
template <class T>
OAR_SIMD_INLINE T log2(T x) {
  return log_or_special(x, joined_2(logarithm(x)));
}
template <class T>
OAR_SIMD_INLINE T log10(T x) {
  return log_or_special(x, joined_10(logarithm(x)));
}
template <class T>
OAR_SIMD_INLINE T log1p(T x) {
  const T u = 1 + x;
  // The rounding error of u.
  const T lost = x > 1 ? 1 - (u - x) : x - (u - 1);
  const Logarithm<T> l = logarithm(u);
  const T made = log_or_special(u, joined(l, l.rest + lost / u));
  return magnitude(x) < (kIsFloat<T> ? T(0x1p-25) : T(0x1p-54)) ? x : made;
}

// log(1 + u) for u in [0, 1].
template <class T>
OAR_SIMD_INLINE T log1p_up_to_1(T u) {
  const T sum = 1 + u, lost = u - (sum - 1);
  const Logarithm<T> l = logarithm_of_normal(sum);
  return joined(l, l.rest + lost / sum);
}

// log(1 + e^x).
template <class T>
OAR_SIMD_INLINE T softplus(T x) {
  return (x > 0 ? x : T(0)) + log1p_up_to_1(exp_of_negative(-magnitude(x)));
}
// log(e^a + e^b). The distance of equal infinities counts as 0.
template <class T>
OAR_SIMD_INLINE T logaddexp(T a, T b) {
  const T high = a > b ? a : b, distance = a > b ? b - a : a - b;
  const T more = log1p_up_to_1(exp_of_negative(distance));
  return high + (a == b ? T(0.69314718055994530942L) : more);
}

// log(x / (1 - x)), as the logarithm of 1 plus the relative lead of the larger part.
template <class T>
OAR_SIMD_INLINE T logit(T x) {
  const bool low = x < T(0.5);
  const T part = low ? x : 1 - x, more = magnitude(1 - 2 * x);
  const T ratio = more / part, ratio_lost = fma(-ratio, part, more) / part;
  const T u = 1 + ratio, lost = ratio > 1 ? 1 - (u - ratio) : ratio - (u - 1);
  const Logarithm<T> l = logarithm_of_normal(u);
  const T size = joined(l, l.rest + (lost + ratio_lost) / u);
  const T inside = x < T(0x1p-60) ? log(x) : low ? -size : size;
  const T outside = x == 1 ? kInfinity<T> : kNan<T>;
  return x < 1 ? inside : outside;
}

// ---- Powers ------------------------------------------------------------------------------------

// Through log2 and exp2 in double, which leaves little more than the rounding of the result.
OAR_SIMD_INLINE float pow(float x, float y) {
  const double size = magnitude(x);
  const uint64_t root = bits_as<uint64_t>(0.70710678118654752440);
  const uint64_t shifted = bits_as<uint64_t>(size) + (bits_as<uint64_t>(1.0) - root);
  const double exponent =
      bits_as<double>((shifted >> 52) | bits_as<uint64_t>(0x1p52)) - (0x1p52 + 1023);
  const double m = bits_as<double>((shifted & 0xfffffffffffffu) + root);
  const double s = (m - 1) / (m + 1), z = s * s;
  const double c[] = {2.0,
                      0.6666666667580053608,
                      0.3999999562227833896,
                      0.2857210908528635751,
                      0.2217619266229841444,
                      0.195840830766985654};
  const double log_size = fma(s * polynomial(z, c), 1.44269504088896340736, exponent);
  const double finite = size == 0 ? -__builtin_inf() : log_size;
  const double unlimited = (size == __builtin_inf() ? size : finite) * static_cast<double>(y);
  double power = unlimited < -160 ? -160 : unlimited;
  power = power > 129 ? 129 : power;
  const double lifted = power + kShifter<double>;
  const auto r = static_cast<float>((power - (lifted - kShifter<double>)) * 0.69314718055994530942);
  const auto n = static_cast<uint32_t>(bits_as<uint64_t>(lifted));
  const float made = scaled_by_power_of_2(1 + expm1_near_0(r), n);
  // Odd exponents give a negative base its sign; fractions leave it without a power. Adding 2^23 rounds
  // to an integer; from 2^24 on all floats are even. The conditions are joined without short circuits, which
  // would be branches.
  const float y_size = magnitude(y), y_half = y_size * 0.5f;
  const bool whole = (y_size >= 0x1p23f) | ((y_size + 0x1p23f) - 0x1p23f == y_size);
  const bool even = (y_size >= 0x1p24f) | ((y_half + 0x1p23f) - 0x1p23f == y_half);
  const float odd = (whole & !even) ? x : 1.0f;
  const float signed_power = with_sign(made, odd);
  const bool undefined = (x < 0) & (x > -kInfinity<float>)&!whole;
  const float answer = undefined ? kNan<float> : signed_power;
  const float known = ((x != x) | (y != y)) ? x + y : answer;
  const bool one = (y == 0) | (x == 1) | ((x == -1) & (y_size == kInfinity<float>));
  return one ? 1.0f : known;
}
OAR_SIMD_INLINE double pow(double x, double y) { return __builtin_pow(x, y); }

}  // namespace
}  // namespace oar::cpu::functions
