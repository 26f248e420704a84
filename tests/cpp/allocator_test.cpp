#include "oar/tensor/allocator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "oar/base/error.h"
#include "oar/base/flags.h"
#include "oar/base/scope_guard.h"
#include "oar/tensor/free_ranges.h"
#include "oar/tensor/tensor.h"

#if defined(__SANITIZE_ADDRESS__)
// The sanitizer's own allocator must fail as the system does, instead of ending the process.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
#elif defined(__SANITIZE_THREAD__)
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
#endif

namespace oar {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

ErrorKind kind_of_failure(int64_t bytes) {
  try {
    Tensor::empty({bytes}, DType::UInt8);
  } catch (const Error& error) {
    EXPECT_FALSE(error.hint().empty());
    return error.kind();
  }
  return ErrorKind::Internal;
}

TEST(Allocator, CountsLiveAndPeakBytes) {
  const int64_t before = cpu_allocator::stats().allocated;
  cpu_allocator::reset_peak();
  for (const int64_t bytes : {int64_t{0}, int64_t{1}, int64_t{1000}, int64_t{5000}, 3 * kMiB}) {
    {
      const Tensor t = Tensor::empty({bytes}, DType::UInt8);
      EXPECT_EQ(cpu_allocator::stats().allocated, before + bytes);
      if (bytes > 0) std::memset(t->data, 1, static_cast<size_t>(bytes));
    }
    EXPECT_EQ(cpu_allocator::stats().allocated, before);
  }
  EXPECT_EQ(cpu_allocator::stats().peak_allocated, before + 3 * kMiB);
  cpu_allocator::reset_peak();
  EXPECT_EQ(cpu_allocator::stats().peak_allocated, before);
}

TEST(Allocator, ReusesAndReleasesLargeBlocks) {
  cpu_allocator::release_cached();
  const void* first = nullptr;
  {
    const Tensor t = Tensor::empty({4 * kMiB}, DType::UInt8);
    first = t->data;
  }
  const int64_t reserved = cpu_allocator::stats().reserved;
  EXPECT_GE(reserved, 4 * kMiB);
  {
    // A little less needs the same block.
    const Tensor t = Tensor::empty({4 * kMiB - 1000}, DType::UInt8);
    EXPECT_EQ(t->data, first);
    EXPECT_EQ(cpu_allocator::stats().reserved, reserved);
  }
  const int64_t released = cpu_allocator::release_cached();
  EXPECT_GE(released, 4 * kMiB);
  EXPECT_EQ(cpu_allocator::stats().reserved, reserved - released);
  EXPECT_EQ(cpu_allocator::release_cached(), 0);
}

TEST(Allocator, FreedBlocksServeOtherSizes) {
  cpu_allocator::release_cached();
  const int64_t before = cpu_allocator::stats().reserved;
  for (int64_t bytes = 128 * kMiB; bytes > 8 * kMiB; bytes = bytes * 7 / 8)
    Tensor::empty({bytes}, DType::UInt8);
  {
    std::vector<Tensor> parts;
    for (int i = 0; i < 15; ++i) parts.push_back(Tensor::empty({8 * kMiB}, DType::UInt8));
  }
  Tensor::empty({120 * kMiB}, DType::UInt8);  // of the parts
  EXPECT_LE(cpu_allocator::stats().reserved, before + 128 * kMiB);
  cpu_allocator::release_cached();
}

TEST(Allocator, GapsThatAreTooShortGoBackToTheSystem) {
  cpu_allocator::release_cached();
  const int64_t before = cpu_allocator::stats().reserved;
  std::vector<Tensor> kept;
  {
    std::vector<Tensor> dropped;
    for (int i = 0; i < 16; ++i) {
      kept.push_back(Tensor::empty({8 * kMiB}, DType::UInt8));
      dropped.push_back(Tensor::empty({8 * kMiB}, DType::UInt8));
    }
  }
  kept.push_back(Tensor::empty({112 * kMiB}, DType::UInt8));
  EXPECT_LE(cpu_allocator::stats().reserved, before + 256 * kMiB);
  EXPECT_GE(cpu_allocator::stats().reserved, before + 240 * kMiB);
  // What went back can be used again.
  for (int i = 0; i < 16; ++i) {
    kept.push_back(Tensor::empty({8 * kMiB}, DType::UInt8));
    std::memset(kept.back()->data, 7, 8 * kMiB);
  }
}

// What a step leaves free depends on what is live alone, so the next one needs no other memory.
TEST(Allocator, EqualStepsFindEqualRanges) {
  cpu_allocator::release_cached();
  const Tensor parameter = Tensor::empty({10 * kMiB}, DType::UInt8);
  std::vector<const void*> first;
  int64_t reserved = 0;
  for (int step = 0; step < 6; ++step) {
    std::vector<const void*> places;
    std::vector<Tensor> live;
    for (const int64_t kib : {1024, 96, 4096, 300, 41000, 64, 41000, 10240, 700, 4096, 10240}) {
      live.push_back(Tensor::empty({kib << 10}, DType::UInt8));
      if (kib >= 1024) places.push_back(live.back()->data);
      if (live.size() > 4) live.erase(live.begin());
    }
    if (step == 1) {
      first = places;
      reserved = cpu_allocator::stats().reserved;
    }
    if (step > 1) {
      EXPECT_EQ(places, first) << step;
      EXPECT_EQ(cpu_allocator::stats().reserved, reserved) << step;
    }
  }
}

// The same gaps in every round: giving them back each time would cost more than they are worth.
TEST(Allocator, GapsThatARoundNeedsAgainAreKept) {
  cpu_allocator::release_cached();
  const int64_t before = cpu_allocator::stats().reserved;
  const auto round = [] {
    std::vector<Tensor> kept, dropped;
    for (int i = 0; i < 6; ++i) {
      kept.push_back(Tensor::empty({8 * kMiB}, DType::UInt8));
      dropped.push_back(Tensor::empty({8 * kMiB}, DType::UInt8));
    }
    dropped.clear();
    kept.push_back(Tensor::empty({40 * kMiB}, DType::UInt8));
    return cpu_allocator::stats().reserved;
  };
  int64_t last = round();
  for (int i = 0; i < 30; ++i) last = round();
  EXPECT_GE(last, before + 136 * kMiB);
  EXPECT_EQ(round(), last);
}

TEST(Allocator, SmallBlocksShareChunks) {
  cpu_allocator::release_cached();
  const int64_t before = cpu_allocator::stats().reserved;
  std::vector<Tensor> blocks;
  for (int i = 0; i < 32; ++i) blocks.push_back(Tensor::empty({100 << 10}, DType::UInt8));
  EXPECT_EQ(cpu_allocator::stats().reserved, before + 4 * kMiB);
  for (size_t i = 0; i < blocks.size(); ++i)
    std::memset(blocks[i]->data, static_cast<int>(i), 100 << 10);
  for (size_t i = 0; i < blocks.size(); ++i) EXPECT_EQ(blocks[i].data<uint8_t>()[99 << 10], i);
  blocks.clear();
  // Together they are a block of another size.
  EXPECT_EQ(Tensor::empty({3 * kMiB}, DType::UInt8)->numel, 3 * kMiB);
  EXPECT_EQ(cpu_allocator::stats().reserved, before + 4 * kMiB);
}

TEST(Allocator, RangesOfFreeMemoryMeet) {
  FreeRanges free;
  free.add(4096, 1 << 20);
  std::mt19937 random(1);
  std::vector<std::pair<uintptr_t, size_t>> held;
  size_t bytes = 1 << 20;
  for (int i = 0; i < 2000; ++i) {
    if (held.empty() || random() % 2 == 0) {
      const size_t wanted = 1 + random() % 20000;
      const uintptr_t begin = free.take(wanted);
      if (begin == 0) continue;
      for (const auto& [other, length] : held)
        ASSERT_TRUE(begin + wanted <= other || other + length <= begin);
      held.emplace_back(begin, wanted);
      bytes -= wanted;
    } else {
      std::swap(held[random() % held.size()], held.back());
      free.add(held.back().first, held.back().second);
      bytes += held.back().second;
      held.pop_back();
    }
    ASSERT_EQ(free.bytes(), bytes);
  }
  for (const auto& [begin, length] : held) free.add(begin, length);
  ASSERT_EQ(free.ranges().size(), 1u);
  EXPECT_EQ(*free.ranges().begin(), (std::pair<const uintptr_t, size_t>(4096, 1 << 20)));
  EXPECT_EQ(free.take((1 << 20) + 1), 0u);
}

TEST(Allocator, BlocksAreAlignedAndDoNotOverlap) {
  std::vector<Tensor> tensors;
  for (int64_t bytes = 1; bytes < 3 * kMiB; bytes = bytes * 5 / 3 + 1) {
    tensors.push_back(Tensor::empty({bytes}, DType::UInt8));
    ASSERT_EQ(reinterpret_cast<uintptr_t>(tensors.back()->data) % cpu_allocator::kAlignment, 0U);
    std::memset(tensors.back()->data, static_cast<int>(tensors.size()), static_cast<size_t>(bytes));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const auto* bytes = tensors[i].data<uint8_t>();
    ASSERT_EQ(bytes[0], i + 1);
    ASSERT_EQ(bytes[tensors[i]->numel - 1], i + 1);
  }
}

TEST(Allocator, ALimitIsAnErrorAndTheProcessGoesOn) {
  const int64_t live = cpu_allocator::stats().allocated;
  cpu_allocator::set_limit(live + 8 * kMiB);
  const ScopeGuard lift([] { cpu_allocator::set_limit(0); });
  EXPECT_EQ(kind_of_failure(9 * kMiB), ErrorKind::OutOfMemory);
  EXPECT_EQ(cpu_allocator::stats().allocated, live) << "what failed must not be counted";
  std::vector<Tensor> kept;
  for (int i = 0; i < 8; ++i) kept.push_back(Tensor::empty({kMiB}, DType::UInt8));
  EXPECT_EQ(kind_of_failure(1), ErrorKind::OutOfMemory) << "small blocks count too";
  kept.pop_back();
  EXPECT_NO_THROW(Tensor::empty({kMiB}, DType::UInt8));
}

TEST(Allocator, AnImpossibleSizeIsAnErrorAndTheProcessGoesOn) {
  const MemoryStats before = cpu_allocator::stats();
  EXPECT_EQ(kind_of_failure(int64_t{1} << 60), ErrorKind::OutOfMemory);
  EXPECT_EQ(kind_of_failure((int64_t{1} << 62) + 5), ErrorKind::OutOfMemory);
  EXPECT_EQ(kind_of_failure(INT64_MAX), ErrorKind::OutOfMemory);
  EXPECT_EQ(cpu_allocator::stats().allocated, before.allocated);
  EXPECT_EQ(cpu_allocator::stats().peak_allocated, before.peak_allocated);
  EXPECT_NO_THROW(Tensor::empty({kMiB}, DType::UInt8));
}

// The flag can change while blocks are out: neither list nor figures may get confused.
TEST(Allocator, TheCacheCanBeSwitchedAtAnyTime) {
  const ScopeGuard restore([] { set_flag("cache_allocator", "true"); });
  cpu_allocator::release_cached();
  const int64_t reserved = cpu_allocator::stats().reserved;
  constexpr int64_t kOdd = 64 * 1024 + 1;
  set_flag("cache_allocator", "false");
  {
    const Tensor made_without = Tensor::empty({kOdd}, DType::UInt8);
    set_flag("cache_allocator", "true");
  }
  {
    // Of the same size class, but larger than the block above was asked to be.
    const Tensor larger = Tensor::empty({kOdd + 5000}, DType::UInt8);
    std::memset(larger->data, 1, static_cast<size_t>(kOdd + 5000));
    set_flag("cache_allocator", "false");
  }
  set_flag("cache_allocator", "true");
  cpu_allocator::release_cached();
  EXPECT_EQ(cpu_allocator::stats().reserved, reserved);
}

TEST(Allocator, ThreadsShareTheFigures) {
  const int64_t before = cpu_allocator::stats().allocated;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([i] {
      for (int k = 0; k < 300; ++k) {
        const Tensor t = Tensor::empty({(k % 7) * 50000 + i}, DType::UInt8);
        if (t->numel > 0) std::memset(t->data, i, static_cast<size_t>(t->numel));
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(cpu_allocator::stats().allocated, before);
}

TEST(Allocator, TheFlagSetsTheLimit) {
  const ScopeGuard lift([] { set_flag("memory_limit_mb", "0"); });
  set_flag("memory_limit_mb", "64");
  EXPECT_EQ(cpu_allocator::limit(), 64 * kMiB);
  EXPECT_EQ(kind_of_failure(80 * kMiB), ErrorKind::OutOfMemory);
  set_flag("memory_limit_mb", "0");
  EXPECT_EQ(cpu_allocator::limit(), 0);
}

}  // namespace
}  // namespace oar
