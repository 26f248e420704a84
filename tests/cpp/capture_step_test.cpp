// Whole training steps as programs: forward, backward, update, states.
#include "capture_util.h"
#include "oar/autograd/engine.h"
#include "oar/compiler/capture/replay.h"
#include "oar/device/generator.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

// Ops of a user, registered at run time: they must be captured like built-in ones.
const Op& momentum_op() {
  static const Op& op = Registry::get().add(
      {.schema = "test_momentum_(Tensor(a!) param, Tensor(b!) velocity, Tensor grad, float rate, "
                 "float mu) -> (Tensor(a!) new_param, Tensor(b!) new_velocity)",
       .brief = "A step of gradient descent with momentum.",
       .decompose = [](const Args& a) -> Made {
         multiply_(a[1].as_tensor(), literal(a[4].as_double()));
         add_(a[1].as_tensor(), a[2].as_tensor());
         subtract_(a[0].as_tensor(), a[1].as_tensor() * a[3].as_double());
         return {a[0].as_tensor(), a[1].as_tensor()};
       },
       .traits = Trait::NoGrad},
      "test");
  return op;
}

const Op& noise_op() {
  static const Op& op = Registry::get().add(
      {.schema = "test_noise(shape shape) -> Tensor",
       .brief = "Random numbers in [0, 1).",
       .infer = [](const Args& a) -> Metas {
         return TensorMeta{DType::Float32, Shape(a[0].as_dim_list())};
       },
       .decompose = [](const Args& a) -> Made {
         const Shape shape(a[0].as_dim_list());
         const auto count = static_cast<uint64_t>(shape.numel().value());
         const RandomState at = generator::reserve(count);
         std::vector<double> values;
         for (uint64_t i = 0; i < count; ++i)
           values.push_back(philox(at.seed, at.offset + i / 4)[i % 4] * 0x1p-32);
         return Tensor::from_vector(values, shape, DType::Float32);
       },
       .traits = Trait::Random | Trait::NoGrad},
      "test");
  return op;
}
Tensor noise(const Shape& shape) {
  const Value values[] = {Value(Dims(shape))};
  return dispatch(noise_op(), values)[0];
}

void momentum(const Tensor& p, const Tensor& v, const Tensor& g) {
  const Value values[] = {Value(p), Value(v), Value(g), Value(0.05), Value(0.9)};
  dispatch(momentum_op(), values);
}

struct Model {
  Tensor w1 = numbers({6, 8}, 0.1) * 0.2, b1 = numbers({8}, 0.2), w2 = numbers({8, 3}, 0.3) * 0.2;
  Tensors parameters() const { return {w1, b1, w2}; }
  Tensors velocities;

  Model() {
    for (const Tensor& p : parameters()) {
      set_stop_gradient(p, false);
      p->flags |= kParameter;
      velocities.push_back(zeros(p.dims()));
    }
  }

  // Softmax cross entropy, spelled out.
  Tensor loss(const Tensor& x, const Tensor& target) const {
    const Tensor h = relu(matmul(x, w1) + b1);
    const Tensor logits = matmul(h, w2);
    const Tensor shifted = logits - max(logits, IntArgs{1}, true);
    const Tensor total = sum(exp(shifted), IntArgs{1}, std::nullopt, true);
    return -sum((shifted - log(total)) * target) / 4.0;
  }

  Tensors step(const Tensors& in) {
    const Tensor l = loss(in[0], in[1]);
    backward({&l, 1});
    {
      const GradMode off(false);
      for (size_t i = 0; i < velocities.size(); ++i) {
        const Tensor p = parameters()[i];
        momentum(p, velocities[i], history_of(p).grad.get());
        history_of(p).grad.set(Tensor());
      }
    }
    return {detach(l)};
  }
};

Tensors batch(int64_t n, double start) {
  std::vector<double> target(static_cast<size_t>(3 * n), 0);
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) target[3 * i + i % 3] = 1;
  return {numbers({n, 6}, start), Tensor::from_vector(target, Shape{n, 3}, DType::Float32)};
}

std::vector<InputSpec> batch_specs() {
  const Dim b = Dim::symbol("B", 4);
  return {{DType::Float32, {b, 6}, "x"}, {DType::Float32, {b, 3}, "target"}};
}

TEST(CaptureStep, TrainsBitForBitAsEagerMode) {
  Model eager, captured;
  const std::vector<double> before = captured.w1.to_vector<double>();
  const Executor executor(
      capture([&](const Tensors& in) { return captured.step(in); }, batch_specs(), "step"));
  expect_sound(executor.program());
  EXPECT_EQ(captured.w1.to_vector<double>(), before);
  EXPECT_EQ(executor.program().states.size(), 6u) << to_text(executor.program());
  double first = 0, last = 0;
  for (int i = 0; i < 20; ++i) {
    const Tensors inputs = batch(i % 3 == 2 ? 5 : 4, 0.1);
    const Tensor loss = executor.run(inputs)[0];
    expect_same(loss, eager.step(inputs)[0]);
    (i == 0 ? first : last) = loss.item_double();
  }
  EXPECT_LT(last, first / 2) << "it learns";
  for (size_t i = 0; i < 3; ++i) {
    expect_same(captured.parameters()[i], eager.parameters()[i]);
    expect_same(captured.velocities[i], eager.velocities[i]);
    EXPECT_TRUE(is_leaf(captured.parameters()[i]) && !stop_gradient(captured.parameters()[i]));
  }
}

TEST(CaptureStep, TwoStepsInOneProgram) {
  Model eager, captured;
  const auto twice = [](Model& m, const Tensors& in) {
    m.step(in);
    return m.step(in);
  };
  const Executor executor(
      capture([&](const Tensors& in) { return twice(captured, in); }, batch_specs()));
  expect_sound(executor.program());
  for (int i = 0; i < 3; ++i) {
    const Tensors inputs = batch(4, 0.1 * i);
    expect_same(executor.run(inputs)[0], twice(eager, inputs)[0]);
  }
  expect_same(captured.w1, eager.w1);
}

TEST(CaptureStep, GradientsLeftBehindAreAnError) {
  Model model;
  const auto f = [&](const Tensors& in) {
    const Tensor l = model.loss(in[0], in[1]);
    backward({&l, 1});
    return Tensors{detach(l)};
  };
  const std::string message = error_of([&] { capture(f, batch_specs()); });
  EXPECT_NE(message.find("clear_grad()"), std::string::npos) << message;
  EXPECT_FALSE(history_of(model.w1).grad.defined());
  EXPECT_TRUE(model.w1.is_dense());
}

// Waits for the tape: backward() hands a shared symbolic cotangent to both leaves, where it copies a
// dense one.
TEST(CaptureStep, GradientsOfTwoLeavesAreTwoTensors) {
  // y = a + b gives both leaves the same cotangent; changing one must not change the other.
  const auto f = [](const Tensor& a, const Tensor& b, const Tensor& x) {
    const Tensor l = sum((a + b) * x);
    backward({&l, 1});
    const GradMode off(false);
    multiply_(history_of(a).grad.get(), literal(0.5));
    const Tensors grads = {history_of(a).grad.get() * 1, history_of(b).grad.get() * 1};
    history_of(a).grad.set(Tensor());
    history_of(b).grad.set(Tensor());
    return grads;
  };
  const Tensor a = numbers({3}), b = numbers({3}, 0.5), x = numbers({3}, 0.9);
  set_stop_gradient(a, false);
  set_stop_gradient(b, false);
  const Executor executor(
      capture([&](const Tensors& in) { return f(a, b, in[0]); }, {{DType::Float32, {3}, "x"}}));
  const Tensors got = executor.run(Tensors{x}), wanted = f(a, b, x);
  expect_same(got[0], wanted[0]);
  expect_same(got[1], wanted[1]);
}

TEST(CaptureStep, RunningStatistics) {
  const auto normalise = [](const Tensor& mean, const Tensor& x) {
    const Tensor now = sum(x, IntArgs{0}) / 4.0;
    {
      const GradMode off(false);
      multiply_(mean, literal(0.9));
      add_(mean, now * 0.1);
    }
    return Tensors{x - now, mean * 1};
  };
  const Tensor captured = zeros({6}), eager = zeros({6});
  const Dim b = Dim::symbol("B", 4);
  const Executor executor(capture([&](const Tensors& in) { return normalise(captured, in[0]); },
                                  {{DType::Float32, {b, 6}, "x"}}));
  expect_sound(executor.program());
  for (int i = 0; i < 5; ++i) {
    const Tensor x = numbers({4, 6}, i);
    const Tensors got = executor.run(Tensors{x}), wanted = normalise(eager, x);
    expect_same(got[0], wanted[0]);
    expect_same(got[1], wanted[1]);
  }
  expect_same(captured, eager);
}

TEST(CaptureStep, AStatisticWrittenOnTheTapeIsPutBack) {
  const Tensor mean = zeros({3}), w = numbers({3});
  set_stop_gradient(w, false);
  const Executor executor(capture(
      [&](const Tensors& in) {
        copy_into(mean, w * in[0]);  // gives mean a history, which must not outlive the capture
        return Tensors{mean * 2};
      },
      {{DType::Float32, {3}, "x"}}));
  EXPECT_TRUE(mean.is_dense() && stop_gradient(mean) && is_leaf(mean));
  const Tensor x = numbers({3}, 0.4);
  expect_same(executor.run(Tensors{x})[0], detach(w) * x * 2);
  expect_same(mean, detach(w) * x);
}

TEST(CaptureStep, RandomNumbersAreDrawnByTheRun) {
  const Dim b = Dim::symbol("B", 4);
  const auto f = [](const Tensors& in) {
    const Tensor fixed = noise({3});  // not of a symbolic size, and still not a constant
    return Tensors{in[0] + noise(in[0].shape()), fixed};
  };
  generator::seed(7);
  const RandomState before = generator::state();
  const Executor executor(capture(f, {{DType::Float32, {b}, "x"}}));
  EXPECT_EQ(generator::state(), before) << "capture draws nothing";
  expect_sound(executor.program());
  const Tensor x = numbers({5});
  generator::seed(7);
  const Tensors first = executor.run(Tensors{x}), second = executor.run(Tensors{x});
  generator::seed(7);
  const Tensors eager_first = f({x}), eager_second = f({x});
  for (size_t i = 0; i < 2; ++i) {
    expect_same(first[i], eager_first[i]);
    expect_same(second[i], eager_second[i]);
    EXPECT_NE(first[i].to_vector<double>(), second[i].to_vector<double>());
  }
}

TEST(CaptureStep, NothingIsWrittenWhereAnInstructionFails) {
  const Tensor count = zeros({2});
  static const Op& failing =
      Registry::get().add({.schema = "test_positive(Tensor x) -> Tensor",
                           .brief = "x, or an error where its first element is negative.",
                           .infer = [](const Args& a) -> Metas {
                             return TensorMeta{a[0].as_tensor().dtype(), a[0].as_tensor().shape()};
                           },
                           .decompose = [](const Args& a) -> Made {
                             user_check(a[0].as_tensor().to_vector<double>()[0] >= 0,
                                        ErrorKind::InvalidArgument, "x is negative.");
                             return assign(a[0].as_tensor());
                           },
                           .traits = Trait::NoGrad},
                          "test");
  const Executor executor(capture(
      [&](const Tensors& in) {
        add_(count, literal(1.0));
        const Value values[] = {Value(in[0])};
        return Tensors{dispatch(failing, values)[0]};
      },
      {{DType::Float32, {1}, "x"}}));
  EXPECT_NE(error_of([&] {
              executor.run(Tensors{Tensor::from_vector<double>({-1}, Shape{1}, DType::Float32)});
            }).find("x is negative"),
            std::string::npos);
  EXPECT_EQ(count.to_vector<double>(), (std::vector<double>{0, 0}));
  const uint32_t version = count->storage->version();
  executor.run(Tensors{ones({1})});
  EXPECT_EQ(count.to_vector<double>(), (std::vector<double>{1, 1}));
  EXPECT_GT(count->storage->version(), version);
}

// The library's own layers and updates; their fused kernels round differently.
enum class Update { Sgd, Momentum, AdamW };

struct Network {
  explicit Network(Update u) : update(u) {
    for (const Tensor& p : parameters) {
      set_stop_gradient(p, false);
      first.push_back(zeros(p.dims()));
      second.push_back(zeros(p.dims()));
    }
  }

  Tensors step(const Tensors& in) {
    Tensor h = linear(in[0], parameters[0]);
    h = batch_norm(h, mean, variance, parameters[1], parameters[2], true, 0.9, 1e-5, "NC");
    h = dropout(gelu(h), 0.25);
    const Tensor loss = cross_entropy(linear(h, parameters[3], parameters[4]), in[1]);
    backward({&loss, 1});
    const GradMode off(false);
    Tensors grads;
    for (const Tensor& p : parameters) grads.push_back(history_of(p).grad.take());
    if (update == Update::Sgd) sgd_(parameters, grads, rate, 0.01);
    if (update == Update::Momentum) momentum_(parameters, grads, first, rate);
    if (update == Update::AdamW) adamw_(parameters, grads, first, second, rate, count);
    return {detach(loss)};
  }

  Update update;
  Tensors parameters = {numbers({6, 8}, 0.1) * 0.2, ones({8}), zeros({8}),
                        numbers({8, 3}, 0.3) * 0.2, numbers({3}, 0.2)};
  Tensor mean = zeros({8}), variance = ones({8});
  Tensors first, second;
  Tensor rate = Tensor::scalar(0.05, DType::Float32), count = Tensor::scalar(0.0, DType::Float32);
};

TEST(CaptureStep, LayersAndOptimisersOfTheLibrary) {
  const Dim b = Dim::symbol("B", 4, 2);
  for (Update update : {Update::Sgd, Update::Momentum, Update::AdamW}) {
    Network eager(update), captured(update);
    const Executor executor(capture([&](const Tensors& in) { return captured.step(in); },
                                    {{DType::Float32, {b, 6}, "x"}, {DType::Int64, {b}, "label"}}));
    expect_sound(executor.program());
    generator::seed(3);
    const RandomState start = generator::state();
    for (int i = 0; i < 5; ++i) {
      const int64_t n = 4 + i % 2;
      const Tensors inputs = {numbers({n, 6}, 0.1 * i),
                              range(Scalar(0), Scalar(n), Scalar(1), DType::Int64)};
      const Tensor label = remainder(inputs[1], Tensor::scalar(int64_t{3}, DType::Int64));
      generator::set_state({start.seed, start.offset + static_cast<uint64_t>(1000 * i)});
      const Tensor got = executor.run(Tensors{inputs[0], label})[0];
      generator::set_state({start.seed, start.offset + static_cast<uint64_t>(1000 * i)});
      expect_near(got, eager.step({inputs[0], label})[0]);
    }
    // The learning rate is read from its tensor in every run.
    for (Network* n : {&eager, &captured}) copy_into(n->rate, Tensor::scalar(0.5, DType::Float32));
    const Tensors last = {numbers({4, 6}), zeros({4}, DType::Int64)};
    generator::seed(5);
    executor.run(last);
    generator::seed(5);
    eager.step(last);
    for (size_t i = 0; i < eager.parameters.size(); ++i)
      expect_near(captured.parameters[i], eager.parameters[i], 1e-4);
    expect_near(captured.mean, eager.mean);
    expect_near(captured.variance, eager.variance);
  }
}

TEST(CaptureStep, AStepCanBeDifferentiated) {
  Model model;
  const Program p = capture([&](const Tensors& in) { return Tensors{model.loss(in[0], in[1])}; },
                            batch_specs(), "loss");
  std::vector<ValueId> wanted;
  for (const State& s : p.states) wanted.push_back(s.value);
  ASSERT_EQ(wanted.size(), 3u);
  const Executor executor(differentiate(p, wanted));
  expect_sound(executor.program());
  const Tensors inputs = batch(4, 0.3), got = executor.run(inputs);
  const Tensor l = model.loss(inputs[0], inputs[1]);
  Tensors sources;
  for (const State& s : p.states) sources.push_back(s.tensor);
  const Tensors eager = grad({&l, 1}, sources);
  for (size_t i = 0; i < 3; ++i) expect_same(got[i + 1], eager[i]);
}

}  // namespace
}  // namespace oar
