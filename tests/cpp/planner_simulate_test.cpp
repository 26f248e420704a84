// The simulator against closed forms, and cuts of pipelines against trying all.
#include <gtest/gtest.h>

#include <chrono>
#include <random>

#include "oar/base/error.h"
#include "oar/planner/simulate.h"
#include "oar/planner/stages.h"

namespace oar::planner {
namespace {

PipelineRun even_run(int64_t stages, int64_t interleave, int64_t micro_batches) {
  PipelineRun run;
  const auto share = static_cast<double>(interleave);
  run.parts.assign(static_cast<size_t>(stages * interleave), {1.0 / share, 2.0 / share, 0, 0, 10});
  run.stages.assign(static_cast<size_t>(stages), {0, 0, 0, 0, 100});
  run.micro_batches = micro_batches;
  return run;
}

TEST(PlannerSimulate, BubbleOfOneForwardOneBackward) {
  for (const int64_t p : {1, 2, 4, 7})
    for (const int64_t m : {1, 3, 8, 32}) {
      const Simulation s = simulate(even_run(p, 1, m));
      const auto stages = static_cast<double>(p), micro = static_cast<double>(m);
      EXPECT_NEAR(s.seconds, (micro + stages - 1) * 3, 1e-9) << p << " stages, " << m;
      EXPECT_NEAR(s.bubble, (stages - 1) / (micro + stages - 1), 1e-9) << p << " stages, " << m;
    }
}

TEST(PlannerSimulate, InterleavingDividesTheBubble) {
  for (const int64_t p : {2, 4, 8})
    for (const int64_t v : {2, 3}) {
      const int64_t m = 4 * p;
      const Simulation s = simulate(even_run(p, v, m));
      EXPECT_NEAR(
          s.seconds,
          static_cast<double>(m) * 3 + static_cast<double>(p - 1) * 3 / static_cast<double>(v),
          1e-9)
          << p << " stages x " << v;
    }
}

TEST(PlannerSimulate, FirstStageKeepsAsManyMicroBatchesAsThereAreStages) {
  const Simulation s = simulate(even_run(4, 1, 16));
  EXPECT_EQ(s.peak_memory, (std::vector<double>{140, 130, 120, 110}));
  for (const auto& line : s.memory) EXPECT_NEAR(line.back().second, 100, 1e-9);
}

TEST(PlannerSimulate, MessagesDelayAndShareTheirLink) {
  PipelineRun run = even_run(2, 1, 1);
  run.parts[0].send = 0.5;
  EXPECT_NEAR(simulate(run).seconds, 3 + 3 + 2 * 0.5, 1e-9);
  // Messages that take longer than a pass queue up: the link is the bottleneck of the forward passes.
  run = even_run(2, 1, 2);
  run.parts[0].send = 4;
  // F0 0-1, F1 at 1-2; messages arrive at 5 and 9; the second stage: F0 5-6, B0 6-8, F1 9-10, B1 10-12; back at 12 and 16.
  EXPECT_NEAR(simulate(run).seconds, 16 + 2, 1e-9);
}

TEST(PlannerSimulate, GradientsAreSummedAfterTheSlowestReplica) {
  PipelineRun run = even_run(2, 1, 4);
  run.stages[0].reduce = 3;
  run.stages[0].update = 1;
  EXPECT_NEAR(simulate(run).seconds, 15 + 4, 1e-9);
  run.stages[0].hidden = 0.5;
  EXPECT_NEAR(simulate(run).seconds, 15 + 4 - 1.5, 1e-9);
  run.replicas = 3;
  run.group = 2;
  run.slow = {{5, 2.0}};  // the first stage of the third replica
  const Simulation slow = simulate(run);
  EXPECT_EQ(slow.devices, 12);
  EXPECT_GT(slow.seconds, 15 + 4 + 3);
}

TEST(PlannerSimulate, TenThousandDevicesTakeSeconds) {
  PipelineRun run = even_run(16, 1, 64);
  run.replicas = 625;
  const auto start = std::chrono::steady_clock::now();
  const Simulation s = simulate(run);
  EXPECT_EQ(s.devices, 10000);
  EXPECT_EQ(s.events, 10000 * 64 * 2);
  EXPECT_NEAR(s.seconds, (64 + 15) * 3, 1e-9);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 60);
}

TEST(PlannerSimulate, RefusesWhatCannotRun) {
  PipelineRun run = even_run(4, 2, 6);  // 6 micro-batches in groups of 4
  EXPECT_THROW(simulate(run), Error);
  run = even_run(2, 1, 4);
  run.parts.pop_back();
  EXPECT_THROW(simulate(run), Error);
}

TEST(PlannerSimulate, CutsEvenly) {
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    std::vector<double> weights(9);
    for (double& w : weights) w = 1 + static_cast<double>(random() % 50);
    const auto largest = [&](const std::vector<size_t>& starts) {
      double most = 0;
      for (size_t k = 0; k < starts.size(); ++k) {
        double sum = 0;
        for (size_t i = starts[k]; i < (k + 1 < starts.size() ? starts[k + 1] : weights.size());
             ++i)
          sum += weights[i];
        most = std::max(most, sum);
      }
      return most;
    };
    double best = 1e9;
    for (size_t a = 1; a < 8; ++a)
      for (size_t b = a + 1; b < 9; ++b) best = std::min(best, largest({0, a, b}));
    const std::vector<size_t> starts = cut_evenly(weights, 3);
    ASSERT_EQ(starts.size(), 3u);
    EXPECT_EQ(starts[0], 0u);
    EXPECT_NEAR(largest(starts), best, 1e-9);
  }
  EXPECT_THROW(cut_evenly({1, 2}, 3), Error);
}

}  // namespace
}  // namespace oar::planner
