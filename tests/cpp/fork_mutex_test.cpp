#include "oar/base/fork_mutex.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

namespace oar {
namespace {

// The status of a child that does the work; -1 where it does not end.
template <class F>
int status_of_child(const F& work) {
  const pid_t child = fork();
  if (child == 0) _exit(work() ? 0 : 1);
  for (int i = 0; i < 3000; ++i) {
    int status = 0;
    if (waitpid(child, &status, WNOHANG) == child) return WEXITSTATUS(status);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
  return -1;
}

// A thread that takes the locks again and again, in changing order.
class Rival {
 public:
  Rival(ForkMutex& a, ForkRecursiveMutex& b, int64_t& guarded)
      : thread_([&, this] {
          for (int i = 0; !ended_; ++i) {
            if (i % 2 == 0) {
              const std::lock_guard first(a);
              const std::lock_guard second(b);
              ++guarded;
              ++guarded;
            } else {
              const std::lock_guard only(b);
              const std::lock_guard again(b);
            }
          }
        }) {}
  ~Rival() {
    ended_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> ended_{false};
  std::thread thread_;
};

TEST(ForkMutex, AChildFindsItFreeAndWhatItGuardsWhole) {
  ForkMutex a;
  ForkRecursiveMutex b;
  int64_t guarded = 0;
  const Rival rival(a, b, guarded);
  for (int round = 0; round < 50; ++round) {
    const int status = status_of_child([&] {
      const std::lock_guard first(a);
      const std::lock_guard second(b), third(b);
      return guarded % 2 == 0;
    });
    ASSERT_EQ(status, 0) << round;
  }
  const std::lock_guard still_works(a);
}

TEST(ForkMutex, AChildFindsALockFreeThatIsHeldForLong) {
  FreedByFork<std::recursive_mutex> held;
  std::atomic<bool> locked{false}, ended{false};
  std::thread other([&] {
    const std::lock_guard lock(held);
    locked = true;
    while (!ended) std::this_thread::yield();
  });
  while (!locked) std::this_thread::yield();
  const int status = status_of_child([&] {
    const std::lock_guard lock(held);
    return true;
  });
  EXPECT_FALSE(held.try_lock()) << "in the parent nothing has changed";
  ended = true;
  other.join();
  EXPECT_EQ(status, 0);
}

TEST(ForkMutex, LocksComeAndGo) {
  std::atomic<bool> ended{false};
  std::thread other([&] {
    while (!ended) {
      std::vector<std::unique_ptr<ForkMutex>> some;
      for (int i = 0; i < 10; ++i) some.push_back(std::make_unique<ForkMutex>());
      some.erase(some.begin() + 3);
      const std::lock_guard lock(*some[5]);
    }
  });
  for (int round = 0; round < 20; ++round) {
    const int status = status_of_child([&] {
      ForkMutex own;
      const std::lock_guard lock(own);
      return true;
    });
    EXPECT_EQ(status, 0);
  }
  ended = true;
  other.join();
}

}  // namespace
}  // namespace oar
