#include "oar/base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "oar/base/error.h"
#include "oar/base/log.h"
#include "oar/base/parallel.h"
#include "oar/base/scope_guard.h"
#include "oar/base/timeline.h"

namespace oar::detail {

namespace {
constinit thread_local bool inside_job = false;

// Leaves signals such as Ctrl-C to the threads of the application. Faults cannot be left to others.
sigset_t signals_for_others() {
  sigset_t set;
  sigfillset(&set);
  for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) {
    sigdelset(&set, fault);
  }
  return set;
}

// Tells the processor that the thread waits.
void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("yield");
#endif
}

// Spins for a while before it sleeps, which costs a system call: ops follow each other within
// microseconds. With more threads than processors spinning would only keep others from working.
template <class F>
bool spin_until(const F& done) {
  constexpr auto kPatience = std::chrono::microseconds(200);
  constexpr int kLooks = 64;  // between two reads of the clock
  if (done()) {
    return true;
  }
  if (num_threads() > processors()) {
    return false;
  }
  const auto end = std::chrono::steady_clock::now() + kPatience;
  do {
    for (int i = 0; i < kLooks; ++i) {
      if (done()) {
        return true;
      }
      relax();
    }
  } while (std::chrono::steady_clock::now() < end);
  return false;
}
}  // namespace

bool in_job() { return inside_job; }

ParallelJob::ParallelJob(std::int64_t count, FunctionRef<void(std::int64_t)> task)
    : count_(count), task_(task), op_(current_op()), layer_(current_layer()) {}

std::int64_t ParallelJob::claim(int thread) {
  if (count_ > kMostBits) {
    return std::min<std::int64_t>(
        static_cast<std::int64_t>(begun_.fetch_add(1, std::memory_order_relaxed)), count_);
  }
  std::uint64_t begun = begun_.load(std::memory_order_relaxed);
  for (std::int64_t i = thread;; i = std::countr_one(begun)) {
    if (i >= count_) {
      i = std::countr_one(begun);
    }
    if (i >= count_) {
      return count_;
    }
    const std::uint64_t bit = std::uint64_t{1} << i;
    begun = begun_.fetch_or(bit, std::memory_order_relaxed);
    if ((begun & bit) == 0) {
      return i;
    }
  }
}

void ParallelJob::work(int thread) {
  if (thread > 0 && timeline::is_running())
      [[unlikely]] {  // the caller's own part is in its kernel
    const InLayer layer(layer_);
    const timeline::Span span(timeline::Kind::Work, op_ ? timeline::kept(op_) : "");
    return work_untimed(thread);
  }
  work_untimed(thread);
}

void ParallelJob::work_untimed(int thread) {
  for (std::int64_t i = claim(thread); i < count_; i = claim(thread)) {
    run(i);
  }
}

void ParallelJob::run(std::int64_t i) {
  if (failed_.load(std::memory_order_relaxed)) {
    return;
  }
  const OpScope scope(op_);
  const bool was_inside = std::exchange(inside_job, true);
  const ScopeGuard leave([&] { inside_job = was_inside; });
  try {
    task_(i);
  } catch (...) {
    if (!failed_.exchange(true)) {
      error_ = std::current_exception();
    }
  }
}

void ParallelJob::rethrow() {
  if (error_ != nullptr) {
    std::rethrow_exception(std::move(error_));
  }
}

void ThreadPool::run(ParallelJob& job, int threads) {
  const int helpers = static_cast<int>(std::min<std::int64_t>(threads, job.count())) - 1;
  Entry entry{&job, helpers};
  int asleep = 0;
  {
    const std::lock_guard lock(mutex_);
    if (workers_ < helpers) {
      start_workers(helpers);
    }
    entries_.push_back(&entry);
    offered_.store(static_cast<int>(entries_.size()), std::memory_order_release);
    asleep = std::min(helpers, sleeping_);
  }
  for (int i = 0; i < asleep; ++i) {
    work_ready_.notify_one();
  }
  job.work(0);
  // The job is on our stack: no worker may join from here on, and those inside must leave.
  {
    const std::lock_guard lock(mutex_);
    remove(&entry);
  }
  wait_for(entry);
}

void ThreadPool::wait_for(const Entry& entry) {
  const auto done = [&] { return entry.active.load(std::memory_order_acquire) == 0; };
  if (spin_until(done)) {
    return;
  }
  std::unique_lock lock(mutex_);
  waiting_.fetch_add(1);
  work_done_.wait(lock, [&] { return entry.active.load() == 0; });
  waiting_.fetch_sub(1);
}

void ThreadPool::start_workers(int count) {
  const sigset_t blocked = signals_for_others();
  sigset_t previous;
  pthread_sigmask(SIG_BLOCK, &blocked, &previous);  // a new thread inherits the mask
  const ScopeGuard restore([&] { pthread_sigmask(SIG_SETMASK, &previous, nullptr); });
  try {
    for (; workers_ < count; ++workers_) {
      std::thread([this, number = workers_ + 1] { serve(number); }).detach();
    }
  } catch (const std::system_error& error) {
    log_warning("Only {} of {} worker threads could be started: {}", workers_, count, error.what());
  }
}

// Waits until there is a job, and joins it.
ThreadPool::Entry* ThreadPool::next_entry() {
  spin_until([&] { return offered_.load(std::memory_order_acquire) > 0; });
  std::unique_lock lock(mutex_);
  while (entries_.empty()) {
    ++sleeping_;
    work_ready_.wait(lock);
    --sleeping_;
  }
  Entry* entry = entries_.front();
  entry->active.fetch_add(1, std::memory_order_relaxed);
  if (--entry->wanted == 0) {
    remove(entry);
  }
  return entry;
}

// Once no thread is active the entry may be freed.
void ThreadPool::leave(Entry* entry) {
  {
    const std::lock_guard lock(mutex_);
    remove(entry);  // nothing is left to start
  }
  entry->active.fetch_sub(1);
  if (waiting_.load() > 0) {
    {
      const std::lock_guard lock(mutex_);
    }  // a caller that has seen us active sleeps by now
    work_done_.notify_all();
  }
}

void ThreadPool::serve(int number) {
  if (const auto begin = on_worker_start.load(std::memory_order_acquire)) {
    begin();
  }
  for (;;) {
    Entry* const entry = next_entry();
    entry->job->work(number);
    leave(entry);
  }
}

void ThreadPool::remove(const Entry* entry) {
  std::erase(entries_, entry);
  offered_.store(static_cast<int>(entries_.size()), std::memory_order_release);
}

}  // namespace oar::detail
