#include "oar/base/interrupt.h"

#include <atomic>
#include <ctime>

#include "oar/base/error.h"

namespace oar {
namespace {
std::atomic<InterruptCheck> g_check{nullptr};
constinit thread_local int t_off = 0;
}  // namespace

void set_interrupt_check(InterruptCheck check) { g_check.store(check); }

void poll_interrupt() {
  const InterruptCheck check = g_check.load(std::memory_order_relaxed);
  if (check && t_off == 0 && check()) fail(ErrorKind::Interrupted, "interrupted by the user.");
}

InterruptsOff::InterruptsOff() { ++t_off; }
InterruptsOff::~InterruptsOff() { --t_off; }

// The coarse clock moves every few milliseconds and is read without a system call.
int64_t Patience::now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
  return int64_t{time.tv_sec} * 1000 + time.tv_nsec / 1000000;
}

}  // namespace oar
