// Elementary functions as straight-line code, so that a loop around them vectorises.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace oar::cpu {

// e^x to within 2 units in the last place; underflows gradually, overflows to infinity.
inline float exp_of(float x) {
  // Outside of these the result is 0 or infinity; NaN passes through both comparisons.
  x = x < -104.0f ? -104.0f : x;
  x = x > 89.0f ? 89.0f : x;
  const float n = std::rint(x * 1.44269504088896341f);
  // ln 2 in two parts, the first with few bits: the product with n is exact.
  const float r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  // 2^n in two factors: n may reach beyond the exponents of normal numbers.
  const auto k = static_cast<int32_t>(n);
  const int32_t half = k >> 1;
  const auto power = [](int32_t e) { return std::bit_cast<float>((e + 127) << 23); };
  return p * power(half) * power(k - half);
}
inline double exp_of(double x) { return std::exp(x); }

// out[i] = f(i) for i in [0, n), in groups of constant size that the compiler vectorises. A group
// is made in registers before it is stored, so that `out` may be what f reads.
template <class Out, class F>
inline void fill_groups(Out* out, int64_t n, F&& f) {
  constexpr int64_t kGroup = 16;
  using Made = decltype(f(int64_t{}));
  int64_t i = 0;
  for (; i + kGroup <= n; i += kGroup) {
    Made made[kGroup];
    for (int64_t k = 0; k < kGroup; ++k) made[k] = f(i + k);
    for (int64_t k = 0; k < kGroup; ++k) out[i + k] = static_cast<Out>(made[k]);
  }
  for (; i < n; ++i) out[i] = static_cast<Out>(f(i));
}

}  // namespace oar::cpu
