// Which launches of a program run at the same time. Most use all threads, one after the other; if several chains of
// launches that are too small for that are independent, each chain runs on its own thread.
#pragma once

#include "oar/base/api.h"
#include "oar/runtime/lower.h"

namespace OAR_API oar {

// The launches [begin, end) in lanes: those of a lane in their order, the lanes at the same time.
struct Fork {
  int32_t begin = 0, end = 0;
  std::vector<std::vector<int32_t>> lanes;
};

class Schedule {
 public:
  // Empty for one thread, or if the flag parallel_branches is off.
  static Schedule of(const Lowered& lowered, int threads);

  const std::vector<Fork>& forks() const { return forks_; }
  // Of two launches: may they run at the same time?
  bool at_once(int32_t a, int32_t b) const {
    const auto count = static_cast<int32_t>(lane_.size());
    return a < count && b < count && fork(a) >= 0 && fork(a) == fork(b) && lane(a) != lane(b);
  }
  // The fork and lane of a launch; -1 if it runs alone.
  int32_t fork(int32_t launch) const {
    return fork_.empty() ? -1 : fork_[static_cast<size_t>(launch)];
  }
  int32_t lane(int32_t launch) const {
    return lane_.empty() ? -1 : lane_[static_cast<size_t>(launch)];
  }

 private:
  std::vector<Fork> forks_;
  std::vector<int32_t> fork_, lane_;  // by launch; empty if there are no forks
};

}  // namespace oar
