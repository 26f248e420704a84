#include "oar/base/thread_pool.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

#include "oar/base/crash_handler.h"
#include "oar/base/error.h"
#include "oar/base/log.h"
#include "oar/base/scope_guard.h"

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
}  // namespace

bool in_job() { return inside_job; }

ParallelJob::ParallelJob(std::int64_t count, FunctionRef<void(std::int64_t)> task)
    : count_(count), task_(task), op_(current_op()) {}

void ParallelJob::work() {
  for (;;) {
    const std::int64_t i = next_.fetch_add(1, std::memory_order_relaxed);
    if (i >= count_) {
      return;
    }
    run(i);
  }
}

void ParallelJob::work(std::int64_t first, std::int64_t stride) {
  for (std::int64_t i = first; i < count_; i += stride) {
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
  {
    const std::lock_guard lock(mutex_);
    if (workers_ < helpers) {
      start_workers(helpers);
    }
    entries_.push_back(&entry);
  }
  for (int i = 0; i < helpers; ++i) {
    work_ready_.notify_one();
  }
  job.work();
  // The job lies on our stack: no worker may join from here on, and those inside must leave.
  std::unique_lock lock(mutex_);
  remove(&entry);
  work_done_.wait(lock, [&] { return entry.active == 0; });
}

void ThreadPool::start_workers(int count) {
  const sigset_t blocked = signals_for_others();
  sigset_t previous;
  pthread_sigmask(SIG_BLOCK, &blocked, &previous);  // a new thread inherits the mask
  const ScopeGuard restore([&] { pthread_sigmask(SIG_SETMASK, &previous, nullptr); });
  try {
    for (; workers_ < count; ++workers_) {
      std::thread([this] { serve(); }).detach();
    }
  } catch (const std::system_error& error) {
    log_warning("Only {} of {} worker threads could be started: {}", workers_, count, error.what());
  }
}

void ThreadPool::serve() {
  use_crash_stack();
  std::unique_lock lock(mutex_);
  for (;;) {
    work_ready_.wait(lock, [&] { return !entries_.empty(); });
    Entry* entry = entries_.front();
    ++entry->active;
    if (--entry->wanted == 0) {
      remove(entry);
    }
    lock.unlock();
    entry->job->work();
    lock.lock();
    remove(entry);  // nothing is left to begin
    if (--entry->active == 0) {
      work_done_.notify_all();
    }
  }
}

void ThreadPool::remove(const Entry* entry) { std::erase(entries_, entry); }

}  // namespace oar::detail
