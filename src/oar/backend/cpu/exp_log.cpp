// Exponentials and logarithms.
#include <cmath>
#include <numbers>

#include "oar/backend/cpu/loops/apply.h"

namespace oar::cpu {
namespace {

constexpr unsigned kMath = kFloats | kComplexes;

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

}  // namespace

KernelList exp_log_kernels() {
  static const oar_kernel list[] = {
      {"exp", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Exp>>},
      {"expm1", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Expm1>>},
      {"log", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Log>>},
      {"log2", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Log2>>},
      {"log10", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Log10>>},
      {"log1p", 1, "cpu:generic", nullptr, kernel_entry<unary<kMath, Log1p>>},
  };
  return list;
}

}  // namespace oar::cpu
