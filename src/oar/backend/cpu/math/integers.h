// Checks of values of integer operands and dtypes, before a kernel writes anything.
#pragma once

#include <atomic>

#include "oar/backend/cpu/loops/loops.h"

namespace oar::cpu {

inline std::pair<int64_t, int64_t> range_of(DType dtype) {
  if (dtype == DType::UInt8) return {0, 255};
  const int64_t high = std::numeric_limits<int64_t>::max() >> (64 - 8 * size_of(dtype));
  return {-high - 1, high};
}

// Whether question(x[i], y[i]) is true anywhere, tested before the kernel writes anything.
template <class T, class F>
bool anywhere(const oar_tensor& x, const oar_tensor& y, F question) {
  std::atomic<bool> found = false;
  StridedLoop<2>({&x, &y}).run([&](const auto& p, const auto& s, int64_t n) {
    constexpr int64_t kGroup = 64;  // of a constant length, which compilers vectorise
    const T *a = reinterpret_cast<const T*>(p[0]), *b = reinterpret_cast<const T*>(p[1]);
    const bool dense = s[0] == sizeof(T) && s[1] == sizeof(T);
    bool here = false;
    int64_t i = 0;
    for (; dense && i + kGroup <= n; i += kGroup) {
      T group = 0;
      for (int64_t k = 0; k < kGroup; ++k) group |= question(a[i + k], b[i + k]) ? T(1) : T(0);
      here |= group != 0;
    }
    for (; i < n; ++i)
      here |= question(*reinterpret_cast<const T*>(p[0] + i * s[0]),
                       *reinterpret_cast<const T*>(p[1] + i * s[1]));
    if (here) found.store(true, std::memory_order_relaxed);
  });
  return found;
}

}  // namespace oar::cpu
