// QR factors of groups of matrices, by reflections as LAPACK's: the diagonal of R is real, and its sign the other than that of
// what was there, unless nothing had to be reflected.
#pragma once

#include "oar/backend/cpu/lapack/lanes.h"

namespace oar::cpu::lapack {

// Matrices with up to so many rows and columns are factored side by side, if a batch has enough of them.
inline constexpr int64_t kLanesQr = 32;

// Squares of numbers outside these bounds lose digits or overflow; a power of two brings any number inside.
template <class R>
struct SafeSquares;
template <>
struct SafeSquares<float> {
  static constexpr float kLow = 0x1p-70F, kHigh = 0x1p120F, kScale = 0x1p90F;
};
template <>
struct SafeSquares<double> {
  static constexpr double kLow = 0x1p-900, kHigh = 0x1p1000, kScale = 0x1p800;
};

// The reflection I - tau v v^H, v = (1, ...), whose adjoint turns x[0], x[step], ... into (beta, 0, ...). v takes the place of x,
// beta that of x[0].
template <class T>
Lanes<T> reflect(int64_t count, Lanes<T>* x, int64_t step) {
  using V = Reals<T>;
  using R = real_t<T>;
  using Safe = SafeSquares<R>;
  V rest{}, back = all_lanes<T>(1);
  const auto sum_rest = [&] {
    rest = V{};
    for (int64_t i = 1; i < count; ++i) rest += squared(x[i * step]);
  };
  sum_rest();
  V all = rest + squared(x[0]);
  if (any_lane(~((all > Safe::kLow) & (all < Safe::kHigh)))) {
    const V one = all_lanes<T>(1), up = all_lanes<T>(Safe::kScale);
    const V scale = where(all >= Safe::kHigh, one / up, where(all <= Safe::kLow, up, one));
    back = one / scale;
    for (int64_t i = 0; i < count; ++i) x[i * step] = x[i * step] * scale;
    sum_rest();
    all = rest + squared(x[0]);
  }
  const V alpha = real_part(x[0]);
  const V length = square_root(all), beta = where(alpha < 0, length, -length);
  Mask<T> still = rest == 0;  // nothing to reflect
  Lanes<T> shifted = x[0], tau;
  if constexpr (kComplex<T>) {
    still &= x[0].im == 0;
    tau = {(beta - alpha) / beta, -x[0].im / beta};
    shifted.re -= beta;
  } else {
    tau = (beta - alpha) / beta;
    shifted -= beta;
  }
  tau = where(still, Lanes<T>{}, tau);
  const Divider<T> divide(where(still, from_real<T>(all_lanes<T>(1)), shifted));
  for (int64_t i = 1; i < count; ++i) x[i * step] = divide(x[i * step]);
  x[0] = from_real<T>(where(still, alpha, beta) * back);
  return tau;
}

// c[rows, columns] -= factor v (v^H c), where v is 1 in its first row and v[step], v[2 step], ... below. sums has `columns` places.
template <class T>
void apply_reflection(int64_t rows, int64_t columns, const Lanes<T>* v, int64_t step,
                      const Lanes<T>& factor, Lanes<T>* c, int64_t stride, Lanes<T>* sums) {
  std::copy_n(c, columns, sums);
  for (int64_t i = 1; i < rows; ++i) {
    const Lanes<T> by = conjugated(v[i * step]);
    const Lanes<T>* row = c + i * stride;
    for (int64_t k = 0; k < columns; ++k) sums[k] = sums[k] + by * row[k];
  }
  for (int64_t k = 0; k < columns; ++k) {
    sums[k] = factor * sums[k];
    c[k] = c[k] - sums[k];
  }
  for (int64_t i = 1; i < rows; ++i) {
    const Lanes<T> by = v[i * step];
    Lanes<T>* row = c + i * stride;
    for (int64_t k = 0; k < columns; ++k) row[k] = row[k] - by * sums[k];
  }
}

// a[m, n] becomes R with the reflections below its diagonal, and q[m, width] the first vectors of their product.
template <class T>
void factor_qr(int64_t m, int64_t n, int64_t width, Lanes<T>* a, Lanes<T>* q) {
  const int64_t k = std::min(m, n);
  const Scratch<Lanes<T>> taus(k), sums(std::max(n, width));
  for (int64_t j = 0; j < k; ++j) {
    taus[j] = reflect<T>(m - j, a + j * n + j, n);
    apply_reflection<T>(m - j, n - j - 1, a + j * n + j, n, conjugated(taus[j]), a + j * n + j + 1,
                        n, sums.data());
  }
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < width; ++j)
      q[i * width + j] = from_real<T>(all_lanes<T>(static_cast<real_t<T>>(i == j)));
  for (int64_t j = k - 1; j >= 0; --j)
    apply_reflection<T>(m - j, width - j, a + j * n + j, n, taus[j], q + j * width + j, width,
                        sums.data());
}

}  // namespace oar::cpu::lapack
