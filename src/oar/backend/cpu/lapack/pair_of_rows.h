// Two rows of a matrix in Schur form, and the vectors of such a matrix.
#pragma once

#include <cmath>
#include <limits>

#include "oar/backend/cpu/lapack/gauge.h"

namespace oar::cpu::lapack {

// (a, b; c, d) in standard form: c is zero, or a equals d and b c is negative. By the rotation (cosine, sine; -sine, cosine).
template <class R>
struct PairOfRows {
  PairOfRows(R first, R above, R below, R last) : a(first), b(above), c(below), d(last) {
    if (c == 0) return;
    const R more = std::max(std::abs(b), std::abs(c)), half = (a - d) / 2;
    if (b == 0) {
      exchange();
    } else if (std::signbit(b) != std::signbit(c) &&
               std::abs(half) <= std::numeric_limits<R>::epsilon() / 8 * more) {
      a = d = d + half;  // a rotation would be found from rounding errors, and these may underflow
    } else {
      const R less = std::copysign(std::min(std::abs(b), std::abs(c)), b) * (c < 0 ? -1 : 1);
      const R scale = std::max(std::abs(half), more);
      const R square = half / scale * half + more / scale * less;
      if (square >= 4 * std::numeric_limits<R>::epsilon())
        separate(half, square, scale, more, less);
      else
        level();
    }
  }
  void turn(R& one, R& two) const {
    const R old = one;
    one = cosine * old + sine * two;
    two = cosine * two - sine * old;
  }

  R a, b, c, d, cosine = 1, sine = 0;

 private:
  void exchange() {
    std::swap(a, d);
    b = -c;
    c = 0;
    const R old = cosine;
    cosine = -sine;
    sine = old;
  }
  // Two real eigenvalues that are apart.
  void separate(R half, R square, R scale, R more, R less) {
    const R z = half + std::copysign(std::sqrt(scale) * std::sqrt(square), half);
    a = d + z;
    d -= more / z * less;
    const R length = std::hypot(c, z);
    cosine = z / length;
    sine = c / length;
    b -= c;
    c = 0;
  }
  // Conjugate eigenvalues, or real ones that are almost the same: the diagonal becomes equal.
  void level() {
    const R sum = b + c, apart = a - d, length = std::hypot(sum, apart);
    cosine = std::sqrt((1 + std::abs(sum) / length) / 2);
    sine = -(apart / 2 / (length * cosine)) * std::copysign(R(1), sum);
    const R aa = a * cosine + b * sine, bb = b * cosine - a * sine, cc = c * cosine + d * sine,
            dd = d * cosine - c * sine;
    a = aa * cosine + cc * sine;
    b = bb * cosine + dd * sine;
    c = cc * cosine - aa * sine;
    d = dd * cosine - bb * sine;
    const R middle = (a + d) / 2;
    a = d = middle;
    if (c == 0) return;
    if (b == 0) return exchange();
    if (std::signbit(b) != std::signbit(c)) return;
    const R root_b = std::sqrt(std::abs(b)), root_c = std::sqrt(std::abs(c)),
            apart_by = std::copysign(root_b * root_c, c), by = 1 / std::sqrt(std::abs(b + c));
    a = middle + apart_by;
    d = middle - apart_by;
    b -= c;
    c = 0;
    const R more_cosine = root_b * by, more_sine = root_c * by, old = cosine;
    cosine = old * more_cosine - sine * more_sine;
    sine = old * more_sine + sine * more_cosine;
  }
};

// a / b without overflow on the way.
template <class R>
R quotient(R a, R b) {
  return a / b;
}
template <class R>
std::complex<R> quotient(std::complex<R> a, std::complex<R> b) {
  const R size = 1 / std::max(std::abs(b.real()), std::abs(b.imag()));
  const std::complex<R> unit = b * size;
  return product(a * size, std::conj(unit)) / size_squared(unit);
}

// The vector of the eigenvalue at place k of t[n, n] in Schur form; of a pair, of its first value, and k is the second place. S is
// a real type for real eigenvalues. Elements after k are zero and not written.
template <class S, class R>
class SchurVector {
 public:
  SchurVector(int64_t n, const R* t, int64_t k, S value, S* x)
      : n_(n), k_(k), t_(t), value_(value), x_(x) {
    const R tiny = std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon();
    least_ = std::max(std::numeric_limits<R>::epsilon() * pivot_size(value), tiny);
  }
  void run() {
    int64_t j = k_ - 1;
    if constexpr (kComplex<S>) {
      const R b = at(j, k_), c = at(k_, j), turn = std::imag(value_);
      x_[j] = std::abs(b) >= std::abs(c) ? R(1) : -turn / c;
      x_[k_] = {0, std::abs(b) >= std::abs(c) ? turn / b : R(1)};
      --j;
    } else {
      x_[k_] = 1;
    }
    while (j >= 0) {
      const bool pair = j > 0 && at(j, j - 1) != 0;
      if (pair)
        solve_pair(j);
      else
        x_[j] = quotient(-rest(j, j), away(S(at(j, j)) - value_));
      j -= pair ? 2 : 1;
      keep_small(j + 1, pair ? 2 : 1);
    }
  }

 private:
  R at(int64_t i, int64_t j) const { return t_[i * n_ + j]; }
  // What the elements after `after` add to row i.
  S rest(int64_t i, int64_t after) const {
    S sum = 0;
    for (int64_t j = after + 1; j <= k_; ++j) sum += at(i, j) * x_[j];
    return sum;
  }
  // A divisor that is not too small: a value that comes twice gets two vectors that differ by a rounding error.
  S away(S divisor) const { return pivot_size(divisor) < least_ ? S(least_) : divisor; }
  void solve_pair(int64_t j) {
    const S diagonal = S(at(j, j)) - value_, one = -rest(j - 1, j), two = -rest(j, j);
    const R b = at(j - 1, j), c = at(j, j - 1);
    if (pivot_size(diagonal) > std::abs(c)) {
      const S factor = quotient(S(c), diagonal);
      x_[j] = quotient(two - product(factor, one), away(diagonal - factor * b));
      x_[j - 1] = quotient(one - b * x_[j], diagonal);
    } else {
      const S factor = diagonal / c;
      x_[j] = quotient(one - product(factor, two), away(b - product(factor, diagonal)));
      x_[j - 1] = (two - product(diagonal, x_[j])) / c;
    }
  }
  // Elements may grow with each one that is solved: the vector is made shorter in time.
  void keep_small(int64_t first, int64_t count) {
    R largest = 0;
    for (int64_t i = first; i < first + count; ++i) largest = std::max(largest, pivot_size(x_[i]));
    if (!(largest > 1024)) return;
    const R by = 1 / largest;
    for (int64_t i = first; i <= k_; ++i) x_[i] *= by;
  }

  const int64_t n_, k_;
  const R* t_;
  const S value_;
  S* x_;
  R least_;
};

// Column `column` of out[n, n] becomes the unit vector D z x in its gauge, where x has `count` elements.
template <class S, class R>
void store_schur_vector(int64_t n, const R* z, const R* scales, int64_t lanes, const S* x,
                        int64_t count, S* made) {
  for (int64_t i = 0; i < n; ++i) {
    S sum = 0;
    for (int64_t j = 0; j < count; ++j) sum += z[i * n + j] * x[j];
    made[i] = sum * scales[i * lanes];
  }
  R largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, pivot_size(made[i]));
  const R by = 1 / largest;
  R squares = 0;
  for (int64_t i = 0; i < n; ++i) squares += size_squared(made[i] *= by);
  const R length = 1 / std::sqrt(squares);
  for (int64_t i = 0; i < n; ++i) made[i] *= length;
  apply(gauge_of(made, 1, n), made, 1, n);
}

}  // namespace oar::cpu::lapack
