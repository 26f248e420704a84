#include "oar/runtime/memory_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace oar {
namespace {

void expect_apart(const std::vector<Lifetime>& buffers, const MemoryPlan& plan) {
  for (size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_EQ(plan.offsets[i] % 64, 0);
    EXPECT_LE(plan.offsets[i] + buffers[i].bytes, plan.bytes);
    for (size_t k = i + 1; k < buffers.size(); ++k) {
      const bool meet = buffers[i].first <= buffers[k].last && buffers[k].first <= buffers[i].last;
      const bool overlap = plan.offsets[i] < plan.offsets[k] + buffers[k].bytes &&
                           plan.offsets[k] < plan.offsets[i] + buffers[i].bytes;
      EXPECT_FALSE(meet && overlap) << i << " and " << k;
    }
  }
}

TEST(MemoryPlan, ReusesWhatHasEnded) {
  // A chain: each buffer is read by the next step only.
  std::vector<Lifetime> chain;
  for (int i = 0; i < 20; ++i) chain.push_back({1000, i, i + 1});
  const MemoryPlan plan = plan_memory(chain);
  expect_apart(chain, plan);
  EXPECT_EQ(plan.bytes, 2 * 1024);
}

TEST(MemoryPlan, OfNothingIsNothing) { EXPECT_EQ(plan_memory({}).bytes, 0); }

TEST(MemoryPlan, RandomLivesNeverOverlap) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<Lifetime> buffers;
    std::vector<int64_t> live(60, 0);
    for (int i = 0; i < 60; ++i) {
      const auto first = static_cast<int32_t>(random() % 50);
      const auto last = std::min<int32_t>(59, first + static_cast<int32_t>(random() % 12));
      buffers.push_back({static_cast<int64_t>(random() % 5000), first, last});
      for (int32_t t = first; t <= last; ++t)
        live[static_cast<size_t>(t)] += (buffers.back().bytes + 63) / 64 * 64;
    }
    const MemoryPlan plan = plan_memory(buffers);
    expect_apart(buffers, plan);
    const int64_t needed = *std::max_element(live.begin(), live.end());
    EXPECT_GE(plan.bytes, needed);
    EXPECT_LE(plan.bytes, needed * 3 / 2) << "not far from what must be there at once";
  }
}

}  // namespace
}  // namespace oar
