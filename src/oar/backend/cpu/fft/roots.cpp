#include "oar/backend/cpu/fft/roots.h"

#include <cmath>
#include <numbers>

namespace oar::cpu::fft {
namespace {

// By symmetry from an angle of at most an eighth of a turn.
Root exact_root(int64_t k, int64_t n) {
  const auto turn = [n](int64_t part) {
    return 2 * std::numbers::pi_v<long double> * static_cast<long double>(part) /
           static_cast<long double>(n);
  };
  const bool below = 2 * k > n;  // the lower half of the circle, where the sign of the sine differs
  if (below) k = n - k;
  Root root;
  if (8 * k <= n) {
    root = {std::cos(turn(k)), std::sin(turn(k))};
  } else if (8 * k <= 3 * n) {  // n / 4 - k in quarters, to stay in integers
    const long double rest = std::numbers::pi_v<long double> * static_cast<long double>(n - 4 * k) /
                             (2 * static_cast<long double>(n));
    root = {std::sin(rest), std::cos(rest)};
  } else {
    const long double rest = std::numbers::pi_v<long double> * static_cast<long double>(n - 2 * k) /
                             static_cast<long double>(n);
    root = {-std::cos(rest), std::sin(rest)};
  }
  return {root.re, below ? root.im : -root.im};
}

}  // namespace

Roots::Roots(int64_t n) : n_(n), step_(1) {
  while (step_ * step_ < n) step_ *= 2;
  for (int64_t k = 0; k < step_; ++k) fine_.push_back(exact_root(k % n, n));
  for (int64_t k = 0; k * step_ < n; ++k) coarse_.push_back(exact_root(k * step_, n));
}

Root Roots::operator()(int64_t k) const {
  k %= n_;
  const int64_t low = k % step_;
  const Root &a = coarse_[static_cast<size_t>(k / step_)], &b = fine_[static_cast<size_t>(low)];
  if (low == 0) return a;
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

}  // namespace oar::cpu::fft
