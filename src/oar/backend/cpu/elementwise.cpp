// Elementwise ops of one operand.
#include <cmath>
#include <numbers>

#include "oar/backend/cpu/apply.h"

namespace oar::cpu {
namespace {

constexpr unsigned kMath = kFloats | kComplexes;
constexpr unsigned kReals = kIntegers | kFloats;

struct Neg {
  template <class T>
  T operator()(T v) const {
    return wrapping(T(0), v, [v](auto zero, auto u) {
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
struct Exp {
  template <class T>
  T operator()(T v) const {
    return std::exp(v);
  }
};
struct Expm1 {
  template <class T>
  T operator()(T v) const {
    if constexpr (is_complex_type<T>) {
      // e^a cos b - 1, written so that nothing cancels for small a and b.
      const auto half = std::sin(v.imag() / 2);
      return {std::expm1(v.real()) * std::cos(v.imag()) - 2 * half * half,
              std::exp(v.real()) * std::sin(v.imag())};
    } else {
      return std::expm1(v);
    }
  }
};
struct Log {
  template <class T>
  T operator()(T v) const {
    return std::log(v);
  }
};
struct Log2 {
  template <class T>
  T operator()(T v) const {
    if constexpr (is_complex_type<T>)
      return std::log(v) * std::numbers::log2e_v<typename T::value_type>;
    else
      return std::log2(v);
  }
};
struct Log10 {
  template <class T>
  T operator()(T v) const {
    return std::log10(v);
  }
};
struct Log1p {
  template <class T>
  T operator()(T v) const {
    if constexpr (is_complex_type<T>) {
      const auto a = v.real(), b = v.imag();
      // Near 0 through |1 + v|^2 - 1; elsewhere that square could overflow.
      const auto modulus = std::abs(a) < 0.5 && std::abs(b) < 0.5
                               ? std::log1p(a * (2 + a) + b * b) / 2
                               : std::log(std::hypot(1 + a, b));
      return {modulus, std::atan2(b, 1 + a)};
    } else {
      return std::log1p(v);
    }
  }
};
struct Erf {
  template <class T>
  T operator()(T v) const {
    return std::erf(v);
  }
};

template <class T>
constexpr bool kIsInteger = std::is_integral_v<T>;
struct Floor {
  template <class T>
  T operator()(T v) const {
    if constexpr (kIsInteger<T>)
      return v;
    else
      return std::floor(v);
  }
};
struct Ceil {
  template <class T>
  T operator()(T v) const {
    if constexpr (kIsInteger<T>)
      return v;
    else
      return std::ceil(v);
  }
};
struct Trunc {
  template <class T>
  T operator()(T v) const {
    if constexpr (kIsInteger<T>)
      return v;
    else
      return std::trunc(v);
  }
};

void abs(KernelCall& call) {
  visit<kNumbers>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (is_complex_type<T>)
      map_unary<typename T::value_type, T>(call.out(), call.in(0), [](T v) { return std::abs(v); });
    else if constexpr (std::is_integral_v<T>)
      map_unary<T, T>(call.out(), call.in(0), [](T v) { return v < 0 ? Neg{}(v) : v; });
    else
      map_unary<T, T>(call.out(), call.in(0), [](auto v) { return std::abs(v); });
  });
}

// To a multiple of `unit`, halves to an even one.
template <class T>
T round_integer(T v, int64_t unit) {
  const int64_t value = v, rest = value % unit, size = rest < 0 ? -rest : rest;
  const bool odd = value / unit % 2 != 0;
  const bool up = size > unit - size || (size == unit - size && odd);
  const int64_t step = up ? (rest < 0 ? -unit : unit) : 0;
  return static_cast<T>(static_cast<uint64_t>(value - rest) + static_cast<uint64_t>(step));
}

void round(KernelCall& call) {
  constexpr int64_t kMostDigits = 308;  // of a double
  const int64_t decimals = std::clamp(call.arg(1).as_int(), -kMostDigits - 1, kMostDigits + 1);
  const double power =
      std::pow(10.0, static_cast<double>(std::min(std::abs(decimals), kMostDigits)));
  apply_unary<kReals>(call, [=](auto v) {
    using T = decltype(v);
    if constexpr (std::is_integral_v<T>) {
      if (decimals >= 0) return v;
      return decimals < -18 ? T(0) : round_integer(v, static_cast<int64_t>(power));
    } else {
      if (decimals == 0) return std::rint(v);
      const T unit = static_cast<T>(power);  // the product is rounded as in Paddle and NumPy
      if (decimals < 0) return std::isfinite(unit) ? std::rint(v / unit) * unit : 0 * v;
      const T shifted = v * unit;
      return decimals > kMostDigits || !std::isfinite(shifted) ? v : std::rint(shifted) / unit;
    }
  });
}

// An integer tensor scaled by whole numbers stays exact; else it takes the way through double.
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
  apply_unary<kIntegers>(call, [=](auto v) {
    const auto u = static_cast<double>(v);
    return saturated<decltype(v)>(bias_last ? u * a + b : (u + b) * a);
  });
}

void scale(KernelCall& call) {
  const Scalar scale = call.arg(1).as_scalar(), bias = call.arg(2).as_scalar();
  const bool bias_last = call.arg(3).as_bool();
  if (is_integral(call.dtype())) return scale_integers(call, scale, bias, bias_last);
  visit<kMath>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const C a = convert_element<C>(scale.to_complex()), b = convert_element<C>(bias.to_complex());
    if (bias_last)
      map_unary<T, T>(call.out(), call.in(0), [=](C v) { return v * a + b; });
    else
      map_unary<T, T>(call.out(), call.in(0), [=](C v) { return (v + b) * a; });
  });
}

// Bounds of clip as elements; an open side is the end of the type's range.
template <class C>
struct Bounds {
  C min, max;
  Bounds(const KernelCall& call, int first) : min(lowest()), max(highest()) {
    if (call.has(first)) min = element(call.arg(first).as_scalar());
    if (call.has(first + 1)) max = element(call.arg(first + 1).as_scalar());
  }
  static C lowest() {
    if constexpr (std::is_integral_v<C>)
      return std::numeric_limits<C>::min();
    else
      return -std::numeric_limits<C>::infinity();
  }
  static C highest() {
    if constexpr (std::is_integral_v<C>)
      return std::numeric_limits<C>::max();
    else
      return std::numeric_limits<C>::infinity();
  }
  static C element(const Scalar& s) {
    if constexpr (!std::is_integral_v<C>)
      return static_cast<C>(s.to_double());
    else if (s.kind() > Scalar::Int)
      return saturated<C>(s.to_double());
    else
      return static_cast<C>(std::clamp<int64_t>(s.to_int(), lowest(), highest()));
  }
};

void clip(KernelCall& call) {
  visit<kReals>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Bounds<C> bounds(call, 1);
    map_unary<T, T>(call.out(), call.in(0), [=](C v) {
      const C raised = v < bounds.min ? bounds.min : v;  // NaN passes through both
      return raised > bounds.max ? bounds.max : raised;
    });
  });
}

// An open side lets infinity pass too, which a comparison with the bound's stand-in would not.
void clip_grad(KernelCall& call) {
  const bool open_below = !call.has(2), open_above = !call.has(3),
             bounds_too = call.arg(4).as_bool();
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const Bounds<C> bounds(call, 2);
    map_binary<T, T>(call.out(), call.in(0), call.in(1), [=](C x, C grad) {
      const bool above = open_below || x > bounds.min || (bounds_too && x == bounds.min);
      const bool below = open_above || x < bounds.max || (bounds_too && x == bounds.max);
      return above && below ? grad : C(0);
    });
  });
}

}  // namespace

KernelList elementwise_kernels() {
  static const oar_kernel list[] = {
      {"neg", 1, "cpu:ref", nullptr, kernel_entry<unary<kNumbers, Neg>>},
      {"abs", 1, "cpu:ref", nullptr, kernel_entry<abs>},
      {"sign", 1, "cpu:ref", nullptr, kernel_entry<unary<kReals, Sign>>},
      {"square", 1, "cpu:ref", nullptr, kernel_entry<unary<kNumbers, Square>>},
      {"reciprocal", 1, "cpu:ref", nullptr, kernel_entry<unary<kMath, Reciprocal>>},
      {"sqrt", 1, "cpu:ref", nullptr, kernel_entry<unary<kMath, Sqrt>>},
      {"rsqrt", 1, "cpu:ref", nullptr, kernel_entry<unary<kMath, Rsqrt>>},
      {"exp", 1, "cpu:ref", nullptr, kernel_entry<unary<kMath, Exp>>},
      {"expm1", 1, "cpu:ref", nullptr, kernel_entry<unary<kMath, Expm1>>},
      {"log", 1, "cpu:ref", nullptr, kernel_entry<unary<kMath, Log>>},
      {"log2", 1, "cpu:ref", nullptr, kernel_entry<unary<kMath, Log2>>},
      {"log10", 1, "cpu:ref", nullptr, kernel_entry<unary<kMath, Log10>>},
      {"log1p", 1, "cpu:ref", nullptr, kernel_entry<unary<kMath, Log1p>>},
      {"erf", 1, "cpu:ref", nullptr, kernel_entry<unary<kFloats, Erf>>},
      {"floor", 1, "cpu:ref", nullptr, kernel_entry<unary<kReals, Floor>>},
      {"ceil", 1, "cpu:ref", nullptr, kernel_entry<unary<kReals, Ceil>>},
      {"trunc", 1, "cpu:ref", nullptr, kernel_entry<unary<kReals, Trunc>>},
      {"round", 1, "cpu:ref", nullptr, kernel_entry<round>},
      {"scale", 1, "cpu:ref", nullptr, kernel_entry<scale>},
      {"clip", 1, "cpu:ref", nullptr, kernel_entry<clip>},
      {"clip_grad", 1, "cpu:ref", nullptr, kernel_entry<clip_grad>},
  };
  return list;
}

}  // namespace oar::cpu
