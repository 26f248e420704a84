// Rounding to integers and decimals.
#include <cmath>

#include "oar/backend/cpu/loops/apply.h"

namespace oar::cpu {
namespace {

constexpr unsigned kReals = kIntegers | kFloats;

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

}  // namespace

KernelList rounding_kernels() {
  static const oar_kernel list[] = {
      {"floor", 1, "cpu:generic", nullptr, kernel_entry<unary<kReals, Floor>>},
      {"ceil", 1, "cpu:generic", nullptr, kernel_entry<unary<kReals, Ceil>>},
      {"trunc", 1, "cpu:generic", nullptr, kernel_entry<unary<kReals, Trunc>>},
      {"round", 1, "cpu:generic", nullptr, kernel_entry<round>},
  };
  return list;
}

}  // namespace oar::cpu
