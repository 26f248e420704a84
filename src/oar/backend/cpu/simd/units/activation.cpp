// Loops of activations and their derivatives.
#include <cmath>
#include <limits>

#include "oar/backend/cpu/simd/loops.h"

namespace oar::cpu::simd {
namespace {

// If e^(-x) is a normal number, x / (1 + e^(-x)) and similar formulas are as good as longer ones.
template <class T>
constexpr T kEasyLogistic = kIsFloat<T> ? T(80) : T(700);
template <class T>
struct Sigmoid {
  bool hard(T v) const { return !(magnitude(v) <= kEasyLogistic<T>); }
  T careful(T v) const { return hard(v) ? sigmoid(v) : (*this)(v); }
  T operator()(T v) const { return 1 / (1 + normal_exp(-v)); }
};
template <class T>
struct Silu {
  bool hard(T v) const { return !(magnitude(v) <= kEasyLogistic<T>); }
  // Far below 0 it is v e^v.
  T careful(T v) const {
    const T far = v < 0 ? times_exp(v) : v;
    return hard(v) ? far : (*this)(v);
  }
  T operator()(T v) const { return v / (1 + normal_exp(-v)); }
};
template <class T>
struct SiluGrad {
  T operator()(T x, T grad) const {
    const T s = sigmoid(x);
    return grad * (s * (1 + x * (1 - s)));
  }
};
// A value times a gate, which is a sigmoid.
template <class T>
struct Glu {
  T operator()(T value, T gate) const { return value * sigmoid(gate); }
};
template <class T>
struct GluGateGrad {
  T operator()(T grad, T gate, T value) const {
    const T open = sigmoid(gate);
    return grad * open * (1 - open) * value;
  }
};
template <class T>
struct GatedSilu {
  T operator()(T x, T y) const { return x * sigmoid(x) * y; }
};
template <class T>
struct GatedSiluGrad {
  T operator()(T x, T y, T grad) const {
    const T s = sigmoid(x);
    return grad * y * s * (1 + x * (1 - s));
  }
};
template <class T>
struct LogSigmoid {
  T operator()(T v) const { return -softplus(-v); }
};
template <class T>
struct LogSigmoidGrad {
  T operator()(T x, T grad) const { return grad * sigmoid(-x); }
};
template <class T>
struct Softplus {
  T beta, threshold;
  explicit Softplus(const double* n) : beta(T(n[0])), threshold(T(n[1])) {}
  T operator()(T v) const {
    const T scaled = v * beta;
    const T smooth = softplus(scaled) / beta;
    return scaled > threshold ? v : smooth;
  }
};
template <class T>
struct SoftplusGrad {
  T beta, threshold;
  explicit SoftplusGrad(const double* n) : beta(T(n[0])), threshold(T(n[1])) {}
  T operator()(T x, T grad) const {
    const T scaled = x * beta;
    const T smooth = grad * sigmoid(scaled);
    return scaled > threshold ? grad : smooth;
  }
};
template <class T>
struct Elu {
  T alpha;
  explicit Elu(const double* n) : alpha(T(n[0])) {}
  T operator()(T v) const {
    const T below = alpha * expm1(v);
    return v < 0 ? below : v;
  }
};
template <class T>
struct EluGrad {
  T alpha;
  explicit EluGrad(const double* n) : alpha(T(n[0])) {}
  T operator()(T x, T grad) const {
    const T below = grad * alpha * exp(x);
    return x > 0 ? grad : below;
  }
};
template <class T>
struct Celu {
  T alpha;
  explicit Celu(const double* n) : alpha(T(n[0])) {}
  T operator()(T v) const {
    const T below = alpha * expm1(v / alpha);
    return v < 0 ? below : v;
  }
};
template <class T>
struct CeluGrad {
  T alpha;
  explicit CeluGrad(const double* n) : alpha(T(n[0])) {}
  T operator()(T x, T grad) const {
    const T below = grad * exp(x / alpha);
    return x > 0 ? grad : below;
  }
};
// What rounding a number to T leaves out.
template <class T>
T rest_of(double number) {
  const double rest = number - double(T(number));
  return std::isfinite(rest) ? T(rest) : T(0);
}
template <class T>
struct Selu {
  T above, below, below_low;  // the product of two attributes has more digits than one number
  explicit Selu(const double* n)
      : above(T(n[0])), below(T(n[0] * n[1])), below_low(rest_of<T>(n[0] * n[1])) {}
  T operator()(T v) const {
    const T minus_1 = expm1(v), straight = above * v;
    const T curved = fma(minus_1, below, minus_1 * below_low);
    return v < 0 ? curved : straight;
  }
};
template <class T>
struct SeluGrad {
  T above, below;
  explicit SeluGrad(const double* n) : above(T(n[0])), below(T(n[0] * n[1])) {}
  T operator()(T out, T grad) const { return grad * (out > 0 ? above : out + below); }
};
// b tanh(a x), with the rounding errors of a, b and the product of a and x.
template <class T>
struct Stanh {
  T a, a_low, b, b_low;
  explicit Stanh(const double* n)
      : a(T(n[0])), a_low(rest_of<T>(n[0])), b(T(n[1])), b_low(rest_of<T>(n[1])) {}
  T operator()(T v) const {
    const T angle = a * v, y = tanh(angle);
    const T lost = fma(a, v, -angle) + a_low * v;
    const T slope = fma(-y, y, T(1)) * b;
    const T made = fma(y, b, y * b_low);
    const bool done = slope == 0 || !(magnitude(made) <= std::numeric_limits<T>::max());
    return done ? made : with_sign(fma(slope, lost, made), made);
  }
};
template <class T>
struct Tanhshrink {
  T operator()(T v) const { return tanhshrink(v); }
};
template <class T>
struct TanhshrinkGrad {
  T operator()(T x, T grad) const {
    const T t = tanh(x);
    return grad * t * t;
  }
};

template <class T>
struct Gelu {
  T operator()(T v) const { return gelu(v); }
};
template <>
struct Gelu<float> {
  float careful(float v) const { return gelu(v); }
  float operator()(float v) const { return normal_gelu(v); }
#if defined(__AVX512F__)
  bool hard(float v) const { return !(magnitude(v) <= kMostPieces); }
  void chunk(float* out, const float* in) const {
    _mm512_storeu_ps(out, gelu_by_pieces(_mm512_loadu_ps(in)));
  }
#else
  bool hard(float v) const { return !(magnitude(v) <= kMostGelu); }
#endif
};
template <class T>
struct GeluGrad {
  T operator()(T x, T grad) const {
    constexpr T kDensityAt0 = T(0.39894228040143267794L);
    const T height = bell(x);
    return grad * (normal_share(x, height) + x * height * kDensityAt0);
  }
};
template <class T>
struct GeluTanh {
  bool hard(T v) const { return !(magnitude(v) <= kMostGeluTanh<T>); }
  T careful(T v) const { return hard(v) ? far_gelu_tanh(v) : normal_gelu_tanh(v); }
  T operator()(T v) const { return normal_gelu_tanh(v); }
};

// (1 + tanh(u)) / 2 is the sigmoid of 2u, which loses nothing far below 0. Beyond kFar it is 0 or 1, and the
// square of v would overflow.
template <class T>
struct TanhApproximation {
  static constexpr T kScale = T(2 * 0.79788456080286535588L), kCubic = T(0.044715L);
  static constexpr T kFar = kIsFloat<T> ? 12 : 22;
  T share, slope;
  explicit TanhApproximation(T v)
      : share(sigmoid(kScale * v * (1 + kCubic * v * v))),
        slope(kScale * (1 + 3 * kCubic * v * v)) {}
};
template <class T>
struct GeluTanhGrad {
  T operator()(T x, T grad) const {
    constexpr T kFar = TanhApproximation<T>::kFar;
    const T below = x > kFar ? kFar : x;
    const T v = below < -kFar ? -kFar : below;
    const TanhApproximation<T> t(v);
    return grad * (t.share + v * t.share * (1 - t.share) * t.slope);
  }
};

template <class T>
struct Mish {
  T operator()(T v) const { return mish(v); }
};
// With n = e^v: tanh(log(1 + n)) = w / (w + 2), w = n (n + 2). Beyond kMishHigh it is 1, below
// kMishLow n is 0; v is between them everywhere, since 4 n (n + 1) / (w + 2)^2 does not reach 0.
template <class T>
[[maybe_unused]] constexpr T kMishHigh = kIsFloat<T> ? T(20) : T(40);
template <class T>
[[maybe_unused]] constexpr T kMishLow = kIsFloat<T> ? T(-120) : T(-760);
template <class T>
struct MishGrad {
  T operator()(T x, T grad) const {
    const T below = x > kMishHigh<T> ? kMishHigh<T> : x;
    const T v = below < kMishLow<T> ? kMishLow<T> : below;
    const T n = exp(v), w = n * (n + 2);
    const T inverse = 1 / (w + 2);
    return grad * (w * inverse + v * (4 * n * inverse) * ((n + 1) * inverse));
  }
};

}  // namespace

namespace OAR_SIMD_SET {
const Function kActivation[][kTypes] = {OAR_SIMD_ACTIVATION(OAR_SIMD_ROW, OAR_SIMD_ROW)};
}

}  // namespace oar::cpu::simd
