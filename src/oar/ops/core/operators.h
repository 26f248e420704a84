// C++ operators on tensors, for rules that read like formulas. Numbers are literals: they take the
// tensor's dtype.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/complex.h"

namespace OAR_API oar {

inline Tensor literal(double value) { return Tensor::scalar(value, DType::Float64, true); }
inline Tensor literal(int value) { return Tensor::scalar(int64_t{value}, DType::Int64, true); }

inline Tensor operator+(const Tensor& a, const Tensor& b) { return add(a, b); }
inline Tensor operator-(const Tensor& a, const Tensor& b) { return subtract(a, b); }
inline Tensor operator*(const Tensor& a, const Tensor& b) { return multiply(a, b); }
inline Tensor operator/(const Tensor& a, const Tensor& b) { return divide(a, b); }
inline Tensor operator-(const Tensor& a) { return neg(a); }

// The factor in a derivative. Real tensors are returned as they are, without a call.
inline Tensor conjugate(const Tensor& t) { return is_complex(t.dtype()) ? conj(t) : t; }

template <class N>
concept Number = std::is_arithmetic_v<N>;
template <Number N>
auto number(N n) {
  if constexpr (std::is_floating_point_v<N>)
    return literal(static_cast<double>(n));
  else
    return literal(static_cast<int>(n));
}
template <Number N>
Tensor operator+(const Tensor& a, N b) {
  return add(a, number(b));
}
template <Number N>
Tensor operator+(N a, const Tensor& b) {
  return add(number(a), b);
}
template <Number N>
Tensor operator-(const Tensor& a, N b) {
  return subtract(a, number(b));
}
template <Number N>
Tensor operator-(N a, const Tensor& b) {
  return subtract(number(a), b);
}
template <Number N>
Tensor operator*(const Tensor& a, N b) {
  return multiply(a, number(b));
}
template <Number N>
Tensor operator*(N a, const Tensor& b) {
  return multiply(number(a), b);
}
template <Number N>
Tensor operator/(const Tensor& a, N b) {
  return divide(a, number(b));
}
template <Number N>
Tensor operator/(N a, const Tensor& b) {
  return divide(number(a), b);
}

}  // namespace oar
