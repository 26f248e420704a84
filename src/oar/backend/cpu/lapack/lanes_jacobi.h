// Eigenvalues and singular values of groups of small matrices, by rotations of pairs of columns (Jacobi). They are at least as
// accurate as LAPACK's. A lane without a rotation in a whole sweep is done, and stays as it is.
#pragma once

#include <cmath>

#include "oar/backend/cpu/lapack/lanes_qr.h"

namespace oar::cpu::lapack {

// Up to this size rotations take less time than LAPACK.
inline constexpr int64_t kLanesJacobi = 8;
inline constexpr int kMostSweeps = 30;

template <class T>
bool takes_rotations(const MatrixShape& shape) {
  return shape.rows <= kLanesJacobi && shape.columns <= kLanesJacobi && fills_lanes<T>(shape.count);
}

// The largest magnitude of a lane becomes about 1 by a power of two. Returns what undoes it; 0 and what is not finite get 1.
template <class T>
Reals<T> scale_to_one(Lanes<T>* a, int64_t count) {
  using V = Reals<T>;
  using R = real_t<T>;
  V largest{}, back{}, first, second;
  for (int64_t i = 0; i < count; ++i) {
    const V size = lane_size(a[i]);
    largest = where(size > largest, size, largest);
  }
  for (int64_t lane = 0; lane < kLanes<T>; ++lane) {
    const R size = largest[lane];
    const int power = size > 0 && std::isfinite(size) ? std::ilogb(size) : 0;
    back[lane] = std::ldexp(R(1), power);
    // In two steps, because the whole factor may overflow.
    first[lane] = std::ldexp(R(1), -power / 2);
    second[lane] = std::ldexp(R(1), -power - -power / 2);
  }
  for (int64_t i = 0; i < count; ++i) a[i] = a[i] * first * second;
  return back;
}

// A rotation (c, s; -conj(s), c) that makes two vectors with squared lengths a and b and product g orthogonal, in lanes that have a
// mask; the identity in others.
template <class T>
struct Rotation {
  Rotation(const Reals<T>& a, const Reals<T>& b, const Lanes<T>& g, const Mask<T>& turns) {
    using V = Reals<T>;
    const V one = all_lanes<T>(1);
    V size;  // with its sign, for real numbers
    if constexpr (kComplex<T>) {
      // |g| without overflow or loss: the larger part is taken out.
      const V x = magnitude(g.re), y = magnitude(g.im);
      const V high = where(x > y, x, y), low = where(x > y, y, x);
      const V ratio = low / where(turns, high, one);
      size = high * square_root(1 + ratio * ratio);
    } else {
      size = g;
    }
    const V safe = where(turns, size, one), cot = (b - a) / (safe + safe);
    const V root = magnitude(cot) + square_root(1 + cot * cot);
    const V tangent = where(cot < 0, -one, one) / root;
    const V cosine = one / square_root(1 + tangent * tangent);
    c = where(turns, cosine, one);
    const V sine = where(turns, cosine * tangent, V{});
    if constexpr (kComplex<T>)
      s = {sine * (g.re / safe), sine * (g.im / safe)};
    else
      s = sine;
    t = where(turns, tangent * size, V{});
  }
  // Columns x and y of count rows.
  void turn(Lanes<T>* x, Lanes<T>* y, int64_t step, int64_t count) const {
    for (int64_t i = 0; i < count; ++i) {
      const Lanes<T> p = x[i * step], q = y[i * step];
      x[i * step] = p * c - conjugated(s) * q;
      y[i * step] = s * p + q * c;
    }
  }
  Reals<T> c, t;  // t: by how much the squared lengths change
  Lanes<T> s;
};

template <class T>
void set_identity(Lanes<T>* v, int64_t n) {
  for (int64_t i = 0; i < n * n; ++i)
    v[i] = from_real<T>(all_lanes<T>(static_cast<real_t<T>>(i % (n + 1) == 0)));
}

// The columns of a[m, n] become orthogonal; v[n, n], if wanted, is by what a was multiplied. False: some lane did not converge.
template <class T>
bool orthogonalise(int64_t m, int64_t n, Lanes<T>* a, Lanes<T>* v) {
  using V = Reals<T>;
  using R = real_t<T>;
  const R eps = std::numeric_limits<R>::epsilon();
  const V limit = all_lanes<T>(eps * eps * static_cast<R>(m));
  if (v != nullptr) set_identity<T>(v, n);
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool turned = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        V x{}, y{};
        Lanes<T> g{};
        for (int64_t i = 0; i < m; ++i) {
          const Lanes<T>&left = a[i * n + p], &right = a[i * n + q];
          x += squared(left);
          y += squared(right);
          g = g + conjugated(left) * right;
        }
        const Mask<T> turns = squared(g) > limit * x * y;
        if (!any_lane(turns)) continue;
        turned = true;
        const Rotation<T> rotation(x, y, g, turns);
        rotation.turn(a + p, a + q, n, m);
        if (v != nullptr) rotation.turn(v + p, v + q, n, n);
      }
    if (!turned) return true;
  }
  return false;
}

// The Hermitian a[n, n] becomes diagonal; v[n, n], if wanted, has the vectors as columns.
template <class T>
bool diagonalise(int64_t n, Lanes<T>* a, Lanes<T>* v) {
  using V = Reals<T>;
  using R = real_t<T>;
  const R eps = std::numeric_limits<R>::epsilon();
  if (v != nullptr) set_identity<T>(v, n);
  V all{};
  for (int64_t i = 0; i < n * n; ++i) all += squared(a[i]);
  const V limit = all * (eps * eps / 64);
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    bool turned = false;
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        const Lanes<T> g = a[p * n + q];
        const V x = real_part(a[p * n + p]), y = real_part(a[q * n + q]);
        const Mask<T> turns = squared(g) > limit;
        if (!any_lane(turns)) continue;
        turned = true;
        const Rotation<T> rotation(x, y, g, turns);
        rotation.turn(a + p, a + q, n, n);
        for (int64_t i = 0; i < n; ++i) {  // the rows, by the adjoint
          const Lanes<T> left = a[p * n + i], right = a[q * n + i];
          a[p * n + i] = left * rotation.c - rotation.s * right;
          a[q * n + i] = conjugated(rotation.s) * left + right * rotation.c;
        }
        a[p * n + q] = where(turns, Lanes<T>{}, a[p * n + q]);
        a[q * n + p] = where(turns, Lanes<T>{}, a[q * n + p]);
        a[p * n + p] = from_real<T>(where(turns, x - rotation.t, x));
        a[q * n + q] = from_real<T>(where(turns, y + rotation.t, y));
        if (v != nullptr) rotation.turn(v + p, v + q, n, n);
      }
    if (!turned) return true;
  }
  return false;
}

}  // namespace oar::cpu::lapack
