// The profile layer: when each op ran, and on what.
#pragma once

#include "oar/base/api.h"
#include "oar/base/timeline.h"
#include "oar/ops/core/dispatcher.h"

namespace OAR_API oar {

struct ProfileOptions {
  bool shapes = true;   // the shapes of operands
  bool memory = false;  // every allocation
  // The arithmetic of a call; null: it is not counted.
  double (*flops)(const Op& op, Args args, TensorList results) = nullptr;
  size_t most_events = 1'000'000;
};

// Times a call that bypasses the dispatcher, such as a program's launch, even if it throws.
class ProfiledCall {
 public:
  ProfiledCall(const Op& op, Args args);
  ~ProfiledCall() { --timeline::depth(); }
  ProfiledCall(const ProfiledCall&) = delete;
  ProfiledCall& operator=(const ProfiledCall&) = delete;

  // For its arithmetic.
  void note_results(Args args, TensorList results);

 private:
  timeline::Span span_;
  const Op& op_;
};

// Times a kernel that computes a call.
class ProfiledKernel {
 public:
  ProfiledKernel(const Op& op, const oar_kernel& kernel);

 private:
  timeline::Span span_;
};

OAR_FAST_TLS inline thread_local bool t_profiled = false;
// Are the calls of this thread timed?
inline bool profiling() { return t_profiled && (t_layers.on & ~t_layers.off & kProfile) != 0; }

Outputs profile_layer(const Op& op, Args args);
void install_profile_layer();
// Starts a profile of the calling thread, and of those that call `profile_this_thread`.
void start_profile(const ProfileOptions& options = {});
timeline::Recording stop_profile();
// Times the calls of this thread until the profile that runs stops. Does nothing if none runs.
void profile_this_thread();

}  // namespace oar
