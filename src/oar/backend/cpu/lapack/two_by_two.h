// Eigenvalues and eigenvectors of 2x2 matrices by formula. With p half the difference of the diagonal (a, b; c, d) and z the larger
// root of z^2 - 2 p z - b c, they are d + z with (z, c) and d - b c / z with (b, -z): nothing cancels.
#pragma once

#include <cmath>
#include <limits>

#include "oar/backend/cpu/lapack/gauge.h"

namespace oar::cpu::lapack {

// A unit vector into a column of a 2x2 matrix.
template <class C>
void store_unit(C first, C second, C* column) {
  using R = typename C::value_type;
  const R largest = std::max({std::abs(first.real()), std::abs(first.imag()),
                              std::abs(second.real()), std::abs(second.imag())});
  first /= largest;
  second /= largest;
  const R length = std::sqrt(size_squared(first) + size_squared(second));
  column[0] = first / length;
  column[2] = second / length;
  apply(gauge_of(column, 2, 2), column, 2, 2);
}

// p + r for the root r of p^2 + bc with which it is larger.
template <class R>
std::complex<R> larger_root(std::complex<R> p, std::complex<R> bc) {
  const std::complex<R> root = std::sqrt(product(p, p) + bc);
  return p.real() * root.real() + p.imag() * root.imag() < 0 ? p - root : p + root;
}
// Of real numbers; the imaginary part is positive if there is one.
template <class R>
std::complex<R> larger_root(R p, R bc) {
  const R square = p * p + bc;
  if (square < 0) return {p, std::sqrt(-square)};
  return std::copysign(std::abs(p) + std::sqrt(square), p);
}

// x by rows, finite; vectors as columns, or null.
template <class T>
void eigen_two(const T* x, std::complex<real_t<T>>* values, std::complex<real_t<T>>* vectors) {
  using R = real_t<T>;
  using C = std::complex<R>;
  R largest = 0;
  for (int i = 0; i < 4; ++i)
    largest = std::max({largest, std::abs(std::real(x[i])), std::abs(std::imag(x[i]))});
  const int power = largest > 0 ? std::ilogb(largest) : 0;
  const auto scaled = [&](T v, int by) -> T {
    if constexpr (kComplex<T>)
      return {std::ldexp(v.real(), by), std::ldexp(v.imag(), by)};
    else
      return std::ldexp(v, by);
  };
  const T a = scaled(x[0], -power), b = scaled(x[1], -power), c = scaled(x[2], -power),
          d = scaled(x[3], -power);
  const T bc = product(b, c), p = (a - d) / R(2);
  C z = larger_root(p, bc), one, two;
  if (bc == T(0)) {
    one = a;
    two = d;
    z = a - d;
  } else if (!kComplex<T> && z.imag() != 0) {
    one = C(d) + z;
    two = std::conj(one);
  } else {
    one = C(d) + z;
    two = C(d) - C(bc) / z;
  }
  const auto back = [&](C v) {
    return C(std::ldexp(v.real(), power), std::ldexp(v.imag(), power));
  };
  values[0] = back(one);
  values[1] = back(two);
  if (vectors == nullptr) return;
  if (!kComplex<T> && z.imag() != 0) {
    store_unit(z, C(c), vectors);
    store_unit(std::conj(z), C(c), vectors + 1);
    return;
  }
  // As LAPACK has it, a value that comes twice has two vectors that differ by a rounding error.
  const R least = std::max(std::numeric_limits<R>::epsilon() * std::abs(one),
                           std::numeric_limits<R>::min() / std::numeric_limits<R>::epsilon());
  if (std::abs(z) < least) z = least;
  store_unit(z, C(c), vectors);
  store_unit(C(b), -z, vectors + 1);
}

}  // namespace oar::cpu::lapack
