// The threads of parallel.h; not for use elsewhere.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>

#include "oar/base/api.h"
#include "oar/base/function_ref.h"
#include "oar/base/timeline.h"

namespace OAR_API oar {
namespace detail {

// What a worker does first, if anything; the crash handler gives it a stack of its own.
inline constinit std::atomic<void (*)()> on_worker_start{nullptr};

// Tasks 0 ... count - 1 of one parallel call. Lives on the caller's stack.
class ParallelJob {
 public:
  ParallelJob(std::int64_t count, FunctionRef<void(std::int64_t)> task);

  std::int64_t count() const { return count_; }
  // Runs tasks that no thread has started until there are none. The task with the thread's own number comes first, if it
  // is free: in the next call like this one the thread then has the data in its cache.
  void work(int thread);
  // Call it once all work is done.
  void rethrow();

 private:
  // A task that no thread has started; count_ if there is none.
  std::int64_t claim(int thread);
  void work_untimed(int thread);
  void run(std::int64_t i);

  static constexpr std::int64_t kMostBits = 64;
  const std::int64_t count_;
  const FunctionRef<void(std::int64_t)> task_;
  const char* const op_;   // the caller's, so that errors and crashes in a worker name it
  const LayerPath layer_;  // the caller's, for profiles
  std::atomic<std::uint64_t> begun_{0};  // a bit per task, or their number if there are more
  std::atomic<bool> failed_{false};
  std::exception_ptr error_;
};

bool in_job();

// Threads that help callers. Any number of callers may run jobs at once; each works on its own job itself and waits only
// for tasks that others have started. So a job ends even if no worker has a processor.
class ThreadPool {
 public:
  // Runs the job with up to `threads` threads, including the caller.
  void run(ParallelJob& job, int threads);

 private:
  struct Entry {
    ParallelJob* job;
    int wanted;                  // workers that may still join
    std::atomic<int> active{0};  // workers inside
  };

  void start_workers(int count);
  void serve(int number);
  Entry* next_entry();
  void leave(Entry* entry);
  void remove(const Entry* entry);
  void wait_for(const Entry& entry);

  std::mutex mutex_;
  std::condition_variable work_ready_, work_done_;
  std::deque<Entry*> entries_;
  std::atomic<int> offered_{0};  // entries, to be read without the lock
  int sleeping_ = 0;             // workers
  std::atomic<int> waiting_{0};  // callers
  int workers_ = 0;
};

}  // namespace detail
}  // namespace oar
