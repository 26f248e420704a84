// Elementwise arithmetic beyond the four rules: distances, exponents, signs, divisors, shifts.
#include <bit>
#include <cmath>
#include <numeric>

#include "oar/backend/cpu/apply.h"

namespace oar::cpu {
namespace {

constexpr unsigned kMath = kFloats | kComplexes;
constexpr unsigned kReals = kIntegers | kFloats;

struct CopySign {
  template <class T>
  T operator()(T a, T b) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::copysign(a, b);
    else if constexpr (std::is_unsigned_v<T>)
      return a;
    else
      return (a < 0) != (b < 0) ? wrapping(T(0), a, [](auto x, auto y) { return x - y; }) : a;
  }
};

struct LoadExponent {
  float operator()(float a, float b) const {
    return static_cast<float>(static_cast<double>(a) * std::exp2(static_cast<double>(b)));
  }
  double operator()(double a, double b) const {
    if (b != std::floor(b) || std::abs(b) > 1e6) return a * std::exp2(b);
    return std::ldexp(a, static_cast<int>(b));
  }
};

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

// A shift by as many bits as there are, or by a negative number, shifts everything out.
template <class T>
bool shifts_out(T by) {
  return by < 0 || by >= static_cast<T>(8 * sizeof(T));
}
struct ShiftLeft {
  template <class T>
  T operator()(T a, T by) const {
    using U = std::make_unsigned_t<T>;
    return shifts_out(by) ? T(0) : static_cast<T>(static_cast<U>(static_cast<U>(a) << by));
  }
};
struct ShiftRight {
  bool arithmetic;
  template <class T>
  T operator()(T a, T by) const {
    using U = std::make_unsigned_t<T>;
    if (!arithmetic) return shifts_out(by) ? T(0) : static_cast<T>(static_cast<U>(a) >> by);
    if (shifts_out(by)) return a < 0 ? static_cast<T>(-1) : T(0);
    return static_cast<T>(a >> by);
  }
};
void bitwise_right_shift(KernelCall& call) {
  apply_binary<kIntegers>(call, ShiftRight{call.arg(2).as_bool()});
}

// The next number of the dtype itself, so it works on the bits: in sign and magnitude they are in order.
template <class T>
T next_after(T from, T to) {
  using Bits =
      std::conditional_t<sizeof(T) == 8, uint64_t,
                         std::conditional_t<sizeof(T) == 4, uint32_t,
                                            std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;
  const auto x = static_cast<compute_t<T>>(from), y = static_cast<compute_t<T>>(to);
  if (x != x) return from;
  if (y != y || x == y) return to;
  constexpr auto kSign = static_cast<Bits>(Bits(1) << (8 * sizeof(Bits) - 1));
  auto bits = std::bit_cast<Bits>(from);
  if (x == 0)
    bits = static_cast<Bits>(y < 0 ? kSign | 1 : 1);
  else
    bits = static_cast<Bits>((x < y) == (x > 0) ? bits + 1 : bits - 1);
  return std::bit_cast<T>(bits);
}
void nextafter(KernelCall& call) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    StridedLoop<3>({&call.out(), &call.in(0), &call.in(1)})
        .run([](const auto& p, const auto& s, int64_t n) {
          for (int64_t i = 0; i < n; ++i)
            *reinterpret_cast<T*>(p[0] + i * s[0]) =
                next_after(*reinterpret_cast<const T*>(p[1] + i * s[1]),
                           *reinterpret_cast<const T*>(p[2] + i * s[2]));
        });
  });
}

struct SignBit {
  template <class T>
  bool operator()(T v) const {
    if constexpr (std::is_floating_point_v<T>)
      return std::signbit(v);
    else if constexpr (std::is_unsigned_v<T>)  // bool too
      return false;
    else
      return v < 0;
  }
};
template <int kSide>
struct InfiniteOn {
  template <class T>
  bool operator()(T v) const {
    if constexpr (std::is_floating_point_v<T>)
      return v == kSide * std::numeric_limits<T>::infinity();
    else
      return false;
  }
};

template <class T>
constexpr double kLargest = std::numeric_limits<T>::max();
template <>
constexpr double kLargest<float16> = 65504;
template <>
constexpr double kLargest<bfloat16> = 3.3895313892515355e38;
template <>
constexpr double kLargest<float8_e4m3fn> = 448;
template <>
constexpr double kLargest<float8_e5m2> = 57344;

void nan_to_num(KernelCall& call) {
  if (is_integral(call.dtype())) return apply_unary<kIntegers>(call, [](auto v) { return v; });
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = compute_t<T>;
    const auto limit = [&](int i, double fallback) {
      return static_cast<C>(call.has(i) ? call.arg(i).as_double() : fallback);
    };
    const C nan = limit(1, 0), high = limit(2, kLargest<T>), low = limit(3, -kLargest<T>);
    constexpr C kInfinity = std::numeric_limits<C>::infinity();
    map_unary<T, T>(call.out(), call.in(0), [=](C v) {
      return v != v ? nan : v == kInfinity ? high : v == -kInfinity ? low : v;
    });
  });
}

void frexp(KernelCall& call) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    StridedLoop<3>({&call.out(0), &call.out(1), &call.in(0)})
        .run([](const auto& p, const auto& s, int64_t n) {
          for (int64_t i = 0; i < n; ++i) {
            int exponent = 0;
            const auto value =
                static_cast<compute_t<T>>(*reinterpret_cast<const T*>(p[2] + i * s[2]));
            const auto mantissa = std::isfinite(value) ? std::frexp(value, &exponent) : value;
            *reinterpret_cast<T*>(p[0] + i * s[0]) = static_cast<T>(mantissa);
            *reinterpret_cast<T*>(p[1] + i * s[1]) =
                static_cast<T>(static_cast<compute_t<T>>(exponent));
          }
        });
  });
}

struct Asinh {
  template <class T>
  T operator()(T v) const {
    return std::asinh(v);
  }
};
struct Acosh {
  template <class T>
  T operator()(T v) const {
    return std::acosh(v);
  }
};
struct Atanh {
  template <class T>
  T operator()(T v) const {
    return std::atanh(v);
  }
};

constexpr unsigned kOrdered = kBools | kReals;

}  // namespace

KernelList arithmetic_kernels() {
  static const oar_kernel list[] = {
      {"copysign", 1, "cpu:ref", nullptr, kernel_entry<binary<kReals, CopySign>>},
      {"ldexp", 1, "cpu:ref", nullptr, kernel_entry<binary<kFloats, LoadExponent>>},
      {"heaviside", 1, "cpu:ref", nullptr, kernel_entry<binary<kReals, Heaviside>>},
      {"gcd", 1, "cpu:ref", nullptr, kernel_entry<binary<kIntegers, GreatestDivisor>>},
      {"lcm", 1, "cpu:ref", nullptr, kernel_entry<binary<kIntegers, LeastMultiple>>},
      {"bitwise_left_shift", 1, "cpu:ref", nullptr, kernel_entry<binary<kIntegers, ShiftLeft>>},
      {"bitwise_right_shift", 1, "cpu:ref", nullptr, kernel_entry<bitwise_right_shift>},
      {"nextafter", 1, "cpu:ref", nullptr, kernel_entry<nextafter>},
      {"signbit", 1, "cpu:ref", nullptr, kernel_entry<unary_question<kOrdered, SignBit>>},
      {"isposinf", 1, "cpu:ref", nullptr, kernel_entry<unary_question<kOrdered, InfiniteOn<1>>>},
      {"isneginf", 1, "cpu:ref", nullptr, kernel_entry<unary_question<kOrdered, InfiniteOn<-1>>>},
      {"nan_to_num", 1, "cpu:ref", nullptr, kernel_entry<nan_to_num>},
      {"frexp", 1, "cpu:ref", nullptr, kernel_entry<frexp>},
      {"asinh", 1, "cpu:ref", nullptr, kernel_entry<unary<kMath, Asinh>>},
      {"acosh", 1, "cpu:ref", nullptr, kernel_entry<unary<kMath, Acosh>>},
      {"atanh", 1, "cpu:ref", nullptr, kernel_entry<unary<kMath, Atanh>>},
  };
  return list;
}

}  // namespace oar::cpu
