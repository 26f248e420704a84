// Elementwise arithmetic of two operands.
#include <atomic>
#include <cmath>

#include "oar/backend/cpu/apply.h"
#include "oar/backend/cpu/simd/ops.h"

namespace oar::cpu {
namespace {

constexpr unsigned kMath = kFloats | kComplexes;
constexpr unsigned kReals = kIntegers | kFloats;
constexpr unsigned kOrdered = kBools | kReals;

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

// The divisor is not 0 when an integer comes here. The lowest integer by -1 wraps to itself; the
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

// Whether question(x[i], y[i]) holds anywhere, asked before the kernel writes anything.
template <class T, class F>
bool anywhere(const oar_tensor& x, const oar_tensor& y, F question) {
  std::atomic<bool> found = false;
  StridedLoop<2>({&x, &y}).run([&](const auto& p, const auto& s, int64_t n) {
    constexpr int64_t kGroup = 64;  // of a constant length, which compilers vectorise
    const T *a = reinterpret_cast<const T*>(p[0]), *b = reinterpret_cast<const T*>(p[1]);
    const bool dense = s[0] == sizeof(T) && s[1] == sizeof(T);
    bool here = false;
    int64_t i = 0;
    for (; dense && i + kGroup <= n; i += kGroup) {
      T group = 0;
      for (int64_t k = 0; k < kGroup; ++k) group |= question(a[i + k], b[i + k]) ? T(1) : T(0);
      here |= group != 0;
    }
    for (; i < n; ++i)
      here |= question(*reinterpret_cast<const T*>(p[0] + i * s[0]),
                       *reinterpret_cast<const T*>(p[1] + i * s[1]));
    if (here) found.store(true, std::memory_order_relaxed);
  });
  return found;
}

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

template <class T>
T integer_power(T base, T exponent) {
  if constexpr (std::is_signed_v<T>)
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? ((exponent & 1) != 0 ? -1 : 1) : 0;
  T result = 1;
  for (auto rest = static_cast<std::make_unsigned_t<T>>(exponent); rest != 0; rest >>= 1) {
    if ((rest & 1) != 0) result = Multiply{}(result, base);
    base = Multiply{}(base, base);
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
  visit<kMath>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    map_ternary<T>(call.out(), call.in(0), call.in(1), call.in(2), [](C x, C y, C grad) {
      if (x == C(0) && y == C(0)) return grad * C(0);
      const C slope = y == C(2) ? y * x : y * Power{}(x, y - C(1));
      if constexpr (is_complex_type<C>)
        return grad * std::conj(slope);
      else
        return grad * slope;
    });
  });
}

// NaN is the one value that differs from itself.
struct Maximum {
  template <class T>
  T operator()(T a, T b) const {
    return a != a || a > b ? a : b;
  }
};
struct Minimum {
  template <class T>
  T operator()(T a, T b) const {
    return a != a || a < b ? a : b;
  }
};
struct Fmax {
  template <class T>
  T operator()(T a, T b) const {
    return b != b || a >= b ? a : b;
  }
};
struct Fmin {
  template <class T>
  T operator()(T a, T b) const {
    return b != b || a <= b ? a : b;
  }
};

}  // namespace

KernelList binary_kernels() {
  static const oar_kernel list[] = {
      {"add", 1, "cpu:ref", nullptr, kernel_entry<binary<kAllTypes, Add>>},
      {"subtract", 1, "cpu:ref", nullptr, kernel_entry<binary<kNumbers, Subtract>>},
      {"multiply", 1, "cpu:ref", nullptr, kernel_entry<binary<kAllTypes, Multiply>>},
      {"divide", 1, "cpu:ref", nullptr, kernel_entry<binary<kMath, Divide>>},
      {"floor_divide", 1, "cpu:ref", nullptr, kernel_entry<floor_divide>},
      {"remainder", 1, "cpu:ref", nullptr, kernel_entry<remainder>},
      {"pow", 1, "cpu:ref", nullptr, kernel_entry<power>},
      {"pow_grad", 1, "cpu:ref", nullptr, kernel_entry<pow_grad>},
      {"maximum", 1, "cpu:ref", nullptr, kernel_entry<binary<kOrdered, Maximum>>},
      {"minimum", 1, "cpu:ref", nullptr, kernel_entry<binary<kOrdered, Minimum>>},
      {"fmax", 1, "cpu:ref", nullptr, kernel_entry<binary<kOrdered, Fmax>>},
      {"fmin", 1, "cpu:ref", nullptr, kernel_entry<binary<kOrdered, Fmin>>},
  };
  return list;
}

}  // namespace oar::cpu
