// Loops without elementary functions.
#include "oar/backend/cpu/simd/loops.h"

namespace oar::cpu::simd {
namespace {

template <class T>
constexpr bool kIsReal = T(0.5) != 0;

template <class T>
struct Neg {
  T operator()(T v) const { return -v; }
};
template <class T>
struct Abs {
  T operator()(T v) const {
    if constexpr (kIsReal<T>)
      return magnitude(v);
    else
      return v < 0 ? -v : v;
  }
};
template <class T>
struct Sign {
  T operator()(T v) const { return v > 0 ? T(1) : v < 0 ? T(-1) : v; }  // 0 and NaN stay
};
template <class T>
struct Square {
  T operator()(T v) const { return v * v; }
};

template <class T>
struct Floor {
  T operator()(T v) const {
    if constexpr (kIsFloat<T>)
      return __builtin_floorf(v);
    else
      return __builtin_floor(v);
  }
};
template <class T>
struct Ceil {
  T operator()(T v) const {
    if constexpr (kIsFloat<T>)
      return __builtin_ceilf(v);
    else
      return __builtin_ceil(v);
  }
};
template <class T>
struct Trunc {
  T operator()(T v) const {
    if constexpr (kIsFloat<T>)
      return __builtin_truncf(v);
    else
      return __builtin_trunc(v);
  }
};
// Halves to even.
template <class T>
struct Round {
  T operator()(T v) const {
    if constexpr (kIsFloat<T>)
      return __builtin_rintf(v);
    else
      return __builtin_rint(v);
  }
};

template <class T>
struct ScaleThenAdd {
  T scale, bias;
  explicit ScaleThenAdd(const double* n) : scale(T(n[0])), bias(T(n[1])) {}
  T operator()(T v) const { return v * scale + bias; }
};
template <class T>
struct AddThenScale {
  T scale, bias;
  explicit AddThenScale(const double* n) : scale(T(n[0])), bias(T(n[1])) {}
  T operator()(T v) const { return (v + bias) * scale; }
};
// NaN passes through both comparisons.
template <class T>
struct Clip {
  T min, max;
  explicit Clip(const double* n) : min(T(n[0])), max(T(n[1])) {}
  T operator()(T v) const {
    const T raised = v < min ? min : v;
    return raised > max ? max : raised;
  }
};
// An open side is NaN, with which every comparison is false: infinity passes too.
template <class T>
struct ClipGrad {
  T min, max;
  explicit ClipGrad(const double* n) : min(T(n[0])), max(T(n[1])) {}
  T operator()(T x, T grad) const {
    const T above = x < min ? T(0) : grad;
    const T inside = x > max ? T(0) : above;
    return x != x && (min == min || max == max) ? T(0) : inside;
  }
};

template <class T>
struct Add {
  T operator()(T a, T b) const { return a + b; }
};
template <class T>
struct Subtract {
  T operator()(T a, T b) const { return a - b; }
};
template <class T>
struct Multiply {
  T operator()(T a, T b) const { return a * b; }
};
template <class T>
struct Divide {
  T operator()(T a, T b) const { return a / b; }
};
// In double, whose rounded quotient never reaches the next integer while operands have at most 51 bits.
// Adding the shifter turns an integer into its double and back. The divisor is not 0 here; the lowest
// integer by -1 wraps to itself, while the processor would trap.
template <class T>
struct FloorDivide {
  static constexpr bool kNarrow = sizeof(T) == 4;
  static constexpr int64_t kBound = int64_t{1} << 51;
  static double real(T v) {
    if constexpr (kNarrow)
      return static_cast<double>(v);
    else
      return bits_as<double>(v + bits_as<int64_t>(kShifter<double>)) - kShifter<double>;
  }
  static bool outside(T v) {
    return static_cast<uint64_t>(v + (kBound - 1)) > static_cast<uint64_t>(2 * (kBound - 1));
  }
  bool hard(T a, T b) const { return !kNarrow && (outside(a) | outside(b)); }
  T slow(T a, T b) const {
    if (b == -1) return -a;
    const T quotient = a / b;
    return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
  }
  T operator()(T a, T b) const {
    const double quotient = __builtin_floor(real(a) / real(b));
    return static_cast<T>(bits_as<int64_t>(quotient + kShifter<double>) -
                          bits_as<int64_t>(kShifter<double>));
  }
};
// NaN is the one value that differs from itself.
template <class T>
struct Maximum {
  T operator()(T a, T b) const {
    const T larger = a > b ? a : b;
    return a != a ? a : larger;
  }
};
template <class T>
struct Minimum {
  T operator()(T a, T b) const {
    const T smaller = a < b ? a : b;
    return a != a ? a : smaller;
  }
};
template <class T>
struct Fmax {
  T operator()(T a, T b) const {
    const T larger = a >= b ? a : b;
    return b != b ? a : larger;
  }
};
template <class T>
struct Fmin {
  T operator()(T a, T b) const {
    const T smaller = a <= b ? a : b;
    return b != b ? a : smaller;
  }
};
template <class T>
struct BitwiseAnd {
  T operator()(T a, T b) const { return static_cast<T>(a & b); }
};
template <class T>
struct BitwiseOr {
  T operator()(T a, T b) const { return static_cast<T>(a | b); }
};
template <class T>
struct BitwiseXor {
  T operator()(T a, T b) const { return static_cast<T>(a ^ b); }
};

template <class T>
struct Relu {
  T operator()(T v) const { return v < 0 ? T(0) : v; }  // NaN passes through
};
template <class T>
struct ReluGrad {
  T operator()(T out, T grad) const { return out > 0 ? grad : T(0); }
};
template <class T>
struct LeakyRelu {
  T slope;
  explicit LeakyRelu(const double* n) : slope(T(n[0])) {}
  T operator()(T v) const {
    const T below = slope * v;
    return v >= 0 ? v : below;
  }
};
template <class T>
struct LeakyReluGrad {
  T slope;
  explicit LeakyReluGrad(const double* n) : slope(T(n[0])) {}
  T operator()(T x, T grad) const {
    const T below = slope * grad;
    return x >= 0 ? grad : below;
  }
};
template <class T>
struct Hardswish {
  T operator()(T v) const {
    const T raised = v + 3 < 0 ? T(0) : v + 3;
    return v * (raised > 6 ? T(6) : raised) / 6;
  }
};
template <class T>
struct HardswishGrad {
  T operator()(T x, T grad) const {
    const T middle = grad * ((2 * x + 3) / 6);
    const T above = x <= -3 ? T(0) : middle;
    return x >= 3 ? grad : above;
  }
};
template <class T>
struct Hardsigmoid {
  T slope, offset;
  explicit Hardsigmoid(const double* n) : slope(T(n[0])), offset(T(n[1])) {}
  T operator()(T v) const {
    const T line = v * slope + offset, raised = line < 0 ? T(0) : line;
    return raised > 1 ? T(1) : raised;
  }
};
template <class T>
struct HardsigmoidGrad {
  T slope;
  explicit HardsigmoidGrad(const double* n) : slope(T(n[0])) {}
  T operator()(T out, T grad) const {
    const T above = out > 0 ? grad * slope : T(0);
    return out < 1 ? above : T(0);
  }
};
template <class T>
struct Softsign {
  T operator()(T v) const { return v / (1 + magnitude(v)); }
};
template <class T>
struct SoftsignGrad {
  T operator()(T x, T grad) const {
    const T width = 1 + magnitude(x);
    return grad / (width * width);
  }
};
template <class T>
struct Sloped {
  T operator()(T x, T slope) const {
    const T below = slope * x;
    return x > 0 ? x : below;
  }
};
template <class T>
struct SlopedGrad {
  T operator()(T x, T grad, T slope) const {
    const T below = slope * grad;
    return x > 0 ? grad : below;
  }
};
// NaN is neither above nor below a threshold; the comparisons are such that it passes through.
template <class T>
struct Hardshrink {
  T limit;
  explicit Hardshrink(const double* n) : limit(T(n[0])) {}
  T operator()(T v) const { return magnitude(v) <= limit ? T(0) : v; }
};
template <class T>
struct Softshrink {
  T limit;
  explicit Softshrink(const double* n) : limit(T(n[0])) {}
  T operator()(T v) const {
    const T inside = v < -limit ? -limit : v;
    return v - (inside > limit ? limit : inside);
  }
};
template <class T>
struct ShrinkGrad {
  T limit;
  explicit ShrinkGrad(const double* n) : limit(T(n[0])) {}
  T operator()(T x, T grad) const { return magnitude(x) <= limit ? T(0) : grad; }
};
template <class T>
struct ThresholdedRelu {
  T limit, value;
  explicit ThresholdedRelu(const double* n) : limit(T(n[0])), value(T(n[1])) {}
  T operator()(T v) const { return v <= limit ? value : v; }
};
template <class T>
struct ThresholdedReluGrad {
  T limit;
  explicit ThresholdedReluGrad(const double* n) : limit(T(n[0])) {}
  T operator()(T x, T grad) const { return x <= limit ? T(0) : grad; }
};
template <class T>
struct Lerp {
  T operator()(T x, T y, T weight) const { return x + weight * (y - x); }
};
template <class T>
struct SigmoidGrad {
  T operator()(T out, T grad) const { return grad * (1 - out) * out; }
};
template <class T>
struct TanhGrad {
  T operator()(T out, T grad) const { return grad * (1 - out * out); }
};

}  // namespace

namespace OAR_SIMD_SET {
const Function kArithmetic[][kTypes] = {OAR_SIMD_ARITHMETIC(OAR_SIMD_ROW, OAR_SIMD_ROW)};
}

}  // namespace oar::cpu::simd
