// A queue of kernel calls that run later.
//
// A call is checked and inferred and gets its memory and its views as usual; only its kernel runs later.
// So a queued call is like a call on a device's stream: its results are ordinary tensors, writes keep
// their order, and reading data flushes the queue first.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/core/registry.h"

namespace OAR_API oar {

class LaunchQueue {
 public:
  virtual ~LaunchQueue() = default;
  // Queues a call on a device that the kernel has accepted. False: the caller runs it now, and its operands have
  // their content.
  virtual bool take(const Op& op, const oar_kernel& kernel, Args args, const Outputs& outputs,
                    Device device) = 0;
  // Runs all queued calls.
  virtual void settle() = 0;
};

// The queue of this thread, if calls are queued.
OAR_FAST_TLS inline thread_local LaunchQueue* t_launch_queue = nullptr;

// … and the one whose scope this thread is in, in use or not: scopes need not end in order.
OAR_FAST_TLS inline thread_local LaunchQueue* t_scope_queue = nullptr;

// The function that the user called; the current call may be a part of it. A language binding sets it while calls are
// queued or captured. It lives as long as the process.
OAR_FAST_TLS inline thread_local const char* t_called_name = nullptr;

class CalledName {
 public:
  explicit CalledName(const char* name) : outer_(t_called_name) {
    if (!outer_) t_called_name = name;
  }
  ~CalledName() { t_called_name = outer_; }
  CalledName(const CalledName&) = delete;
  CalledName& operator=(const CalledName&) = delete;

 private:
  const char* const outer_;
};

// The error of a queued call. It names the op that the user called, and where.
class LateError : public Error {
 public:
  using Error::Error;
};

// Runs the queued calls of this thread. While it lives, calls run at once.
class LaunchNow {
 public:
  LaunchNow() : outer_(t_launch_queue) {
    if (outer_) outer_->settle();
    t_launch_queue = nullptr;
  }
  ~LaunchNow() { t_launch_queue = outer_ == t_scope_queue ? outer_ : nullptr; }
  LaunchNow(const LaunchNow&) = delete;
  LaunchNow& operator=(const LaunchNow&) = delete;

 private:
  LaunchQueue* const outer_;
};

// Runs a call with the given kernel, in this thread's stream of the device.
void launch(const Op& op, const oar_kernel& kernel, Args args, const Outputs& outputs,
            Device device);

}  // namespace oar
