// Programs as launches on planned memory.
#include <atomic>
#include <cmath>
#include <thread>

#include "capture_util.h"
#include "oar/base/host_language.h"
#include "oar/ir/parse.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"
#include "oar/tensor/allocator.h"

namespace oar {
namespace {

Program program_of(const std::string& text) { return parse_program(text); }

TEST(Instance, ViewsAreNoLaunches) {
  const Executor executor(
      program_of("program f<N ~ 3>(%x: float32[N, 4]) -> (%4) {\n"
                 "%1 = transpose(%x, perm=[1, 0]) : float32[4, N]\n"
                 "%2 = exp(%1) : float32[4, N]\n"
                 "%3 = reshape(%2, shape=[4*N]) : float32[4*N]\n"
                 "%4 = neg(%3) : float32[4*N]\n}"));
  const Tensor x = numbers({3, 4});
  ASSERT_TRUE(executor.instance({{x}}));
  EXPECT_EQ(executor.instance({{x}})->launches(), 2u);
  expect_same(executor.run({{x}})[0], neg(reshape(exp(transpose(x, {1, 0})), {12})));
}

TEST(Instance, MemoryOfAChainIsReused) {
  std::string text = "program f(%v0: float32[1000]) -> (%v40) {\n";
  for (int i = 1; i <= 40; ++i) text += format("%v{} = sin(%v{}) : float32[1000]\n", i, i - 1);
  const Executor executor(program_of(text + "}"));
  const Tensor x = numbers({1000});
  EXPECT_LE(executor.instance({{x}})->arena_bytes(), 2 * 4096);
  Tensor wanted = x;
  for (int i = 0; i < 40; ++i) wanted = sin(wanted);
  expect_same(executor.run({{x}})[0], wanted);
}

// Four inputs that are each read once, and four results: moved in, the peak is one more than the inputs.
TEST(Instance, InputsThatNobodyElseHoldsMakeRoom) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  const Executor executor(
      program_of("program f(%a: float32[262144], %b: float32[262144], %c: float32[262144], "
                 "%d: float32[262144]) -> (%1, %2, %3, %4) {\n"
                 "%1 = exp(%a) : float32[262144]\n"
                 "%2 = sin(%b) : float32[262144]\n"
                 "%3 = cos(%c) : float32[262144]\n"
                 "%4 = neg(%d) : float32[262144]\n}"));
  const auto peak = [&](bool moved) {
    const int64_t before = cpu_allocator::stats().allocated;
    Tensors inputs;
    for (int i = 0; i < 4; ++i) inputs.push_back(full({262144}, Scalar(i), DType::Float32));
    const Tensors kept = moved ? Tensors() : inputs;
    cpu_allocator::reset_peak();
    const Tensors made = executor.run_on(std::move(inputs));
    EXPECT_FLOAT_EQ(made[1].to_vector<float>()[7], std::sin(1.0F));
    EXPECT_FLOAT_EQ(made[3].to_vector<float>()[7], -3.0F);
    return cpu_allocator::stats().peak_allocated - before;
  };
  peak(true);  // the arena
  EXPECT_LT(peak(true), 5 * kMiB + kMiB / 2);
  EXPECT_GE(peak(false), 8 * kMiB);
}

// The first operand is overwritten while the second shows the same memory in another order.
TEST(Instance, AnOperandThatIsShownTwiceIsNotOverwritten) {
  const Executor executor(
      program_of("program f(%x: float32[3, 3]) -> (%3) {\n"
                 "%1 = exp(%x) : float32[3, 3]\n"
                 "%2 = transpose(%1, perm=[1, 0]) : float32[3, 3]\n"
                 "%3 = add(%1, %2) : float32[3, 3]\n}"));
  const Tensor x = numbers({3, 3}), e = exp(x);
  expect_same(executor.run({{x}})[0], e + transpose(e, {1, 0}));
}

TEST(Instance, StatesChangePlaces) {
  Program program = program_of(
      "program f(state %a: float32[2], state %b: float32[2]) -> () {\n"
      "write %a = %b\nwrite %b = %a\n}");
  const Tensor a = program.states[0].tensor, b = program.states[1].tensor;
  add_(a, full({2}, Scalar(1.0), DType::Float32));
  const Executor executor(std::move(program));
  executor.run({});
  EXPECT_EQ(a.to_vector<double>()[0], 0);
  EXPECT_EQ(b.to_vector<double>()[0], 1);
}

TEST(Instance, AStateThatIsGivenBackIsACopyOfItsOldContent) {
  Program program = program_of(
      "program f(%x: float32[2], state %n: float32[2]) -> (%n, %2) {\n"
      "%2 = add(%n, %x) : float32[2]\nwrite %n = %2\n}");
  const Tensor n = program.states[0].tensor;
  const Executor executor(std::move(program));
  const Tensor x = full({2}, Scalar(3.0), DType::Float32);
  const Tensors first = executor.run({{x}}), second = executor.run({{x}});
  EXPECT_EQ(first[0].to_vector<double>()[0], 0);
  EXPECT_EQ(first[1].to_vector<double>()[0], 3);
  EXPECT_EQ(second[0].to_vector<double>()[0], 3);
  EXPECT_EQ(second[1].to_vector<double>()[0], 6);
  EXPECT_EQ(n.to_vector<double>()[0], 6);
}

TEST(Instance, AnInputMayBeTheStateThatIsWritten) {
  Program program = program_of(
      "program f(%x: float32[2], state %n: float32[2]) -> (%3) {\n"
      "%1 = full(shape=[2], fill_value=1.0, dtype=float32) : float32[2]\n"
      "%2 = add(%n, %1) : float32[2]\n"
      "%3 = add(%x, %2) : float32[2]\nwrite %n = %2\n}");
  const Tensor n = program.states[0].tensor;
  const Executor executor(std::move(program));
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(executor.run({{n}})[0].to_vector<double>()[0], 2 * i + 1)
        << "the old content is read";
}

TEST(Instance, InputsOfAnyLayout) {
  const Executor executor(
      program_of("program f<N ~ 3>(%x: float32[N, 2]) -> (%1) {\n%1 = exp(%x) : float32[N, 2]\n}"));
  const Tensor x = transpose(numbers({2, 3}), {1, 0});
  expect_same(executor.run({{x}})[0], exp(x));
  const Tensor none = zeros({0, 2});
  EXPECT_EQ(executor.run({{none}})[0].shape(), (Shape{0, 2}));
}

TEST(Instance, ErrorsNameTheOpAndTheLine) {
  const Executor executor(
      program_of("program f(%w: float32[4, 2], %i: int64[3]) -> (%y) {\n"
                 "%y = embedding(%i, %w) : float32[3, 2]  # model.py:12\n}"));
  const Tensor w = numbers({4, 2}),
               i = Tensor::from_vector<int64_t>({0, 9, 1}, Shape{3}, DType::Int64);
  const std::string message = error_of([&] { executor.run({{w, i}}); });
  EXPECT_NE(message.find("embedding"), std::string::npos) << message;
  EXPECT_NE(message.find("model.py:12"), std::string::npos) << message;
}

TEST(Instance, MemoryStaysFlatOverManyShapes) {
  const Executor executor(
      program_of("program f<N ~ 3>(%x: float32[N, 64]) -> (%2) {\n"
                 "%1 = exp(%x) : float32[N, 64]\n%2 = softmax(%1) : float32[N, 64]\n}"));
  const auto round = [&](int64_t rows) { executor.run({{numbers({rows, 64})}}); };
  for (int64_t i = 1; i <= 64; ++i) round(i);
  const int64_t before = cpu_allocator::stats().allocated;
  for (int64_t i = 0; i < 2000; ++i) round(1 + i * 37 % 64);
  EXPECT_LE(cpu_allocator::stats().allocated, before + (1 << 20));
}

TEST(Instance, SeveralThreadsRunOneProgram) {
  const Executor executor(
      program_of("program f<N ~ 3>(%x: float32[N, 8]) -> (%3) {\n"
                 "%1 = exp(%x) : float32[N, 8]\n%2 = softmax(%1) : float32[N, 8]\n"
                 "%3 = add(%1, %2) : float32[N, 8]\n}"));
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      const Tensor x = numbers({3 + t % 2, 8}, 0.1 * t), e = exp(x);
      const std::vector<double> wanted = (e + softmax(e)).to_vector<double>();
      for (int i = 0; i < 200; ++i) wrong += executor.run({{x}})[0].to_vector<double>() != wanted;
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

// Integer division fails on values, after the launch that could have written the state in its place.
TEST(Instance, ARunThatFailsOnValuesChangesNoState) {
  for (const char* op : {"floor_divide", "remainder", "pow"}) {
    Program program = program_of(
        "program f(%x: int64[2], %y: int64[2], state %n: int64[2]) -> (%q) {\n"
        "%m = add(%n, %x) : int64[2]\n%q = " +
        std::string(op) + "(%x, %y) : int64[2]\nwrite %n = %m\n}");
    const Tensor n = program.states[0].tensor;
    const Executor executor(std::move(program));
    const auto ints = [](const std::vector<int64_t>& v) {
      return Tensor::from_vector(v, Shape{2}, DType::Int64);
    };
    executor.run({{ints({1, 2}), ints({3, 4})}});
    EXPECT_EQ(n.to_vector<int64_t>(), (std::vector<int64_t>{1, 2}));
    const Tensor x = ints({0, 2});
    const Tensor y = std::string_view(op) == "pow" ? ints({-1, 1}) : ints({0, 1});
    EXPECT_NE(error_of([&] { executor.run({{x, y}}); }).find("cannot be divided"),
              std::string::npos)
        << op;
    EXPECT_EQ(n.to_vector<int64_t>(), (std::vector<int64_t>{1, 2})) << op;
  }
}

// A run that is interrupted between two launches writes no state.
TEST(Instance, AnInterruptedRunChangesNothing) {
  static std::atomic<bool> wanted{false};
  const Tensor count = zeros({1});
  const Program program = capture(
      [&](const Tensors& in) {
        Tensor y = in[0];
        for (int i = 0; i < 300; ++i) y = matmul(y, in[0]);
        add_(count, reshape(sum(y * 0.0), {1}) + 1.0);
        return Tensors{y};
      },
      {{DType::Float32, {480, 480}, "x"}});
  const Executor executor(program);
  const Tensor x = full({480, 480}, Scalar(1.0 / 480), DType::Float32);
  executor.run({{x}});
  EXPECT_EQ(count.to_vector<double>()[0], 1);
  static constexpr HostLanguage kInterrupting = {.interrupted = [] { return wanted.load(); }};
  install_host_language(&kInterrupting);
  wanted = true;
  const std::string error = error_of([&] {
    for (int i = 0; i < 100; ++i) {  // a run may be faster than the first look
      executor.run({{x}});
      count.data<float>()[0] = 1;
    }
  });
  install_host_language(nullptr);
  EXPECT_NE(error.find("interrupted"), std::string::npos);
  EXPECT_EQ(count.to_vector<double>()[0], 1);
  executor.run({{x}});
  EXPECT_EQ(count.to_vector<double>()[0], 2);
}

}  // namespace
}  // namespace oar
