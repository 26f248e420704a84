#include "oar/base/interrupt.h"

#include <atomic>
#include <ctime>
#include <utility>

#include "oar/base/error.h"

namespace oar {
namespace {
std::atomic<InterruptCheck> g_check{nullptr};
std::atomic<BlockingCall> g_blocking{nullptr};
constinit thread_local int t_off = 0;
constinit thread_local bool t_checking = false;
}  // namespace

void set_interrupt_check(InterruptCheck check) { g_check.store(check); }

void poll_interrupt() {
  const InterruptCheck check = g_check.load(std::memory_order_relaxed);
  if (!check || t_off != 0) return;
  const bool outer = std::exchange(t_checking, true);
  const bool interrupted = check();
  t_checking = outer;
  if (interrupted) fail(ErrorKind::Interrupted, "interrupted by the user.");
}

bool in_interrupt_check() { return t_checking; }

void set_blocking_call(BlockingCall call) { g_blocking.store(call); }

void block_on(FunctionRef<void()> block) {
  if (const BlockingCall call = g_blocking.load(std::memory_order_relaxed)) return call(block);
  block();
}

InterruptsOff::InterruptsOff() { ++t_off; }
InterruptsOff::~InterruptsOff() { --t_off; }

// The coarse clock advances every few milliseconds and is read without a system call.
int64_t Patience::now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1000000;
}

}  // namespace oar
