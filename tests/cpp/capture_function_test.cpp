#include <thread>

#include "capture_util.h"
#include "oar/autograd/engine.h"
#include "oar/autograd/transform.h"
#include "oar/compiler/capture/replay.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

InputSpec spec(const Shape& shape, const char* name = "x", bool stop_gradient = true) {
  return {DType::Float32, shape, name, stop_gradient};
}

TEST(Capture, OneProgramServesEveryBatchSize) {
  const Tensor w = numbers({8, 4}, 0.1), b = numbers({4}, 0.7);
  const Dim batch = Dim::symbol("B", 4);
  const auto f = [&](const Tensors& in) {
    const Tensor h = relu(matmul(in[0], w) + b);
    return Tensors{h, sum(h * h, IntArgs{1}) / 3.0, reshape(h, {in[0].dim(0) * 2, 2}),
                   zeros_like(h) + 1};
  };
  std::vector<Tensors> runs;
  for (int64_t n : {1, 2, 5, 0, 33}) runs.push_back({numbers({n, 8}, 0.5)});
  expect_captures(f, {spec({batch, 8})}, runs);
}

TEST(Capture, CompositesAndListsOfTensors) {
  const Dim batch = Dim::symbol("B", 3);
  const auto f = [](const Tensors& in) {
    const Tensors parts = split(in[0], IntArgs{2, 4}, 1);
    return Tensors{concat({parts[1], parts[0]}, 1), stack({parts[0], parts[0]}, 0),
                   where(greater_than(in[0], zeros_like(in[0])), in[0], exp(in[0]))};
  };
  expect_captures(f, {spec({batch, 6})}, {{numbers({3, 6})}, {numbers({7, 6})}});
}

TEST(Capture, SizesThatDependOnValues) {
  const auto f = [](const Tensors& in) {
    const Tensor found = nonzero(greater_than(in[0], zeros_like(in[0])));
    const Tensor rows = reshape(found, {found.dim(0) * 2});
    return Tensors{rows, zeros({found.dim(0), 3}) + 1};
  };
  const Program p = capture(f, {spec({4, 3})});
  expect_sound(p);
  EXPECT_EQ(p.type_of(p.outputs[0]).shape.str(), "[2*u0]");
}

TEST(Capture, PlainTensorsBecomeConstantsAndStates) {
  const Tensor scale = numbers({3}), counter = numbers({3}, 0.9);
  const std::vector<double> before = counter.to_vector<double>();
  const Executor executor(capture(
      [&](const Tensors& in) {
        add_(counter, scale);  // no symbolic operand: still part of the function
        return Tensors{in[0] * counter};
      },
      {spec({3})}));
  EXPECT_EQ(counter.to_vector<double>(), before) << "capture must not touch memory";
  EXPECT_EQ(executor.program().states.size(), 1u);
  EXPECT_EQ(executor.program().constants.size(), 1u);
  expect_sound(executor.program());
  const Tensor x = numbers({3}, 0.2), mirror = assign(counter);
  for (int i = 0; i < 3; ++i) {
    const Tensors got = executor.run(Tensors{x});
    add_(mirror, scale);
    expect_same(got[0], x * mirror);
    expect_same(counter, mirror);
  }
}

TEST(Capture, TensorsMadeInsideStartAfreshInEveryRun) {
  const auto f = [](const Tensors& in) {
    const Tensor total = zeros({3});
    const Tensor given = Tensor::from_vector<double>({1, 2, 3}, Shape{3}, DType::Float32);
    for (int i = 0; i < 3; ++i) {
      add_(total, in[0]);
      multiply_(given, in[0]);
    }
    return Tensors{total, given};
  };
  const Program p = expect_captures(f, {spec({3})}, {{numbers({3})}, {numbers({3}, 0.9)}});
  EXPECT_TRUE(p.states.empty()) << to_text(p);
}

TEST(Capture, TensorsMadeInsideAndKeptAreStates) {
  Tensor moment;  // as in an optimiser that creates its moments in the first step
  const auto step = [&](const Tensors& in) {
    if (!moment.defined()) moment = zeros({3});
    multiply_(moment, literal(0.5));
    add_(moment, in[0]);
    return Tensors{moment * 1.0};
  };
  const Executor executor(capture(step, {spec({3})}));
  ASSERT_EQ(executor.program().states.size(), 1u) << to_text(executor.program());
  EXPECT_TRUE(moment.is_dense());
  Tensor wanted = zeros({3});
  for (int i = 0; i < 4; ++i) {
    const Tensor x = numbers({3}, i);
    wanted = wanted * 0.5 + x;
    expect_same(executor.run(Tensors{x})[0], wanted);
    expect_same(moment, wanted);
  }
}

TEST(Capture, ErrorsTellTheWayOut) {
  const auto identity = [](const Tensors& in) { return in; };
  const auto nested = [&](const Tensors& in) {
    capture(identity, {spec({2})});
    return in;
  };
  EXPECT_NE(error_of([&] { capture(nested, {spec({2})}); }).find("already running"),
            std::string::npos);
  EXPECT_EQ(Capture::current(), nullptr);

  Tensor leaked;
  capture(
      [&](const Tensors& in) {
        leaked = in[0] + 1;
        return Tensors{leaked};
      },
      {spec({2})});
  EXPECT_NE(error_of([&] { leaked + 1; }).find("after its capture has ended"), std::string::npos);
  const auto uses_leaked = [&](const Tensors& in) { return Tensors{in[0] + leaked}; };
  EXPECT_NE(error_of([&] { capture(uses_leaked, {spec({2})}); }).find("another captured function"),
            std::string::npos);
  const auto reads = [](const Tensors& in) {
    in[0].item_double();
    return in;
  };
  EXPECT_NE(error_of([&] { capture(reads, {spec({})}); }).find("cannot be read here"),
            std::string::npos);
}

TEST(Executor, ErrorsNameTheInput) {
  const Dim batch = Dim::symbol("B", 4);
  const Executor executor(capture([](const Tensors& in) { return Tensors{in[0] + in[1]}; },
                                  {spec({batch, 8}, "x"), spec({batch, 8}, "y")}, "net"));
  const auto message = [&](Tensors inputs) { return error_of([&] { executor.run(inputs); }); };
  EXPECT_EQ(message({numbers({2, 8})}), "the program net takes 2 inputs but got 1.");
  EXPECT_EQ(message({numbers({2, 7}), numbers({2, 8})}),
            "input 'x' of the program net is float32[B, 8] but got float32[2, 7]: axis 1 should "
            "be 8, not 7.");
  EXPECT_EQ(message({numbers({2, 8}), numbers({3, 8})}),
            "input 'y' of the program net is float32[B, 8] but got float32[3, 8]: axis 0 should "
            "be 2, not 3.");
  EXPECT_EQ(message({numbers({8}), numbers({3, 8})}),
            "input 'x' of the program net is float32[B, 8] but got float32[8]: the ranks differ.");
  EXPECT_NE(message({numbers({2, 8}, 0, DType::Float64), numbers({2, 8})})
                .find("is float32[B, 8] but got float64[2, 8]"),
            std::string::npos);
}

TEST(Executor, ChecksWhatCaptureAssumed) {
  const Dim a = Dim::symbol("A", 3), b = Dim::symbol("B", 3);
  const Executor executor(capture([](const Tensors& in) { return Tensors{in[0] + in[1]}; },
                                  {spec({a}, "x"), spec({b}, "y")}, "net"));
  expect_same(executor.run(Tensors{numbers({5}), numbers({5})})[0], numbers({5}) + numbers({5}));
  EXPECT_NE(error_of([&] {
              executor.run(Tensors{numbers({5}), numbers({4})});
            }).find("was captured for sizes with A == B; here this is 5 and 4"),
            std::string::npos);
  const Dim large = Dim::symbol("N", 8, 2);
  const Executor bounded(
      capture([](const Tensors& in) { return Tensors{in[0] * 2}; }, {spec({large})}));
  EXPECT_NE(error_of([&] { bounded.run(Tensors{numbers({1})}); }).find("N >= 2"),
            std::string::npos);
}

TEST(Executor, RunsInSeveralThreads) {
  const Tensor w = numbers({8, 8});
  const Dim batch = Dim::symbol("B", 4);
  const Executor executor(capture(
      [&](const Tensors& in) { return Tensors{sum(tanh(matmul(in[0], w)))}; }, {spec({batch, 8})}));
  std::vector<std::thread> threads;
  std::vector<double> got(4), wanted(4);
  for (int64_t i = 0; i < 4; ++i)
    wanted[static_cast<size_t>(i)] = sum(tanh(matmul(numbers({i + 1, 8}), w))).item_double();
  for (int64_t i = 0; i < 4; ++i)
    threads.emplace_back([&, i] {
      for (int k = 0; k < 20; ++k)
        got[static_cast<size_t>(i)] = executor.run(Tensors{numbers({i + 1, 8})})[0].item_double();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(got, wanted);
}

TEST(Differentiate, EqualsTheTape) {
  const Dim batch = Dim::symbol("B", 4);
  const Tensor w = numbers({3, 2}, 0.4);
  set_stop_gradient(w, false);
  const auto f = [&](const Tensors& in) {
    const Tensor h = tanh(matmul(in[0], w));
    return Tensors{sum(h * h * in[0].dim(1).value()), h};
  };
  const Program p = capture(f, {spec({batch, 3})});
  ASSERT_EQ(p.states.size(), 1u) << to_text(p);
  const Executor executor(differentiate(p, {p.inputs[0], p.states[0].value}));
  expect_sound(executor.program());
  for (int64_t n : {1, 4, 6}) {
    const Tensor x = numbers({n, 3}, 0.2);
    set_stop_gradient(x, false);
    const Tensors eager = f({x});
    const Tensor sources[] = {x, w};
    const Tensors wanted = grad({&eager[0], 1}, sources);
    const Tensors got = executor.run(Tensors{detach(x)});
    ASSERT_EQ(got.size(), 4u);
    expect_same(got[0], eager[0]);
    expect_same(got[2], wanted[0]);
    expect_same(got[3], wanted[1]);
  }
  EXPECT_FALSE(maybe_history(w) && maybe_history(w)->grad.defined());
}

TEST(Differentiate, Twice) {
  const Tensor shift = Tensor::scalar(0.25, DType::Float64);
  const auto f = [&](const Tensors& in) { return Tensors{exp(in[0]) * in[0] * in[0] + shift}; };
  const Program p = capture(f, {{DType::Float64, {}, "x"}});
  const Program first = differentiate(p, {p.inputs[0]});
  const Program second = differentiate(first, {first.inputs[0]}, 1);
  expect_sound(second);
  const double x = 0.7, e = std::exp(x);
  const Tensors got = Executor(second).run(Tensors{Tensor::scalar(x, DType::Float64)});
  ASSERT_EQ(got.size(), 3u);
  EXPECT_NEAR(got[0].item_double(), e * x * x + 0.25, 1e-12);
  EXPECT_NEAR(got[1].item_double(), e * (x * x + 2 * x), 1e-12);
  EXPECT_NEAR(got[2].item_double(), e * (x * x + 4 * x + 2), 1e-12);
}

TEST(Replay, TakesPartInWhatIsAroundIt) {
  const Dim batch = Dim::symbol("B", 4), other = Dim::symbol("N", 5);
  const auto f = [](const Tensors& in) { return Tensors{tanh(in[0]) * in[0].dim(1).value()}; };
  const Executor inner(capture(f, {spec({batch, 3})}));
  // Inside another capture, with sizes of its own.
  const auto outer = [&](const Tensors& in) { return Tensors{inner.run(in)[0] + 1}; };
  const Executor executor(capture(outer, {spec({other + 1, 3})}));
  const Tensor x = numbers({6, 3});
  EXPECT_NE(error_of([&] { executor.run(Tensors{x}); }).find("does not determine"),
            std::string::npos);
  const Executor direct(capture(outer, {spec({other, 3})}));
  expect_sound(direct.program());
  expect_same(direct.run(Tensors{x})[0], f({x})[0] + 1);
  // On the tape.
  const Tensor y = numbers({2, 3});
  set_stop_gradient(y, false);
  const Tensor got = replay(inner.program(), Tensors{y})[0], wanted = f({y})[0];
  const Tensor g = grad({&got, 1}, {&y, 1})[0];
  expect_same(g, grad({&wanted, 1}, {&y, 1})[0]);
  // Under vmap.
  const int64_t axes[] = {0};
  const Tensor batched[] = {numbers({4, 2, 3})};
  const auto replayed = [&](const Tensors& in) { return replay(inner.program(), in); };
  expect_same(vmap(replayed, batched, axes, axes)[0], vmap(f, batched, axes, axes)[0]);
}

}  // namespace
}  // namespace oar
