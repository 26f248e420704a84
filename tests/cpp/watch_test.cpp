#include "oar/ops/core/watch.h"

#include <gtest/gtest.h>

#include "oar/autograd/engine.h"
#include "oar/autograd/record.h"
#include "oar/ops/core/autocast.h"
#include "oar/ops/core/profile.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/reduction.h"

namespace oar {
namespace {

struct Watched {
  explicit Watched(Watcher watcher) { watch_this_thread(std::move(watcher)); }
  ~Watched() { watch_this_thread({}); }
};

Tensor two_by_two() { return ones({2, 2}, DType::Float32); }

TEST(Watch, ReportsOutermostCallsAndDerivatives) {
  Tensor x = two_by_two();
  set_stop_gradient(x, false);
  std::vector<std::string> names;
  {
    const Watched watched([&](const WatchedReturn& call) {
      names.emplace_back(call.name);
      add(two_by_two(), two_by_two());  // the watcher's own calls are not watched
    });
    const Tensor loss = sum(matmul(x, x));
    backward({&loss, 1});
  }
  add(x, x);
  EXPECT_EQ(names,
            (std::vector<std::string>{"matmul", "sum", "ones_like", "sum_grad", "matmul_grad"}));
}

TEST(Watch, IsIndependentOfTheProfile) {
  int calls = 0;
  start_profile({.shapes = false});
  {
    const Watched watched([&](const WatchedReturn&) { ++calls; });
    EXPECT_TRUE(profiling());
    add(two_by_two(), two_by_two());
  }
  EXPECT_TRUE(profiling());
  const size_t events = stop_profile().events.size();
  EXPECT_EQ(calls, 3);
  EXPECT_GE(events, 3u);
  EXPECT_FALSE(watching());
  const Watched watched([&](const WatchedReturn&) {});
  EXPECT_FALSE(profiling());
}

TEST(Watch, AnErrorOfTheWatcherPasses) {
  const Tensor x = two_by_two();
  {
    const Watched watched([](const WatchedReturn&) { throw std::runtime_error("seen"); });
    EXPECT_THROW(add(x, x), std::runtime_error);
  }
  EXPECT_EQ(t_watch.depth, 0);
  EXPECT_EQ(add(x, x).dtype(), DType::Float32);
}

DType under(AutocastLevel level, bool promote, const Tensor& a, const Tensor& b, bool product) {
  const AutocastScope scope({.enabled = true,
                             .dtype = DType::BFloat16,
                             .low = {},
                             .full = {},
                             .level = level,
                             .promote = promote});
  return product ? matmul(a, b).dtype() : add(a, b).dtype();
}

TEST(Autocast, Levels) {
  const Tensor full = two_by_two(), low = ones({2, 2}, DType::BFloat16);
  for (AutocastLevel level : {AutocastLevel::OD, AutocastLevel::O1, AutocastLevel::O2})
    EXPECT_EQ(under(level, true, full, full, true), DType::BFloat16);
  EXPECT_EQ(under(AutocastLevel::O1, true, low, low, false), DType::BFloat16);
  EXPECT_EQ(under(AutocastLevel::O1, true, low, full, false), DType::Float32);
  EXPECT_EQ(under(AutocastLevel::O2, false, low, full, false), DType::BFloat16);
  EXPECT_EQ(under(AutocastLevel::OD, true, low, low, false), DType::Float32);
  EXPECT_EQ(last_autocast_dtype(), DType::BFloat16);
}

TEST(Autocast, ScopesAreNested) {
  const Tensor x = two_by_two();
  const AutocastScope scope({.enabled = true, .dtype = DType::BFloat16, .low = {}, .full = {}});
  {
    const AutocastScope off({});
    EXPECT_EQ(matmul(x, x).dtype(), DType::Float32);
    const AutocastScope inner({.enabled = true, .dtype = DType::Float16, .low = {}, .full = {}});
    EXPECT_EQ(matmul(x, x).dtype(), DType::Float16);
  }
  EXPECT_EQ(matmul(x, x).dtype(), DType::BFloat16);
}

}  // namespace
}  // namespace oar
