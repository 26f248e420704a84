// Groups of processes: the rendezvous, reductions, and what every engine must do. Threads stand for processes.
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <complex>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "oar/base/error.h"
#include "oar/base/flags.h"
#include "oar/base/half_bits.h"
#include "oar/distributed/combine.h"
#include "oar/distributed/engines.h"
#include "oar/distributed/groups.h"
#include "oar/distributed/process_group.h"
#include "oar/distributed/stores.h"
#include "oar/ops/gen/collective.h"

namespace oar::distributed {
namespace {

std::string fresh_folder() {
  static std::atomic<int> count = 0;
  const auto path = std::filesystem::temp_directory_path() /
                    ("oar_store_" + std::to_string(getpid()) + "_" + std::to_string(count++));
  std::filesystem::remove_all(path);
  return path.string();
}

// ---- Rendezvous --------------------------------------------------------------------------------

void check_store(Store& a, Store& b) {
  EXPECT_FALSE(a.find("x").has_value());
  a.set("x", std::string("a\0b\n", 4));
  EXPECT_EQ(b.find("x").value(), std::string("a\0b\n", 4));
  b.set("x", "");
  EXPECT_EQ(a.get("x", Milliseconds(1000)), "");
  a.remove("x");
  EXPECT_FALSE(b.find("x").has_value());
  EXPECT_EQ(a.add("count", 2), 2);
  EXPECT_EQ(b.add("count", -5), -3);
  a.set("with/strange: characters_", "1");
  a.set("with/strange: characters ", "2");
  EXPECT_EQ(b.get("with/strange: characters_", Milliseconds(0)), "1");
  std::thread late([&] {
    std::this_thread::sleep_for(Milliseconds(30));
    b.set("late", std::string(200000, 'z'));
  });
  EXPECT_EQ(a.get("late", Milliseconds(5000)).size(), 200000u);
  late.join();
  try {
    a.get("never", Milliseconds(20));
    FAIL() << "there is no such value";
  } catch (const Error& e) {
    EXPECT_NE(e.text().find("'never'"), std::string::npos) << e.what();
    EXPECT_NE(e.text().find(a.describe()), std::string::npos) << e.what();
  }
}

TEST(Distributed, FileStore) {
  const std::string folder = fresh_folder();
  const auto a = open_store("file://" + folder, Milliseconds(0)), b = file_store(folder);
  check_store(*a, *b);
  std::filesystem::remove_all(folder);
}

TEST(Distributed, TcpStore) {
  const auto server = serve_store("127.0.0.1", 0);
  const std::string address = "tcp://127.0.0.1:" + std::to_string(server->port());
  const auto a = open_store(address, Milliseconds(5000)),
             b = open_store(address, Milliseconds(5000));
  check_store(*a, *b);
  EXPECT_EQ(a->own_address(), "127.0.0.1");
  const auto part = part_of(b, "group/");
  part->set("y", "1");
  EXPECT_EQ(a->find("group/y").value(), "1");
}

TEST(Distributed, CountersOfManyThreads) {
  const auto server = serve_store("127.0.0.1", 0);
  const std::string folder = fresh_folder();
  for (const std::string& address :
       {"tcp://127.0.0.1:" + std::to_string(server->port()), "file://" + folder}) {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i)
      threads.emplace_back([&address] {
        const auto store = open_store(address, Milliseconds(5000));
        for (int k = 0; k < 25; ++k) store->add("count", 1);
      });
    for (std::thread& t : threads) t.join();
    EXPECT_EQ(open_store(address, Milliseconds(5000))->add("count", 0), 100);
  }
  std::filesystem::remove_all(folder);
}

TEST(Distributed, StoreErrors) {
  EXPECT_THROW(open_store("127.0.0.1:80", Milliseconds(0)), Error);
  EXPECT_THROW(open_store("tcp://127.0.0.1:port", Milliseconds(0)), Error);
  auto server = serve_store("127.0.0.1", 0);
  const uint16_t port = server->port();
  EXPECT_THROW(serve_store("127.0.0.1", port), Error);
  const auto store = tcp_store("127.0.0.1", port, Milliseconds(1000));
  server.reset();
  EXPECT_THROW(store->set("x", "1"), Error);
  EXPECT_THROW(tcp_store("127.0.0.1", port, Milliseconds(50)), Error);
}

// ---- Reductions --------------------------------------------------------------------------------

TEST(Distributed, CombinesEveryType) {
  const auto combined = [](DType dtype, ReduceKind kind, auto a, auto b) {
    const Reduction how = reduction_of(kind, dtype, "test");
    EXPECT_EQ(how.element_size, sizeof(a));
    how.combine(&a, &a, &b, 1);
    return a;
  };
  for (const ReduceKind kind :
       {ReduceKind::Sum, ReduceKind::Max, ReduceKind::Min, ReduceKind::Prod}) {
    const auto of = [&](double a, double b) {
      return kind == ReduceKind::Sum    ? a + b
             : kind == ReduceKind::Prod ? a * b
             : kind == ReduceKind::Max  ? std::max(a, b)
                                        : std::min(a, b);
    };
    EXPECT_EQ(combined(DType::Int8, kind, int8_t{-3}, int8_t{5}), of(-3, 5));
    EXPECT_EQ(combined(DType::UInt8, kind, uint8_t{3}, uint8_t{5}), of(3, 5));
    EXPECT_EQ(combined(DType::Int16, kind, int16_t{-300}, int16_t{50}), of(-300, 50));
    EXPECT_EQ(combined(DType::Int32, kind, -30000, 50), of(-30000, 50));
    EXPECT_EQ(combined(DType::Int64, kind, int64_t{-3}, int64_t{5}), of(-3, 5));
    EXPECT_EQ(combined(DType::UInt32, kind, uint32_t{3}, uint32_t{5}), of(3, 5));
    EXPECT_EQ(combined(DType::UInt64, kind, uint64_t{3}, uint64_t{5}), of(3, 5));
    EXPECT_EQ(combined(DType::Float32, kind, 1.5f, -2.0f), of(1.5, -2));
    EXPECT_EQ(combined(DType::Float64, kind, 1.5, -2.0), of(1.5, -2));
    EXPECT_EQ(half_value(combined(DType::Float16, kind, half_bits(1.5f), half_bits(-2.0f))),
              of(1.5, -2));
    const uint16_t bf = combined(DType::BFloat16, kind, uint16_t{0x3fc0}, uint16_t{0xc000});
    EXPECT_EQ(__builtin_bit_cast(float, static_cast<uint32_t>(bf) << 16), of(1.5, -2));
    const bool is_or = kind == ReduceKind::Sum || kind == ReduceKind::Max;
    EXPECT_EQ(combined(DType::Bool, kind, true, false), is_or);
  }
  using Complex = std::complex<double>;
  EXPECT_EQ(combined(DType::Complex128, ReduceKind::Prod, Complex(0, 1), Complex(0, 1)),
            Complex(-1, 0));
  EXPECT_THROW(reduction_of(ReduceKind::Max, DType::Complex64, "test"), Error);
  EXPECT_THROW(reduction_of(ReduceKind::Sum, DType::Int4, "test"), Error);
  const float nan = std::nanf("");
  EXPECT_TRUE(std::isnan(combined(DType::Float32, ReduceKind::Max, 1.0f, nan)));
  EXPECT_TRUE(std::isnan(combined(DType::Float32, ReduceKind::Min, nan, 1.0f)));
  EXPECT_EQ(combined(DType::Int32, ReduceKind::Sum, std::numeric_limits<int>::max(), 1),
            std::numeric_limits<int>::min());
}

// ---- Groups ------------------------------------------------------------------------------------

// Runs `body` as each of `size` processes. What each of them throws is in `errors`.
struct Ranks {
  int size = 4;
  Milliseconds timeout{20000};
  std::string engine = "gloo";
  std::vector<std::string> errors{};

  void run(const std::function<void(ProcessGroup&)>& body) {
    const auto server = serve_store("127.0.0.1", 0);
    errors.assign(static_cast<size_t>(size), "");
    std::vector<std::thread> threads;
    for (int rank = 0; rank < size; ++rank)
      threads.emplace_back([&, rank] {
        try {
          GroupOptions options;
          options.backend = engine;
          options.ranks.resize(static_cast<size_t>(size));
          std::iota(options.ranks.begin(), options.ranks.end(), 0);
          options.rank = rank;
          options.name = "test";
          options.timeout = timeout;
          options.store = tcp_store("127.0.0.1", server->port(), timeout);
          const auto group = ProcessGroup::make(std::move(options));
          body(*group);
        } catch (const std::exception& e) {
          errors[static_cast<size_t>(rank)] = e.what();
        }
      });
    for (std::thread& t : threads) t.join();
  }
  void expect_no_errors() const {
    for (const std::string& error : errors) EXPECT_EQ(error, "");
  }
};

bool has_gloo() { return has_engine("gloo"); }

template <class T>
Memory memory_of(std::vector<T>& v) {
  return {v.data(), v.size() * sizeof(T)};
}

std::vector<float> numbers(int rank, size_t count) {
  std::vector<float> v(count);
  for (size_t i = 0; i < count; ++i)
    v[i] = std::sin(static_cast<float>(i) * 0.37f + static_cast<float>(rank)) *
           (1 + static_cast<float>(i % 7));
  return v;
}

// What an engine must do, for any engine.
void check_engine(const std::string& engine, int size, size_t count) {
  Ranks ranks{.size = size, .engine = engine};
  const auto n = static_cast<size_t>(size);
  std::vector<std::vector<float>> sums(n);
  ranks.run([&](ProcessGroup& g) {
    const auto rank = static_cast<size_t>(g.rank());
    std::vector<float> own = numbers(g.rank(), count), out = own;
    g.start({.what = Collective::AllReduce, .out = {memory_of(out)}})->wait();
    sums[rank] = out;
    for (size_t i = 0; i < std::min<size_t>(count, 50); ++i) {
      double wanted = 0;
      for (int r = 0; r < size; ++r) wanted += numbers(r, i + 1)[i];
      EXPECT_NEAR(out[i], wanted, 1e-4);
    }
    for (int root = 0; root < size; ++root) {
      out = own;
      g.start({.what = Collective::Broadcast, .out = {memory_of(out)}, .peer = root})->wait();
      EXPECT_EQ(out, numbers(root, count));
      out = own;
      g.start({.what = Collective::Reduce,
               .in = {memory_of(own)},
               .out = {memory_of(out)},
               .op = ReduceOp::Max,
               .peer = root})
          ->wait();
      float most = own[0];
      for (int r = 0; r < size; ++r) most = std::max(most, numbers(r, count)[0]);
      EXPECT_EQ(out[0], g.rank() == root ? most : own[0]);
      std::vector<float> all(count * n);
      g.start({.what = Collective::Gather,
               .in = {memory_of(own)},
               .out = {memory_of(all)},
               .peer = root})
          ->wait();
      for (int r = 0; r < size && g.rank() == root; ++r)
        EXPECT_EQ(all[count * static_cast<size_t>(r)], numbers(r, count)[0]);
      for (size_t i = 0; i < all.size(); ++i) {
        const size_t part = i / count;
        all[i] = static_cast<float>(part + rank * 100);
      }
      g.start({.what = Collective::Scatter,
               .in = {memory_of(all)},
               .out = {memory_of(out)},
               .peer = root})
          ->wait();
      EXPECT_EQ(out.back(), static_cast<float>(g.rank() + root * 100));
    }
    std::vector<float> all(count * n);
    g.start({.what = Collective::AllGather, .in = {memory_of(own)}, .out = {memory_of(all)}})
        ->wait();
    for (int r = 0; r < size; ++r)
      EXPECT_EQ(std::vector<float>(all.begin() + static_cast<long>(count) * r,
                                   all.begin() + static_cast<long>(count) * (r + 1)),
                numbers(r, count));
    std::vector<float> parts(count * n);
    for (size_t i = 0; i < parts.size(); ++i) {
      const size_t part = i / count;
      parts[i] = static_cast<float>(part + rank);
    }
    g.start({.what = Collective::ReduceScatter, .in = {memory_of(parts)}, .out = {memory_of(out)}})
        ->wait();
    const size_t total = n * rank + n * (n - 1) / 2;
    EXPECT_EQ(out.back(), static_cast<float>(total));
    // Rank r sends rank p as many numbers as r + p, none among them.
    std::vector<std::vector<int32_t>> sent(n), received(n);
    std::vector<Memory> in, wanted;
    for (size_t p = 0; p < n; ++p) {
      sent[p].assign(rank + p, static_cast<int32_t>(rank * 10 + p));
      received[p].assign(rank + p, -1);
      in.push_back(memory_of(sent[p]));
      wanted.push_back(memory_of(received[p]));
    }
    g.start({.what = Collective::AllToAll, .in = in, .out = wanted, .dtype = DType::Int32})->wait();
    for (size_t p = 0; p < n; ++p)
      EXPECT_EQ(received[p], std::vector<int32_t>(rank + p, static_cast<int32_t>(p * 10 + rank)));
    g.start({})->wait();
    if (size == 1) return;
    // All messages are under way at once, also while a collective runs.
    const int next = (g.rank() + 1) % size, before = (g.rank() + size - 1) % size;
    std::vector<float> message(count), again(count);
    auto first = g.start(
        {.what = Collective::Receive, .out = {memory_of(message)}, .peer = before, .tag = 1});
    auto second =
        g.start({.what = Collective::Receive, .out = {memory_of(again)}, .peer = before, .tag = 2});
    out = own;
    auto reduction = g.start({.what = Collective::AllReduce, .out = {memory_of(out)}});
    auto last =
        g.start({.what = Collective::Send, .in = {memory_of(parts)}, .peer = next, .tag = 3});
    std::vector<float> long_message(parts.size());
    auto third = g.start(
        {.what = Collective::Receive, .out = {memory_of(long_message)}, .peer = before, .tag = 3});
    g.start({.what = Collective::Send, .in = {memory_of(own)}, .peer = next, .tag = 2});
    reduction->wait();
    auto sending =
        g.start({.what = Collective::Send, .in = {memory_of(own)}, .peer = next, .tag = 1});
    std::vector<float> late(count);
    auto fourth =
        g.start({.what = Collective::Receive, .out = {memory_of(late)}, .peer = before, .tag = 4});
    EXPECT_THROW(fourth->wait(Milliseconds(1)), Error) << "nobody has sent it yet";
    g.start({})->wait();
    g.start({.what = Collective::Send, .in = {memory_of(own)}, .peer = next, .tag = 4});
    fourth->wait();
    EXPECT_EQ(late, numbers(before, count));
    while (!first->is_done()) std::this_thread::yield();
    first->wait();
    second->wait();
    third->wait();
    last->wait();
    sending->wait();
    EXPECT_TRUE(first->is_done());
    EXPECT_EQ(message, numbers(before, count));
    EXPECT_EQ(again, message);
    EXPECT_EQ(out, sums[rank]) << "the same numbers of the same ranks must give the same bits";
  });
  ranks.expect_no_errors();
  for (size_t r = 1; r < n; ++r) EXPECT_EQ(sums[r], sums[0]) << "all ranks must get the same bits";
}

TEST(Distributed, GlooOfTwo) {
  if (!has_gloo()) GTEST_SKIP() << "built without Gloo";
  check_engine("gloo", 2, 1);
  check_engine("gloo", 2, 1000);
}
TEST(Distributed, GlooOfFour) {
  if (!has_gloo()) GTEST_SKIP() << "built without Gloo";
  check_engine("gloo", 4, 7);
}
TEST(Distributed, GlooOfThreeInLargeMessages) {
  if (!has_gloo()) GTEST_SKIP() << "built without Gloo";
  check_engine("gloo", 3, 1'000'003);
}

TEST(Distributed, OneAlone) {
  Ranks ranks{.size = 1};
  ranks.run([](ProcessGroup& g) {
    std::vector<float> in{1, 2}, out{0, 0};
    g.start({.what = Collective::AllGather, .in = {memory_of(in)}, .out = {memory_of(out)}})
        ->wait();
    EXPECT_EQ(out, in);
    g.start({.what = Collective::AllReduce, .out = {memory_of(out)}, .op = ReduceOp::Avg})->wait();
    EXPECT_EQ(out, in);
    EXPECT_THROW(g.start({.what = Collective::Send, .in = {memory_of(in)}, .peer = 0}), Error);
  });
  ranks.expect_no_errors();
}

TEST(Distributed, RequestsThatDoNotFit) {
  Ranks ranks{.size = 1};
  ranks.run([](ProcessGroup& g) {
    std::vector<float> in{1, 2}, out{0};
    EXPECT_THROW(
        g.start({.what = Collective::AllGather, .in = {memory_of(in)}, .out = {memory_of(out)}}),
        Error);
    EXPECT_THROW(
        g.start(
            {.what = Collective::ReduceScatter, .in = {memory_of(in)}, .out = {memory_of(out)}}),
        Error);
    std::vector<int32_t> whole{1};
    EXPECT_THROW(g.start({.what = Collective::AllReduce,
                          .out = {memory_of(whole)},
                          .dtype = DType::Int32,
                          .op = ReduceOp::Avg}),
                 Error);
  });
  ranks.expect_no_errors();
}

// ---- Faults ------------------------------------------------------------------------------------

TEST(Distributed, NamesTheRankThatDoesNotCome) {
  if (!has_gloo()) GTEST_SKIP() << "built without Gloo";
  Ranks ranks{.size = 3, .timeout = Milliseconds(700)};
  std::atomic<int> failed = 0;
  ranks.run([&](ProcessGroup& g) {
    if (g.rank() == 1) {
      while (failed < 2) std::this_thread::sleep_for(Milliseconds(10));
      return;
    }
    std::vector<float> x(100);
    try {
      g.start({.what = Collective::AllReduce, .out = {memory_of(x)}, .shape = "float32[100]"})
          ->wait();
      ADD_FAILURE() << "rank 1 was not there";
    } catch (const Error& e) {
      const std::string text = e.what();
      EXPECT_NE(text.find("rank 1, which has not come"), std::string::npos) << text;
      EXPECT_NE(text.find("all_reduce of float32[100]"), std::string::npos) << text;
      EXPECT_THROW(g.start({})->wait(), Error) << "the group cannot go on";
    }
    ++failed;
  });
  ranks.expect_no_errors();
}

TEST(Distributed, NamesTheRankThatDoesNotMeet) {
  const auto server = serve_store("127.0.0.1", 0);
  GroupOptions options;
  options.ranks = {0, 3};
  options.name = "pair";
  options.timeout = Milliseconds(100);
  options.store = tcp_store("127.0.0.1", server->port(), Milliseconds(1000));
  try {
    ProcessGroup::make(options);
    FAIL() << "rank 3 was not there";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("rank 3 of group pair"), std::string::npos) << e.what();
  }
}

TEST(Distributed, ClosingEndsWhatOthersWaitFor) {
  if (!has_gloo()) GTEST_SKIP() << "built without Gloo";
  Ranks ranks{.size = 3, .timeout = Milliseconds(20000)};
  const auto begin = std::chrono::steady_clock::now();
  ranks.run([&](ProcessGroup& g) {
    if (g.rank() == 2) return g.close();
    std::vector<float> x(100);
    EXPECT_THROW(g.start({.what = Collective::AllReduce, .out = {memory_of(x)}})->wait(), Error);
  });
  ranks.expect_no_errors();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(15))
      << "they waited for the time-out";
}

// After so many calls that are the same on both.
void expect_differences_are_shown(int calls) {
  Ranks ranks{.size = 2};
  ranks.run([&](ProcessGroup& g) {
    for (int i = 0; i < calls; ++i) g.start({.what = Collective::Barrier})->wait();
    std::vector<float> x(g.rank() == 0 ? 4 : 6);
    try {
      g.start({.what = Collective::AllReduce,
               .out = {memory_of(x)},
               .shape = g.rank() == 0 ? "float32[4]" : "float32[6]"})
          ->wait();
      ADD_FAILURE() << "the shapes differ";
    } catch (const Error& e) {
      const std::string text = e.what();
      EXPECT_NE(text.find("rank 0: all_reduce (sum) of float32[4]"), std::string::npos) << text;
      EXPECT_NE(text.find("rank 1: all_reduce (sum) of float32[6]"), std::string::npos) << text;
    }
  });
  ranks.expect_no_errors();
}

TEST(Distributed, DifferentCallsAreShown) {
  if (!has_gloo()) GTEST_SKIP() << "built without Gloo";
  expect_differences_are_shown(0);
  set_flag("check_collectives", "true");
  expect_differences_are_shown(150);
  set_flag("check_collectives", "false");
}

TEST(Distributed, EnginesThatAreNotThere) {
  EXPECT_FALSE(has_engine("nccl"));
  EXPECT_THROW(connect("../gloo", {}), Error);
}

// ---- Ops ---------------------------------------------------------------------------------------

TEST(Distributed, OpsNeedTheirGroup) {
  const Tensor x = Tensor::scalar(1.0, DType::Float32);
  EXPECT_EQ(all_reduce(x).item_double(), 1);
  EXPECT_THROW(all_reduce(x, "sum", 7, 2), Error);
  EXPECT_THROW(all_reduce(x, "median"), Error);
  const std::vector<int64_t> three = {3}, five = {5};
  const Tensor rows = Tensor::from_vector(std::vector<float>{1, 2, 3}, Shape{3}, DType::Float32);
  EXPECT_EQ(all_to_all_rows(rows, three, three).numel(), 3);
  EXPECT_THROW(all_to_all_rows(rows, three, five), Error) << "what a process keeps has one length";
}

}  // namespace
}  // namespace oar::distributed
