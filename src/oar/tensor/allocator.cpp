#include "oar/tensor/allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <vector>

#include "oar/base/error.h"
#include "oar/base/flags.h"
#include "oar/base/fork_mutex.h"
#include "oar/base/timeline.h"
#include "oar/tensor/free_ranges.h"

namespace oar::cpu_allocator {
namespace {

// Small blocks are left to malloc: its thread caches are hard to beat. From this size on a block
// would be mapped and faulted in each time, so we keep it.
constexpr size_t kCachedFrom = size_t{64} << 10;
constexpr size_t kMergedFrom = size_t{1} << 20;
constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kStepsPerDoubling = 8;  // at most 12.5 % of a block is waste
constexpr size_t kBins = 64 * kStepsPerDoubling;
constexpr size_t kMostBytes = size_t{1}
                              << (8 * sizeof(size_t) - 4);  // rounding up stays far from overflow

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
size_t bin_of(size_t rounded_bytes) {
  const auto doubling = static_cast<size_t>(std::bit_width(rounded_bytes) - 1);
  return doubling * kStepsPerDoubling +
         (rounded_bytes - std::bit_floor(rounded_bytes)) / step_of(rounded_bytes);
}
size_t bytes_of(size_t bin) {
  const size_t base = size_t{1} << (bin / kStepsPerDoubling);
  return base + base / kStepsPerDoubling * (bin % kStepsPerDoubling);
}

void reserve(int64_t bytes) {
  raise_peak(g.peak_reserved, g.reserved.fetch_add(bytes, std::memory_order_relaxed) + bytes);
}

// Large blocks. A freed one of less than kMergedFrom stays in the bin of its size for a request of that
// size; if a bin is empty, all of them are merged, so that blocks of other sizes can be used too. They
// are cut from chunks of their own. Larger ones are merged at once: what is free then depends on what
// is live alone, and each step of a training loop finds the ranges that the one before it used.
class Cache {
 public:
  // Null if the system is out of memory.
  void* take(size_t bytes) {
    const std::lock_guard lock(mutex_);
    return reinterpret_cast<void*>(bytes < kMergedFrom ? take_binned(bytes) : take_merged(bytes));
  }

  // False if the block is not from here.
  bool give_back(void* data, size_t bytes) {
    const std::lock_guard lock(mutex_);
    const auto begin = reinterpret_cast<uintptr_t>(data);
    if (!owns(begin)) return false;
    if (bytes < kMergedFrom)
      bins_[bin_of(bytes)].push_back(begin);
    else
      used_.add(begin, bytes);
    return true;
  }

  int64_t release() {
    const std::lock_guard lock(mutex_);
    empty_bins();
    move_ranges(0);
    return drop(used_.bytes());
  }

 private:
  static constexpr size_t kRegion = size_t{256} << 20, kChunk = size_t{4} << 20;
  // How much of the memory may be gaps that are too short for a request: in bytes, as a part of what is in use, and as a part
  // of what has gone back to the system: a loop that needs the same pages again and again may keep them.
  static constexpr size_t kGaps = size_t{32} << 20, kShareOfGaps = 64, kShareOfDropped = 8;

  uintptr_t take_binned(size_t bytes) {
    if (std::vector<uintptr_t>& bin = bins_[bin_of(bytes)]; !bin.empty()) {
      const uintptr_t data = bin.back();
      bin.pop_back();
      return data;
    }
    uintptr_t data = small_.take(bytes);
    if (data == 0 && empty_bins()) data = small_.take(bytes);
    if (data != 0) return data;
    const uintptr_t chunk = take_merged(kChunk);
    if (chunk == 0) return take_merged(bytes);
    small_.add(chunk, kChunk);
    return small_.take(bytes);
  }

  uintptr_t take_merged(size_t bytes) {
    uintptr_t data = used_.take(bytes);
    if (data == 0) {
      empty_bins();
      if (move_ranges(kChunk)) data = used_.take(bytes);
    }
    if (data == 0) {
      drop_gaps(bytes);
      data = fresh(bytes);
    }
    return data;
  }

  // A request needs fresh pages although there is free memory: as many pages of its gaps go back to the system, if they are many.
  void drop_gaps(size_t bytes) {
    const size_t free = used_.bytes();
    const size_t live = static_cast<size_t>(g.reserved.load(std::memory_order_relaxed)) - free;
    if (free <= std::max({kGaps, live / kShareOfGaps, dropped_ / kShareOfDropped})) return;
    dropped_ += static_cast<size_t>(drop(std::min(bytes, free)));
  }

  // Keeps the addresses, returns the pages: of the longest ranges, until there are enough.
  int64_t drop(size_t least) {
    size_t dropped = 0;
    while (dropped < least) {
      const auto [begin, bytes] = used_.take_longest();
      madvise(reinterpret_cast<void*>(begin), bytes, MADV_DONTNEED);
      clean_.add(begin, bytes);
      dropped += bytes;
    }
    g.reserved.fetch_sub(static_cast<int64_t>(dropped), std::memory_order_relaxed);
    return static_cast<int64_t>(dropped);
  }

  // Whether there was anything in them.
  bool empty_bins() {
    const size_t before = small_.bytes();
    for (size_t bin = 0; bin < bins_.size(); ++bin) {
      for (const uintptr_t data : bins_[bin]) small_.add(data, bytes_of(bin));
      bins_[bin].clear();
    }
    return small_.bytes() > before;
  }

  // Gives ranges of that length and more to blocks of all sizes. Whether there was one.
  bool move_ranges(size_t least) {
    bool moved = false;
    for (auto longest = small_.take_longest(); longest.second > 0;
         longest = small_.take_longest()) {
      if (longest.second < least) {
        small_.add(longest.first, longest.second);
        break;
      }
      used_.add(longest.first, longest.second);
      moved = true;
    }
    return moved;
  }

  // Pages that were never touched, or that were returned to the system.
  uintptr_t fresh(size_t bytes) {
    uintptr_t data = clean_.take(bytes);
    if (data == 0 && map_region(bytes)) data = clean_.take(bytes);
    if (data != 0) reserve(static_cast<int64_t>(bytes));
    return data;
  }

  bool map_region(size_t bytes) {
    const size_t least = (bytes + kHugePage - 1) / kHugePage * kHugePage;
    return map(std::max(kRegion, least)) || map(least);
  }
  bool map(size_t room) {
    void* data = mmap(nullptr, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data == MAP_FAILED) return false;
    madvise(data, room, MADV_HUGEPAGE);
    regions_.emplace(reinterpret_cast<uintptr_t>(data), room);
    clean_.add(reinterpret_cast<uintptr_t>(data), room);
    return true;
  }
  bool owns(uintptr_t data) const {
    const auto next = regions_.upper_bound(data);
    if (next == regions_.begin()) return false;
    const auto& [begin, bytes] = *std::prev(next);
    return data - begin < bytes;
  }

  ForkMutex mutex_;
  std::array<std::vector<uintptr_t>, kBins> bins_;
  FreeRanges small_;         // for bins, with pages
  FreeRanges used_, clean_;  // with pages, and without
  size_t dropped_ = 0;       // bytes of gaps, so far
  std::map<uintptr_t, size_t> regions_;
};
Cache& cache() {
  static Cache* instance = new Cache;  // storages may die after static destructors
  return *instance;
}

// A malloc block that is not rounded up, so that checkers see the first byte after it.
void* exact_block(size_t bytes) {
  void* data = nullptr;
  return posix_memalign(&data, kAlignment, bytes) == 0 ? data : nullptr;
}

// With the cache off each block comes from malloc.
void* large_block(size_t bytes, bool from_cache) {
  if (from_cache) return cache().take(rounded(bytes));
  void* data = exact_block(bytes);
  if (data) reserve(static_cast<int64_t>(rounded(bytes)));
  return data;
}

// Costs one test while no profile keeps memory.
void note(int64_t change, int64_t live) {
  if (timeline::keeps_memory()) [[unlikely]]
    timeline::add_memory(change, live);
}

[[noreturn]] void out_of_memory(size_t bytes, const char* why) {
  fail(ErrorKind::OutOfMemory,
       "cannot allocate {} bytes: {} ({} bytes are in use).\nhint: Use smaller batches, drop "
       "tensors that are no longer needed, or raise the limit with "
       "set_flags({{'memory_limit_mb': ...}}).",
       bytes, why, g.allocated.load());
}

}  // namespace

void* allocate(size_t bytes) {
  if (bytes > kMostBytes) [[unlikely]]
    out_of_memory(bytes, "no machine has that much");
  const int64_t now =
      g.allocated.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed) +
      static_cast<int64_t>(bytes);
  const auto give_up = [bytes](const char* why) {
    g.allocated.fetch_sub(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    out_of_memory(bytes, why);
  };
  if (const int64_t limit = g.limit.load(std::memory_order_relaxed); limit && now > limit)
    give_up("the memory limit is reached");
  g.allocations.fetch_add(1, std::memory_order_relaxed);
  static const FlagHandle<bool> use_cache("cache_allocator");
  void* data = bytes >= kCachedFrom ? large_block(bytes, use_cache.get()) : exact_block(bytes);
  if (!data) give_up("the system has none left");
  raise_peak(g.peak, now);
  note(static_cast<int64_t>(bytes), now);
  return data;
}

void free(void* data, size_t bytes) {
  const auto size = static_cast<int64_t>(bytes);
  note(-size, g.allocated.fetch_sub(size, std::memory_order_relaxed) - size);
  if (bytes >= kCachedFrom) {
    // The flag may have had another value when the block was allocated.
    if (cache().give_back(data, rounded(bytes))) return;
    g.reserved.fetch_sub(static_cast<int64_t>(rounded(bytes)), std::memory_order_relaxed);
  }
  std::free(data);
}

void count(int64_t bytes) {
  const int64_t now = g.allocated.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  raise_peak(g.peak, now);
  note(bytes, now);
}

MemoryStats stats() {
  return {g.allocated.load(), g.peak.load(), g.reserved.load(), g.peak_reserved.load(),
          g.allocations.load()};
}

void reset_peak() {
  g.peak.store(g.allocated.load());
  g.peak_reserved.store(g.reserved.load());
}

int64_t release_cached() { return cache().release(); }

void set_limit(int64_t bytes) { g.limit.store(bytes, std::memory_order_relaxed); }
int64_t limit() { return g.limit.load(std::memory_order_relaxed); }

}  // namespace oar::cpu_allocator
