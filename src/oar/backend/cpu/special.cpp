// Special functions, element by element. All but two are computed in double whatever the dtype.
#include <cmath>

#include "oar/backend/cpu/apply.h"
#include "oar/backend/cpu/special_math.h"

namespace oar::cpu {
namespace {

template <double (*kFunction)(double)>
struct InDouble {
  template <class T>
  T operator()(T v) const {
    return static_cast<T>(kFunction(static_cast<double>(v)));
  }
};
template <double (*kFunction)(double, double)>
struct PairInDouble {
  template <class T>
  T operator()(T a, T b) const {
    return static_cast<T>(kFunction(static_cast<double>(a), static_cast<double>(b)));
  }
};

double bessel_i0(double x) {
  const double size = std::abs(x);
  return size < 700 ? std::exp(size) * scaled_bessel_i0(x)
                    : std::exp(size / 2) * (std::exp(size / 2) * scaled_bessel_i0(x));
}
double bessel_i1(double x) {
  const double size = std::abs(x);
  return size < 700 ? std::exp(size) * scaled_bessel_i1(x)
                    : std::exp(size / 2) * (std::exp(size / 2) * scaled_bessel_i1(x));
}

double sinc_of(double x) {
  if (x == 0) return 1;
  const double turns = x - 2 * std::rint(x / 2);  // exact; the sine has this period
  // And the same values from the other end, where a rounded pi would keep it from being 0.
  const double rest = std::abs(turns) > 0.5 ? std::copysign(1 - std::abs(turns), turns) : turns;
  return std::sin(std::numbers::pi * rest) / (std::numbers::pi * x) + 0.0;  // no negative 0
}

// A group of floats at a time by straight-line code, element by element where one of them asks for it.
template <class Plain, class Usual, class General>
void map_groups(KernelCall& call, Plain plain, Usual usual, General general) {
  visit<kFloats>(call.dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, double>) {
      map_unary<T, T>(call.out(), call.in(0), general);
    } else {
      StridedLoop<2>({&call.out(), &call.in(0)}).run([&](const auto& p, const auto& s, int64_t n) {
        constexpr int64_t kGroup = 16, kSize = sizeof(T);
        const bool dense = s[0] == kSize && s[1] == kSize;
        float in[kGroup], out[kGroup];
        for (int64_t i = 0; i < n; i += kGroup) {
          const int64_t count = std::min(kGroup, n - i);
          const bool whole = dense && count == kGroup;
          const T* from = reinterpret_cast<const T*>(p[1]) + i;
          T* to = reinterpret_cast<T*>(p[0]) + i;
          if (whole)
            for (int64_t k = 0; k < kGroup; ++k) in[k] = static_cast<float>(from[k]);
          else
            for (int64_t k = 0; k < kGroup; ++k)
              in[k] = k < count
                          ? static_cast<float>(*reinterpret_cast<const T*>(p[1] + (i + k) * s[1]))
                          : 0.5f;
          int all = 1;
          for (int64_t k = 0; k < kGroup; ++k) all &= static_cast<int>(usual(in[k]));
          if (all != 0)
            for (int64_t k = 0; k < kGroup; ++k) out[k] = plain(in[k]);
          else
            for (int64_t k = 0; k < kGroup; ++k)
              out[k] = static_cast<float>(general(static_cast<double>(in[k])));
          if (whole)
            for (int64_t k = 0; k < kGroup; ++k) to[k] = static_cast<T>(out[k]);
          else
            for (int64_t k = 0; k < count; ++k)
              *reinterpret_cast<T*>(p[0] + (i + k) * s[0]) = static_cast<T>(out[k]);
        }
      });
    }
  });
}

void digamma_kernel(KernelCall& call) {
  map_groups(
      // Lambdas, since a function's address would be called and not made part of the loop.
      call, [](float x) { return positive_digamma(x); },
      [](float x) { return (x > 1e-30f) & (x < 1e37f); }, [](double x) { return digamma(x); });
}

void polygamma_kernel(KernelCall& call) {
  const int64_t n = call.arg(1).as_int();
  apply_unary<kFloats>(
      call, [n](auto v) { return static_cast<decltype(v)>(polygamma(n, static_cast<double>(v))); });
}

void gammainc_order(KernelCall& call) {
  const int64_t order = call.arg(2).as_int();
  apply_binary<kFloats>(call, [order](auto a, auto x) {
    return static_cast<decltype(a)>(
        gamma_lower_derivative(static_cast<double>(a), static_cast<double>(x), order));
  });
}

}  // namespace

KernelList special_kernels() {
  static const oar_kernel list[] = {
      {"lgamma", 1, "cpu:ref", nullptr, kernel_entry<unary<kFloats, InDouble<log_gamma>>>},
      {"digamma", 1, "cpu:ref", nullptr, kernel_entry<digamma_kernel>},
      {"polygamma", 1, "cpu:ref", nullptr, kernel_entry<polygamma_kernel>},
      {"gammainc", 1, "cpu:ref", nullptr, kernel_entry<binary<kFloats, PairInDouble<gamma_lower>>>},
      {"gammaincc", 1, "cpu:ref", nullptr,
       kernel_entry<binary<kFloats, PairInDouble<gamma_upper>>>},
      {"gammainc_order", 1, "cpu:ref", nullptr, kernel_entry<gammainc_order>},
      {"erfinv", 1, "cpu:ref", nullptr, kernel_entry<unary<kFloats, InDouble<inverse_erf>>>},
      {"i0", 1, "cpu:ref", nullptr, kernel_entry<unary<kFloats, InDouble<bessel_i0>>>},
      {"i0e", 1, "cpu:ref", nullptr, kernel_entry<unary<kFloats, InDouble<scaled_bessel_i0>>>},
      {"i1", 1, "cpu:ref", nullptr, kernel_entry<unary<kFloats, InDouble<bessel_i1>>>},
      {"i1e", 1, "cpu:ref", nullptr, kernel_entry<unary<kFloats, InDouble<scaled_bessel_i1>>>},
      {"sinc", 1, "cpu:ref", nullptr, kernel_entry<unary<kFloats, InDouble<sinc_of>>>},
  };
  return list;
}

}  // namespace oar::cpu
