// Special functions of one number in double precision. All of them are accurate to a few units in
// the last place of a double unless noted otherwise.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "oar/backend/cpu/simd/logarithms.h"

namespace oar::cpu {

// What Stirling's series of digamma at x has after log(x) - 1 / (2 x), as a polynomial of q = 1 / x^2.
inline double digamma_tail(double q) {
  double p = 1.0 / 12;
  p = p * q - 691.0 / 32760;
  p = p * q + 1.0 / 132;
  p = p * q - 1.0 / 240;
  p = p * q + 1.0 / 252;
  p = p * q - 1.0 / 120;
  p = p * q + 1.0 / 12;
  return p * q;
}

// The derivative of log(gamma(x)) of a positive float, straight-line: Stirling's series, for small x at
// x + 8. The terms 1 / (x + k) that lead there are added in pairs, as fractions of u = x (x + 7). What
// cancels near the root at 1.46 is left in a double.
inline float positive_digamma(float value) {
  const double x = value;
  const bool small = x < 8;
  const double u = x * (x + 7), a = u * (u + 6), b = (u + 10) * (u + 12);
  const double below = (2 * x + 7) * ((2 * u + 6) * b + (2 * u + 22) * a) / (a * b);
  const double z = small ? x + 8 : x;
  const double r = 1 / z, q = r * r;
  const double log_z = functions::joined(functions::logarithm_of_normal(z));
  return static_cast<float>(log_z - r / 2 - digamma_tail(q) - (small ? below : 0.0));
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
