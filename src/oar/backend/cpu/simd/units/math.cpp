// Loops over elementary functions.
#include "oar/backend/cpu/simd/loops.h"

namespace oar::cpu::simd {
namespace {

template <class T>
struct Reciprocal {
  T operator()(T v) const { return 1 / v; }
};
template <class T>
struct Sqrt {
  T operator()(T v) const { return square_root(v); }
};
#if defined(__AVX512F__)
typedef float Floats __attribute__((vector_size(64), aligned(4), may_alias));
#endif
template <class T>
struct Rsqrt {
  T operator()(T v) const { return 1 / square_root(v); }
#if defined(__AVX512F__)
  // From an estimate with 14 bits, by Newton's method, which does not work for 0 and infinity.
  void chunk(T* out, const T* in) const
    requires kIsFloat<T>
  {
    constexpr int kRounding = 4;  // as it is set
    const Floats x = *reinterpret_cast<const Floats*>(in);
    const Floats rough = __builtin_ia32_rsqrt14ps512_mask(x, x, 0xffff);
    const Floats error =
        __builtin_ia32_vfmaddps512_mask(-x * rough, rough, Floats{} + 1, 0xffff, kRounding);
    const Floats made =
        __builtin_ia32_vfmaddps512_mask(rough * 0.5f, error, rough, 0xffff, kRounding);
    *reinterpret_cast<Floats*>(out) = error == error ? made : rough;
  }
#endif
};

template <class T>
struct RsqrtGrad {
  T operator()(T out, T grad) const { return T(-0.5) * grad * (out * out * out); }
};
template <class T>
struct Erf {
  T operator()(T v) const { return functions::erf(v); }
#if defined(__AVX512F__)
  void chunk(T* out, const T* in) const
    requires kIsFloat<T>
  {
    _mm512_storeu_ps(out, erf_by_pieces(_mm512_loadu_ps(in)));
  }
#endif
};
template <class T>
struct ErfGrad {
  T operator()(T x, T grad) const {
    return grad * (T(1.12837916709551257390L) * exp_of_negative(-(x * x)));
  }
};

#define OAR_SIMD_FUNCTION(Functor, function)                   \
  template <class T>                                           \
  struct Functor {                                             \
    T operator()(T v) const { return functions::function(v); } \
  };
OAR_SIMD_FUNCTION(Expm1, expm1)
OAR_SIMD_FUNCTION(Log1p, log1p)
OAR_SIMD_FUNCTION(Erfinv, erfinv)
OAR_SIMD_FUNCTION(Asin, asin)
OAR_SIMD_FUNCTION(Acos, acos)
OAR_SIMD_FUNCTION(Atan, atan)
OAR_SIMD_FUNCTION(Sinh, sinh)
OAR_SIMD_FUNCTION(Cosh, cosh)
OAR_SIMD_FUNCTION(Tanh, tanh)
#undef OAR_SIMD_FUNCTION

template <class T>
struct Exp {
  bool hard(T v) const { return !has_normal_exp(v); }
  T careful(T v) const { return functions::exp(v); }
  T operator()(T v) const { return normal_exp(v); }
};
#define OAR_SIMD_LOGARITHM(Functor, function, join)                  \
  template <class T>                                                 \
  struct Functor {                                                   \
    bool hard(T v) const { return !is_positive_normal(v); }          \
    T careful(T v) const { return functions::function(v); }          \
    T operator()(T v) const { return join(logarithm_of_normal(v)); } \
  };
OAR_SIMD_LOGARITHM(Log, log, joined)
OAR_SIMD_LOGARITHM(Log2, log2, joined_2)
OAR_SIMD_LOGARITHM(Log10, log10, joined_10)
#undef OAR_SIMD_LOGARITHM

// Large angles need more digits of pi than there are here.
#define OAR_SIMD_PERIODIC(Functor, function, precise)                  \
  template <class T>                                                   \
  struct Functor {                                                     \
    bool hard(T v) const { return !(magnitude(v) <= kMostTurned<T>); } \
    T slow(T v) const { return static_cast<T>(precise(v)); }           \
    T operator()(T v) const { return functions::function(v); }         \
  };
OAR_SIMD_PERIODIC(Sin, sin, __builtin_sin)
OAR_SIMD_PERIODIC(Cos, cos, __builtin_cos)
OAR_SIMD_PERIODIC(Tan, tan, __builtin_tan)
#undef OAR_SIMD_PERIODIC

// Below 0 and at the ends, the C library's; not its lgamma, which writes a global.
#if defined(__GLIBC__)
extern "C" double lgamma_r(double, int*) noexcept;
#else
extern "C" double lgamma_r(double, int*);
#endif
template <class T>
struct Lgamma {
  bool hard(T v) const { return !is_positive_normal(v) | (v > kMostLgamma); }
  T slow(T v) const {
    int sign;
    return static_cast<T>(lgamma_r(v, &sign));
  }
  T operator()(T v) const { return lgamma_of_positive(v); }
};
template <class T>
struct Logit {
  T low, high;
  explicit Logit(const double* n) : low(T(n[0])), high(T(n[1])) {}
  T operator()(T v) const { return logit(at_most(at_least(v, low), high)); }
};
template <class T>
struct Atan2 {
  T operator()(T y, T x) const { return functions::atan2(y, x); }
};
// Squares of floats fit into a double, so there is nothing to scale.
template <class T>
struct Hypot {
  T operator()(T a, T b) const {
    if constexpr (kIsFloat<T>) {
      const double x = a, y = b;
      const auto length = static_cast<float>(square_root(x * x + y * y));
      const bool infinite = (magnitude(a) == kInfinity<T>) | (magnitude(b) == kInfinity<T>);
      return infinite ? kInfinity<T> : length;  // even with a NaN
    } else {
      return __builtin_hypot(a, b);
    }
  }
};
template <class T>
struct LogAddExp {
  T operator()(T a, T b) const { return logaddexp(a, b); }
};
// grad / (1 + exp(y - x)).
template <class T>
struct LogAddExpGrad {
  T operator()(T x, T y, T grad) const { return grad * sigmoid(x == y ? T(0) : x - y); }
};
template <class T>
struct Cube {
  T operator()(T v) const { return v * v * v; }
};
template <class T>
struct Power {
  T operator()(T a, T b) const {
    const T made = functions::pow(a, b);
    return b == 2 ? a * a : made;
  }
};
template <class T>
struct PowerGrad {
  T operator()(T x, T y, T grad) const {
    const T slope = y == 2 ? y * x : y * functions::pow(x, y - 1);
    return x == 0 && y == 0 ? grad * 0 : grad * slope;
  }
};
template <class T>
struct SquareGrad {
  T operator()(T x, T grad) const { return grad * (2 * x); }
};
template <class T>
struct CubeGrad {
  T operator()(T x, T grad) const { return grad * (3 * (x * x)); }
};

// The remainder is exact: in double as long as the quotient has at most 29 bits. The quotient may be
// one too large, where it was rounded up to a whole number.
template <class T>
struct Remainder {
  static bool unusual(T a, T b) {
    return !(magnitude(a) < kInfinity<T>) || !(magnitude(b) < kInfinity<T>) ||
           !(magnitude(a) < magnitude(b) * T(0x1p28));
  }
  bool hard(T a, T b) const { return !kIsFloat<T> || unusual(a, b); }
  T slow(T a, T b) const {
    const auto rest = static_cast<T>(__builtin_fmod(a, b));
    if (rest == 0) return with_sign(T(0), b);
    return (b < 0) != (rest < 0) ? rest + b : rest;
  }
  T operator()(T a, T b) const {
    const double x = a, y = b;
    const double quotient = __builtin_trunc(x / y);
    double rest = x - quotient * y;
    rest += rest != 0 && (rest < 0) != (x < 0) ? with_sign(magnitude(y), x) : 0.0;
    const auto whole = static_cast<T>(rest);
    const T turned = (b < 0) != (whole < 0) ? whole + b : whole;
    return whole == 0 ? with_sign(T(0), b) : turned;
  }
};

}  // namespace

namespace OAR_SIMD_SET {
const Function kMath[][kTypes] = {OAR_SIMD_MATH(OAR_SIMD_ROW, OAR_SIMD_ROW)};
}

}  // namespace oar::cpu::simd
