// The CPU's caching allocator: keeps freed blocks (fresh pages cost more than the arithmetic on
// them), counts, and honours a limit.
#pragma once

#include <cstddef>
#include <cstdint>

#include "oar/base/api.h"

namespace OAR_API oar {

struct MemoryStats {
  int64_t allocated = 0;       // bytes in live storages
  int64_t peak_allocated = 0;  // since the last reset
  int64_t reserved = 0;        // bytes obtained from the system, including cached ones
  int64_t peak_reserved = 0;
  int64_t allocations = 0;  // calls since the start
};

namespace cpu_allocator {

inline constexpr size_t kAlignment = 64;

void* allocate(size_t bytes);
void free(void* data, size_t bytes);

MemoryStats stats();
void reset_peak();
// Returns cached blocks to the system; the result is the number of bytes.
int64_t release_cached();
// Live bytes beyond this make an allocation an OutOfMemory error; 0 lifts the limit.
void set_limit(int64_t bytes);
int64_t limit();

// For memory that does not come from `allocate` but is part of the statistics.
void count(int64_t bytes);

}  // namespace cpu_allocator
}  // namespace oar
