#include "oar/base/fork_mutex.h"

#include <pthread.h>
#include <sched.h>

#include <vector>

namespace oar {
namespace {

thread_local std::vector<ForkStep> t_steps;  // of this thread's current fork

// Never destroyed: locks live on in threads that outlast main.
class AllLocks {
 public:
  static AllLocks& get() {
    static AllLocks* const all = new AllLocks;
    return *all;
  }

  void add(detail::ForkLock* lock) {
    const std::lock_guard guard(mutex_);
    lock->next = first_;
    if (first_) first_->previous = lock;
    first_ = lock;
  }
  void remove(detail::ForkLock* lock) {
    const std::lock_guard guard(mutex_);
    (lock->previous ? lock->previous->next : first_) = lock->next;
    if (lock->next) lock->next->previous = lock->previous;
  }
  void add(const ForkStep& step) {
    const std::lock_guard guard(mutex_);
    steps_.push_back(step);
  }

 private:
  AllLocks() {
    pthread_atfork([] { get().before(); }, [] { get().after(false); }, [] { get().after(true); });
  }

  void before() {
    t_steps = steps();
    for (const ForkStep& step : t_steps) step.before();
    while (!try_all()) sched_yield();
  }

  void after(bool child) {
    for (detail::ForkLock* lock = first_; lock; lock = lock->next)
      child ? lock->after_fork_in_child() : lock->after_fork_in_parent();
    if (child)
      new (&mutex_) std::mutex;
    else
      mutex_.unlock();
    for (const ForkStep& step : t_steps) child ? step.after_in_child() : step.after_in_parent();
  }

  // Locks all or none: a thread that holds one of them may be waiting for another.
  bool try_all() {
    mutex_.lock();
    for (detail::ForkLock* lock = first_; lock; lock = lock->next) {
      if (lock->try_before_fork()) continue;
      for (detail::ForkLock* held = first_; held != lock; held = held->next)
        held->after_fork_in_parent();
      mutex_.unlock();
      return false;
    }
    return true;
  }

  std::vector<ForkStep> steps() {
    const std::lock_guard guard(mutex_);
    return steps_;
  }

  std::mutex mutex_;
  detail::ForkLock* first_ = nullptr;
  std::vector<ForkStep> steps_;
};

}  // namespace

void detail::ForkLock::enroll() { AllLocks::get().add(this); }
void detail::ForkLock::withdraw() { AllLocks::get().remove(this); }

void add_fork_step(const ForkStep& step) { AllLocks::get().add(step); }

}  // namespace oar
