// The factor of magnitude 1 that eigenvectors and singular vectors have free: their leading element becomes real and positive.
#pragma once

#include "oar/backend/cpu/lapack/batch.h"

namespace oar::cpu::lapack {

// The leading element is the first whose squared magnitude is at least this part of the largest, as rules of ops say it too.
inline constexpr double kLeads = 0.999;

// What to multiply a vector by, and where its leading element is.
template <class T>
struct Gauge {
  T factor;
  int64_t leading;
};

template <class T>
Gauge<T> gauge_of(const T* vector, int64_t step, int64_t n) {
  real_t<T> largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, size_squared(vector[i * step]));
  int64_t leading = 0;
  while (leading + 1 < n &&
         size_squared(vector[leading * step]) < static_cast<real_t<T>>(kLeads) * largest)
    ++leading;
  const T element = vector[leading * step];
  const real_t<T> size = std::abs(element);
  return {size > 0 ? conjugate(element) / size : T(1), leading};
}

// Applies it; the leading element is exactly real then.
template <class T>
void apply(const Gauge<T>& gauge, T* vector, int64_t step, int64_t n) {
  for (int64_t i = 0; i < n; ++i) vector[i * step] = product(vector[i * step], gauge.factor);
  if (n > 0) vector[gauge.leading * step] = std::abs(vector[gauge.leading * step]);
}

template <class T>
bool all_finite(const T* values, int64_t n) {
  real_t<T> sum = 0;  // 0 times infinity or NaN is NaN
  for (int64_t i = 0; i < n; ++i) sum += std::real(values[i]) * 0 + std::imag(values[i]) * 0;
  return sum == 0;
}

inline constexpr const char* kNoConvergence =
    "has no decomposition: it contains infinities or NaN, or the iteration did not converge.";

}  // namespace oar::cpu::lapack
