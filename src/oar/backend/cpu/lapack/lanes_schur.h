// Schur forms of groups of small real matrices: balanced, reduced to Hessenberg form and iterated with double shifts, as LAPACK
// does it. Each lane has a window of its own in which it iterates; a reflection outside of it is the identity.
#pragma once

#include <cmath>

#include "oar/backend/cpu/lapack/lanes_jacobi.h"
#include "oar/backend/cpu/lapack/pair_of_rows.h"

namespace oar::cpu::lapack {

// Up to this size groups take less time than LAPACK.
inline constexpr int64_t kLanesSchur = 32;

// Rows and columns of a[n, n] get about the same length by powers of two: a becomes D^-1 a D, and `scales` the diagonal of D.
// Returns the lanes that have a row or a column of zeros beside the diagonal: LAPACK exchanges such rows first.
template <class R>
Mask<R> balance(int64_t n, Reals<R>* a, Reals<R>* scales) {
  using V = Reals<R>;
  const V one = all_lanes<R>(1);
  const R most = std::ldexp(R(1), std::numeric_limits<R>::max_exponent / 2);
  Mask<R> isolated{};
  std::fill_n(scales, n, one);
  for (bool again = true; again;) {
    again = false;
    for (int64_t i = 0; i < n; ++i) {
      V column{}, row{}, factor = one;
      for (int64_t j = 0; j < n; ++j) {
        if (j == i) continue;
        column += magnitude(a[j * n + i]);
        row += magnitude(a[i * n + j]);
      }
      const Mask<R> zero = (column == 0) | (row == 0);
      isolated |= zero;
      // With the diagonal, as LAPACK since 3.5: scales that make nothing else smaller would only make its errors larger.
      column += magnitude(a[i * n + i]);
      row += magnitude(a[i * n + i]);
      const V before = column + row;
      for (Mask<R> low = column * 2 < row; any_lane(low & ~zero); low = column * 2 < row) {
        factor = where(low & ~zero, factor * 2, factor);
        column = where(low & ~zero, column * 4, column);
      }
      for (Mask<R> high = column >= row * 2; any_lane(high & ~zero); high = column >= row * 2) {
        factor = where(high & ~zero, factor / 2, factor);
        column = where(high & ~zero, column / 4, column);
      }
      const V scale = scales[i] * factor;
      const Mask<R> worth = ((column + row) / factor < before * R(0.95)) & (factor != one) & ~zero &
                            (scale < most) & (scale > 1 / most);
      if (!any_lane(worth)) continue;
      again = true;
      factor = where(worth, factor, one);
      scales[i] *= factor;
      const V back = one / factor;
      for (int64_t j = 0; j < n; ++j) a[i * n + j] *= back;
      for (int64_t j = 0; j < n; ++j) a[j * n + i] *= factor;
    }
  }
  return isolated;
}

// a[n, n] becomes z^T a z, which is zero below the first diagonal under the main one; z is optional.
template <class R>
void to_hessenberg(int64_t n, Reals<R>* a, Reals<R>* z) {
  using V = Reals<R>;
  const Scratch<V> v(n), sums(n);
  if (z != nullptr) set_identity<R>(z, n);
  for (int64_t k = 0; k + 2 < n; ++k) {
    const int64_t rest = n - k - 1;
    const V tau = reflect<R>(rest, a + (k + 1) * n + k, n);
    v[0] = all_lanes<R>(1);
    for (int64_t i = 1; i < rest; ++i) {
      V& place = a[(k + 1 + i) * n + k];
      v[i] = place;
      place = V{};
    }
    apply_reflection<R>(rest, rest, v.data(), 1, tau, a + (k + 1) * n + k + 1, n, sums.data());
    const auto from_right = [&](V* rows) {
      for (int64_t i = 0; i < n; ++i) {
        V *row = rows + i * n + k + 1, sum{};
        for (int64_t j = 0; j < rest; ++j) sum += row[j] * v[j];
        sum *= tau;
        for (int64_t j = 0; j < rest; ++j) row[j] -= sum * v[j];
      }
    };
    from_right(a);
    if (z != nullptr) from_right(z);
  }
}

// The iteration. a[n, n] is in Hessenberg form and becomes triangular but for blocks of 2x2, which have conjugate eigenvalues and
// twice the same element on the diagonal.
template <class R>
class SchurIteration {
 public:
  SchurIteration(int64_t n, Reals<R>* a, Reals<R>* z) : n_(n), a_(a), z_(z) {}

  // False: some lane did not converge.
  bool run() {
    for (Window& each : windows_) each = {0, n_ - 1, n_, 0};
    for (int64_t left = 30 * std::max<int64_t>(10, n_); left > 0; --left) {
      int64_t from = n_, to = 0, top = n_;
      for (int64_t lane = 0; lane < kWidth; ++lane) {
        Window& own = windows_[lane];
        own.start = n_;
        if (next_window(lane)) prepare(lane);
        start_[lane] = static_cast<Number>(own.start);
        high_[lane] = static_cast<Number>(own.high);
        if (own.start == n_) continue;
        from = std::min(from, own.start);
        to = std::max(to, own.high);
        top = std::min(top, own.low);
      }
      if (from == n_) return true;
      for (int64_t k = from; k < to; ++k) step(k, z_ ? 0 : top, z_ ? n_ : to + 1);
    }
    return false;
  }

 private:
  using V = Reals<R>;
  using Number = std::conditional_t<sizeof(R) == 4, int32_t, int64_t>;
  static constexpr int64_t kWidth = kLanes<R>;
  static constexpr R kUnit = std::numeric_limits<R>::epsilon();
  static constexpr R kTiny = std::numeric_limits<R>::min() / kUnit * kLanesSchur;
  // Rows low ... high are not finished; the next reflections begin at `start`, or nowhere.
  struct Window {
    int64_t low, high, start;
    int steps;
  };

  R& at(int64_t lane, int64_t i, int64_t j) {
    return reinterpret_cast<R*>(a_)[(i * n_ + j) * kWidth + lane];
  }
  R size(int64_t lane, int64_t i, int64_t j) { return std::abs(at(lane, i, j)); }

  // Is the element to the left of the diagonal of row k so small that it may become zero? By Ahues and Tisseur.
  bool negligible(int64_t lane, int64_t k) {
    const R below = size(lane, k, k - 1);
    if (below <= kTiny) return true;
    R around = size(lane, k - 1, k - 1) + size(lane, k, k);
    if (around == 0) {
      if (k >= 2) around += size(lane, k - 1, k - 2);
      if (k + 1 < n_) around += size(lane, k + 1, k);
    }
    if (below > kUnit * around) return false;
    const R above = size(lane, k - 1, k), own = size(lane, k, k),
            apart = std::abs(at(lane, k - 1, k - 1) - at(lane, k, k));
    const R largest = std::max(below, above), least = std::min(below, above);
    const R wide = std::max(own, apart), narrow = std::min(own, apart), sum = wide + largest;
    return least * (largest / sum) <= std::max(kTiny, kUnit * (narrow * (wide / sum)));
  }

  // The lane's window gets three rows or more; what is smaller is finished. False: the lane is done.
  bool next_window(int64_t lane) {
    Window& own = windows_[lane];
    while (own.high >= 0) {
      int64_t low = own.high;
      while (low > 0 && !negligible(lane, low)) --low;
      if (low > 0) at(lane, low, low - 1) = 0;
      own.low = low;
      if (low + 1 < own.high) return true;
      if (low < own.high) finish_pair(lane, low);
      own.high = low - 1;
      own.steps = 0;
    }
    return false;
  }

  void finish_pair(int64_t lane, int64_t k) {
    const PairOfRows<R> pair(at(lane, k, k), at(lane, k, k + 1), at(lane, k + 1, k),
                             at(lane, k + 1, k + 1));
    at(lane, k, k) = pair.a;
    at(lane, k, k + 1) = pair.b;
    at(lane, k + 1, k) = pair.c;
    at(lane, k + 1, k + 1) = pair.d;
    if (z_ == nullptr) return;
    for (int64_t j = k + 2; j < n_; ++j) pair.turn(at(lane, k, j), at(lane, k + 1, j));
    for (int64_t i = 0; i < k; ++i) pair.turn(at(lane, i, k), at(lane, i, k + 1));
    R* z = reinterpret_cast<R*>(z_) + lane;
    for (int64_t i = 0; i < n_; ++i)
      pair.turn(z[(i * n_ + k) * kWidth], z[(i * n_ + k + 1) * kWidth]);
  }

  // Two shifts: the eigenvalues of the last 2x2 block if they are conjugate, else twice the one closer to the last element; after
  // ten steps without a result, others.
  struct Shifts {
    R first, second, imaginary;
  };
  Shifts shifts(int64_t lane) {
    Window& own = windows_[lane];
    const int64_t low = own.low, high = own.high;
    R a, b, c, d;
    ++own.steps;
    if (own.steps % 10 == 0) {
      const bool at_top = own.steps % 20 != 0;
      const R sum = at_top ? size(lane, low + 1, low) + size(lane, low + 2, low + 1)
                           : size(lane, high, high - 1) + size(lane, high - 1, high - 2);
      a = d = R(0.75) * sum + (at_top ? at(lane, low, low) : at(lane, high, high));
      b = R(-0.4375) * sum;
      c = sum;
    } else {
      a = at(lane, high - 1, high - 1);
      b = at(lane, high - 1, high);
      c = at(lane, high, high - 1);
      d = at(lane, high, high);
    }
    const R scale = std::abs(a) + std::abs(b) + std::abs(c) + std::abs(d);
    if (scale == 0) return {0, 0, 0};
    const R inverse = 1 / scale;
    a *= inverse, b *= inverse, c *= inverse, d *= inverse;
    const R middle = (a + d) / 2, product = (a - middle) * (d - middle) - b * c,
            root = std::sqrt(std::abs(product));
    if (product >= 0) return {middle * scale, middle * scale, root * scale};
    const R more = middle + root, less = middle - root,
            closer = std::abs(more - d) <= std::abs(less - d) ? more : less;
    return {closer * scale, closer * scale, 0};
  }

  // Where the lane's reflections begin, and the first vector: below two small elements in a row nothing above is changed.
  void prepare(int64_t lane) {
    Window& own = windows_[lane];
    const Shifts s = shifts(lane);
    for (int64_t m = own.high - 2;; --m) {
      const R diagonal = at(lane, m, m), below = at(lane, m + 1, m), next = at(lane, m + 1, m + 1);
      const R scale = 1 / (std::abs(diagonal - s.second) + std::abs(s.imaginary) + std::abs(below));
      const R part = below * scale;
      const R x = part * at(lane, m, m + 1) +
                  (diagonal - s.first) * ((diagonal - s.second) * scale) +
                  s.imaginary * (s.imaginary * scale),
              y = part * (diagonal + next - s.first - s.second), z = part * at(lane, m + 2, m + 1);
      const bool small =
          m == own.low || size(lane, m, m - 1) * (std::abs(y) + std::abs(z)) <=
                              kUnit * std::abs(x) *
                                  (size(lane, m - 1, m - 1) + std::abs(diagonal) + std::abs(next));
      if (!small) continue;
      own.start = m;
      first_[0][lane] = x;
      first_[1][lane] = y;
      first_[2][lane] = z;
      return;
    }
  }

  // The reflection of rows and columns k, k + 1 and k + 2, in lanes whose window has them.
  void step(int64_t k, int64_t top, int64_t right) {
    const Mask<R> row = all_rows<R>(k), active = (row >= start_) & (row < high_),
                  inside = active & (row > start_);
    const bool three = k + 2 < n_;
    V x = first_[0], y = first_[1], z = first_[2];
    V* left = a_ + k * n_ + k - 1;  // the column before, if there is one
    if (k > 0) {
      x = where(inside, left[0], x);
      y = where(inside, left[n_], y);
      z = three ? where(inside, left[2 * n_], z) : V{};
    }
    const V one = all_lanes<R>(1), sum = magnitude(x) + magnitude(y) + magnitude(z);
    const Mask<R> still = ~active | ((magnitude(y) + magnitude(z)) == 0);
    const V scale = where(sum == 0, one, sum), inverse = one / scale;
    x *= inverse, y *= inverse, z *= inverse;
    const V length = square_root(x * x + y * y + z * z), beta = where(x < 0, length, -length);
    const V safe = where(still, one, beta), shifted = where(still, one, x - beta);
    const V tau = where(still, V{}, (safe - x) / safe), by = one / shifted;
    const V v = where(still, V{}, y * by), w = where(still, V{}, z * by);
    if (k > 0) {
      left[0] = where(inside, where(still, x, beta) * scale, left[0] * (one - tau));
      left[n_] = where(inside, V{}, left[n_]);
      if (three) left[2 * n_] = where(inside, V{}, left[2 * n_]);
    }
    if (three)
      apply_three(k, tau, v, w, top, right);
    else
      apply_two(k, tau, v, top, right);
  }

  void apply_three(int64_t k, const V& tau, const V& v, const V& w, int64_t top, int64_t right) {
    const V tau_v = tau * v, tau_w = tau * w;
    const auto turn = [&](V& a, V& b, V& c) {
      const V sum = a + v * b + w * c;
      a -= sum * tau;
      b -= sum * tau_v;
      c -= sum * tau_w;
    };
    V *one = a_ + k * n_, *two = one + n_, *three = two + n_;
    for (int64_t j = k; j < right; ++j) turn(one[j], two[j], three[j]);
    const auto columns = [&](V* at, int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i)
        turn(at[i * n_ + k], at[i * n_ + k + 1], at[i * n_ + k + 2]);
    };
    columns(a_, top, std::min(k + 4, n_));
    if (z_ != nullptr) columns(z_, 0, n_);
  }
  void apply_two(int64_t k, const V& tau, const V& v, int64_t top, int64_t right) {
    const V tau_v = tau * v;
    const auto turn = [&](V& a, V& b) {
      const V sum = a + v * b;
      a -= sum * tau;
      b -= sum * tau_v;
    };
    V *one = a_ + k * n_, *two = one + n_;
    for (int64_t j = k; j < right; ++j) turn(one[j], two[j]);
    const auto columns = [&](V* at, int64_t from, int64_t to) {
      for (int64_t i = from; i < to; ++i) turn(at[i * n_ + k], at[i * n_ + k + 1]);
    };
    columns(a_, top, n_);
    if (z_ != nullptr) columns(z_, 0, n_);
  }

  const int64_t n_;
  V *const a_, *const z_;
  Window windows_[kWidth];
  Mask<R> start_{}, high_{};
  V first_[3]{};
};

}  // namespace oar::cpu::lapack
