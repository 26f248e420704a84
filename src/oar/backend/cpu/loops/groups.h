// Loops in groups that the compiler vectorises.
#pragma once

#include <cstdint>

namespace oar::cpu {

// out[i] = f(i) for i in [0, n), in groups of constant size that the compiler vectorises. A group
// is computed in registers before it is stored, so that `out` may be what f reads. Flattened: a call of f
// would prevent vectorisation.
template <class Out, class F>
[[gnu::flatten]] inline void fill_groups(Out* out, int64_t n, F&& f) {
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
