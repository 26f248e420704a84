#include "oar/base/parallel.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "oar/base/error.h"
#include "oar/base/flags.h"
#include "oar/base/thread_pool.h"

#if defined(OAR_USE_OPENMP)
#include <omp.h>
#endif

namespace oar {

namespace {

using detail::ParallelJob;
using detail::ThreadPool;

constinit std::atomic<int> thread_count{0};  // 0: not decided yet
constinit std::atomic<ThreadPool*> pool{nullptr};

// A container's processor quota, rounded up; without it a container of 2 processors on a machine of
// 64 would start 64 threads. A large number if there is none.
[[maybe_unused]] int quota_of_container() {
  constexpr int kNone = 1 << 20;
  std::FILE* file = std::fopen("/sys/fs/cgroup/cpu.max", "re");
  if (file == nullptr) {
    return kNone;
  }
  long long quota = 0;
  long long period = 0;
  const int fields = std::fscanf(file, "%lld %lld", &quota, &period);  // "max ..." reads none
  std::fclose(file);
  if (fields != 2 || quota <= 0 || period <= 0) {
    return kNone;
  }
  return static_cast<int>(std::clamp<long long>((quota + period - 1) / period, 1, kNone));
}

int default_num_threads() {
  if (const char* text = std::getenv("OMP_NUM_THREADS")) {
    const int wanted = std::atoi(text);  // of a list such as "4,2", the outermost level
    if (wanted > 0) {
      return wanted;
    }
  }
  return processors();
}

void apply_flag() {
  const int wanted = flag<int>("num_threads");
  thread_count.store(wanted > 0 ? wanted : default_num_threads(), std::memory_order_relaxed);
}

// The child has only the thread that forked. The pool still lists threads that do not exist; waiting for them would
// hang.
void after_fork_in_child() {
  thread_count.store(1, std::memory_order_relaxed);
  pool.store(nullptr, std::memory_order_relaxed);  // abandoned: its mutex may be locked
}

[[maybe_unused]] const bool prepared = [] {
  on_flag_change("num_threads", apply_flag);
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
  return true;
}();

// Created at first use and never destroyed: its threads may still wait in it when the process exits.
[[maybe_unused]] ThreadPool& shared_pool() {
  ThreadPool* current = pool.load(std::memory_order_acquire);
  if (current == nullptr) {
    auto* made = new ThreadPool;
    if (pool.compare_exchange_strong(current, made, std::memory_order_acq_rel)) {
      return *made;
    }
    delete made;  // another thread was first
  }
  return *current;
}

void run(std::int64_t count, [[maybe_unused]] int threads, FunctionRef<void(std::int64_t)> task) {
#if defined(OAR_NO_THREADS)
  for (std::int64_t i = 0; i < count; ++i) {
    task(i);
  }
#else
  ParallelJob job(count, task);
  shared_pool().run(job, threads);
  job.rethrow();
#endif
}

}  // namespace

int processors() {
#if defined(OAR_NO_THREADS)
  return 1;
#else
  static const int count = [] {
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    const int seen = sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
    return std::max(1, std::min(seen, quota_of_container()));
  }();
  return count;
#endif
}

int num_threads() {
  const int count = thread_count.load(std::memory_order_relaxed);
  if (count == 0) [[unlikely]] {
    apply_flag();
    return thread_count.load(std::memory_order_relaxed);
  }
  return count;
}

void set_num_threads(int count) { set_flag("num_threads", std::to_string(count)); }

bool in_parallel() {
#if defined(OAR_USE_OPENMP)
  return detail::in_job() || omp_in_parallel() != 0;  // or in a loop of another OpenMP library
#else
  return detail::in_job();
#endif
}

namespace detail {

void run_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
             FunctionRef<void(std::int64_t, std::int64_t)> body) {
  const std::int64_t length = end - begin;
  const int threads = num_threads();
  const std::int64_t pieces =
      std::min<std::int64_t>(threads, length / std::max<std::int64_t>(grain, 1));
  if (pieces <= 1 || in_parallel()) {
    if (length > 0) {
      body(begin, end);
    }
    return;
  }
  const std::int64_t piece = (length + pieces - 1) / pieces;
  run((length + piece - 1) / piece, threads, [&](std::int64_t i) {
    const std::int64_t first = begin + i * piece;
    body(first, std::min(end, first + piece));
  });
}

}  // namespace detail

void parallel_chunks(std::int64_t n_chunks, FunctionRef<void(std::int64_t chunk)> body) {
  const int threads = num_threads();
  if (n_chunks <= 1 || threads == 1 || in_parallel()) {
    for (std::int64_t i = 0; i < n_chunks; ++i) {
      body(i);
    }
    return;
  }
  run(n_chunks, threads, body);
}

}  // namespace oar
