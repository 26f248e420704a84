// Mutexes that survive fork(). A child has only the thread that forked: a lock that another thread held at that
// moment would stay locked in it forever. Mutexes of the library are of these types, or have a ForkStep (below).
#pragma once

#include <mutex>
#include <new>

#include "oar/base/api.h"

namespace OAR_API oar {

namespace detail {

class ForkLock {
 public:
  ForkLock(const ForkLock&) = delete;
  ForkLock& operator=(const ForkLock&) = delete;

  virtual bool try_before_fork() = 0;
  virtual void after_fork_in_parent() = 0;
  virtual void after_fork_in_child() = 0;

  ForkLock *next = nullptr, *previous = nullptr;

 protected:
  ForkLock() = default;
  ~ForkLock() = default;
  // From then on a fork calls the functions above. Call at the end of a constructor, and first in a destructor.
  void enroll();
  void withdraw();
};

}  // namespace detail

// A fork waits until it holds the lock itself, so the guarded data is consistent in the child. For short sections: the
// holder must wait neither for the interpreter lock nor for the forking thread.
template <class M>
class HeldOverFork final : detail::ForkLock {
 public:
  HeldOverFork() { enroll(); }
  ~HeldOverFork() { withdraw(); }
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  bool try_lock() { return mutex_.try_lock(); }

 private:
  bool try_before_fork() override { return mutex_.try_lock(); }
  void after_fork_in_parent() override { mutex_.unlock(); }
  void after_fork_in_child() override { new (&mutex_) M; }  // its owner has another number there

  M mutex_;
};
using ForkMutex = HeldOverFork<std::mutex>;
using ForkRecursiveMutex = HeldOverFork<std::recursive_mutex>;

// A lock that may be held for long, while user code runs: a fork does not wait for it, and it is unlocked in the child.
template <class M>
class FreedByFork final : detail::ForkLock {
 public:
  FreedByFork() { enroll(); }
  ~FreedByFork() { withdraw(); }
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  bool try_lock() { return mutex_.try_lock(); }

 private:
  bool try_before_fork() override { return true; }
  void after_fork_in_parent() override {}
  void after_fork_in_child() override { new (&mutex_) M; }

  M mutex_;
};

// Runs before all locks are taken, and after they are released, in parent and child.
struct ForkStep {
  void (*before)();
  void (*after_in_parent)();
  void (*after_in_child)();
};
void add_fork_step(const ForkStep& step);

}  // namespace oar
