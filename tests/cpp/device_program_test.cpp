// Programs on a device with queues: lowered ones, training steps, segments, streams, late failures.
#include <thread>

#include "capture_util.h"
#include "device_util.h"
#include "oar/autograd/engine.h"
#include "oar/compiler/segments/segments.h"
#include "oar/device/generator.h"
#include "oar/nn/optimizer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/families/transfer.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

Tensor there(const Tensor& t, int index = 0) { return to_device(t, async_device(index)); }
Tensor here(const Tensor& t) { return to_device(t, Device{}); }

std::vector<InputSpec> specs_of(const Tensors& inputs) {
  std::vector<InputSpec> specs;
  for (const Tensor& t : inputs)
    specs.push_back({.dtype = t.dtype(), .shape = t.shape(), .device = t.device()});
  return specs;
}

// Ops with kernels, ops that decompose, literals, views.
Tensors formula(const Tensors& in) {
  const Tensor h = tanh(matmul(in[0], in[1]) * 0.5 + 1.0);
  return {softmax(h, 1), sum(transpose(h, {1, 0}) * 2.0, IntArgs{0})};
}
Tensors formula_inputs(double start = 0.3) {
  return {numbers({5, 4}, start), numbers({4, 3}, start + 1)};
}
Tensors all_there(const Tensors& tensors, int index = 0) {
  Tensors moved;
  for (const Tensor& t : tensors) moved.push_back(there(t, index));
  return moved;
}

TEST(DeviceProgram, IsLoweredForTheDeviceOfItsValues) {
  const Tensors inputs = all_there(formula_inputs());
  const Executor executor(capture(formula, specs_of(inputs)));
  const auto instance = executor.instance(inputs);
  ASSERT_TRUE(instance) << to_text(executor.program());
  EXPECT_EQ(instance->device(), async_device());
  EXPECT_GT(instance->launches(), 3u);
  const Tensors wanted = formula(formula_inputs());
  for (int round = 0; round < 5; ++round) {
    const Tensors got = executor.run(inputs);
    for (size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].device(), async_device());
      expect_near(here(got[i]), wanted[i]);
    }
  }
}

TEST(DeviceProgram, OneProgramRunsOnEveryDevice) {
  const Executor executor(capture(formula, specs_of(formula_inputs())));
  const Tensors wanted = formula(formula_inputs());
  for (const Tensors& inputs :
       {formula_inputs(), all_there(formula_inputs()), all_there(formula_inputs(), 1)}) {
    const auto instance = executor.instance(inputs);
    ASSERT_TRUE(instance) << to_text(executor.program());
    EXPECT_EQ(instance->device(), inputs[0].device());
    const Tensors got = executor.run(inputs);
    EXPECT_EQ(got[0].device(), inputs[0].device());
    for (size_t i = 0; i < got.size(); ++i) expect_near(here(got[i]), wanted[i]);
  }
}

TEST(DeviceProgram, OpenSizesAndNumbersOfTheHost) {
  const Dim n = Dim::symbol("n", 4);
  const auto scaled = [](const Tensors& in) -> Tensors { return {in[0] * in[1] + in[0]}; };
  const Executor executor(
      capture(scaled, {{.dtype = DType::Float32, .shape = {n}, .device = async_device()},
                       {.dtype = DType::Float32, .shape = {}, .device = Device{}}}));
  for (int64_t size : {4, 1, 7}) {
    const Tensor x = numbers({size}), factor = Tensor::scalar(2.5, DType::Float32);
    const Tensors inputs{there(x), factor};
    ASSERT_TRUE(executor.instance(inputs)) << to_text(executor.program());
    expect_near(here(executor.run(inputs)[0]), scaled({x, factor})[0]);
  }
}

TEST(DeviceProgram, SeveralDevicesAreInterpreted) {
  const auto mixed = [](const Tensors& in) -> Tensors {
    return {in[0] + to_device(in[1], in[0].device())};
  };
  const Tensors inputs{there(numbers({3})), there(numbers({3}, 0.7), 1)};
  const Executor executor(capture(mixed, specs_of(inputs)));
  EXPECT_FALSE(executor.instance(inputs));
  expect_near(here(executor.run(inputs)[0]), numbers({3}) + numbers({3}, 0.7));
}

TEST(DeviceProgram, RandomNumbersAreThoseOfEagerMode) {
  const auto draw = [](const Tensors& in) -> Tensors {
    return {in[0] + uniform(in[0].dims(), DType::Float32), uniform(in[0].dims(), DType::Float32)};
  };
  const devices::Scope scope(async_device());
  const Tensors inputs{there(numbers({6}))};
  const Executor executor(capture(draw, specs_of(inputs)));
  ASSERT_TRUE(executor.instance(inputs));
  generator::seed(7);
  const Tensors eager = draw(inputs), eager_again = draw(inputs);
  generator::seed(7);
  const Tensors first = executor.run(inputs), second = executor.run(inputs);
  for (size_t i = 0; i < 2; ++i) {
    expect_same(here(first[i]), here(eager[i]));
    expect_same(here(second[i]), here(eager_again[i]));
  }
  EXPECT_NE(here(first[1]).to_vector<double>(), here(second[1]).to_vector<double>());
}

// ---- Training.

template <class Optimizer>
struct Net {
  Tensor w1, b1, w2;
  Optimizer optimizer;

  explicit Net(Device device)
      : w1(parameter(numbers({6, 8}, 0.1) * 0.2, device)),
        b1(parameter(numbers({8}, 0.2), device)),
        w2(parameter(numbers({8, 3}, 0.3) * 0.2, device)),
        optimizer({w1, b1, w2}, {.learning_rate = 0.05}) {}

  static Tensor parameter(const Tensor& start, Device device) {
    const Tensor p = to_device(start, device);
    set_stop_gradient(p, false);
    p->flags |= kParameter;
    return p;
  }
  Tensors step(const Tensors& in) {
    const Tensor loss = mse_loss(matmul(relu(matmul(in[0], w1) + b1), w2), in[1]);
    backward({&loss, 1});
    optimizer.step();
    optimizer.zero_grad();
    return {detach(loss)};
  }
};

template <class Optimizer>
void expect_trains() {
  Net<Optimizer> on_cpu{Device{}}, eager(async_device()), captured(async_device());
  const Tensors batch{numbers({4, 6}, 0.4), numbers({4, 3}, 0.9)}, moved = all_there(batch);
  const Executor executor(
      capture([&](const Tensors& in) { return captured.step(in); }, specs_of(moved), "step"));
  ASSERT_TRUE(executor.instance(moved)) << to_text(executor.program());
  double first = 0, last = 0;
  for (int i = 0; i < 10; ++i) {
    const Tensor wanted = on_cpu.step(batch)[0];
    expect_near(here(eager.step(moved)[0]), wanted, 1e-4);
    const Tensor loss = here(executor.run(moved)[0]);
    expect_near(loss, wanted, 1e-4);
    (i == 0 ? first : last) = loss.item_double();
  }
  EXPECT_LT(last, first);
  for (auto p : {&Net<Optimizer>::w1, &Net<Optimizer>::b1, &Net<Optimizer>::w2}) {
    expect_near(here(eager.*p), on_cpu.*p, 1e-4);
    expect_near(here(captured.*p), on_cpu.*p, 1e-4);
  }
}

TEST(DeviceTraining, StepsOfSgd) { expect_trains<nn::SGD>(); }
TEST(DeviceTraining, StepsOfAdamW) { expect_trains<nn::AdamW>(); }

TEST(DeviceTraining, ARateThatChangesIsSeen) {
  Net<nn::SGD> eager(async_device()), captured(async_device());
  const Tensors batch = all_there({numbers({4, 6}, 0.4), numbers({4, 3}, 0.9)});
  const Executor executor(
      capture([&](const Tensors& in) { return captured.step(in); }, specs_of(batch), "step"));
  for (double rate : {0.05, 0.2, 0.01}) {
    eager.optimizer.set_learning_rate(rate);
    captured.optimizer.set_learning_rate(rate);
    eager.step(batch);
    executor.run(batch);
    expect_near(here(captured.w1), here(eager.w1), 1e-5);
  }
}

TEST(DeviceTraining, SegmentsOfAStep) {
  Net<nn::SGD> on_cpu{Device{}}, in_segments(async_device());
  const Tensors batch{numbers({4, 6}, 0.4), numbers({4, 3}, 0.9)}, moved = all_there(batch);
  const SegmentCounts before = segment_counts();
  for (int i = 0; i < 6; ++i) {
    const Tensor wanted = on_cpu.step(batch)[0];
    SegmentScope scope;
    const Tensor loss = in_segments.step(moved)[0];
    scope.finish();
    expect_near(here(loss), wanted, 1e-4);
  }
  EXPECT_GT(segment_counts().programs, before.programs);
  expect_near(here(in_segments.w1), on_cpu.w1, 1e-4);
}

// ---- Segments.

TEST(DeviceSegments, WaitAndRunAsPrograms) {
  for (int round = 0; round < 3; ++round) {
    const Tensor x = there(numbers({8}, round));
    const SegmentCounts before = segment_counts();
    SegmentScope scope;
    const Tensor y = exp(x * 2.0 - 1.0) + x;
    EXPECT_EQ(segment_counts().segments, before.segments);
    EXPECT_GT(segment_counts().calls, before.calls);
    const Tensor read = here(y);
    EXPECT_EQ(segment_counts().segments, before.segments + 1);
    EXPECT_EQ(segment_counts().programs - before.programs, round == 0 ? 0u : 1u);
    scope.finish();
    const Tensor h = here(x);
    expect_near(read, exp(h * 2.0 - 1.0) + h);
  }
}

TEST(DeviceSegments, WritesViewsAndTwoDevices) {
  for (int round = 0; round < 3; ++round) {
    const Tensor x = there(numbers({4})), other = there(numbers({4}, 0.9), 1);
    SegmentScope scope;
    const Tensor y = x * 2.0;
    const Tensor view = reshape(y, {2, 2});
    add_(y, x);
    const Tensor on_other = other * other + other;  // another device, another segment
    copy_into(x, y + y);
    const Tensor sum_of_view = view + view;
    scope.finish();
    const Tensor h = numbers({4}), o = numbers({4}, 0.9);
    expect_near(here(x), h * 6.0);
    expect_near(here(sum_of_view), reshape(h * 6.0, {2, 2}));
    expect_near(here(on_other), o * o + o);
  }
}

TEST(DeviceSegments, CallsKeepTheStreamThatTheyWereMadeIn) {
  const Tensor x = there(numbers({64}));
  devices::synchronize(async_device());
  for (int round = 0; round < 4; ++round) {
    const Stream first(async_device()), second(async_device());
    SegmentScope scope;
    Tensor y, z;
    Event ready(async_device());
    {
      const StreamScope in(first);
      y = exp(x) * 0.5 + x;
      ready.record(first);  // makes what waits
    }
    {
      const StreamScope in(second);
      ready.wait(second);
      z = y * y + y;
    }
    scope.finish();
    second.synchronize();
    const Tensor h = numbers({64}), w = exp(h) * 0.5 + h;
    expect_near(here(z), w * w + w);
  }
  EXPECT_EQ(async_unknown_streams(), 0);
}

// ---- Streams and threads.

TEST(DeviceProgram, EveryStreamHasMemoryOfItsOwn) {
  const Tensors inputs = all_there(formula_inputs());
  devices::synchronize(async_device());
  const Executor executor(capture(formula, specs_of(inputs)));
  const Tensors wanted = formula(formula_inputs());
  const Stream first(async_device()), second(async_device());
  std::vector<Tensors> results;
  for (int round = 0; round < 20; ++round) {
    const StreamScope scope(round % 2 == 0 ? first : second);
    results.push_back(executor.run(inputs));
  }
  first.synchronize();
  second.synchronize();
  for (const Tensors& got : results)
    for (size_t i = 0; i < got.size(); ++i) expect_near(here(got[i]), wanted[i]);
}

TEST(DeviceProgram, ThreadsWithStreamsRunOneProgram) {
  const Executor executor(capture(formula, specs_of(all_there(formula_inputs()))));
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Stream stream(async_device());
      const StreamScope scope(stream);
      for (int round = 0; round < 10; ++round) {
        const double start = 0.1 * t + round;
        const Tensors got = executor.run(all_there(formula_inputs(start)));
        const Tensors wanted = formula(formula_inputs(start));
        for (size_t i = 0; i < got.size(); ++i) expect_near(here(got[i]), wanted[i]);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(async_damaged_blocks(), 0);
  EXPECT_EQ(async_unknown_streams(), 0);
}

TEST(DeviceProgram, RunsReturnBeforeTheWorkIsDone) {
  const Tensors inputs = all_there(formula_inputs());
  const Executor executor(capture(formula, specs_of(inputs)));
  executor.run(inputs);
  devices::synchronize(async_device());
  async_pause(true);
  const Tensors got = executor.run(inputs);
  Event done(async_device());
  done.record(Stream::current(async_device()));
  EXPECT_FALSE(done.reached());
  async_pause(false);
  expect_near(here(got[0]), formula(formula_inputs())[0]);
  EXPECT_TRUE(done.reached());
}

// ---- Failures, plans.

TEST(DeviceProgram, LateFailuresSurfaceAtTheNextSynchronisation) {
  const Tensors inputs = all_there(formula_inputs());
  const Executor executor(capture(formula, specs_of(inputs)));
  executor.run(inputs);
  devices::synchronize(async_device());
  async_fail_next("the test asked for it");
  executor.run(inputs);  // queued: no error yet
  EXPECT_NE(error_of([] {
              devices::synchronize(async_device());
            }).find("earlier work on async:0 failed: the test asked for it"),
            std::string::npos);
  expect_near(here(executor.run(inputs)[0]), formula(formula_inputs())[0]);
}

TEST(DeviceProgram, PlansLiveAsLongAsTheProgram) {
  const Tensors inputs = all_there(formula_inputs());
  const int64_t before = async_live_plans();
  {
    const Executor executor(capture(formula, specs_of(inputs)));
    executor.run(inputs);
    executor.run(inputs);
    EXPECT_EQ(async_live_plans(), before + 1);
    matmul(inputs[0], inputs[1]);  // eager: the plan goes with the call
    EXPECT_EQ(async_live_plans(), before + 1);
  }
  EXPECT_EQ(async_live_plans(), before);
  devices::synchronize(async_device());
}

// ---- A device with a compiler.

Device compiling_device() {
  static const DeviceType& type = devices::load_plugin(plugin_path("compiling_device"));
  return {type.id(), 0};
}
int64_t compiling_count(int what) {
  compiling_device();
  static void* library = dlopen(plugin_path("compiling_device").c_str(), RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<int64_t (*)(int)>(dlsym(library, "oar_compiling_count"))(what);
}
enum : int { kCompiled = 0, kRuns = 1, kLive = 2 };

TEST(DeviceCompiler, TakesACluster) {
  const auto function = [](const Tensors& in) -> Tensors {
    const Tensor h = (in[0] + in[1]) * in[1];
    return {h * h + in[0], h};
  };
  const Tensor x = numbers({3, 4}), y = numbers({3, 4}, 0.8);
  const Tensors inputs{to_device(x, compiling_device()), to_device(y, compiling_device())};
  const int64_t compiled = compiling_count(kCompiled), runs = compiling_count(kRuns);
  {
    const Executor executor(capture(function, specs_of(inputs)));
    ASSERT_TRUE(executor.instance(inputs));
    EXPECT_EQ(executor.instance(inputs)->launches(), 1u);
    const Tensors wanted = function({x, y});
    for (int round = 0; round < 3; ++round) {
      const Tensors got = executor.run(inputs);
      for (size_t i = 0; i < got.size(); ++i) expect_near(here(got[i]), wanted[i]);
    }
    EXPECT_EQ(compiling_count(kCompiled), compiled + 1);
    EXPECT_EQ(compiling_count(kRuns), runs + 3);
    EXPECT_EQ(compiling_count(kLive), 1);
  }
  EXPECT_EQ(compiling_count(kLive), 0);
}

TEST(DeviceCompiler, DeclinesAndTheKernelsRun) {
  const auto function = [](const Tensors& in) -> Tensors { return {sum((in[0] + in[1]) * in[1])}; };
  const Tensor x = numbers({3, 4}), y = numbers({3, 4}, 0.8);
  const Tensors inputs{to_device(x, compiling_device()), to_device(y, compiling_device())};
  const int64_t compiled = compiling_count(kCompiled);
  const Executor executor(capture(function, specs_of(inputs)));
  ASSERT_TRUE(executor.instance(inputs));
  EXPECT_EQ(executor.instance(inputs)->launches(), 3u);
  expect_near(here(executor.run(inputs)[0]), function({x, y})[0]);
  EXPECT_EQ(compiling_count(kCompiled), compiled);
}

}  // namespace
}  // namespace oar
