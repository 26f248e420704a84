// Small matrices of a batch, several at once: lane i of every vector belongs to matrix i of a group. Loops are those of one matrix;
// what a matrix does alone (which row is its pivot, whether it has converged) is a mask. So a result does not depend on the group.
#pragma once

#include <algorithm>
#include <limits>

#include "oar/backend/cpu/lapack/batch.h"
#include "oar/backend/cpu/vector.h"

namespace oar::cpu::lapack {

template <class T>
using Reals = typename Vectors<real_t<T>>::Values;
template <class T>
using Mask = typename Vectors<real_t<T>>::Mask;
template <class T>
inline constexpr int64_t kLanes = 32 / static_cast<int64_t>(sizeof(real_t<T>));

// Complex numbers, their parts apart.
template <class V>
struct Pair {
  V re, im;
};
template <class T>
using Lanes = std::conditional_t<kComplex<T>, Pair<Reals<T>>, Reals<T>>;

template <class V>
Pair<V> operator+(const Pair<V>& a, const Pair<V>& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class V>
Pair<V> operator-(const Pair<V>& a, const Pair<V>& b) {
  return {a.re - b.re, a.im - b.im};
}
template <class V>
Pair<V> operator-(const Pair<V>& a) {
  return {-a.re, -a.im};
}
template <class V>
Pair<V> operator*(const Pair<V>& a, const Pair<V>& b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
template <class V>
Pair<V> operator*(const Pair<V>& a, const V& b) {
  return {a.re * b, a.im * b};
}
template <class V>
Pair<V> operator/(const Pair<V>& a, const V& b) {
  return {a.re / b, a.im / b};
}

template <class V>
V real_part(const V& a) {
  return a;
}
template <class V>
V real_part(const Pair<V>& a) {
  return a.re;
}
template <class V>
V conjugated(const V& a) {
  return a;
}
template <class V>
Pair<V> conjugated(const Pair<V>& a) {
  return {a.re, -a.im};
}
template <class V>
V squared(const V& a) {
  return a * a;
}
template <class V>
V squared(const Pair<V>& a) {
  return a.re * a.re + a.im * a.im;
}
template <class V>
V magnitude(const V& a) {
  return a < 0 ? -a : a;
}
// The real part of conj(a) b.
template <class V>
V real_product(const V& a, const V& b) {
  return a * b;
}
template <class V>
V real_product(const Pair<V>& a, const Pair<V>& b) {
  return a.re * b.re + a.im * b.im;
}
// What pivots are compared by, as `pivot_size`.
template <class V>
V lane_size(const V& a) {
  return magnitude(a);
}
template <class V>
V lane_size(const Pair<V>& a) {
  return magnitude(a.re) + magnitude(a.im);
}
template <class M, class V>
V where(const M& mask, const V& a, const V& b) {
  return mask ? a : b;
}
template <class M, class V>
Pair<V> where(const M& mask, const Pair<V>& a, const Pair<V>& b) {
  return {mask ? a.re : b.re, mask ? a.im : b.im};
}
template <class T>
Lanes<T> from_real(const Reals<T>& a) {
  if constexpr (kComplex<T>)
    return {a, Reals<T>{}};
  else
    return a;
}
template <class T>
Reals<T> all_lanes(real_t<T> value) {
  return Reals<T>{} + value;
}
// A row's number in every lane, as wide as a mask.
template <class T>
Mask<T> all_rows(int64_t row) {
  using Number = std::conditional_t<sizeof(real_t<T>) == 4, int32_t, int64_t>;
  return Mask<T>{} + static_cast<Number>(row);
}
template <class T>
T lane_of(const Lanes<T>& a, int64_t lane) {
  if constexpr (kComplex<T>)
    return {a.re[lane], a.im[lane]};
  else
    return a[lane];
}
template <class T>
Mask<T> is_zero(const Lanes<T>& a) {
  if constexpr (kComplex<T>)
    return (a.re == 0) & (a.im == 0);
  else
    return a == 0;
}

// Division by one number. What is divided is not much larger than it or, as LAPACK's, the quotient may overflow.
template <class T>
class Divider {
 public:
  explicit Divider(const Lanes<T>& by)
      : size_(lane_size(by)),
        tiny_(size_ < std::numeric_limits<real_t<T>>::min()),
        any_tiny_(any_lane(tiny_)),
        by_(by) {
    if constexpr (kComplex<T>) {
      const Lanes<T> unit = by / size_;
      inverse_ = conjugated(unit) / squared(unit);
      reciprocal_ = 1 / size_;
    } else {
      reciprocal_ = 1 / by;
    }
  }
  Lanes<T> operator()(const Lanes<T>& a) const {
    Lanes<T> made = a * reciprocal_;
    if constexpr (kComplex<T>) {
      if (any_tiny_) made = where(tiny_, a / size_, made);
      return made * inverse_;
    } else {
      return any_tiny_ ? where(tiny_, a / by_, made) : made;
    }
  }

 private:
  Reals<T> size_;
  Mask<T> tiny_;
  bool any_tiny_;
  Lanes<T> by_, inverse_;
  Reals<T> reciprocal_;
};

// ---- Groups --------------------------------------------------------------------------------------

// Lanes are worth it for this many matrices or more.
template <class T>
bool fills_lanes(int64_t count) {
  return count * 2 >= kLanes<T>;
}

// Calls body(first, used) for groups of at most kLanes matrices, where `work` is about the flops of one.
template <class T, class Body>
void over_groups(int64_t count, double work, Body&& body) {
  constexpr int64_t kWidth = kLanes<T>;
  over_batch((count + kWidth - 1) / kWidth, work * kWidth, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * kWidth; i < std::min(count, end * kWidth); i += kWidth)
      body(i, std::min(kWidth, count - i));
  });
}

// to[e] = element e of the matrices at from, from + stride, ...; lanes that are not used repeat the first one.
template <class T>
void gather_lanes(const T* from, int64_t stride, int64_t used, int64_t elements, Lanes<T>* to) {
  using R = real_t<T>;
  constexpr int64_t kWidth = kLanes<T>, kParts = kComplex<T> ? 2 : 1;
  const auto* x = reinterpret_cast<const R*>(from);
  auto* out = reinterpret_cast<R*>(to);
  int64_t e = 0;
  if (used == kWidth)
    for (; e + kWidth <= elements * kParts; e += kWidth)
      transpose_block(x + e, stride * kParts, out + e * kWidth, kWidth);
  for (int64_t lane = 0; lane < kWidth; ++lane)
    for (int64_t i = e; i < elements * kParts; ++i)
      out[i * kWidth + lane] = x[(lane < used ? lane : 0) * stride * kParts + i];
}

template <class T>
void scatter_lanes(const Lanes<T>* from, int64_t elements, T* to, int64_t stride, int64_t used) {
  using R = real_t<T>;
  constexpr int64_t kWidth = kLanes<T>, kParts = kComplex<T> ? 2 : 1;
  const auto* x = reinterpret_cast<const R*>(from);
  auto* out = reinterpret_cast<R*>(to);
  int64_t e = 0;
  if (used == kWidth)
    for (; e + kWidth <= elements * kParts; e += kWidth)
      transpose_block(x + e * kWidth, kWidth, out + e, stride * kParts);
  for (int64_t lane = 0; lane < used; ++lane)
    for (int64_t i = e; i < elements * kParts; ++i)
      out[lane * stride * kParts + i] = x[i * kWidth + lane];
}

}  // namespace oar::cpu::lapack
