// The profile layer: when each op ran, and on what.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/ops/core/dispatcher.h"

namespace OAR_API oar {

struct ProfileEvent {
  const Op* op;
  int64_t begin_ns, end_ns;  // since the profile started
  uint32_t thread;           // numbered by first call
  uint32_t depth;            // calls inside calls
  std::string operands;      // "float32[4, 4], float32[4]"
};

// Times a call that bypasses the dispatcher, such as a program's launch, even if it throws.
class ProfiledCall {
 public:
  ProfiledCall(const Op& op, Args args);
  ~ProfiledCall();
  ProfiledCall(const ProfiledCall&) = delete;
  ProfiledCall& operator=(const ProfiledCall&) = delete;

 private:
  ProfileEvent event_;
};
OAR_FAST_TLS inline thread_local bool t_profiled = false;
// Are the calls of this thread timed?
inline bool profiling() { return t_profiled && (t_layers.on & ~t_layers.off & kProfile) != 0; }

Outputs profile_layer(const Op& op, Args args);
void install_profile_layer();
// Starts recording the calls of the threads that call `profile_this_thread`.
void start_profile(bool record_shapes = true);
std::vector<ProfileEvent> stop_profile();
// Switches the layer on or off for the calling thread, following start and stop.
void profile_this_thread(bool on);

}  // namespace oar
