// Eigenvalues of groups of Hermitian matrices: reduced to tridiagonal form by reflections, then QR steps with shifts. Each lane has a
// window of its own in which it iterates; a rotation outside of it is the identity.
#pragma once

#include "oar/backend/cpu/lapack/lanes_qr.h"

namespace oar::cpu::lapack {

// Up to the first size rotations (lanes_jacobi.h) take less time, and up to the second one groups less than LAPACK.
inline constexpr int64_t kLanesHermitianJacobi = 3, kLanesTridiagonal = 32;

template <class T>
bool takes_tridiagonal(const MatrixShape& shape) {
  return shape.rows <= kLanesTridiagonal && fills_lanes<T>(shape.count);
}

// The Hermitian a[n, n] becomes Q^H a Q with a real diagonal and real elements beside it; Q is written to q, if wanted.
template <class T>
void to_tridiagonal(int64_t n, Lanes<T>* a, Reals<T>* diagonal, Reals<T>* beside, Lanes<T>* q) {
  using V = Reals<T>;
  const Scratch<Lanes<T>> taus(n), w(n), sums(n);
  for (int64_t k = 0; k + 1 < n; ++k) {
    const int64_t rest = n - k - 1;
    Lanes<T>* v = a + (k + 1) * n + k;  // with a step of n
    Lanes<T>* square = v + 1;
    const Lanes<T> tau = taus[k] = reflect<T>(rest, v, n);
    diagonal[k] = real_part(a[k * n + k]);
    beside[k] = real_part(v[0]);
    v[0] = from_real<T>(all_lanes<T>(1));
    // The square becomes square - v w^H - w v^H, where w = tau square v - |tau|^2 (v^H square v) / 2 v.
    V inner{};
    for (int64_t i = 0; i < rest; ++i) {
      Lanes<T> sum = square[i * n] * v[0];
      for (int64_t j = 1; j < rest; ++j) sum = sum + square[i * n + j] * v[j * n];
      w[i] = tau * sum;
      inner += real_product(v[i * n], sum);
    }
    const V half = squared(tau) * inner * real_t<T>(0.5);
    for (int64_t i = 0; i < rest; ++i) w[i] = w[i] - v[i * n] * half;
    for (int64_t i = 0; i < rest; ++i) {
      const Lanes<T> left = v[i * n], right = w[i];
      for (int64_t j = 0; j <= i; ++j) {
        const Lanes<T> made =
            square[i * n + j] - left * conjugated(w[j]) - right * conjugated(v[j * n]);
        square[i * n + j] = made;
        square[j * n + i] = conjugated(made);
      }
    }
  }
  diagonal[n - 1] = real_part(a[n * n - 1]);
  if (q == nullptr) return;
  for (int64_t i = 0; i < n * n; ++i)
    q[i] = from_real<T>(all_lanes<T>(static_cast<real_t<T>>(i % (n + 1) == 0)));
  for (int64_t k = n - 2; k >= 0; --k)
    apply_reflection<T>(n - k - 1, n - k - 1, a + (k + 1) * n + k, n, taus[k],
                        q + (k + 1) * (n + 1), n, sums.data());
}

// The iteration on a tridiagonal matrix; the columns of q[n, n] turn with it, if given.
template <class T>
class TridiagonalIteration {
 public:
  using V = Reals<T>;
  TridiagonalIteration(int64_t n, V* diagonal, V* beside, Lanes<T>* q)
      : n_(n), d_(diagonal), e_(beside), q_(q) {}

  // False: some lane did not converge.
  bool run() {
    for (int64_t left = 30 * n_; left > 0; --left) {
      find_windows();
      if (last_ == 0) return true;
      for (int64_t k = first_; k < last_; ++k) step(k);
    }
    return false;
  }

 private:
  using R = real_t<T>;
  using M = Mask<T>;
  using Safe = SafeSquares<R>;

  // Sets small elements to zero, and low_ ... high_ of each lane to its last rows that are connected, or to 0 ... 0.
  void find_windows() {
    constexpr R kUnit = std::numeric_limits<R>::epsilon();
    const V tiny = all_lanes<T>(std::numeric_limits<R>::min() / kUnit);
    M open{}, closed{};
    low_ = high_ = M{};
    V end{}, before{}, between{}, start{};
    first_ = n_;
    last_ = 0;
    for (int64_t k = n_ - 2; k >= 0; --k) {
      const M zero =
          e_[k] * e_[k] <= magnitude(d_[k] * (kUnit * kUnit)) * magnitude(d_[k + 1]) + tiny;
      e_[k] = where(zero, V{}, e_[k]);
      const M opens = ~zero & ~open, closes = zero & open & ~closed, goes_on = ~zero & ~closed;
      if (any_lane(opens)) {
        last_ = std::max(last_, k + 1);
        high_ = where(opens, all_rows<T>(k + 1), high_);
        end = where(opens, d_[k + 1], end);
        before = where(opens, d_[k], before);
        between = where(opens, e_[k], between);
      }
      open |= opens;
      closed |= closes;
      low_ = where(goes_on, all_rows<T>(k), low_);
      start = where(goes_on, d_[k], start);
      if (any_lane(goes_on)) first_ = k;
    }
    if (last_ == 0) return;
    // The eigenvalue of the last 2x2 block that is closer to its last element.
    const V half = (before - end) * R(0.5), root = square_root(half * half + between * between);
    const V sum = half + where(half < 0, -root, root);
    const V shift = end - between * between / where(sum == 0, all_lanes<T>(1), sum);
    along_ = start - shift;
  }

  void step(int64_t k) {
    const M row = all_rows<T>(k), active = (row >= low_) & (row < high_),
            inside = active & (row > low_);
    const V one = all_lanes<T>(1);
    V x = where(inside, next_, along_), y = where(inside, bulge_, e_[k]), back = one;
    V all = x * x + y * y;
    const M low = active & (all < Safe::kLow);
    if (any_lane(low)) {
      const V up = where(low, all_lanes<T>(Safe::kScale), one);
      x *= up, y *= up;
      all = x * x + y * y;
      back = one / up;
    }
    const V length = square_root(all);
    const M turns = active & (length > 0);
    const V inverse = one / where(turns, length, one);
    const V c = where(turns, x * inverse, one), s = where(turns, y * inverse, V{});
    if (k > 0) e_[k - 1] = where(inside, length * back, e_[k - 1]);
    const V part = s * (d_[k + 1] - d_[k]) + 2 * c * e_[k];
    d_[k] = d_[k] + s * part;
    d_[k + 1] = d_[k + 1] - s * part;
    e_[k] = where(active, c * part - e_[k], e_[k]);
    next_ = e_[k];
    if (k + 2 < n_) {
      bulge_ = s * e_[k + 1];
      e_[k + 1] = c * e_[k + 1];
    }
    if (q_ == nullptr) return;
    for (int64_t i = 0; i < n_; ++i) {
      Lanes<T>&left = q_[i * n_ + k], &right = q_[i * n_ + k + 1];
      const Lanes<T> old = left;
      left = old * c + right * s;
      right = right * c - old * s;
    }
  }

  const int64_t n_;
  V *const d_, *const e_;
  Lanes<T>* const q_;
  M low_{}, high_{};
  V along_{}, next_{}, bulge_{};
  int64_t first_ = 0, last_ = 0;  // of all lanes
};

}  // namespace oar::cpu::lapack
