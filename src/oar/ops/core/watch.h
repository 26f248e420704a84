// Watching the calls of a thread: what the ops that a user calls take and return. For statistics and for checks of numbers.
#pragma once

#include <functional>
#include <string_view>

#include "oar/base/api.h"
#include "oar/ops/core/dispatcher.h"

namespace OAR_API oar {

struct WatchedReturn {
  std::string_view name;   // of the op; "matmul_grad" is its derivative
  const Op* op = nullptr;  // none for a derivative
  Args args;               // of the op
  TensorList cotangents;   // of a derivative
  TensorList results;      // a derivative has undefined ones where no gradient is needed
  uint64_t sequence = 0;   // of the node that a derivative belongs to
};
using Watcher = std::function<void(const WatchedReturn&)>;

struct ThreadWatch {
  bool on = false;
  int depth = 0;  // calls inside calls
};
OAR_FAST_TLS inline thread_local ThreadWatch t_watch;

// Are the calls of this thread watched?
inline bool watching() { return t_watch.on; }
// From now on calls `watcher` after each call of this thread that is not a part of another one. Empty: no longer.
void watch_this_thread(Watcher watcher);

// While alive, calls are parts of this one.
class WatchedCall {
 public:
  WatchedCall() : watched_(t_watch.on) { t_watch.depth += watched_; }
  ~WatchedCall() { t_watch.depth -= watched_; }
  WatchedCall(const WatchedCall&) = delete;
  WatchedCall& operator=(const WatchedCall&) = delete;
  bool is_outermost() const { return watched_ && t_watch.on && t_watch.depth == 1; }
  // Calls the watcher, whose own calls are not watched.
  void returned(const WatchedReturn& call) const;

 private:
  bool watched_;
};

// Wraps the profile layer, which has its bit.
void install_watch_layer();

}  // namespace oar
