// Normal numbers from uniform ones.
#pragma once

#include <cmath>
#include <numbers>

#include "oar/backend/cpu/simd/angles.h"
#include "oar/backend/cpu/simd/logarithms.h"

namespace oar::cpu {

// The cosine and sine of 2 pi u for u in [0, 1), as straight-line code for float.
inline void turn(float u, float* cosine, float* sine) {
  const float quarter = std::rint(u * 4);
  const float r = (u - quarter * 0.25f) * (2 * std::numbers::pi_v<float>);  // within pi / 4
  const float s = functions::sin_near_0(r), c = functions::cos_near_0(r);
  const auto k = static_cast<int32_t>(quarter);
  const float along = k & 1 ? s : c, across = k & 1 ? c : s;
  *cosine = (k + 1) & 2 ? -along : along;
  *sine = k & 2 ? -across : across;
}
inline void turn(double u, double* cosine, double* sine) {
  const double angle = 2 * std::numbers::pi * u;
  *cosine = std::cos(angle);
  *sine = std::sin(angle);
}

// Uniform numbers, taken in pairs from both halves, become normal ones (Box and Muller, 1958).
template <int64_t kCount, class C>
void normals_of(C* numbers) {
  constexpr int64_t kHalf = kCount / 2;
  for (int64_t i = 0; i < kHalf; ++i) {
    const C radius = std::sqrt(-2 * functions::log(1 - numbers[i]));  // 1 - u is never 0
    C cosine, sine;
    turn(numbers[i + kHalf], &cosine, &sine);
    numbers[i] = radius * cosine;
    numbers[i + kHalf] = radius * sine;
  }
}

// The inverse of the normal distribution function (Wichura's algorithm AS 241, 1988).
inline double normal_quantile(double p) {
  const auto ratio = [](double r, const double(&above)[8], const double(&under)[8]) {
    double a = above[7], b = under[7];
    for (int i = 6; i >= 0; --i) {
      a = a * r + above[i];
      b = b * r + under[i];
    }
    return a / b;
  };
  static constexpr double kMiddle[2][8] = {
      {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3,
       1.3731693765509461125e4, 4.5921953931549871457e4, 6.7265770927008700853e4,
       3.3430575583588128105e4, 2.5090809287301226727e3},
      {1.0, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
       2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4,
       5.2264952788528545610e3}};
  static constexpr double kSide[2][8] = {
      {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0,
       3.64784832476320460504e0, 1.27045825245236838258e0, 2.41780725177450611770e-1,
       2.27238449892691845833e-2, 7.74545014278341407640e-4},
      {1.0, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
       1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4,
       1.05075007164441684324e-9}};
  static constexpr double kFar[2][8] = {
      {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0,
       2.96560571828504891230e-1, 2.65321895265761230930e-2, 1.24266094738807843860e-3,
       2.71155556874348757815e-5, 2.01033439929228813265e-7},
      {1.0, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
       7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
       2.04426310338993978564e-15}};
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) return q * ratio(0.180625 - q * q, kMiddle[0], kMiddle[1]);
  const double r = std::sqrt(-std::log(q < 0 ? p : 1 - p));
  const double made = r <= 5 ? ratio(r - 1.6, kSide[0], kSide[1]) : ratio(r - 5, kFar[0], kFar[1]);
  return q < 0 ? -made : made;
}

}  // namespace oar::cpu
