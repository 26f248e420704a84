#include "oar/tensor/allocator.h"

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "oar/base/error.h"
#include "oar/base/flags.h"

namespace oar::cpu_allocator {
namespace {

// Small blocks are malloc's business: its thread caches are hard to beat. From here on a block
// would be mapped and faulted in anew each time, so we keep it.
constexpr size_t kCachedFrom = size_t{64} << 10;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr int kStepsPerDoubling = 8;  // at most 12.5 % of a block is waste
constexpr int kBins = 64 * kStepsPerDoubling;

struct Counters {
  std::atomic<int64_t> allocated{0}, peak{0}, reserved{0}, peak_reserved{0}, allocations{0};
  std::atomic<int64_t> limit{0};
};
Counters g;

void raise_peak(std::atomic<int64_t>& peak, int64_t now) {
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (now > seen && !peak.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
  }
}

size_t step_of(size_t bytes) { return std::bit_floor(bytes) / kStepsPerDoubling; }
size_t rounded(size_t bytes) {
  const size_t step = step_of(bytes);
  return (bytes + step - 1) / step * step;
}
int bin_of(size_t rounded_bytes) {
  const int doubling = std::bit_width(rounded_bytes) - 1;
  return doubling * kStepsPerDoubling +
         static_cast<int>((rounded_bytes - std::bit_floor(rounded_bytes)) / step_of(rounded_bytes));
}

struct Cache {
  std::mutex mutex;
  std::array<std::vector<void*>, kBins> bins;
};
Cache& cache() {
  static Cache* instance = new Cache;  // storages may die after static destructors
  return *instance;
}

void reserve(int64_t bytes) {
  raise_peak(g.peak_reserved, g.reserved.fetch_add(bytes, std::memory_order_relaxed) + bytes);
}

void* from_system(size_t bytes) {
  const size_t alignment = bytes >= kHugePage ? kHugePage : kAlignment;
  void* data = std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (data && bytes >= kHugePage) madvise(data, bytes, MADV_HUGEPAGE);
  return data;
}

// A large block has the size of its bin whether or not the cache is on: the flag may be another when
// the block comes back.
void* large_block(size_t bytes, bool from_cache) {
  Cache& c = cache();
  if (from_cache) {
    std::lock_guard lock(c.mutex);
    std::vector<void*>& bin = c.bins[static_cast<size_t>(bin_of(bytes))];
    if (!bin.empty()) {
      void* data = bin.back();
      bin.pop_back();
      return data;
    }
  }
  void* data = from_system(bytes);
  if (!data && release_cached() > 0) data = from_system(bytes);
  if (data) reserve(static_cast<int64_t>(bytes));
  return data;
}

[[noreturn]] void out_of_memory(size_t bytes, const char* why) {
  g.allocated.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  fail(ErrorKind::OutOfMemory,
       "cannot allocate {} bytes: {} ({} bytes are in use).\nhint: Use smaller batches, drop "
       "tensors that are no longer needed, or raise the limit with "
       "set_flags({{'memory_limit_mb': ...}}).",
       bytes, why, g.allocated.load());
}

}  // namespace

void* allocate(size_t bytes) {
  const int64_t now =
      g.allocated.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed) +
      static_cast<int64_t>(bytes);
  if (const int64_t limit = g.limit.load(std::memory_order_relaxed); limit && now > limit)
    out_of_memory(bytes, "the memory limit is reached");
  g.allocations.fetch_add(1, std::memory_order_relaxed);
  void* data = nullptr;
  static const FlagHandle<bool> use_cache("cache_allocator");
  if (bytes >= kCachedFrom) {
    if (bytes < (size_t{1} << 62)) data = large_block(rounded(bytes), use_cache.get());
  } else {
    data = std::aligned_alloc(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
  }
  if (!data) out_of_memory(bytes, "the system has none left");
  raise_peak(g.peak, now);
  return data;
}

void free(void* data, size_t bytes) {
  g.allocated.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
  static const FlagHandle<bool> use_cache("cache_allocator");
  if (bytes < kCachedFrom) return std::free(data);
  if (!use_cache.get()) {
    g.reserved.fetch_sub(static_cast<int64_t>(rounded(bytes)), std::memory_order_relaxed);
    return std::free(data);
  }
  Cache& c = cache();
  std::lock_guard lock(c.mutex);
  c.bins[static_cast<size_t>(bin_of(rounded(bytes)))].push_back(data);
}

void count(int64_t bytes) {
  raise_peak(g.peak, g.allocated.fetch_add(bytes, std::memory_order_relaxed) + bytes);
}

MemoryStats stats() {
  return {g.allocated.load(), g.peak.load(), g.reserved.load(), g.peak_reserved.load(),
          g.allocations.load()};
}

void reset_peak() {
  g.peak.store(g.allocated.load());
  g.peak_reserved.store(g.reserved.load());
}

int64_t release_cached() {
  Cache& c = cache();
  int64_t freed = 0;
  std::lock_guard lock(c.mutex);
  for (int bin = 0; bin < kBins; ++bin) {
    const size_t base = size_t{1} << (bin / kStepsPerDoubling);
    const size_t bytes =
        base + base / kStepsPerDoubling * static_cast<size_t>(bin % kStepsPerDoubling);
    for (void* data : c.bins[static_cast<size_t>(bin)]) {
      std::free(data);
      freed += static_cast<int64_t>(bytes);
    }
    c.bins[static_cast<size_t>(bin)].clear();
  }
  g.reserved.fetch_sub(freed, std::memory_order_relaxed);
  return freed;
}

void set_limit(int64_t bytes) { g.limit.store(bytes, std::memory_order_relaxed); }
int64_t limit() { return g.limit.load(std::memory_order_relaxed); }

}  // namespace oar::cpu_allocator
