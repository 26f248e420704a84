// Lets a long native loop notice that the user wants it to stop.
#pragma once

#include <cstdint>

#include "oar/base/api.h"
#include "oar/base/function_ref.h"

namespace OAR_API oar {

// A language binding installs a check that returns true once the user has interrupted.
using InterruptCheck = bool (*)();
void set_interrupt_check(InterruptCheck check);
// Throws an Error of kind Interrupted if the user has. Cheap, but not free: every few hundred steps.
void poll_interrupt();

// Whether this thread is inside the check, where handlers of the user may run.
bool in_interrupt_check();

// Blocks on a lock that others may hold while they run the check. A language binding installs a function that gives up its
// own lock in the meantime, since the check needs that one.
using BlockingCall = void (*)(FunctionRef<void()> block);
void set_blocking_call(BlockingCall call);
void block_on(FunctionRef<void()> block);

// While one lives, this thread is not interrupted.
class InterruptsOff {
 public:
  InterruptsOff();
  ~InterruptsOff();
  InterruptsOff(const InterruptsOff&) = delete;
  InterruptsOff& operator=(const InterruptsOff&) = delete;
};

// Polls every few milliseconds, however often it is asked to. Asking costs a few nanoseconds.
class Patience {
 public:
  Patience() : last_(now()) {}
  void look() {
    const int64_t time = now();
    if (time - last_ < kMilliseconds) return;
    last_ = time;
    poll_interrupt();
  }

 private:
  static constexpr int64_t kMilliseconds = 20;
  static int64_t now();

  int64_t last_;
};

}  // namespace oar
