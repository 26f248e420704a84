// Powers and roots.
#include <cmath>

#include "oar/backend/cpu/loops/apply.h"
#include "oar/backend/cpu/math/integers.h"

namespace oar::cpu {
namespace {

constexpr unsigned kMath = kFloats | kComplexes;

template <class T>
T times(T a, T b) {
  return wrapping(a, b, [](auto x, auto y) { return x * y; });
}
template <class T>
T integer_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>)
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? ((exponent & 1) != 0 ? -1 : 1) : 0;
  T result = 1;
  for (auto rest = static_cast<std::make_unsigned_t<T>>(exponent); rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) result = times(result, base);
    base = times(base, base);
  }
  return result;
}

struct Power {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      return integer_power(a, b);
    } else if constexpr (is_complex_type<T>) {
      using R = typename T::value_type;
      constexpr R nan = std::numeric_limits<R>::quiet_NaN();
      if (b == T(0)) return T(1);
      if (a == T(0)) return b.real() > 0 ? T(0) : T(nan, nan);
      return std::pow(a, b);
    } else {
      return b == T(2) ? a * a : std::pow(a, b);
    }
  }
};

void power(KernelCall& call) {
  if (is_integral(call.dtype()))
    visit<kIntegers>(call.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_signed_v<T>)
        user_check(
            !anywhere<T>(call.in(0), call.in(1), [](T a, T b) { return a == 0 && b < 0; }),
            ErrorKind::InvalidArgument,
            "x holds 0 where y is negative: an integer cannot be divided by 0.\nhint: Cast x "
            "to float32.");
    });
  binary<kIntegers | kMath, Power>(call);
}

void pow_grad(KernelCall& call) {
  visit_wide<kMath>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    map_ternary<C>(call.out(), call.in(0), call.in(1), call.in(2), [](C x, C y, C grad) {
      if (x == C(0) && y == C(0)) return grad * C(0);
      const C slope = y == C(2) ? y * x : y * Power{}(x, y - C(1));
      if constexpr (is_complex_type<C>)
        return grad * std::conj(slope);
      else
        return grad * slope;
    });
  });
}

struct Square {
  template <class T>
  T operator()(T v) const {
    return wrapping(v, v, [](auto a, auto b) { return a * b; });
  }
};
struct Reciprocal {
  template <class T>
  T operator()(T v) const {
    return T(1) / v;
  }
};
struct Sqrt {
  template <class T>
  T operator()(T v) const {
    return std::sqrt(v);
  }
};
struct Rsqrt {
  template <class T>
  T operator()(T v) const {
    return T(1) / std::sqrt(v);
  }
};

}  // namespace

KernelList powers_kernels() {
  static const oar_kernel list[] = {
      {"pow", 1, "cpu:generic", nullptr, kernel_entry<power>},
      {"pow_grad", 1, "cpu:generic", nullptr, training_entry<pow_grad>},
      {"square", 1, "cpu:generic", nullptr, kernel_entry<unary<kNumbers, Square>>},
      {"reciprocal", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Reciprocal>>},
      {"sqrt", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Sqrt>>},
      {"rsqrt", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Rsqrt>>},
  };
  return list;
}

}  // namespace oar::cpu
