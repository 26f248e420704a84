#include "oar/base/timeline.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "oar/base/parallel.h"
#include "oar/oar.h"
#include "oar/ops/core/profile.h"

namespace oar {
namespace {

using timeline::Event;
using timeline::Kind;

size_t count_of(const timeline::Recording& recording, Kind kind, std::string_view name) {
  size_t found = 0;
  for (const Event& e : recording.events) found += e.kind == kind && e.name == name;
  return found;
}

TEST(Timeline, RecordsOpsAndKernels) {
  const Tensor x = ones({4, 4});
  start_profile();
  const Tensor y = matmul(x, x);
  const timeline::Recording recording = stop_profile();
  EXPECT_EQ(count_of(recording, Kind::Op, "matmul"), 1u);
  EXPECT_EQ(recording.dropped, 0u);
  bool kernel = false;
  for (const Event& e : recording.events) {
    EXPECT_LE(e.begin_ns, e.end_ns);
    kernel |= e.kind == Kind::Kernel && e.depth == 1;
    if (e.kind == Kind::Op && std::string(e.name) == "matmul") {
      EXPECT_STREQ(e.operands, "float32[4, 4], float32[4, 4]");
    }
  }
  EXPECT_TRUE(kernel);
}

TEST(Timeline, KeepsALimitedNumberOfEvents) {
  const Tensor x = ones({2});
  start_profile({.most_events = 5});
  for (int i = 0; i < 20; ++i) exp(x);
  const timeline::Recording recording = stop_profile();
  EXPECT_EQ(recording.events.size(), 5u);
  EXPECT_EQ(recording.dropped, 35u);  // 20 calls and as many kernels
}

TEST(Timeline, RecordsMemory) {
  start_profile({.memory = true});
  {
    const Tensor small = ones({2});
    const Tensor large = ones({100'000});
  }
  const timeline::Recording recording = stop_profile();
  int64_t sum = 0, largest = 0;
  for (const Event& e : recording.events) {
    sum += e.bytes;
    largest = std::max(largest, e.bytes);
  }
  EXPECT_EQ(sum, 0);
  EXPECT_EQ(largest, 400'000);
}

TEST(Timeline, ThreadsThatJoinAreRecordedUntilTheProfileStops) {
  std::atomic<int> phase{0};
  const auto wait_for = [&](int wanted) {
    while (phase.load() != wanted) std::this_thread::yield();
  };
  start_profile();
  std::thread other([&] {
    const Tensor x = ones({2});  // not yet
    profile_this_thread();
    exp(x);
    phase = 1;
    wait_for(2);
    exp(x);  // the profile has stopped
    EXPECT_FALSE(profiling());
    phase = 3;
  });
  wait_for(1);
  const timeline::Recording recording = stop_profile();
  phase = 2;
  wait_for(3);
  other.join();
  EXPECT_EQ(count_of(recording, Kind::Op, "exp"), 1u);
  EXPECT_EQ(count_of(recording, Kind::Op, "ones"), 0u);
  EXPECT_TRUE(timeline::stop().events.empty());
}

TEST(Timeline, WorkOfPoolThreadsNamesOpAndLayer) {
  if (num_threads() < 2) GTEST_SKIP();
  const Tensor x = ones({4'000'000});
  start_profile();
  const LayerPath path = layer_path("net.fc");
  for (int i = 0; i < 20; ++i) {
    const InLayer layer(path);
    exp(x);
  }
  const timeline::Recording recording = stop_profile();
  for (const Event& e : recording.events) {
    if (e.kind != Kind::Work) continue;
    EXPECT_STREQ(e.name, "exp");
    EXPECT_STREQ(to_string(e.layer), "net.fc");
  }
  EXPECT_GT(count_of(recording, Kind::Work, "exp"), 0u);
}

TEST(Timeline, ManyThreadsWriteAtOnce) {
  start_profile({.most_events = 1'000'000});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([] {
      profile_this_thread();
      const Tensor x = full({2}, 1.0);
      for (int k = 0; k < 100; ++k) exp(x);
    });
  for (std::thread& t : threads) t.join();
  const timeline::Recording recording = stop_profile();
  EXPECT_EQ(count_of(recording, Kind::Op, "exp"), 400u);
}

TEST(LayerPath, IsANumberForEachPath) {
  EXPECT_EQ(layer_path(""), 0u);
  EXPECT_STREQ(to_string(LayerPath{0}), "");
  const LayerPath a = layer_path("a.b");
  EXPECT_EQ(layer_path("a.b"), a);
  EXPECT_NE(layer_path("a.c"), a);
  EXPECT_STREQ(to_string(a), "a.b");
  {
    const InLayer in(a);
    EXPECT_EQ(current_layer(), a);
  }
  EXPECT_EQ(current_layer(), 0u);
}

}  // namespace
}  // namespace oar
