// Special functions of one number.
#include "oar/backend/cpu/math/special_math.h"

#include <vector>

namespace oar::cpu {
namespace {

constexpr double kEpsilon = std::numeric_limits<double>::epsilon();
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// sin and cos of pi * x without the error of a rounded pi times a large x.
double cot_pi(double x) {
  const double rest = x - std::rint(x);  // exact
  return 1 / std::tan(std::numbers::pi * rest);
}

// Bernoulli numbers B(2), B(4), … over (2k)!.
constexpr double kBernoulliOverFactorial[] = {1.0 / 12,
                                              -1.0 / 720,
                                              1.0 / 30240,
                                              -1.0 / 1209600,
                                              1.0 / 47900160,
                                              -691.0 / 1307674368000,
                                              1.0 / 74724249600,
                                              -3617.0 / 10670622842880000,
                                              43867.0 / 5109094217170944000};

// (-1)^n times the n-th derivative of pi * cot(pi * x): a polynomial in the cotangent, for which
// d cot(pi x) / dx = -pi (1 + cot^2).
double cotangent_derivative(int64_t n, double x) {
  std::vector<double> p = {0, std::numbers::pi};
  for (int64_t k = 0; k < n; ++k) {
    std::vector<double> next(p.size() + 1, 0.0);
    for (size_t i = 1; i < p.size(); ++i) {
      const double slope = std::numbers::pi * static_cast<double>(i) * p[i];
      next[i - 1] += slope;
      next[i + 1] += slope;
    }
    p = std::move(next);
  }
  const double cot = cot_pi(x);
  double value = 0;
  for (size_t i = p.size(); i-- > 0;) value = value * cot + p[i];
  return value;
}

// log(1 + d) - d, by its series where it cancels.
double log1p_minus(double d) {
  if (std::abs(d) >= 0.1) return std::log1p(d) - d;
  double power = d, sum = 0;
  for (int k = 2; k < 40; ++k) {
    power *= -d;
    sum += power / k;
    if (std::abs(power) < kEpsilon * std::abs(sum)) break;
  }
  return sum;
}

// x^a exp(-x) / gamma(a): near x = a by the distance of the two, since a * log(x) - x cancels.
double gamma_density(double a, double x) {
  if (a < 10) return std::exp(a * std::log(x) - x - log_gamma(a));
  const double r = 1 / a, q = r * r;
  const double stirling =
      r * (1.0 / 12 - q * (1.0 / 360 - q * (1.0 / 1260 - q * (1.0 / 1680 - q / 1188))));
  const double d = (x - a) / a;
  const double away = d > -0.5 ? log1p_minus(d) : std::log(x / a) - d;
  return std::sqrt(a / (2 * std::numbers::pi)) * std::exp(a * away - stirling);
}

// Temme's expansion of the upper part for large a and x near it, where series need about sqrt(a) terms.
bool is_large_and_near(double a, double x) { return a > 1e6 && std::abs(x - a) < 0.1 * a; }
double upper_near(double a, double x) {
  const double d = (x - a) / a;
  const double eta = std::copysign(std::sqrt(-2 * log1p_minus(d)), d);
  const double first = -1.0 / 3 + eta * (1.0 / 12 + eta * (-2.0 / 135 + eta / 864));
  const double second = -1.0 / 540 - eta / 288;
  const double rest = std::exp(-0.5 * a * eta * eta) / std::sqrt(2 * std::numbers::pi * a);
  return 0.5 * std::erfc(eta * std::sqrt(0.5 * a)) + rest * (first + second / a);
}
double lower_near(double a, double x) {
  const double d = (x - a) / a;
  const double eta = std::copysign(std::sqrt(-2 * log1p_minus(d)), d);
  return d < 0 ? 0.5 * std::erfc(-eta * std::sqrt(0.5 * a)) -
                     (upper_near(a, x) - 0.5 * std::erfc(eta * std::sqrt(0.5 * a)))
               : 1 - upper_near(a, x);
}

// For x below about a + 1: sum of x^k / ((a + 1) … (a + k)).
double lower_series(double a, double x) {
  double term = 1, sum = 1;
  for (double k = a + 1; term > sum * kEpsilon * 0.1; ++k) {
    term *= x / k;
    sum += term;
  }
  return gamma_density(a, x) / a * sum;
}

// Above it: Legendre's continued fraction by the modified Lentz method.
double upper_fraction(double a, double x) {
  constexpr double kTiny = 1e-300;
  double b = x + 1 - a, c = 1 / kTiny, d = 1 / (b == 0 ? kTiny : b), h = d;
  for (int i = 1; i < 100000; ++i) {
    const double an = -i * (i - a);
    b += 2;
    d = an * d + b;
    d = 1 / (d == 0 ? kTiny : d);
    c = b + an / c;
    if (c == 0) c = kTiny;
    h *= d * c;
    if (std::abs(d * c - 1) < kEpsilon) break;
  }
  return gamma_density(a, x) * h;
}

// log(gamma(1 + a)), with all its digits near 0, too.
double log_gamma_above_one(double a) {
  if (std::abs(a) > 1e-3) return log_gamma(1 + a);
  constexpr double kZeta2 = 1.6449340668482264, kZeta3 = 1.2020569031595942,
                   kZeta4 = 1.0823232337111382;
  return a * (-std::numbers::egamma + a * (kZeta2 / 2 - a * (kZeta3 / 3 - a * (kZeta4 / 4))));
}

// The upper part for x below 1 and a below 1/2, where the lower one may be nearly 1: of the first term of the lower series,
// x^a / gamma(1 + a), only the distance from 1 is computed.
double upper_series(double a, double x) {
  double power = 1, sum = 0;
  for (double k = 1; std::abs(power) > kEpsilon * 0.1 * std::abs(sum); ++k) {
    power *= -x / k;
    sum += power / (a + k);
  }
  const double first = a * std::log(x) - log_gamma_above_one(a);
  return -std::expm1(first) - std::exp(first) * a * sum;
}

bool outside(double a, double x) { return !(a >= 0) || !(x >= 0); }
bool use_series(double a, double x) { return x < a + 1 || x < 1; }

// Moments to cumulants backwards: the complete Bell polynomials of c, which are the derivatives of
// exp(f) over exp(f) where c holds those of f.
double bell(const std::vector<double>& c, std::vector<double>& work) {
  const size_t n = c.size();
  work.assign(n + 1, 0.0);
  work[0] = 1;
  for (size_t m = 0; m < n; ++m) {
    double choose = 1;
    for (size_t i = 0; i <= m; ++i) {
      work[m + 1] += choose * work[m - i] * c[i];
      choose = choose * static_cast<double>(m - i) / static_cast<double>(i + 1);
    }
  }
  return work[n];
}

}  // namespace

double digamma(double x) {
  if (x == 0) return std::copysign(kInfinity, -x);
  if (x < 0) {
    if (x == std::floor(x)) return kNaN;
    return digamma(1 - x) - std::numbers::pi * cot_pi(x);
  }
  // The only positive zero; near it the sum below would cancel.
  constexpr double kRoot = 1.4616321449683623413, kRootRest = 9.549995429965698e-17;
  if (std::abs(x - kRoot) < 0.01) {
    const double d = (x - kRoot) - kRootRest;
    double value = 0, power = d, factorial = 1;
    for (int64_t n = 1; n < 9; ++n) {
      factorial *= static_cast<double>(n);
      value += polygamma(n, kRoot) * power / factorial;
      power *= d;
    }
    return value;
  }
  double below = 0;
  for (; x < 10; ++x) below += 1 / x;
  const double q = 1 / (x * x);
  return std::log(x) - 0.5 / x - digamma_tail(q) - below;
}

double hurwitz_zeta(double s, double q) {
  if (q == kInfinity) return 0;
  double sum = 0;
  for (int k = 0; k < 12; ++k, ++q) {  // the first terms, then Euler's and Maclaurin's formula
    const double term = std::pow(q, -s);
    sum += term;
    if (term < kEpsilon * 1e-3 * sum) return sum;
  }
  const double power = std::pow(q, -s);
  sum += q * power / (s - 1) + 0.5 * power;
  double rising = s, factor = power / q;
  for (size_t k = 0; k < std::size(kBernoulliOverFactorial); ++k) {
    const double term = kBernoulliOverFactorial[k] * rising * factor;
    sum += term;
    if (std::abs(term) < kEpsilon * 0.1 * sum) break;
    const double n = 2 * static_cast<double>(k) + 1;
    rising *= (s + n) * (s + n + 1);
    factor /= q * q;
  }
  return sum;
}

// q^s times the zeta function, which stays near 1 where both factors leave the range of a double.
static double scaled_zeta(double s, double q) {
  const double start = q;
  double sum = 0;
  for (int k = 0; k < 12; ++k, ++q) {
    const double term = std::pow(start / q, s);
    sum += term;
    if (term < kEpsilon * 1e-3 * sum) return sum;
  }
  const double power = std::pow(start / q, s);
  sum += q * power / (s - 1) + 0.5 * power;
  double rising = s, factor = power / q;
  for (size_t k = 0; k < std::size(kBernoulliOverFactorial); ++k) {
    const double term = kBernoulliOverFactorial[k] * rising * factor;
    sum += term;
    if (std::abs(term) < kEpsilon * 0.1 * sum) break;
    const double n = 2 * static_cast<double>(k) + 1;
    rising *= (s + n) * (s + n + 1);
    factor /= q * q;
  }
  return sum;
}

// The sum of (x + k)^-s over k = 0, 1, … for x below zero and a large s, which is odd or not: only the poles next to x count. Its
// scale is the nearest one's distance to the power -s.
static double sum_over_poles(double x, double s, bool odd, double& nearest) {
  constexpr double kReach = 8;
  const double middle = std::rint(-x);
  nearest = std::abs(x + middle);
  double sum = 0;
  for (double k = std::max(0.0, middle - kReach); k <= middle + kReach; ++k) {
    const double d = x + k;
    const double term = std::pow(nearest / std::abs(d), s);
    sum += odd && d < 0 ? -term : term;
  }
  return sum;
}

double polygamma(int64_t n, double x) {
  constexpr int64_t kHighOrder =
      20;  // n! and powers of x leave the range of a double sooner or later
  if (n == 0) return digamma(x);
  if (x != x) return x;
  const double sign = n % 2 == 0 ? -1 : 1, s = static_cast<double>(n) + 1;
  const auto at_positive = [&](double y) {
    if (n < kHighOrder) return sign * std::tgamma(s) * hurwitz_zeta(s, y);
    if (y == kInfinity) return sign * 0.0;
    return sign * std::exp(std::lgamma(s) - s * std::log(y) + std::log(scaled_zeta(s, y)));
  };
  if (x > 0) return at_positive(x);
  if (x == std::floor(x)) return sign * kInfinity;  // a pole, as from above
  constexpr double kNearPole =
      -1e-3;  // where the terms of the reflection overflow before they cancel
  if (x > kNearPole && n < kHighOrder)
    return sign * std::tgamma(s) * std::pow(x, -s) + at_positive(1 + x);
  if (n >= kHighOrder) {
    double nearest = 0;
    const double sum = sum_over_poles(x, s, n % 2 == 0, nearest);
    // Halfway between poles the terms of both sides may cancel; what is left lies beyond the first one above zero.
    if (sum == 0) return at_positive(1 - x);
    return std::copysign(std::exp(std::lgamma(s) - s * std::log(nearest) + std::log(std::abs(sum))),
                         sign * sum);
  }
  // Reflection: psi_n(1 - x) + (-1)^(n + 1) psi_n(x) = (-1)^n d^n/dx^n of pi cot(pi x).
  return sign * (cotangent_derivative(n, x) - at_positive(1 - x));
}

double inverse_erf(double x) {
  const double size = std::abs(x);
  if (!(size < 1)) return size == 1 ? std::copysign(kInfinity, x) : kNaN;
  if (size < 1e-9) return x * (0.5 * std::sqrt(std::numbers::pi));
  // A start with about three digits, then Halley's method on erfc, which keeps its digits in the tail.
  const double rest = 1 - size;  // exact where it matters
  const double log_term = std::log(rest * (1 + size));
  const double t = 2 / (std::numbers::pi * 0.147) + 0.5 * log_term;
  double y = std::sqrt(std::sqrt(t * t - log_term / 0.147) - t);
  for (int i = 0; i < 3; ++i) {
    const double error = size < 0.5 ? std::erf(y) - size : rest - std::erfc(y);
    const double step = error * (0.5 * std::sqrt(std::numbers::pi)) * std::exp(y * y);
    y -= step / (1 + y * step);
  }
  return std::copysign(y, x);
}

namespace {

// exp(-x) times the sum of (x / 2)^(2k + order) / (k! (k + order)!), all of whose terms are positive.
double bessel_series(double x, int order) {
  const double q = 0.25 * x * x;
  double term = order == 0 ? 1 : 0.5 * x, sum = term;
  for (int k = 1; term > kEpsilon * 0.1 * sum; ++k) {
    term *= q / (static_cast<double>(k) * (k + order));
    sum += term;
  }
  return std::exp(-x) * sum;
}

// The asymptotic series in 1 / x, for x of 20 and more.
double bessel_far(double x, int order) {
  const double mu = 4.0 * order * order;
  double term = 1, sum = 1;
  for (int k = 1; k < 60; ++k) {
    const double odd = 2 * k - 1;
    const double next = -term * (mu - odd * odd) / (8.0 * k * x);
    if (std::abs(next) >= std::abs(term)) break;
    term = next;
    sum += term;
    if (std::abs(term) < kEpsilon * 0.1) break;
  }
  return sum / std::sqrt(2 * std::numbers::pi * x);
}

}  // namespace

double scaled_bessel_i0(double x) {
  x = std::abs(x);
  return x < 20 ? bessel_series(x, 0) : bessel_far(x, 0);
}

double scaled_bessel_i1(double x) {
  const double size = std::abs(x);
  if (size == 0 || x != x) return x;
  return std::copysign(size < 20 ? bessel_series(size, 1) : bessel_far(size, 1), x);
}

double gamma_lower(double a, double x) {
  if (outside(a, x) || (a == kInfinity && x == kInfinity)) return kNaN;
  if (a == 0) return x > 0 ? 1 : kNaN;
  if (x == 0 || a == kInfinity) return 0;
  if (x == kInfinity) return 1;
  if (is_large_and_near(a, x)) return lower_near(a, x);
  return use_series(a, x) ? lower_series(a, x) : 1 - upper_fraction(a, x);
}

double gamma_upper(double a, double x) {
  if (outside(a, x) || (a == kInfinity && x == kInfinity)) return kNaN;
  if (a == 0) return x > 0 ? 0 : kNaN;
  if (x == 0 || a == kInfinity) return 1;
  if (x == kInfinity) return 0;
  if (is_large_and_near(a, x)) return upper_near(a, x);
  if (x >= 0.7 && x >= a) return upper_fraction(a, x);
  return x < 0.7 && a < 0.5 ? upper_series(a, x) : 1 - lower_series(a, x);
}

namespace {

// For large a: differences of the function itself, which changes over a length of sqrt(a). Eight points, exact to the eighth
// order. Beyond a few orders the derivative is smaller than the guaranteed error.
double derivative_at_large(double a, double x, int64_t order) {
  constexpr int64_t kMostOrders = 4;
  if (order == 0) return gamma_lower(a, x);
  if (order > kMostOrders) return 0;
  constexpr double kWeights[] = {4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};
  const double h = 0.02 * static_cast<double>(order) * std::sqrt(a);
  double sum = 0;
  for (int k = 1; k <= 4; ++k)
    sum += kWeights[k - 1] * (derivative_at_large(a + k * h, x, order - 1) -
                              derivative_at_large(a - k * h, x, order - 1));
  return sum / h;
}

// So far above a that the rest of the integral is negligible.
bool is_far_above(double a, double x, int64_t order) {
  const double slope = std::abs(std::log(x) - digamma(a)) + static_cast<double>(order);
  return x > a + 1 &&
         std::log(gamma_density(a, x)) + static_cast<double>(order) * std::log(slope) < -80;
}

}  // namespace

// The series sum of x^(a + k) exp(-x) / gamma(a + k + 1) holds for every x; each of its terms is
// exp(f(a)) with f' = log(x) - digamma(a + k + 1) and higher derivatives -polygamma. The error is
// absolute: some 1e-14.
double gamma_lower_derivative(double a, double x, int64_t order) {
  if (order == 0) return gamma_lower(a, x);
  if (outside(a, x) || a == 0) return kNaN;
  if (x == 0 || x == kInfinity || a == kInfinity || is_far_above(a, x, order)) return 0;
  if (a > 1e6) return is_large_and_near(a, x) ? derivative_at_large(a, x, order) : 0;
  const auto n = static_cast<size_t>(order);
  std::vector<double> slopes(n), work;
  slopes[0] = std::log(x) - digamma(a + 1);
  for (size_t i = 1; i < n; ++i) slopes[i] = -polygamma(static_cast<int64_t>(i), a + 1);
  double term = gamma_density(a, x) / a, sum = 0;
  constexpr int kMostTerms = 2'000'000;
  for (int i = 0; i < kMostTerms; ++i) {
    const double k = a + 1 + i;
    const double part = term * bell(slopes, work);
    sum += part;
    // Past the peak of the terms, and their derivatives too small to count.
    if (k > x && std::abs(part) <= kEpsilon * 0.01 * std::abs(sum) + 1e-300) break;
    if (k > x && term < 1e-30) break;
    double power = 1 / k, factor = 1;
    for (size_t m = 0; m < n; ++m) {  // psi_m(k + 1) = psi_m(k) + (-1)^m m! / k^(m + 1)
      slopes[m] -= factor * power;
      power /= k;
      factor *= -static_cast<double>(m + 1);
    }
    term *= x / k;
  }
  return sum;
}

}  // namespace oar::cpu
