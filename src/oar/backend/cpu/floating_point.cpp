// The parts of floating-point numbers: signs, exponents, neighbours, infinities.
#include <bit>
#include <cmath>

#include "oar/backend/cpu/loops/apply.h"

namespace oar::cpu {
namespace {

constexpr unsigned kReals = kIntegers | kFloats;
constexpr unsigned kOrdered = kBools | kIntegers | kFloats;

struct IsNan {
  template <class T>
  bool operator()(T v) const {
    return v != v;
  }
};
struct IsInf {
  template <class T>
  bool operator()(T v) const {
    if constexpr (is_complex_type<T>)
      return std::isinf(v.real()) || std::isinf(v.imag());
    else if constexpr (std::is_integral_v<T>)
      return false;
    else
      return std::isinf(v);
  }
};
struct IsFinite {
  template <class T>
  bool operator()(T v) const {
    return !IsNan{}(v) && !IsInf{}(v);
  }
};
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

double largest_of(DType dtype) {
  switch (dtype) {
    case DType::Float16:
      return 65504;
    case DType::BFloat16:
      return 3.3895313892515355e38;
    case DType::Float8E4M3FN:
      return 448;
    case DType::Float8E5M2:
      return 57344;
    case DType::Float32:
      return std::numeric_limits<float>::max();
    default:
      return std::numeric_limits<double>::max();
  }
}

void nan_to_num(KernelCall& call) {
  if (is_integral(call.dtype())) return copy_elements(call.out(), call.in(0));
  const double largest = largest_of(call.dtype());
  visit_wide<kFloats>(call.dtype(), [&](auto tag) {
    using C = typename decltype(tag)::type;
    const auto limit = [&](int i, double fallback) {
      return static_cast<C>(call.has(i) ? call.arg(i).as_double() : fallback);
    };
    const C nan = limit(1, 0), high = limit(2, largest), low = limit(3, -largest);
    constexpr C kInfinity = std::numeric_limits<C>::infinity();
    map_unary<C, C>(call.out(), call.in(0), [=](C v) {
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

}  // namespace

KernelList floating_point_kernels() {
  static const oar_kernel list[] = {
      {"isnan", 1, "cpu:generic", nullptr, kernel_entry<unary_question<kAllTypes, IsNan>>},
      {"isinf", 1, "cpu:generic", nullptr, kernel_entry<unary_question<kAllTypes, IsInf>>},
      {"isfinite", 1, "cpu:generic", nullptr, kernel_entry<unary_question<kAllTypes, IsFinite>>},
      {"signbit", 1, "cpu:generic", nullptr, kernel_entry<unary_question<kOrdered, SignBit>>},
      {"isposinf", 1, "cpu:generic", nullptr,
       kernel_entry<unary_question<kOrdered, InfiniteOn<1>>>},
      {"isneginf", 1, "cpu:generic", nullptr,
       kernel_entry<unary_question<kOrdered, InfiniteOn<-1>>>},
      {"copysign", 1, "cpu:generic", nullptr, kernel_entry<binary<kReals, CopySign>>},
      {"ldexp", 1, "cpu:generic", nullptr, kernel_entry<binary<kFloats, LoadExponent>>},
      {"nextafter", 1, "cpu:generic", nullptr, kernel_entry<nextafter>},
      {"nan_to_num", 1, "cpu:generic", nullptr, kernel_entry<nan_to_num>},
      {"frexp", 1, "cpu:generic", nullptr, kernel_entry<frexp>},
  };
  return list;
}

}  // namespace oar::cpu
