// Sines and related functions, and angles.
#pragma once

#include "oar/backend/cpu/simd/exponentials.h"

namespace oar::cpu::functions {
namespace {

// x = n pi/2 + rest, |rest| <= pi/4, in double. pi/2 is split into two parts: the first has 33 bits, and
// its product with n is exact for the sizes that are allowed here.
struct Turns {
  double rest;
  uint32_t n;
};
template <class T>
inline constexpr T kMostTurned = T(500000);
OAR_SIMD_INLINE Turns without_turns(double x) {
  const double shifted = fma(x, 0.63661977236758134308, kShifter<double>);
  const double n = shifted - kShifter<double>;
  const double rest = fma(n, -6.07710050650619224932e-11, fma(n, -1.57079632673412561417e+00, x));
  return {rest, static_cast<uint32_t>(bits_as<uint64_t>(shifted))};
}
OAR_SIMD_INLINE float sin_near_0(float r) {
  const float z = r * r;
  const float c[] = {-0.1666665494f, 0.008332177683f, -0.0001951723433f};
  return fma(r * z, polynomial(z, c), r);
}
OAR_SIMD_INLINE float cos_near_0(float r) {
  const float z = r * r;
  const float c[] = {0.04166664686f, -0.001388736701f, 2.443838957e-5f};
  return fma(z * z, polynomial(z, c), fma(z, -0.5f, 1.0f));
}
// The same in float. pi/2 is split into three parts. The rest after the first is exact, since it has no more
// bits than a float; subtracting each of the others rounds.
struct NearTurns {
  float rest;
  uint32_t n;
};
OAR_SIMD_INLINE NearTurns without_turns_in_float(float x) {
  const float shifted = fma(x, 0.636619772f, kShifter<float>);
  const float n = shifted - kShifter<float>;
  const float rest = fma(n, 1.71512451e-15f, fma(n, 4.37113883e-8f, fma(n, -1.57079637f, x)));
  return {rest, bits_as<uint32_t>(shifted)};
}
OAR_SIMD_INLINE float sin_of_turn(float x, uint32_t quarters) {
  const NearTurns t = without_turns_in_float(x);
  const uint32_t n = t.n + quarters;
  const float sine = sin_near_0(t.rest), cosine = cos_near_0(t.rest);
  const float made = (n & 1) != 0 ? cosine : sine;
  return bits_as<float>(bits_as<uint32_t>(made) ^ ((n & 2) << 30));
}
OAR_SIMD_INLINE float sin(float x) {
  const float made = sin_of_turn(x, 0);
  return x == 0 ? x : made;
}
OAR_SIMD_INLINE float cos(float x) { return sin_of_turn(x, 1); }
OAR_SIMD_INLINE float tan(float x) {
  const Turns t = without_turns(x);
  const auto r = static_cast<float>(t.rest), lost = static_cast<float>(t.rest - r);
  const float z = r * r;
  const float c[] = {0.3333335147f,  0.1333260906f,   0.05406564393f, 0.0212544179f,
                     0.01090384591f, 7.582158439e-6f, 0.004414862728f};
  const float excess = r * z * polynomial(z, c), rough = r + excess;
  const float tangent = r + fma(fma(rough, rough, 1.0f), lost, excess);
  const float made = (t.n & 1) != 0 ? -1 / tangent : tangent;
  return x == 0 ? x : made;
}
OAR_SIMD_INLINE double sin(double x) { return __builtin_sin(x); }
OAR_SIMD_INLINE double cos(double x) { return __builtin_cos(x); }
OAR_SIMD_INLINE double tan(double x) { return __builtin_tan(x); }

// asin(t) - t for 0 <= t <= 1/2.
OAR_SIMD_INLINE float asin_excess(float t) {
  const float z = t * t;
  const float c[] = {0.1666665987f, 0.07500510878f, 0.04451572793f,
                     0.0318175494f, 0.01440283017f, 0.03756490406f};
  return t * z * polynomial(z, c);
}
// Above 1/2 through pi/2 - 2 asin(sqrt((1 - x) / 2)), with the rounding error of the root.
OAR_SIMD_INLINE float asin(float x) {
  const float size = magnitude(x);
  const bool near = size <= 0.5f;
  const float square = 0.5f * (1 - size);
  const float root = square_root(square);
  const float lost = fma(-root, root, square) / (2 * root + 0x1p-60f);
  const float excess = asin_excess(near ? size : root);
  const float far = (kHalfPi<float> - 2 * root) - (2 * (excess + lost) - -4.37113883e-8f);
  return with_sign(near ? size + excess : far, x);
}
OAR_SIMD_INLINE float acos(float x) {
  const float size = magnitude(x);
  const bool near = size <= 0.5f;
  const float start = near ? size : square_root(0.5f * (1 - size));
  const float angle = start + asin_excess(start);
  const float signed_angle = with_sign(angle, x);
  const float from_pole = has_sign(x) ? kPi<float> - (2 * angle - -8.74227766e-8f) : 2 * angle;
  return near ? kHalfPi<float> - (signed_angle - -4.37113883e-8f) : from_pole;
}
OAR_SIMD_INLINE double asin(double x) { return __builtin_asin(x); }
OAR_SIMD_INLINE double acos(double x) { return __builtin_acos(x); }

// atan(t) for 0 <= t <= 1.
OAR_SIMD_INLINE float atan_below_1(float t) {
  const float z = t * t;
  const float c[] = {-0.3333330186f,  0.1999863853f,   -0.1426524477f,
                     0.1095757434f,   -0.08419456554f, 0.05823454247f,
                     -0.03145572057f, 0.0110644617f,   -0.00182721932f};
  return fma(t * z, polynomial(z, c), t);
}
OAR_SIMD_INLINE float atan(float x) {
  const float size = magnitude(x);
  const bool far = size > 1;
  const float angle = atan_below_1(far ? 1 / size : size);
  return with_sign(far ? kHalfPi<float> - (angle - -4.37113883e-8f) : angle, x);
}
OAR_SIMD_INLINE double atan(double x) { return __builtin_atan(x); }

OAR_SIMD_INLINE float atan2(float y, float x) {
  const float up = magnitude(y), along = magnitude(x);
  const float larger = up > along ? up : along, smaller = up > along ? along : up;
  const float ratio = larger == 0 ? 0.0f : smaller == larger ? 1.0f : smaller / larger;
  const float angle = atan_below_1(ratio);
  const float eighth = up > along ? kHalfPi<float> - (angle - -4.37113883e-8f) : angle;
  const float made = with_sign(has_sign(x) ? kPi<float> - (eighth - -8.74227766e-8f) : eighth, y);
  return x != x || y != y ? x + y : made;
}
OAR_SIMD_INLINE double atan2(double y, double x) { return __builtin_atan2(y, x); }

}  // namespace
}  // namespace oar::cpu::functions
