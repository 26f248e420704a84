// Kernel calls that wait.
//
// A call is checked, inferred, and given its memory and its views as ever; only the kernel does not
// run yet. So a waiting call is to its caller what a call on a device's stream is: results are tensors
// like others, writes happen in order, and whoever looks at a content has what is before it made first.
#pragma once

#include <atomic>

#include "oar/ops/registry.h"

namespace oar {

class LaunchQueue {
 public:
  virtual ~LaunchQueue() = default;
  // Takes over a call that the kernel has accepted. False: it is to be made now, and what it reads is
  // there.
  virtual bool take(const Op& op, const oar_kernel& kernel, Args args, const Outputs& outputs) = 0;
  // Makes all calls that wait.
  virtual void settle() = 0;
};

// The queue of this thread, if calls are to wait.
// initial-exec, as for the layers: read on every call.
inline thread_local LaunchQueue* t_launch_queue __attribute__((tls_model("initial-exec"))) =
    nullptr;

// … and the one whose scope this thread is in, in use or not: scopes need not end in order.
inline thread_local LaunchQueue* t_scope_queue __attribute__((tls_model("initial-exec"))) = nullptr;

// The op that the user called, of which the call at hand may be a part.
inline thread_local const Op* t_called_op __attribute__((tls_model("initial-exec"))) = nullptr;

// The error of a call that waited. It names the op that was called, and where; nobody else's business.
class LateError : public Error {
 public:
  using Error::Error;
};

// What waits on other threads is made as far as this call needs it. Null while nobody lets calls wait.
using WaitForOthers = void (*)(const Op& op, Args args);
inline std::atomic<WaitForOthers> g_wait_for_others{nullptr};

// Makes what waits on this thread; while it lives, calls are made at once.
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

// Makes a call with the kernel that it was given.
void launch(const Op& op, const oar_kernel& kernel, Args args, const Outputs& outputs);

}  // namespace oar
