#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "oar/base/error.h"
#include "oar/base/flags.h"
#include "oar/base/parallel.h"

namespace oar {
namespace {

class Parallel : public testing::Test {
 protected:
  void SetUp() override { set_num_threads(4); }
  void TearDown() override { set_num_threads(0); }
};

// Whether every index of [0, n) is visited once.
bool covers(std::int64_t n, std::int64_t grain) {
  std::vector<std::atomic<int>> visits(static_cast<std::size_t>(n));
  parallel_for(0, n, grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      visits[static_cast<std::size_t>(i)].fetch_add(1);
    }
  });
  for (const auto& count : visits) {
    if (count.load() != 1) {
      return false;
    }
  }
  return true;
}

std::size_t threads_used() {
  std::mutex mutex;
  std::set<std::thread::id> seen;
  std::atomic<int> arrived{0};
  parallel_chunks(2, [&](std::int64_t) {
    {
      const std::lock_guard lock(mutex);
      seen.insert(std::this_thread::get_id());
    }
    // Stay a while, so that a second thread has the time to come.
    arrived.fetch_add(1);
    for (int i = 0; i < 20000 && num_threads() > 1 && arrived.load() < 2; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  return seen.size();
}

TEST_F(Parallel, CoversTheRange) {
  for (const std::int64_t n : {0, 1, 2, 5, 7, 100, 1001}) {
    for (const std::int64_t grain : {0, 1, 3, 50, 5000}) {
      EXPECT_TRUE(covers(n, grain)) << n << " by " << grain;
    }
  }
  parallel_for(5, 3, 1, [](std::int64_t, std::int64_t) { FAIL() << "an empty range"; });
}

TEST_F(Parallel, PiecesAreAtLeastAGrain) {
  std::mutex mutex;
  std::vector<std::int64_t> lengths;
  parallel_for(10, 110, 30, [&](std::int64_t begin, std::int64_t end) {
    const std::lock_guard lock(mutex);
    lengths.push_back(end - begin);
  });
  EXPECT_EQ(lengths.size(), 3U);
  EXPECT_EQ(std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}), 100);
  EXPECT_GE(*std::max_element(lengths.begin(), lengths.end()), 30);
}

TEST_F(Parallel, ReallyUsesSeveralThreads) {
  EXPECT_EQ(threads_used(), 2U);
  set_num_threads(1);
  EXPECT_EQ(threads_used(), 1U);
}

TEST_F(Parallel, ChunkedSumsDoNotDependOnThreads) {
  const auto sum = [] {
    std::vector<float> partial(37);
    parallel_chunks(37, [&](std::int64_t chunk) {
      float total = 0;
      for (int i = 0; i < 1000; ++i) {
        total += 1.0F / static_cast<float>(chunk * 1000 + i + 1);
      }
      partial[static_cast<std::size_t>(chunk)] = total;
    });
    return std::accumulate(partial.begin(), partial.end(), 0.0F);
  };
  const float with_four = sum();
  set_num_threads(1);
  EXPECT_EQ(sum(), with_four);
}

TEST_F(Parallel, NestedRegionsAreSerial) {
  EXPECT_FALSE(in_parallel());
  std::atomic<int> inner_calls{0};
  parallel_for(0, 8, 1, [&](std::int64_t begin, std::int64_t end) {
    EXPECT_TRUE(in_parallel());
    const auto self = std::this_thread::get_id();
    parallel_for(0, 100, 1, [&](std::int64_t from, std::int64_t to) {
      EXPECT_EQ(to - from, 100);
      EXPECT_EQ(std::this_thread::get_id(), self);
      inner_calls.fetch_add(1);
    });
    parallel_chunks(end - begin, [&](std::int64_t) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      inner_calls.fetch_add(1);
    });
  });
  EXPECT_EQ(inner_calls.load(), 4 + 8);
  EXPECT_FALSE(in_parallel());
}

TEST_F(Parallel, CarriesTheFirstException) {
  for (int round = 0; round < 50; ++round) {
    try {
      parallel_for(0, 100, 1, [&](std::int64_t begin, std::int64_t) {
        if (begin >= 25) {
          throw std::runtime_error("piece " + std::to_string(begin));
        }
      });
      FAIL() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()).substr(0, 6), "piece ");
    }
    EXPECT_FALSE(in_parallel());
  }
  EXPECT_TRUE(covers(100, 1));
}

TEST_F(Parallel, WorkersKnowTheOp) {
  const OpScope scope("matmul");
  try {
    parallel_chunks(64, [](std::int64_t chunk) {
      EXPECT_STREQ(current_op(), "matmul");
      user_check(chunk != 63, ErrorKind::Runtime, "chunk {}", chunk);
    });
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[matmul] chunk 63");
  }
}

TEST_F(Parallel, ServesSeveralCallersAtOnce) {
  std::vector<std::thread> callers;
  std::atomic<int> good{0};
  for (int t = 0; t < 3; ++t) {
    callers.emplace_back([&] {
      for (int round = 0; round < 30; ++round) {
        good.fetch_add(covers(500, 10) ? 1 : 0);
      }
    });
  }
  for (std::thread& caller : callers) {
    caller.join();
  }
  EXPECT_EQ(good.load(), 90);
}

TEST_F(Parallel, CountFollowsTheFlag) {
  EXPECT_EQ(flag<int>("num_threads"), 4);
  set_flag("num_threads", "3");
  EXPECT_EQ(num_threads(), 3);
  EXPECT_THROW(set_num_threads(-1), Error);
  EXPECT_EQ(num_threads(), 3);
  set_num_threads(0);
  EXPECT_GE(num_threads(), 1);
}

int exit_code_of_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);  // a hang must fail, not hang the suite
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + status;
}

int check_child() {
  if (num_threads() != 1) return 1;
  if (!covers(1000, 1)) return 2;
  if (threads_used() != 1) return 3;
  set_num_threads(2);
  if (num_threads() != 2) return 4;
#if !defined(__SANITIZE_THREAD__)  // it does not support new threads in a forked child
  if (!covers(1000, 1)) return 5;
  if (threads_used() != 2) return 6;
#endif
  return 0;
}

TEST_F(Parallel, SurvivesAFork) {
  EXPECT_TRUE(covers(1000, 1));  // the threads that the child will lack
  EXPECT_EQ(exit_code_of_child(check_child), 0);
  EXPECT_EQ(num_threads(), 4);
  EXPECT_EQ(threads_used(), 2U);
  EXPECT_EQ(exit_code_of_child([] {
              const int own = check_child();
              return own != 0 ? own : 10 * exit_code_of_child(check_child);
            }),
            0);
}

TEST_F(Parallel, SurvivesAForkWhileOthersWork) {
  std::atomic<bool> stop{false};
  std::thread busy([&] {
    while (!stop.load()) {
      covers(100, 1);
      set_flag("trace", "");
    }
  });
  for (int round = 0; round < 5; ++round) {
    EXPECT_EQ(exit_code_of_child(check_child), 0);
  }
  stop.store(true);
  busy.join();
}

// Keeps every helper inside a task until it is released.
class Occupied {
 public:
  Occupied()
      : thread_([this] {
          parallel_chunks(num_threads(), [this](std::int64_t) {
            inside_.fetch_add(1);
            while (!ended_.load()) {
              std::this_thread::yield();
            }
          });
        }) {
    while (inside_.load() < num_threads()) {
      std::this_thread::yield();
    }
  }
  ~Occupied() {
    ended_.store(true);
    thread_.join();
  }

 private:
  std::atomic<int> inside_{0};
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

TEST_F(Parallel, TheCallerDoesWhatNobodyElseBegins) {
  const Occupied all_helpers;
  const auto self = std::this_thread::get_id();
  std::atomic<int> done{0};
  for (int round = 0; round < 100; ++round) {
    parallel_for(0, 1000, 1, [&](std::int64_t begin, std::int64_t end) {
      EXPECT_EQ(std::this_thread::get_id(), self);
      done.fetch_add(static_cast<int>(end - begin));
    });
    parallel_chunks(100, [&](std::int64_t) { done.fetch_add(1); });
  }
  EXPECT_EQ(done.load(), 100 * 1100);
}

TEST_F(Parallel, ManyTasksOfManyCallersRunOnce) {
  for (const std::int64_t count : {2, 3, 63, 64, 65, 1000}) {
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 3; ++caller) {
      callers.emplace_back([count] {
        for (int round = 0; round < 50; ++round) {
          std::vector<std::atomic<int>> visits(static_cast<std::size_t>(count));
          parallel_chunks(
              count, [&](std::int64_t i) { visits[static_cast<std::size_t>(i)].fetch_add(1); });
          for (const auto& times : visits) {
            ASSERT_EQ(times.load(), 1);
          }
        }
      });
    }
    for (std::thread& caller : callers) {
      caller.join();
    }
  }
}

TEST_F(Parallel, WorksAfterAllHelpersSleep) {
  for (int round = 0; round < 20; ++round) {
    EXPECT_TRUE(covers(1000, 1));
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace
}  // namespace oar
