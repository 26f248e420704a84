// Special functions, element by element. All but two are computed in double whatever the dtype.
#include <cmath>

#include "oar/backend/cpu/loops/apply.h"
#include "oar/backend/cpu/math/special_math.h"

namespace oar::cpu {
namespace {

struct Erf {
  template <class T>
  T operator()(T v) const {
    return std::erf(v);
  }
};

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

// A group of floats at a time by straight-line code, element by element if one of them requires it.
template <class Plain, class Usual, class General>
void map_groups(KernelCall& call, Plain plain, Usual usual, General general) {
  if (call.dtype() == DType::Float64)
    return map_unary<double, double>(call.out(), call.in(0), general);
  map_blocks<float, float, 1>(
      {&call.out(), &call.in(0)}, [&](float* to, const auto& from, int64_t n) {
        constexpr int64_t kGroup = 16;
        float in[kGroup], out[kGroup];
        for (int64_t i = 0; i < n; i += kGroup) {
          const int64_t count = std::min(kGroup, n - i);
          std::fill_n(in, kGroup, 0.5f);
          std::copy_n(from[0] + i, count, in);
          int all = 1;
          for (int64_t k = 0; k < kGroup; ++k) all &= static_cast<int>(usual(in[k]));
          if (all != 0)
            for (int64_t k = 0; k < kGroup; ++k) out[k] = plain(in[k]);
          else
            for (int64_t k = 0; k < kGroup; ++k)
              out[k] = static_cast<float>(general(static_cast<double>(in[k])));
          std::copy_n(out, count, to + i);
        }
      });
}

void digamma_kernel(KernelCall& call) {
  map_groups(
      // Lambdas, since a function pointer would be called and not inlined into the loop.
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
      {"erf", 1, "cpu:generic", nullptr, kernel_entry<unary<kFloats, Erf>>},
      {"lgamma", 1, "cpu:generic", nullptr, kernel_entry<unary<kFloats, InDouble<log_gamma>>>},
      {"digamma", 1, "cpu:generic", nullptr, kernel_entry<digamma_kernel>},
      {"polygamma", 1, "cpu:generic", nullptr, kernel_entry<polygamma_kernel>},
      {"gammainc", 1, "cpu:generic", nullptr,
       kernel_entry<binary<kFloats, PairInDouble<gamma_lower>>>},
      {"gammaincc", 1, "cpu:generic", nullptr,
       kernel_entry<binary<kFloats, PairInDouble<gamma_upper>>>},
      {"gammainc_order", 1, "cpu:generic", nullptr, kernel_entry<gammainc_order>},
      {"erfinv", 1, "cpu:generic", nullptr, kernel_entry<unary<kFloats, InDouble<inverse_erf>>>},
      {"i0", 1, "cpu:generic", nullptr, kernel_entry<unary<kFloats, InDouble<bessel_i0>>>},
      {"i0e", 1, "cpu:generic", nullptr, kernel_entry<unary<kFloats, InDouble<scaled_bessel_i0>>>},
      {"i1", 1, "cpu:generic", nullptr, kernel_entry<unary<kFloats, InDouble<bessel_i1>>>},
      {"i1e", 1, "cpu:generic", nullptr, kernel_entry<unary<kFloats, InDouble<scaled_bessel_i1>>>},
      {"sinc", 1, "cpu:generic", nullptr, kernel_entry<unary<kFloats, InDouble<sinc_of>>>},
  };
  return list;
}

}  // namespace oar::cpu
