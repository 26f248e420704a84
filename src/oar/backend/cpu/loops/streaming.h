// Results that bypass the caches.
#pragma once

#include <atomic>

#include "oar/backend/cpu/loops/compact.h"

namespace oar::cpu {

// A result that the caches cannot hold bypasses them; one that is computed in a buffer does not.
template <class T>
bool streams(const oar_tensor& out) {
  constexpr int64_t kFrom = int64_t{16} << 20;
  return std::is_same_v<T, compute_t<T>> && out.numel * static_cast<int64_t>(sizeof(T)) >= kFrom;
}

// The same for one that may be rounded to its dtype at the end.
template <class C>
bool streams(const Result<C>& result, const oar_tensor& out) {
  return result.in_place() && streams<C>(out);
}

// Must come before others read what bypassed the caches.
struct StreamFence {
  ~StreamFence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
};

}  // namespace oar::cpu
