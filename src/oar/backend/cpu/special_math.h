// Special functions of one number in double precision. Each says how far it can be trusted; all of
// them are good to a few units in the last place of a double unless told otherwise.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

namespace oar::cpu {

// log(x) of a positive, normal, finite x, as straight-line code that a loop vectorises.
inline double plain_log(double x) {
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)); log(m) = 2 artanh((m - 1) / (m + 1)).
  constexpr uint64_t kRootHalf = 0x3fe6a09e667f3bcd;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const uint64_t shifted = bits - kRootHalf;  // its exponent field is e, wrapped
  // The exponent as a double without a conversion, which AVX2 lacks for 64 bits.
  const uint64_t biased = (shifted + (uint64_t{1} << 62)) >> 52;  // e + 1024
  const double e = std::bit_cast<double>(biased | 0x4330000000000000) - 4503599627371520.0;
  const double m = std::bit_cast<double>(bits - (((biased - 1024) & 0xfff) << 52));
  const double s = (m - 1) / (m + 1), q = s * s;
  double p = 1.0 / 21;
  p = p * q + 1.0 / 19;
  p = p * q + 1.0 / 17;
  p = p * q + 1.0 / 15;
  p = p * q + 1.0 / 13;
  p = p * q + 1.0 / 11;
  p = p * q + 1.0 / 9;
  p = p * q + 1.0 / 7;
  p = p * q + 1.0 / 5;
  p = p * q + 1.0 / 3;
  return e * std::numbers::ln2 + (2 * s + 2 * s * q * p);
}

// log(gamma(x)) of a positive float, straight-line: Stirling's series, for small x at x + 8.
inline float positive_log_gamma(float value) {
  const double x = value;
  const bool small = x < 8;
  const double product = x * (x + 1) * (x + 2) * (x + 3) * ((x + 4) * (x + 5) * (x + 6) * (x + 7));
  const double z = small ? x + 8 : x;
  const double r = 1 / z, q = r * r;
  double p = 1.0 / 156;
  p = p * q - 691.0 / 360360;
  p = p * q + 1.0 / 1188;
  p = p * q - 1.0 / 1680;
  p = p * q + 1.0 / 1260;
  p = p * q - 1.0 / 360;
  p = p * q + 1.0 / 12;
  constexpr double kHalfLogTwoPi = 0.91893853320467274178;
  const double log_z = plain_log(z), log_product = plain_log(small ? product : 1.0);
  return static_cast<float>((z - 0.5) * log_z - z + kHalfLogTwoPi + p * r - log_product);
}

// The derivative of the same. The terms 1 / (x + k) that lead to x + 8 are added in pairs, as
// fractions of u = x (x + 7). What cancels near the root at 1.46 is left in a double.
inline float positive_digamma(float value) {
  const double x = value;
  const bool small = x < 8;
  const double u = x * (x + 7), a = u * (u + 6), b = (u + 10) * (u + 12);
  const double below = (2 * x + 7) * ((2 * u + 6) * b + (2 * u + 22) * a) / (a * b);
  const double z = small ? x + 8 : x;
  const double r = 1 / z, q = r * r;
  double p = 1.0 / 12;
  p = p * q - 691.0 / 32760;
  p = p * q + 1.0 / 132;
  p = p * q - 1.0 / 240;
  p = p * q + 1.0 / 252;
  p = p * q - 1.0 / 120;
  p = p * q + 1.0 / 12;
  return static_cast<float>(plain_log(z) - r / 2 - p * q - (small ? below : 0.0));
}

// log|gamma(x)| for any x. The C library's lgamma would write a global; this one does not.
inline double log_gamma(double x) {
  int sign;
  return ::lgamma_r(x, &sign);
}

// The logarithmic derivative of gamma; NaN at its poles, minus or plus infinity at 0 as its side is.
double digamma(double x);
// The n-th derivative of digamma, n >= 1.
double polygamma(int64_t n, double x);
// sum over k >= 0 of (k + q)^-s for s > 1, q > 0.
double hurwitz_zeta(double s, double q);
// The inverse of erf.
double inverse_erf(double x);
// Modified Bessel functions of the first kind, times exp(-|x|).
double scaled_bessel_i0(double x);
double scaled_bessel_i1(double x);
// The regularised lower (upper) incomplete gamma function.
double gamma_lower(double a, double x);
double gamma_upper(double a, double x);
// The order-th derivative of gamma_lower by a.
double gamma_lower_derivative(double a, double x, int64_t order);

}  // namespace oar::cpu
