// Lets a long native loop notice an interrupt by the user.
#pragma once

#include <cstdint>

#include "oar/base/api.h"
#include "oar/base/function_ref.h"

namespace OAR_API oar {

// Throws an Error of kind Interrupted if the user has. Cheap, but not free: every few hundred steps.
void poll_interrupt();

// Whether this thread is inside the host language's check, where handlers of the user may run.
bool in_interrupt_check();

// Blocks on a lock that others may hold while they run the check, without the lock of the host language, which the check needs.
void block_on(FunctionRef<void()> block);

// While alive, this thread is not interrupted.
class InterruptsOff {
 public:
  InterruptsOff();
  ~InterruptsOff();
  InterruptsOff(const InterruptsOff&) = delete;
  InterruptsOff& operator=(const InterruptsOff&) = delete;
};

// Polls every few milliseconds, however often it is called. A call costs a few nanoseconds.
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
