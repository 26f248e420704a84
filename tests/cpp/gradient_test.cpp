#include "oar/autograd/gradient.h"

#include <gtest/gtest.h>

#include "autograd_util.h"
#include "oar/autograd/engine.h"
#include "oar/compiler/trained_program.h"
#include "oar/ops/core/operators.h"

namespace oar {
namespace {

using namespace test;
using Tensors = std::vector<Tensor>;

TEST(Gradient, ZerosHaveNoMemoryUntilTheyAreRead) {
  Gradient g;
  g.set_to_zeros();
  EXPECT_FALSE(g.defined());
  g.set(constant({1, 2}));
  EXPECT_TRUE(g.is_tensor());
  g.set_to_zeros();
  EXPECT_TRUE(g.defined() && g.is_zeros() && !g.is_tensor() && !g.tensor().defined());
  EXPECT_EQ(values_of(g.content()), (Values{0, 0}));
  EXPECT_TRUE(g.is_zeros());
  const Gradient same = g;
  EXPECT_TRUE(same.is_same(g));
  const Tensor read = g.get();
  EXPECT_TRUE(g.is_tensor() && g.get().is_same(read) && !same.is_same(g));
  EXPECT_EQ(read.dtype(), DType::Float64);
  EXPECT_EQ(values_of(g.take()), (Values{0, 0}));
  EXPECT_FALSE(g.defined());
}

TEST(Gradient, BackwardReplacesZeros) {
  const Tensor x = constant({1, 2});
  set_stop_gradient(x, false);
  backward(Tensors{x * 3});
  history_of(x).grad.set_to_zeros();
  backward(Tensors{x * 5});
  EXPECT_EQ(grad_of(x), (Values{5, 5}));
}

// One program serves both as long as the function does not look at what it finds.
TEST(Gradient, AProgramThatOnlyAddsFitsNoneAndZeros) {
  const Tensor w = constant({1, 2});
  set_stop_gradient(w, false);
  const auto step = [&](const Tensors& in) {
    backward(Tensors{w * in[0]});
    history_of(w).grad.set_to_zeros();
    return Tensors{in[0]};
  };
  const TrainedProgram p(capture_joint(step, {{DType::Float64, {2}, "x"}}, "step"));
  const Tensor x = constant({3, 4});
  EXPECT_FALSE(history_of(w).grad.defined());
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(p.misfit({{x}}), "");
    p.run({{x}});
    EXPECT_TRUE(history_of(w).grad.is_zeros());
  }
  EXPECT_EQ(values_of(history_of(w).grad.get()), (Values{0, 0}));
  EXPECT_NE(p.misfit({{x}}).find("has a gradient now"), std::string::npos);
}

}  // namespace
}  // namespace oar
