#include "oar/base/interrupt.h"

#include <ctime>
#include <utility>

#include "oar/base/error.h"
#include "oar/base/host_language.h"

namespace oar {
namespace {
constinit thread_local int t_off = 0;
constinit thread_local bool t_checking = false;
}  // namespace

void poll_interrupt() {
  const auto check = host_language().interrupted;
  if (!check || t_off != 0) return;
  const bool outer = std::exchange(t_checking, true);
  const bool interrupted = check();
  t_checking = outer;
  if (interrupted) fail(ErrorKind::Interrupted, "interrupted by the user.");
}

bool in_interrupt_check() { return t_checking; }

void block_on(FunctionRef<void()> block) {
  if (const auto call = host_language().block) return call(block);
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
