// The four basic operations, signs, remainders and divisors.
#include <cmath>
#include <numeric>

#include "oar/backend/cpu/loops/apply.h"
#include "oar/backend/cpu/math/integers.h"
#include "oar/backend/cpu/simd/ops.h"

namespace oar::cpu {
namespace {

constexpr unsigned kMath = kFloats | kComplexes;
constexpr unsigned kReals = kIntegers | kFloats;

struct Add {
  template <class T>
  T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Subtract {
  template <class T>
  T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x - y; });
  }
};
struct Multiply {
  template <class T>
  T operator()(T a, T b) const {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};
struct Divide {
  template <class T>
  T operator()(T a, T b) const {
    return a / b;
  }
};

// An integer divisor is not 0 here. The lowest integer by -1 wraps to itself; the
// processor would trap.
struct FloorDivide {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return Subtract{}(T(0), a);
      const T quotient = static_cast<T>(a / b);
      return a % b != 0 && (a < 0) != (b < 0) ? static_cast<T>(quotient - 1) : quotient;
    } else {
      if (b == 0) return a / b;
      // From the exact remainder: a / b may round up to the next integer.
      const T rest = std::fmod(a, b);
      T quotient = (a - rest) / b;
      if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
      if (quotient == 0) return std::copysign(T(0), a / b);
      const T whole = std::floor(quotient);
      return quotient - whole > T(0.5) ? whole + 1 : whole;
    }
  }
};
struct Remainder {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_integral_v<T>) {
      if constexpr (std::is_signed_v<T>)
        if (b == -1) return 0;
      const T rest = static_cast<T>(a % b);
      return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
    } else {
      const T rest = std::fmod(a, b);
      if (rest == 0) return std::copysign(T(0), b);
      return (b < 0) != (rest < 0) ? rest + b : rest;
    }
  }
};

void check_divisor(const KernelCall& call) {
  if (!is_integral(call.dtype())) return;
  visit<kIntegers>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    user_check(!anywhere<T>(call.in(1), call.in(1), [](T b, T) { return b == 0; }),
               ErrorKind::InvalidArgument,
               "y holds 0, and an integer cannot be divided by it.\nhint: Cast the operands to "
               "float32, or replace the zeros of y.");
  });
}

void floor_divide(KernelCall& call) {
  check_divisor(call);
  constexpr auto kOp = simd::Op::floor_divide;
  if (simd::loop_for(kOp, call.dtype()))
    simd::drive_op<2>(kOp, {&call.out(), &call.in(0), &call.in(1)});
  else
    binary<kReals, FloorDivide>(call);
}

void remainder(KernelCall& call) {
  check_divisor(call);
  binary<kReals, Remainder>(call);
}

struct Neg {
  template <class T>
  T operator()(T v) const {
    return wrapping(T(0), v, [=](auto zero, auto u) {
      if constexpr (std::is_integral_v<T>)
        return zero - u;
      else
        return -v;  // 0 - v would lose the sign of 0
    });
  }
};
struct Sign {
  template <class T>
  T operator()(T v) const {
    if constexpr (std::is_unsigned_v<T>)
      return v != 0;
    else
      return v > T(0) ? T(1) : v < T(0) ? T(-1) : v;  // 0 and NaN stay
  }
};

void abs(KernelCall& call) {
  visit_wide<kNumbers>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_type<T>)
      map_unary<typename T::value_type, T>(call.out(), call.in(0), [](T v) { return std::abs(v); });
    else if constexpr (std::is_integral_v<T>)
      map_unary<T, T>(call.out(), call.in(0), [](T v) { return v < 0 ? Neg{}(v) : v; });
    else
      map_unary<T, T>(call.out(), call.in(0), [](auto v) { return std::abs(v); });
  });
}

// An integer tensor scaled by whole numbers stays exact; else it is computed in double.
void scale_integers(KernelCall& call, const Scalar& scale, const Scalar& bias, bool bias_last) {
  const auto is_whole = [](const Scalar& s) {
    return s.kind() <= Scalar::Int ||
           (std::trunc(s.to_double()) == s.to_double() && std::abs(s.to_double()) < 0x1p63);
  };
  if (is_whole(scale) && is_whole(bias)) {
    const auto a = static_cast<uint64_t>(scale.to_int()), b = static_cast<uint64_t>(bias.to_int());
    return apply_unary<kIntegers>(call, [=](auto v) {
      const auto u = static_cast<uint64_t>(v);
      return static_cast<decltype(v)>(bias_last ? u * a + b : (u + b) * a);
    });
  }
  const double a = scale.to_double(), b = bias.to_double();
  const auto [low, high] = range_of(call.dtype());
  map_unary<int64_t, int64_t>(call.out(), call.in(0), [=, low = low, high = high](int64_t v) {
    const auto u = static_cast<double>(v);
    return std::clamp(saturated<int64_t>(bias_last ? u * a + b : (u + b) * a), low, high);
  });
}

void scale(KernelCall& call) {
  const Scalar scale = call.arg(1).as_scalar(), bias = call.arg(2).as_scalar();
  const bool bias_last = call.arg(3).as_bool();
  if (is_integral(call.dtype())) return scale_integers(call, scale, bias, bias_last);
  visit_wide<kMath>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const C a = convert_element<C>(scale.to_complex()), b = convert_element<C>(bias.to_complex());
    if (bias_last)
      map_unary<C, C>(call.out(), call.in(0), [=](C v) { return v * a + b; });
    else
      map_unary<C, C>(call.out(), call.in(0), [=](C v) { return (v + b) * a; });
  });
}

struct Heaviside {
  template <class T>
  T operator()(T x, T y) const {
    if (x != x) return x;
    return x == 0 ? y : static_cast<T>(x > 0);
  }
};

// Of the magnitudes; the lowest integer's wraps to itself.
template <class T>
auto magnitude(T v) {
  using U = std::common_type_t<std::make_unsigned_t<T>, uint32_t>;
  return v < 0 ? static_cast<U>(U(0) - static_cast<U>(v)) : static_cast<U>(v);
}

struct GreatestDivisor {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(std::gcd(magnitude(a), magnitude(b)));
  }
};
struct LeastMultiple {
  template <class T>
  T operator()(T a, T b) const {
    const auto x = magnitude(a), y = magnitude(b);
    if (x == 0 || y == 0) return 0;
    return static_cast<T>(x / std::gcd(x, y) * y);
  }
};

}  // namespace

KernelList arithmetic_kernels() {
  static const oar_kernel list[] = {
      {"add", 1, "cpu:generic", nullptr, kernel_entry<binary<kAllTypes, Add>>},
      {"subtract", 1, "cpu:generic", nullptr, kernel_entry<binary<kNumbers, Subtract>>},
      {"multiply", 1, "cpu:generic", nullptr, kernel_entry<binary<kAllTypes, Multiply>>},
      {"divide", 1, "cpu:generic", nullptr, kernel_entry<binary<kMath, Divide>>},
      {"floor_divide", 1, "cpu:generic", nullptr, kernel_entry<floor_divide>},
      {"remainder", 1, "cpu:generic", nullptr, kernel_entry<remainder>},
      {"neg", 1, "cpu:generic", nullptr, kernel_entry<unary<kNumbers, Neg>>},
      {"abs", 1, "cpu:generic", nullptr, kernel_entry<abs>},
      {"sign", 1, "cpu:generic", nullptr, kernel_entry<unary<kReals, Sign>>},
      {"scale", 1, "cpu:generic", nullptr, kernel_entry<scale>},
      {"heaviside", 1, "cpu:generic", nullptr, kernel_entry<binary<kReals, Heaviside>>},
      {"gcd", 1, "cpu:generic", nullptr, kernel_entry<binary<kIntegers, GreatestDivisor>>},
      {"lcm", 1, "cpu:generic", nullptr, kernel_entry<binary<kIntegers, LeastMultiple>>},
  };
  return list;
}

}  // namespace oar::cpu
