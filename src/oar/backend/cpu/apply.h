// Kernels from functors: one loop per dtype, the element converted to its compute type.
#pragma once

#include "oar/backend/cpu/loops.h"

namespace oar::cpu {

// The operand's dtype in and out.
template <unsigned kTypes, class F>
void apply_unary(KernelCall& call, F f) {
  visit<kTypes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_unary<T, T>(call.out(), call.in(0), f);
  });
}
template <unsigned kTypes, class F>
void apply_binary(KernelCall& call, F f) {
  visit<kTypes>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    map_binary<T, T>(call.out(), call.in(0), call.in(1), f);
  });
}

// The same for a functor without state, as a kernel of its own.
template <unsigned kTypes, class F>
void unary(KernelCall& call) {
  apply_unary<kTypes>(call, F{});
}
template <unsigned kTypes, class F>
void binary(KernelCall& call) {
  apply_binary<kTypes>(call, F{});
}

// A bool comes out.
template <unsigned kTypes, class F>
void unary_question(KernelCall& call) {
  visit<kTypes>(call.dtype(), [&](auto tag) {
    map_unary<bool, typename decltype(tag)::type>(call.out(), call.in(0), F{});
  });
}
template <unsigned kTypes, class F>
void binary_question(KernelCall& call) {
  visit<kTypes>(call.dtype(), [&](auto tag) {
    map_binary<bool, typename decltype(tag)::type>(call.out(), call.in(0), call.in(1), F{});
  });
}

// out[i] = f(a[i], b[i], c[i]), all of one type.
template <class T, class F>
void map_ternary(const oar_tensor& out, const oar_tensor& x, const oar_tensor& y,
                 const oar_tensor& z, F f) {
  using C = compute_t<T>;
  StridedLoop<4>({&out, &x, &y, &z}).run([&](const auto& p, const auto& s, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      *reinterpret_cast<T*>(p[0] + i * s[0]) =
          static_cast<T>(f(static_cast<C>(*reinterpret_cast<const T*>(p[1] + i * s[1])),
                           static_cast<C>(*reinterpret_cast<const T*>(p[2] + i * s[2])),
                           static_cast<C>(*reinterpret_cast<const T*>(p[3] + i * s[3]))));
  });
}

// Integers wrap on overflow, as in NumPy: they compute in their unsigned twin.
template <class T, class F>
T wrapping(T a, T b, F f) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    // At least 32 bits wide, since narrower ones would be promoted to a signed int.
    using U = std::common_type_t<std::make_unsigned_t<T>, uint32_t>;
    return static_cast<T>(f(static_cast<U>(a), static_cast<U>(b)));
  } else {
    return static_cast<T>(f(a, b));
  }
}

// The nearest value of an integer type; NaN becomes 0.
template <class T>
T saturated(double value) {
  if (value != value) return 0;
  if (value >= static_cast<double>(std::numeric_limits<T>::max()))
    return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min()))
    return std::numeric_limits<T>::min();
  return static_cast<T>(value);
}

}  // namespace oar::cpu
