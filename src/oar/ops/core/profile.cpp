#include "oar/ops/core/profile.h"

#include <atomic>
#include <chrono>
#include <mutex>

#include "oar/base/fork_mutex.h"
#include "oar/ops/core/watch.h"

namespace oar {
namespace {

using Clock = std::chrono::steady_clock;

struct Profile {
  ForkMutex mutex;
  std::vector<ProfileEvent> events;
  Clock::time_point start;
  bool shapes = true;
};
Profile& profile() {
  static Profile* instance = new Profile;
  return *instance;
}

std::atomic<uint32_t> g_threads{0};
thread_local uint32_t t_thread = g_threads.fetch_add(1);
thread_local uint32_t t_depth = 0;

int64_t now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - profile().start)
      .count();
}

std::string operands_of(Args args) {
  std::string text;
  for_each_tensor(args,
                  [&](const Tensor& t) { text += (text.empty() ? "" : ", ") + t.describe(); });
  return text;
}

}  // namespace

Outputs profile_layer(const Op& op, Args args) {
  const ProfiledCall timed(op, args);
  return proceed(op, args, below(kProfile));
}

ProfiledCall::ProfiledCall(const Op& op, Args args)
    : event_{&op,      now(),     0,
             t_thread, t_depth++, profile().shapes ? operands_of(args) : std::string()} {}

ProfiledCall::~ProfiledCall() {
  --t_depth;
  event_.end_ns = now();
  std::lock_guard lock(profile().mutex);
  profile().events.push_back(std::move(event_));
}

void install_profile_layer() { install_layer(kProfile, profile_layer); }

void profile_this_thread(bool on) {
  t_profiled = on;
  if (on)
    t_layers.on |= kProfile;
  else if (!watching())
    t_layers.on &= ~uint32_t{kProfile};
}

void start_profile(bool record_shapes) {
  {
    std::lock_guard lock(profile().mutex);
    profile().events.clear();
    profile().start = Clock::now();
    profile().shapes = record_shapes;
  }
  profile_this_thread(true);
}

std::vector<ProfileEvent> stop_profile() {
  profile_this_thread(false);
  std::lock_guard lock(profile().mutex);
  return std::exchange(profile().events, {});
}

}  // namespace oar
