// The std::thread engine behind parallel.h; not for use elsewhere.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>

#include "oar/base/function_ref.h"

namespace oar::detail {

// Tasks 0 ... count - 1 of one parallel call. Lives on the caller's stack.
class ParallelJob {
 public:
  ParallelJob(std::int64_t count, FunctionRef<void(std::int64_t)> task);

  std::int64_t count() const { return count_; }
  // Runs tasks that nobody has begun until there are none.
  void work();
  // Runs every stride-th task from first on: the same thread gets the same piece each time, and
  // finds it in its cache.
  void work(std::int64_t first, std::int64_t stride);
  // To be called once all work is done.
  void rethrow();

 private:
  void run(std::int64_t i);

  const std::int64_t count_;
  const FunctionRef<void(std::int64_t)> task_;
  const char* const op_;  // the caller's, so that errors and crashes in a worker name it
  std::atomic<std::int64_t> next_{0};
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
};

bool in_job();

// Idle threads that help callers. Any number of callers may run jobs at once; each works on its own
// job itself, so a job ends even if no worker is free.
class ThreadPool {
 public:
  // Runs the job with up to `threads` threads, the caller among them.
  void run(ParallelJob& job, int threads);

 private:
  struct Entry {
    ParallelJob* job;
    int wanted;      // workers that may still join
    int active = 0;  // workers inside
  };

  void start_workers(int count);
  void serve();
  void remove(const Entry* entry);

  std::mutex mutex_;
  std::condition_variable work_ready_;
  std::condition_variable work_done_;
  std::deque<Entry*> entries_;
  int workers_ = 0;
};

}  // namespace oar::detail
