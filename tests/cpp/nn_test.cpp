#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "autograd_util.h"
#include "oar/oar.h"

namespace oar::test {
namespace {

Tensor tensor(const Values& values, const Shape& shape) {
  return Tensor::from_vector(values, shape, DType::Float32);
}

// ---- Module ------------------------------------------------------------------------------------

struct Net : nn::Module {
  nn::Conv2D conv{1, 4, 3, {.padding = 1}};
  nn::BatchNorm2D norm{4};
  nn::Sequential head;
  Net() {
    head.append<nn::Flatten>().append<nn::Linear>(4 * 2 * 2, 3);
    register_module("conv", conv);
    register_module("norm", norm);
    register_module("head", head);
  }
  Tensor forward(const Tensor& x) override { return head(max_pool2d(relu(norm(conv(x))), {2})); }
};

std::vector<std::string> names_of(const std::vector<std::pair<std::string, Tensor>>& named) {
  std::vector<std::string> names;
  for (const auto& [name, tensor] : named) names.push_back(name);
  return names;
}

TEST(Module, NamesItsPartsAsPythonDoes) {
  const Net net;
  EXPECT_EQ(names_of(net.named_parameters()),
            (std::vector<std::string>{"conv.weight", "conv.bias", "norm.weight", "norm.bias",
                                      "head.1.weight", "head.1.bias"}));
  EXPECT_EQ(names_of(net.named_buffers()),
            (std::vector<std::string>{"norm._mean", "norm._variance"}));
  const NamedTensors state = net.state_dict();
  EXPECT_EQ(state.size(), 8U);
  EXPECT_EQ(state.at("conv.weight").shape(), (Shape{4, 1, 3, 3}));
  EXPECT_EQ(state.at("head.1.weight").shape(), (Shape{16, 3}));
  EXPECT_TRUE(stop_gradient(state.at("conv.weight")));
  EXPECT_EQ(state.at("conv.weight")->storage, net.conv.weight->storage) << "shared, not copied";
  for (const Tensor& parameter : net.parameters()) {
    EXPECT_FALSE(stop_gradient(parameter));
    EXPECT_TRUE(parameter.has(kParameter));
  }
  EXPECT_TRUE(stop_gradient(net.norm.mean));
}

TEST(Module, SavesAndLoads) {
  const std::string path = testing::TempDir() + "/oar_nn_test.safetensors";
  Net first, second;
  first.eval();
  second.eval();
  const Tensor x = randn({2, 1, 4, 4});
  EXPECT_NE(values_of(first(x)), values_of(second(x)));
  first.save(path);
  const Tensor kept = second.conv.weight;
  second.load(path);
  EXPECT_EQ(values_of(first(x)), values_of(second(x)));
  EXPECT_TRUE(kept.is_same(second.conv.weight))
      << "loading writes into the parameters that are there";
  std::filesystem::remove(path);
}

TEST(Module, LoadingChecksNamesAndShapes) {
  Net net;
  NamedTensors state = Net().state_dict();
  state.erase("norm._mean");
  state["extra"] = tensor({1}, {1});
  const Error names = error_of([&] { net.load_state_dict(state); });
  EXPECT_EQ(
      names.text(),
      "the state dict does not fit the module: missing [norm._mean]; unexpected [extra]. Nothing "
      "was loaded.");
  EXPECT_NO_THROW(net.load_state_dict(state, false));
  state = Net().state_dict();
  state["conv.bias"] = tensor({1, 2, 3}, {3});
  nn::init::constant(net.conv.weight, 7);
  const Error shape = error_of([&] { net.load_state_dict(state); });
  EXPECT_EQ(shape.text(),
            "the state dict does not fit the module: mismatched [conv.bias is float32[3], expected "
            "float32[4]]. Nothing was loaded.");
  EXPECT_EQ(values_of(net.conv.weight)[0], 7) << "an error leaves the module as it was";
  state = Net().state_dict();
  for (auto& [name, value] : state) value = cast(value, DType::Float64);
  EXPECT_NO_THROW(net.load_state_dict(state)) << "another dtype is cast";
}

TEST(Module, TrainEvalToAndZeroGrad) {
  Net net;
  EXPECT_TRUE(net.norm.is_training());
  net.eval();
  EXPECT_FALSE(net.norm.is_training());
  EXPECT_FALSE(net.head[1].is_training());
  net.train();
  run_backward(sum(net(randn({2, 1, 4, 4}))));
  EXPECT_FALSE(grad_of(net.conv.weight).empty());
  net.zero_grad();
  EXPECT_TRUE(grad_of(net.conv.weight).empty());
  const Tensor weight = net.conv.weight;
  net.to(DType::Float64);
  EXPECT_EQ(weight.dtype(), DType::Float64);
  EXPECT_EQ(net.norm.mean.dtype(), DType::Float64);
  EXPECT_FALSE(stop_gradient(weight));
  EXPECT_EQ(net(randn({2, 1, 4, 4}, DType::Float64)).dtype(), DType::Float64);
  EXPECT_THROW(net.to(DType::Int32), Error);
}

struct Odd : nn::Module {
  using Module::register_buffer;
  using Module::register_module;
  using Module::register_parameter;
};

TEST(Module, MistakesAreNamed) {
  Odd odd;
  odd.register_buffer("a", tensor({1}, {1}));
  EXPECT_THROW(odd.register_parameter("a", tensor({1}, {1})), Error);
  EXPECT_THROW(odd.register_parameter("a.b", tensor({1}, {1})), Error);
  EXPECT_THROW(odd.register_parameter("", tensor({1}, {1})), Error);
  EXPECT_THROW(odd.register_parameter("b", Tensor()), Error);
  EXPECT_THROW(odd.register_parameter("b", Tensor::scalar(int64_t{1}, DType::Int64)), Error);
  EXPECT_THROW(odd.register_module("m", nullptr), Error);
  EXPECT_THROW(odd.register_module("m", odd), Error);
  EXPECT_EQ(error_of([&] { odd(tensor({1}, {1})); }).kind(), ErrorKind::Unsupported);
  EXPECT_THROW(nn::Sequential()[0], Error);
  EXPECT_THROW(nn::Linear(0, 3), Error);
  EXPECT_THROW(nn::Conv2D(3, 4, 3, {.groups = 2}), Error);
  EXPECT_THROW(nn::Embedding(3, 2, 3), Error);
  EXPECT_THROW(nn::Dropout(1.5), Error);
}

// ---- Layers ------------------------------------------------------------------------------------

TEST(Layers, Linear) {
  nn::Linear layer(2, 3);
  copy_into(detach(layer.weight), tensor({1, 2, 3, 4, 5, 6}, {2, 3}));
  copy_into(detach(layer.bias), tensor({10, 20, 30}, {3}));
  EXPECT_EQ(values_of(layer(tensor({1, 1, 2, 0}, {2, 2}))), (Values{15, 27, 39, 12, 24, 36}));
  EXPECT_EQ(layer(randn({5, 4, 2})).shape(), (Shape{5, 4, 3}));
  EXPECT_EQ(nn::Linear(2, 3, false).parameters().size(), 1U);
  EXPECT_THROW(layer(randn({2, 3})), Error);
}

TEST(Layers, ConvolutionAndPooling) {
  nn::Conv2D conv(2, 4, {3, 1}, {.stride = 2, .padding = {1, 0}, .groups = 2});
  EXPECT_EQ(conv.weight.shape(), (Shape{4, 1, 3, 1}));
  EXPECT_EQ(conv(randn({1, 2, 6, 5})).shape(), (Shape{1, 4, 3, 3}));
  nn::Conv2D sum_of_window(1, 1, 2, {.has_bias = false});
  nn::init::constant(sum_of_window.weight, 1);
  EXPECT_EQ(values_of(sum_of_window(tensor({1, 2, 3, 4, 5, 6}, {1, 1, 2, 3}))), (Values{12, 16}));
  const Tensor image = tensor({1, 5, 2, 0, 3, 4, 9, 8}, {1, 1, 2, 4});
  EXPECT_EQ(values_of(nn::MaxPool2D(2)(image)), (Values{5, 9}));
  EXPECT_EQ(values_of(nn::MaxPool2D(2, {.stride = 1})(image)), (Values{5, 9, 9}));
}

TEST(Layers, Normalisation) {
  nn::LayerNorm layer(4);
  const Values normed = values_of(layer(tensor({1, 2, 3, 4}, {1, 4})));
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(normed[static_cast<size_t>(i)], (i - 1.5) / std::sqrt(1.25 + 1e-5), 1e-6);
  EXPECT_TRUE(nn::LayerNorm(std::vector<int64_t>{2, 2}, 1e-5, false).parameters().empty());

  nn::BatchNorm2D batch(1, 0.9);
  const Tensor x = tensor({0, 2, 4, 6}, {2, 1, 1, 2});
  const Values out = values_of(batch(x));
  EXPECT_NEAR(out[3], 3 / std::sqrt(5 + 1e-5), 1e-6);
  EXPECT_NEAR(values_of(batch.mean)[0], 0.1 * 3, 1e-6);
  EXPECT_NEAR(values_of(batch.variance)[0], 0.9 + 0.1 * 5, 1e-6);
  batch.eval();
  EXPECT_NEAR(values_of(batch(x))[0], -0.3 / std::sqrt(1.4 + 1e-5), 1e-6);
  EXPECT_THROW(batch(randn({2, 1})), Error);
}

TEST(Layers, EmbeddingDropoutAndActivations) {
  nn::Embedding table(4, 2, -1);
  EXPECT_EQ(values_of(table.weight)[7], 0) << "the padding row is zero";
  const Tensor ids = Tensor::from_vector(std::vector<int64_t>{3, 0, 3}, Shape{3}, DType::Int64);
  run_backward(sum(table(ids)));
  EXPECT_EQ(grad_of(table.weight), (Values{1, 1, 0, 0, 0, 0, 0, 0}));

  nn::Dropout dropout(0.5);
  const Values dropped = values_of(dropout(ones({1000})));
  const auto zeros = std::count(dropped.begin(), dropped.end(), 0.0);
  EXPECT_GT(zeros, 400);
  EXPECT_LT(zeros, 600);
  EXPECT_EQ(std::count(dropped.begin(), dropped.end(), 2.0), 1000 - zeros);
  dropout.eval();
  EXPECT_EQ(values_of(dropout(ones({3}))), (Values{1, 1, 1}));

  const Tensor x = tensor({-1, 0, 2}, {3});
  EXPECT_EQ(values_of(nn::ReLU()(x)), (Values{0, 0, 2}));
  EXPECT_NEAR(values_of(nn::GELU()(x))[2], 2 * 0.5 * (1 + std::erf(2 / std::sqrt(2.0))), 1e-6);
  EXPECT_NEAR(values_of(nn::GELU(true)(x))[2], 1.954598, 1e-5);
  EXPECT_NEAR(values_of(nn::Sigmoid()(x))[0], 1 / (1 + std::exp(1.0)), 1e-6);
  EXPECT_NEAR(values_of(nn::Tanh()(x))[2], std::tanh(2.0), 1e-6);
  EXPECT_NEAR(values_of(nn::Silu()(x))[2], 2 / (1 + std::exp(-2.0)), 1e-6);
  EXPECT_NEAR(values_of(nn::Softmax()(x))[2], std::exp(2.0) / (std::exp(-1.0) + 1 + std::exp(2.0)),
              1e-6);
  EXPECT_EQ(nn::Flatten()(randn({2, 3, 4})).shape(), (Shape{2, 12}));
}

// ---- Initialisers and optimisers ---------------------------------------------------------------

TEST(Init, FollowsTheSeedAndItsDistribution) {
  const Tensor a = Tensor::empty({200, 100}, DType::Float32),
               b = Tensor::empty({200, 100}, DType::Float32);
  generator::seed(5);
  nn::init::xavier_uniform(a);
  generator::seed(5);
  nn::init::xavier_uniform(b);
  EXPECT_EQ(values_of(a), values_of(b));
  const auto spread = [](const Tensor& t) {
    double total = 0, largest = 0;
    for (const double v : values_of(t)) {
      total += v * v;
      largest = std::max(largest, std::abs(v));
    }
    return std::pair(std::sqrt(total / static_cast<double>(t->numel)), largest);
  };
  const double xavier = std::sqrt(2.0 / 300), limit = std::sqrt(6.0 / 300);
  EXPECT_NEAR(spread(a).first, xavier, 0.02 * xavier);
  EXPECT_LE(spread(a).second, limit);
  nn::init::xavier_normal(a);
  EXPECT_NEAR(spread(a).first, xavier, 0.03 * xavier);
  EXPECT_GT(spread(a).second, limit);
  nn::init::kaiming_normal(a);
  EXPECT_NEAR(spread(a).first, 0.1, 0.003);
  nn::init::kaiming_uniform(a);
  EXPECT_NEAR(spread(a).first, 0.1, 0.003);
  nn::init::normal(a, 3, 0);
  EXPECT_EQ(values_of(a)[0], 3);
  const Tensor half = Tensor::empty({10}, DType::BFloat16);
  nn::init::uniform(half, 1, 2);
  EXPECT_GE(values_of(half)[3], 1);
  const nn::init::Fans fans = nn::init::fans_of(Tensor::empty({8, 4, 3, 3}, DType::Float32));
  EXPECT_EQ(fans.in, 36);
  EXPECT_EQ(fans.out, 72);
}

// Steps on loss = sum(w * c): the gradient is c.
Values after_steps(nn::Optimizer& optimizer, const Tensor& w, const Values& c, int steps) {
  for (int i = 0; i < steps; ++i) {
    optimizer.zero_grad();
    run_backward(sum(w * constant(c)));
    optimizer.step();
  }
  return values_of(w);
}

void expect_near(const Values& found, const Values& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-6);
}

TEST(Optimizers, DoTheirArithmetic) {
  const Tensor a = leaf({1, 2});
  nn::SGD sgd({a}, {.learning_rate = 0.5, .weight_decay = 0.1});
  expect_near(after_steps(sgd, a, {1, -1}, 1), {1 - 0.5 * 1.1, 2 - 0.5 * (-1 + 0.2)});

  const Tensor b = leaf({1, 2});
  nn::Momentum momentum({b}, {.learning_rate = 0.1, .momentum = 0.5});
  expect_near(after_steps(momentum, b, {1, -2}, 2), {1 - 0.1 * (1 + 1.5), 2 + 0.1 * (2 + 3)});

  const Tensor c = leaf({1, 2});
  nn::Momentum nesterov({c}, {.learning_rate = 0.1, .momentum = 0.5, .use_nesterov = true});
  expect_near(after_steps(nesterov, c, {1, -2}, 1), {1 - 0.1 * 1.5, 2 + 0.1 * 3});

  // With a constant gradient both means are that gradient: a step is the rate, whatever its size.
  const Tensor d = leaf({1, 2});
  nn::AdamW adamw({d}, {.learning_rate = 0.1, .weight_decay = 0});
  expect_near(after_steps(adamw, d, {5, -0.3}, 3), {0.7, 2.3});
  const Tensor e = leaf({1, 2});
  nn::AdamW decaying({e}, {.learning_rate = 0.1, .weight_decay = 0.5});
  expect_near(after_steps(decaying, e, {5, -0.3}, 1), {0.95 - 0.1, 1.9 + 0.1});
}

TEST(Optimizers, PassOverParametersWithoutGradient) {
  const Tensor used = leaf({1}), unused = leaf({1});
  nn::Momentum optimizer({unused, used}, {.learning_rate = 1});
  optimizer.step();
  expect_near(after_steps(optimizer, used, {1}, 1), {0});
  EXPECT_EQ(values_of(unused), (Values{1}));
  EXPECT_DOUBLE_EQ(optimizer.learning_rate(), 1);
  optimizer.set_learning_rate(0);
  expect_near(after_steps(optimizer, used, {1}, 1), {0});
  EXPECT_THROW(optimizer.set_learning_rate(-1), Error);
  EXPECT_THROW(nn::SGD({}), Error);
  EXPECT_THROW(nn::SGD({Tensor::scalar(int64_t{1}, DType::Int64)}), Error);
}

TEST(Training, LearnsXor) {
  generator::seed(3);
  nn::Sequential net;
  net.append<nn::Linear>(2, 16).append<nn::Tanh>().append<nn::Linear>(16, 1);
  const Tensor x = tensor({0, 0, 0, 1, 1, 0, 1, 1}, {4, 2}), y = tensor({0, 1, 1, 0}, {4, 1});
  nn::AdamW optimizer(net.parameters(), {.learning_rate = 0.02});
  double loss = 0;
  for (int i = 0; i < 400; ++i) {
    const Tensor error = net(x) - y;
    const Tensor square_error = mean(error * error);
    optimizer.zero_grad();
    run_backward(square_error);
    optimizer.step();
    loss = square_error.item_double();
  }
  EXPECT_LT(loss, 1e-3);
}

TEST(Training, LearnsWithConvolutionAndBatchNorm) {
  generator::seed(4);
  Net net;
  const Tensor x = randn({6, 1, 4, 4});
  const Tensor labels =
      Tensor::from_vector(std::vector<int64_t>{0, 1, 2, 0, 1, 2}, Shape{6}, DType::Int64);
  nn::Momentum optimizer(net.parameters(), {.learning_rate = 0.1});
  double first = 0, last = 0;
  for (int i = 0; i < 60; ++i) {
    const Tensor loss = cross_entropy(net(x), labels);
    optimizer.zero_grad();
    run_backward(loss);
    optimizer.step();
    last = loss.item_double();
    if (i == 0) first = last;
  }
  EXPECT_LT(last, first / 10);
}

}  // namespace
}  // namespace oar::test
