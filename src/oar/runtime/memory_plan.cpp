#include "oar/runtime/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "oar/tensor/byte_count.h"

namespace oar {
namespace {

bool meet(const Lifetime& a, const Lifetime& b, AtOnce at_once) {
  if (a.last < b.first) return at_once(a.last, b.first);
  if (b.last < a.first) return at_once(b.last, a.first);
  return true;
}

}  // namespace

MemoryPlan plan_memory(std::span<const Lifetime> buffers, AtOnce at_once, int64_t alignment) {
  const auto aligned = [&](int64_t bytes) { return Count(bytes).aligned(alignment).value(); };
  MemoryPlan plan;
  plan.offsets.assign(buffers.size(), 0);
  std::vector<size_t> by_size(buffers.size());
  std::iota(by_size.begin(), by_size.end(), size_t{0});
  std::stable_sort(by_size.begin(), by_size.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  std::vector<size_t> placed;  // by offset
  for (const size_t i : by_size) {
    const int64_t bytes = aligned(buffers[i].bytes);
    int64_t at = 0;
    for (const size_t other : placed) {
      if (!meet(buffers[i], buffers[other], at_once)) continue;
      if ((Count(at) + bytes).value() <= plan.offsets[other]) break;
      at = std::max(at, plan.offsets[other] + aligned(buffers[other].bytes));
    }
    plan.offsets[i] = at;
    plan.bytes = std::max(plan.bytes, (Count(at) + bytes).value());
    const auto after = std::upper_bound(placed.begin(), placed.end(), at,
                                        [&](int64_t o, size_t p) { return o < plan.offsets[p]; });
    placed.insert(after, i);
  }
  return plan;
}

}  // namespace oar
