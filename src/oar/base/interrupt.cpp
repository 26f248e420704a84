#include "oar/base/interrupt.h"

#include <atomic>

#include "oar/base/error.h"

namespace oar {
namespace {
std::atomic<InterruptCheck> g_check{nullptr};
}  // namespace

void set_interrupt_check(InterruptCheck check) { g_check.store(check); }

void poll_interrupt() {
  const InterruptCheck check = g_check.load(std::memory_order_relaxed);
  if (check && check()) fail(ErrorKind::Interrupted, "interrupted by the user.");
}

}  // namespace oar
