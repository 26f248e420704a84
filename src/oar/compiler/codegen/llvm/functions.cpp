// The functions that generated loops call. clang makes LLVM's bitcode of this file when the code generator is built, and a kernel
// inlines what it calls. They are those of the eager kernels. A name ends with the type: f is float, d double, l int64_t.
//
// `hard` says that a function is not exact enough for an argument; `slow` is then. A loop computes everything the fast way, and once
// more the slow way where it met such an argument.
#include "oar/backend/cpu/simd/functions.h"

namespace {

using namespace oar::cpu::functions;

// As FloorDivide and Remainder of the eager kernels.
template <class T, class Mod>
OAR_SIMD_INLINE T floor_divided(T a, T b, Mod mod) {
  if (b == 0) return a / b;
  const T rest = mod(a, b);
  T quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return with_sign(T(0), a / b);
  const T whole = static_cast<T>(__builtin_floor(quotient));
  return quotient - whole > T(0.5) ? whole + 1 : whole;
}
template <class T, class Mod>
OAR_SIMD_INLINE T remainder_of(T a, T b, Mod mod) {
  const T rest = mod(a, b);
  if (rest == 0) return with_sign(T(0), b);
  return (b < 0) != (rest < 0) ? rest + b : rest;
}
// Masks make exponents far below 0: their powers are 0 without a subnormal number on the way, which would cost as much as a hundred
// others.
template <class T>
OAR_SIMD_INLINE T masked_exp(T x) {
  const bool none = x < (kIsFloat<T> ? T(-104) : T(-745.5));
  const T made = exp(none ? T(0) : x);
  return none ? T(0) : made;
}
template <class T>
OAR_SIMD_INLINE T power(T a, T b) {
  const T made = pow(a, b);
  return b == 2 ? a * a : made;
}
OAR_SIMD_INLINE float length(float a, float b) {
  const double x = a, y = b;
  const auto made = static_cast<float>(square_root(x * x + y * y));
  const bool infinite = (magnitude(a) == kInfinity<float>) | (magnitude(b) == kInfinity<float>);
  return infinite ? kInfinity<float> : made;
}
OAR_SIMD_INLINE double length(double a, double b) { return __builtin_hypot(a, b); }

}  // namespace

extern "C" {

#define OAR_UNARY(name, function)                       \
  float oar_##name##_f(float x) { return function(x); } \
  double oar_##name##_d(double x) { return function(x); }
OAR_UNARY(exp, masked_exp)
OAR_UNARY(expm1, expm1)
OAR_UNARY(log, log)
OAR_UNARY(log1p, log1p)
OAR_UNARY(log2, log2)
OAR_UNARY(log10, log10)
OAR_UNARY(sin, sin)
OAR_UNARY(cos, cos)
OAR_UNARY(tan, tan)
OAR_UNARY(asin, asin)
OAR_UNARY(acos, acos)
OAR_UNARY(atan, atan)
OAR_UNARY(sinh, sinh)
OAR_UNARY(cosh, cosh)
OAR_UNARY(tanh, tanh)
OAR_UNARY(erf, erf)
#undef OAR_UNARY

#define OAR_LIBRARY(name)                                          \
  float oar_##name##_f(float x) { return __builtin_##name##f(x); } \
  double oar_##name##_d(double x) { return __builtin_##name(x); }
OAR_LIBRARY(asinh)
OAR_LIBRARY(acosh)
OAR_LIBRARY(atanh)
#undef OAR_LIBRARY

#define OAR_HARD_ANGLE(name)                                                          \
  bool oar_##name##_hard_f(float x) { return !(magnitude(x) <= kMostTurned<float>); } \
  float oar_##name##_slow_f(float x) { return static_cast<float>(__builtin_##name(x)); }
OAR_HARD_ANGLE(sin)
OAR_HARD_ANGLE(cos)
OAR_HARD_ANGLE(tan)
#undef OAR_HARD_ANGLE

#define OAR_BINARY(name, function)                                  \
  float oar_##name##_f(float a, float b) { return function(a, b); } \
  double oar_##name##_d(double a, double b) { return function(a, b); }
OAR_BINARY(pow, power)
OAR_BINARY(hypot, length)
OAR_BINARY(atan2, atan2)
#undef OAR_BINARY

float oar_floor_divide_f(float a, float b) {
  return floor_divided(a, b, [](float x, float y) { return __builtin_fmodf(x, y); });
}
double oar_floor_divide_d(double a, double b) {
  return floor_divided(a, b, [](double x, double y) { return __builtin_fmod(x, y); });
}
float oar_modulo_f(float a, float b) {
  return remainder_of(a, b, [](float x, float y) { return __builtin_fmodf(x, y); });
}
double oar_modulo_d(double a, double b) {
  return remainder_of(a, b, [](double x, double y) { return __builtin_fmod(x, y); });
}

float oar_from_brain(uint16_t bits) { return bits_as<float>(static_cast<uint32_t>(bits) << 16); }
uint16_t oar_to_brain(float v) {
  const auto word = bits_as<uint32_t>(v);
  const uint32_t rounded = (word + 0x7fff + ((word >> 16) & 1)) >> 16;
  return static_cast<uint16_t>(v != v ? (word >> 16 | 0x40) : rounded);
}
}
