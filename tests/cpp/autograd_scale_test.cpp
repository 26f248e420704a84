// Graphs that are long, steps that are many, threads that are several.
#include <pthread.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <thread>

#include "autograd_util.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/trigonometry.h"
#include "oar/tensor/allocator.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OAR_SANITIZED 1
#else
#define OAR_SANITIZED 0
#endif

namespace oar::test {
namespace {

constexpr int kChain = OAR_SANITIZED ? 100'000 : 1'000'000;
constexpr int kSteps = OAR_SANITIZED ? 1'000 : 10'000;

// Runs with a stack on which recursion along the graph could not go far.
void on_small_stack(void (*body)()) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, OAR_SANITIZED ? 1 << 20 : 1 << 18);
  pthread_t thread{};
  const auto entry = [](void* function) -> void* {
    reinterpret_cast<void (*)()>(function)();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, entry, reinterpret_cast<void*>(body)), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST(LongChain, BackwardAndDestructionNeedNoStack) {
  on_small_stack([] {
    const Tensor x = leaf({1});
    const Tensor one = constant({1});
    Tensor y = x * 1;
    for (int i = 0; i < kChain; ++i) y = y + one;
    EXPECT_EQ(values_of(y)[0], 1 + kChain);
    run_backward(y);
    EXPECT_EQ(grad_of(x), (Values{1}));
    y = Tensor();
  });
}

TEST(LongChain, IsDestroyedWithoutBackward) {
  on_small_stack([] {
    const Tensor x = leaf({1});
    Tensor y = x * 1;
    for (int i = 0; i < kChain; ++i) y = y * y;  // saves its operands
    y = Tensor();
    Tensor view = x * 1;
    for (int i = 0; i < kChain / 10; ++i) {
      add_(view, x);
    }
    EXPECT_EQ(values_of(grad_wrt(view, x))[0], 1 + kChain / 10);
  });
}

int64_t resident_pages() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident;
}

struct Model {
  Tensor w1, w2;
  explicit Model(double seed)
      : w1(leaf({0.1 * seed, -0.2, 0.3, 0.4, -0.5, 0.6}, Shape{2, 3})),
        w2(leaf({0.7, -0.8, 0.9}, Shape{3, 1})) {}

  double step(const Tensor& x, const Tensor& target) {
    const Tensor error = matmul(tanh(matmul(x, w1)), w2) - target;
    const Tensor loss = mean(error * error);
    run_backward(loss);
    const NoGrad off;
    for (const Tensor& w : {w1, w2}) {
      subtract_(w, history_of(w).grad.get() * 0.05);
      history_of(w).grad.set(Tensor());
    }
    return loss.item_double();
  }
};

const Tensor& inputs() {
  static const Tensor x =
      Tensor::from_vector(Values{0, 0, 0, 1, 1, 0, 1, 1}, Shape{4, 2}, DType::Float64);
  return x;
}
const Tensor& targets() {
  static const Tensor y = Tensor::from_vector(Values{0, 1, 1, 2}, Shape{4, 1}, DType::Float64);
  return y;
}

TEST(ManySteps, NeitherAllocatorNorProcessGrows) {
  Model model(1);
  const double first = model.step(inputs(), targets());
  for (int i = 0; i < kSteps / 10; ++i) model.step(inputs(), targets());
  const MemoryStats before = cpu_allocator::stats();
  const int64_t pages = resident_pages();
  double last = 0;
  for (int i = 0; i < kSteps; ++i) last = model.step(inputs(), targets());
  EXPECT_LT(last, first / 10);
  EXPECT_EQ(cpu_allocator::stats().allocated, before.allocated);
  EXPECT_EQ(cpu_allocator::stats().reserved, before.reserved);
  if (!OAR_SANITIZED) {
    EXPECT_LT((resident_pages() - pages) * sysconf(_SC_PAGESIZE), 1 << 20);
  }
}

TEST(ManySteps, GraphsThatFailLeaveNothingBehind) {
  const Tensor x = leaf(Values(1000, 1.0));
  const auto fail_once = [&] {
    const Tensor y = exp(x);
    retain_grad(y);
    const Tensor z = y * y;
    add_(y, y);
    EXPECT_THROW(run_backward(z), Error);
    EXPECT_THROW(run_backward(y), Error);
  };
  fail_once();
  const int64_t before = cpu_allocator::stats().allocated;
  for (int i = 0; i < 100; ++i) fail_once();
  EXPECT_EQ(cpu_allocator::stats().allocated, before);
}

TEST(Threads, TrainSeparateModels) {
  const auto train = [](double seed) {
    Model model(seed);
    double loss = 0;
    for (int i = 0; i < 300; ++i) loss = model.step(inputs(), targets());
    return loss;
  };
  Values expected, found(4);
  for (int i = 0; i < 4; ++i) expected.push_back(train(i + 1));
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&, i] { found[static_cast<size_t>(i)] = train(i + 1); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, expected);
}

// Tensors and graphs may be created in one thread and freed in another.
TEST(Threads, HandGraphsOver) {
  const Tensor x = leaf({2});
  std::vector<Tensor> losses(50);
  std::thread maker([&] {
    for (Tensor& loss : losses) {
      loss = x * x;
      for (int i = 0; i < 100; ++i) loss = loss + x;
    }
  });
  maker.join();
  for (const Tensor& loss : losses) run_backward(loss);
  EXPECT_EQ(grad_of(x), (Values{50 * 104}));
  std::thread dropper([list = std::move(losses)]() mutable { list.clear(); });
  dropper.join();
}

TEST(Threads, EachHasItsOwnGradMode) {
  const NoGrad off;
  bool other = false;
  std::thread([&] { other = grad_enabled(); }).join();
  EXPECT_TRUE(other);
  EXPECT_FALSE(grad_enabled());
}

}  // namespace
}  // namespace oar::test
