// The offsets of the buffers of a run in one arena.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "oar/base/api.h"
#include "oar/base/function_ref.h"

namespace OAR_API oar {

// A buffer and the steps, both included, between which its content is needed.
struct Lifetime {
  int64_t bytes = 0;
  int32_t first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<int64_t> offsets;  // one per buffer
  int64_t bytes = 0;             // of the arena
};

// Buffers that live at the same time do not overlap. Large ones are placed first, each at the lowest
// offset that is free during its lifetime. at_once(a, b): may the step b run while a still does, although it comes later?
using AtOnce = FunctionRef<bool(int32_t, int32_t)>;
MemoryPlan plan_memory(std::span<const Lifetime> buffers, AtOnce at_once, int64_t alignment = 64);
inline MemoryPlan plan_memory(std::span<const Lifetime> buffers) {
  return plan_memory(buffers, [](int32_t, int32_t) { return false; });
}

}  // namespace oar
