// The building blocks of the elementary functions: bits of numbers, multiply-add, polynomials.
//
// All of it, and the functions above it, is straight-line code: choices are selects and exponents are
// moved by integer arithmetic, so that a compiler vectorises the loop around it for any instruction
// set. Where T is a vector of the compiler (`vector_size`), it works on all lanes at once.
//
// A file that includes this is compiled for one instruction set, so everything here has internal
// linkage and nothing comes from another header.
#pragma once

#include <cstdint>

// A call inside a loop would prevent vectorisation.
#define OAR_SIMD_INLINE [[gnu::always_inline]] inline

namespace oar::cpu::functions {
namespace {

// What a type's bits look like. A vector's are those of its elements.
template <class T>
struct Layout {
  using Element = decltype(+T{}[0]);
  using Of = Layout<Element>;
  typedef typename Of::Bits Bits __attribute__((vector_size(sizeof(T))));
  static constexpr int kMantissa = Of::kMantissa, kBias = Of::kBias;
  static constexpr Element kSmallest = Of::kSmallest;
};
template <>
struct Layout<float> {
  using Element = float;
  using Bits = uint32_t;
  static constexpr int kMantissa = 23, kBias = 127;
  static constexpr float kSmallest = 0x1p-126f;  // of the normal numbers
};
template <>
struct Layout<double> {
  using Element = double;
  using Bits = uint64_t;
  static constexpr int kMantissa = 52, kBias = 1023;
  static constexpr double kSmallest = 0x1p-1022;
};
template <class T>
using ElementOf = typename Layout<T>::Element;
template <class T>
using BitsOf = typename Layout<T>::Bits;
// The bits of one element: what a vector of bits is shifted by or added to.
template <class T>
using WordOf = typename Layout<ElementOf<T>>::Bits;
template <class T>
inline constexpr bool kIsFloat = sizeof(ElementOf<T>) == 4;
template <class T>
inline constexpr T kInfinity = T(__builtin_inff());
template <class T>
inline constexpr T kNan = T(__builtin_nanf(""));
template <class T>
inline constexpr T kPi = T(3.14159265358979323846L);
template <class T>
inline constexpr T kHalfPi = T(1.57079632679489661923L);
template <class T>
inline constexpr WordOf<T> kAllButSign = ~WordOf<T>{0} >> 1;

template <class To, class From>
OAR_SIMD_INLINE To bits_as(From value) {
  return __builtin_bit_cast(To, value);
}
template <class T>
OAR_SIMD_INLINE T magnitude(T x) {
  return bits_as<T>(bits_as<BitsOf<T>>(x) & kAllButSign<T>);
}
// `x` with the sign bit of `sign`.
template <class T>
OAR_SIMD_INLINE T with_sign(T x, T sign) {
  return bits_as<T>((bits_as<BitsOf<T>>(x) & kAllButSign<T>) |
                    (bits_as<BitsOf<T>>(sign) & ~kAllButSign<T>));
}
template <class T>
OAR_SIMD_INLINE bool has_sign(T x) {
  return (bits_as<BitsOf<T>>(x) & ~kAllButSign<T>) != 0;
}
template <class T>
OAR_SIMD_INLINE T at_most(T x, ElementOf<T> limit) {
  return x > limit ? T{} + limit : x;
}
template <class T>
OAR_SIMD_INLINE T at_least(T x, ElementOf<T> limit) {
  return x < limit ? T{} + limit : x;
}

// x * y + z, rounded once: formulas below rely on it.
OAR_SIMD_INLINE float fma(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
OAR_SIMD_INLINE double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
// Vectors have no such function; the compiler joins the two where the processor can. A factor or what
// is added may be one number for all lanes.
template <class V, class Y, class Z>
  requires requires(V v) { v[0]; }
OAR_SIMD_INLINE V fma(V x, Y y, Z z) {
  return x * y + z;
}
// c[0] + c[1] x + c[2] x^2 ...
template <class T, int kCount>
OAR_SIMD_INLINE T polynomial(T x, const ElementOf<T> (&c)[kCount]) {
  T sum = T{} + c[kCount - 1];
#pragma GCC unroll 16
  for (int i = kCount - 2; i >= 0; --i) sum = fma(sum, x, c[i]);
  return sum;
}
OAR_SIMD_INLINE float square_root(float x) { return __builtin_sqrtf(x); }
OAR_SIMD_INLINE double square_root(double x) { return __builtin_sqrt(x); }

}  // namespace
}  // namespace oar::cpu::functions
