// Random streams: places, devices, threads.
#include "oar/device/generator.h"

#include <gtest/gtest.h>

#include <thread>

#include "oar/base/parallel.h"
#include "oar/ops/gen/random.h"

namespace oar {
namespace {

constexpr Device kOther{3, 1}, kThird{3, 2};

TEST(Generator, EachDeviceHasItsStream) {
  generator::seed(11);
  EXPECT_EQ(generator::reserve(9), (RandomState{11, 0}));
  EXPECT_EQ(generator::reserve(4), (RandomState{11, 3}));
  // The others are where they were: pieces of one call on several devices draw at one place.
  EXPECT_EQ(generator::reserve(9, kOther), (RandomState{11, 0}));
  EXPECT_EQ(generator::state(kOther), (RandomState{11, 3}));
  generator::set_state({5, 8}, kOther);
  EXPECT_EQ(generator::state(), (RandomState{11, 4}));
  EXPECT_EQ(generator::state(kOther), (RandomState{5, 8}));
  generator::seed(12);  // all of them
  EXPECT_EQ(generator::state(), (RandomState{12, 0}));
  EXPECT_EQ(generator::state(kOther), (RandomState{12, 0}));
}

TEST(Generator, GoesBackOnEveryDevice) {
  generator::seed(4);
  generator::reserve(8, kOther);
  const generator::Places before;
  EXPECT_TRUE(before == generator::Places());
  generator::reserve(4);
  generator::reserve(4, kThird);  // may be new since then
  EXPECT_FALSE(before == generator::Places());
  before.restore();
  EXPECT_EQ(generator::state(), (RandomState{4, 0}));
  EXPECT_EQ(generator::state(kOther), (RandomState{4, 2}));
  EXPECT_EQ(generator::state(kThird), (RandomState{4, 0}));
}

TEST(Generator, AThreadMayHaveAStreamOfItsOwn) {
  generator::seed(21);
  std::vector<float> alone[2];
  const auto draw = [](std::vector<float>& to) {
    const generator::Detour own(RandomState{99, 0});
    for (int i = 0; i < 3; ++i) {
      const auto values = rand({50}, DType::Float32).to_vector<float>();
      to.insert(to.end(), values.begin(), values.end());
    }
  };
  std::thread first(draw, std::ref(alone[0])), second(draw, std::ref(alone[1]));
  first.join();
  second.join();
  EXPECT_EQ(alone[0], alone[1]);
  EXPECT_EQ(generator::state(), (RandomState{21, 0}));
}

TEST(Generator, NumbersDoNotDependOnThreads) {
  const int threads = num_threads();
  const auto draw = [](int count) {
    set_num_threads(count);
    generator::seed(8);
    std::vector<double> all;
    for (const Tensor& t :
         {randn({300, 401}, DType::Float32), rand({200001}, DType::Float64),
          bernoulli(rand({70001}, DType::Float32)), poisson(rand({40001}, DType::Float32)),
          multinomial(rand({40, 300}, DType::Float32), 7, true)}) {
      const auto values = t.to_vector<double>();
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  };
  const std::vector<double> one = draw(1);
  EXPECT_EQ(draw(2), one);
  EXPECT_EQ(draw(5), one);
  set_num_threads(threads);
}

}  // namespace
}  // namespace oar
