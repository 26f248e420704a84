// Factors of matrices of a few rows, which a call of the library would take longer to reach than to compute.
#pragma once

#include <cmath>

#include "oar/backend/cpu/lapack/batch.h"

namespace oar::cpu::lapack {

// Calls body with n as a constant where the compiler should unroll the loops.
template <class F>
void with_size(int64_t n, F&& body) {
  switch (n) {
    case 1:
      return body(std::integral_constant<int64_t, 1>{});
    case 2:
      return body(std::integral_constant<int64_t, 2>{});
    case 3:
      return body(std::integral_constant<int64_t, 3>{});
    case 4:
      return body(std::integral_constant<int64_t, 4>{});
    default:
      return body(n);
  }
}

// a = L L^H for the lower triangle of a, row by row, in place. False if a is not positive definite.
template <class T, class N>
bool small_cholesky(N n, T* a) {
  using R = real_t<T>;
  for (int64_t j = 0; j < n; ++j) {
    R rest = std::real(a[j * n + j]);
    for (int64_t k = 0; k < j; ++k) rest -= size_squared(a[j * n + k]);
    if (!(rest > 0)) return false;
    const R root = std::sqrt(rest), inverse = 1 / root;
    a[j * n + j] = root;
    for (int64_t i = j + 1; i < n; ++i) {
      T sum = a[i * n + j];
      for (int64_t k = 0; k < j; ++k) sum -= product(a[i * n + k], conjugate(a[j * n + k]));
      a[i * n + j] = sum * inverse;
    }
  }
  return true;
}

// x / pivot by the pivot's inverse, which a subnormal pivot does not have.
template <class T>
T over_pivot(T x, T pivot, T inverse) {
  return std::isfinite(std::abs(inverse)) ? product(x, inverse) : x / pivot;
}

// P a = L U with the largest pivot of each column, in place; `rows` gets the row that was exchanged with row j. Returns the number
// of the first zero pivot, counted from 1, or 0. `odd` is whether the number of exchanges is odd.
template <class T, class N>
int64_t small_lu(N n, T* a, Int* rows, bool* odd) {
  int64_t zero = 0;
  *odd = false;
  for (int64_t j = 0; j < n; ++j) {
    int64_t best = j;
    auto largest = pivot_size(a[j * n + j]);
    for (int64_t i = j + 1; i < n; ++i)
      if (const auto size = pivot_size(a[i * n + j]); size > largest) {
        largest = size;
        best = i;
      }
    rows[j] = static_cast<Int>(best);
    if (best != j) {
      *odd = !*odd;
      for (int64_t k = 0; k < n; ++k) std::swap(a[j * n + k], a[best * n + k]);
    }
    const T pivot = a[j * n + j];
    if (pivot == T(0)) {
      if (zero == 0) zero = j + 1;
      continue;
    }
    const T inverse = T(1) / pivot;
    for (int64_t i = j + 1; i < n; ++i) {
      const T factor = over_pivot(a[i * n + j], pivot, inverse);
      a[i * n + j] = factor;
      for (int64_t k = j + 1; k < n; ++k) a[i * n + k] -= product(factor, a[j * n + k]);
    }
  }
  return zero;
}

// b[n, columns] = (the matrix that was factored)^-1 b, in place.
template <class T, class N>
void small_lu_solve(N n, const T* lu, const Int* rows, T* b, int64_t columns) {
  for (int64_t j = 0; j < n; ++j)
    if (rows[j] != j)
      for (int64_t k = 0; k < columns; ++k) std::swap(b[j * columns + k], b[rows[j] * columns + k]);
  for (int64_t i = 1; i < n; ++i)
    for (int64_t j = 0; j < i; ++j) {
      const T factor = lu[i * n + j];
      for (int64_t k = 0; k < columns; ++k)
        b[i * columns + k] -= product(factor, b[j * columns + k]);
    }
  for (int64_t i = n - 1; i >= 0; --i) {
    for (int64_t j = i + 1; j < n; ++j) {
      const T factor = lu[i * n + j];
      for (int64_t k = 0; k < columns; ++k)
        b[i * columns + k] -= product(factor, b[j * columns + k]);
    }
    const T pivot = lu[i * n + i], inverse = T(1) / pivot;
    for (int64_t k = 0; k < columns; ++k)
      b[i * columns + k] = over_pivot(b[i * columns + k], pivot, inverse);
  }
}

}  // namespace oar::cpu::lapack
