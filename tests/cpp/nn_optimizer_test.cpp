// Names, groups, states and schedules. The numbers are compared with Python's in tests/python/test_cpp_nn.py.
#include <gtest/gtest.h>

#include "autograd_util.h"
#include "oar/oar.h"

namespace oar::test {
namespace {

struct Pair : nn::Module {
  nn::Linear first{2, 3}, second{3, 1};
  Pair() {
    register_module("first", first);
    register_module("second", second);
  }
  Tensor forward(const Tensor& x) override { return second(tanh(first(x))); }
};

void step_once(nn::Module& net, nn::Optimizer& optimizer) {
  run_backward(sum(net(ones({4, 2}))));
  optimizer.step();
  optimizer.zero_grad();
}

TEST(ModuleNames, AreThoseOfPaddle) {
  nn::restart_names();
  const Pair net;
  nn::BatchNorm2D norm(2);
  nn::LSTM lstm(2, 3);
  std::vector<std::string> names;
  for (const Tensor& parameter : net.parameters())
    names.push_back(nn::name_of_parameter(parameter));
  EXPECT_EQ(names, (std::vector<std::string>{"linear_0.w_0", "linear_0.b_0", "linear_1.w_0",
                                             "linear_1.b_0"}));
  EXPECT_EQ(nn::name_of_parameter(norm.weight), "batch_norm2d_0.w_0");
  EXPECT_EQ(nn::name_of_parameter(lstm.parameters()[1]), "lstm_cell_0.w_1");
  EXPECT_EQ(lstm.parameters().size(), 4U) << "a parameter with two names comes once";
  EXPECT_EQ(lstm.state_dict().size(), 8U) << "but is saved under both";
}

TEST(ModuleContainers, ListDictAndApply) {
  struct Owner : nn::Module {
    nn::LayerList<nn::Linear> list;
    nn::LayerDict<nn::Linear> dict;
    Owner() {
      list.append(2, 2);
      list.append(2, 3);
      dict.add("head", 3, 1);
      register_module("list", list);
      register_module("dict", dict);
    }
  } owner;
  EXPECT_EQ(owner.named_parameters()[2].first, "list.1.weight");
  EXPECT_EQ(owner.named_parameters()[4].first, "dict.head.weight");
  EXPECT_EQ(owner.list[1].weight.shape(), (Shape{2, 3}));
  EXPECT_TRUE(contains(error_of([&] { owner.dict.at("tail"); }).text(), "[head]"));
  int linears = 0;
  owner.apply([&](nn::Module& module) {
    if (auto* linear = dynamic_cast<nn::Linear*>(&module)) {
      nn::init::constant(linear->weight, 2);
      ++linears;
    }
  });
  EXPECT_EQ(linears, 3);
  EXPECT_EQ(values_of(owner.dict.at("head").weight), (Values{2, 2, 2}));
}

TEST(Init, OrthogonalDiracAndAssign) {
  const Tensor wide = Tensor::empty({3, 5}, DType::Float64);
  nn::init::orthogonal(wide, 2);
  const Values product = values_of(matmul(wide, wide, false, true));
  for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(product[i], i % 4 == 0 ? 4 : 0, 1e-12);
  const Tensor kernel = Tensor::empty({2, 2, 3}, DType::Float32);
  nn::init::dirac(kernel);
  const Tensor x = randn({1, 2, 5});
  EXPECT_EQ(values_of(conv1d(x, kernel, {}, {1}, {1})), values_of(x));
  nn::init::assign(kernel, ones({12}));
  EXPECT_EQ(values_of(sum(kernel)), (Values{12}));
  EXPECT_THROW(nn::init::assign(kernel, ones({5})), Error);
  EXPECT_THROW(nn::init::orthogonal(Tensor::empty({3}, DType::Float32)), Error);
  EXPECT_THROW(nn::init::gain_of("cube"), Error);
}

TEST(Optimizers, ContinueFromASavedState) {
  nn::restart_names();
  generator::seed(1);
  Pair net;
  const auto rate = std::make_shared<nn::lr::StepDecay>(0.1, 2);
  nn::AdamW optimizer(net.parameters(), {.learning_rate = rate});
  for (int i = 0; i < 3; ++i, rate->step()) step_once(net, optimizer);
  const StateTree state = parse_pickle(to_pickle(optimizer.state_dict()));
  EXPECT_NEAR(state.at("linear_0.w_0_beta2_pow_acc_0").tensor().item_double(), std::pow(0.999, 4),
              1e-7);
  nn::restart_names();
  Pair twin;
  twin.load_state_dict(net.state_dict());
  const auto other_rate = std::make_shared<nn::lr::StepDecay>(0.1, 2);
  nn::AdamW other(twin.parameters(), {.learning_rate = other_rate});
  other.load_state_dict(state);
  EXPECT_DOUBLE_EQ(other.learning_rate(), optimizer.learning_rate());
  for (int i = 0; i < 3; ++i, rate->step(), other_rate->step()) {
    step_once(net, optimizer);
    step_once(twin, other);
    EXPECT_EQ(values_of(net.first.weight), values_of(twin.first.weight));
  }
  EXPECT_THROW(other.set_learning_rate(0.1), Error);
}

TEST(Optimizers, OneErrorListsAllThatDoesNotFit) {
  nn::restart_names();
  Pair net;
  nn::Momentum optimizer(net.parameters(), {.learning_rate = 0.1});
  step_once(net, optimizer);
  StateTree state;
  state.set("linear_0.w_0_velocity_0", ones({2, 2}));
  state.set("linear_9.w_0_velocity_0", ones({2, 2}));
  const Values before = values_of(optimizer.state_dict().at("linear_0.b_0_velocity_0").tensor());
  const std::string text = error_of([&] { optimizer.load_state_dict(state); }).text();
  EXPECT_TRUE(contains(text, "missing [linear_0.b_0_velocity_0, linear_1.w_0_velocity_0")) << text;
  EXPECT_TRUE(contains(text, "unexpected [linear_9.w_0_velocity_0]")) << text;
  EXPECT_TRUE(contains(text, "mismatched [linear_0.w_0_velocity_0 is float32[2, 2]")) << text;
  EXPECT_EQ(values_of(optimizer.state_dict().at("linear_0.b_0_velocity_0").tensor()), before);
}

TEST(Optimizers, GroupsAndMistakes) {
  const Tensor a = leaf({1}), b = leaf({1});
  nn::SGD optimizer({nn::ParameterGroup{.parameters = {a}, .learning_rate = 0.5},
                     nn::ParameterGroup{.parameters = {b}, .weight_decay = nn::WeightDecay(1.0)}},
                    {.learning_rate = 0.2});
  run_backward(sum(a + b));
  optimizer.step();
  EXPECT_NEAR(values_of(a)[0], 1 - 0.1, 1e-7);
  EXPECT_NEAR(values_of(b)[0], 1 - 0.2 * 2, 1e-7);
  EXPECT_TRUE(contains(error_of([&] { nn::SGD twice({a, a}); }).text(), "twice"));
  EXPECT_THROW(nn::Adam({a}, {.beta1 = 1.0}), Error);
  EXPECT_THROW(nn::SGD({a}, {.learning_rate = -1.0}), Error);
}

TEST(Schedules, StatesAndMistakes) {
  nn::lr::CosineAnnealingWarmRestarts first(0.5, 3, 2), second(0.5, 3, 2);
  for (int i = 0; i < 7; ++i) first.step();
  second.load_state_dict(first.state_dict());
  for (int i = 0; i < 9; ++i) {
    first.step();
    second.step();
    EXPECT_EQ(first(), second());
  }
  EXPECT_THROW(nn::lr::StepDecay(0.1, 0), Error);
  EXPECT_THROW(nn::lr::ExponentialDecay(0.1, 1.5), Error);
  EXPECT_THROW(nn::lr::OneCycleLR(0.1, 10, {.anneal_strategy = "cubic"}), Error);
  EXPECT_THROW(second.load_state_dict(StateTree(StateTree::Dict{})), Error);
}

}  // namespace
}  // namespace oar::test
