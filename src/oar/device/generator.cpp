#include "oar/device/generator.h"

#include <mutex>
#include <vector>

#include "oar/base/fork_mutex.h"

namespace oar::generator {
namespace {

// Outlive static destructors.
ForkMutex& g_mutex = *new ForkMutex;
struct Stream {
  Device device;
  RandomState state;
};
// The CPU's first; other devices are added when they first draw. Few, so a linear search is fast.
std::vector<Stream>& g_streams = *new std::vector<Stream>{{Device{}, {34342423252, 0}}};
uint64_t g_seed = 34342423252;

thread_local RandomState* t_detour = nullptr;

RandomState& stream_of(Device device) {
  for (Stream& s : g_streams)
    if (s.device == device) return s.state;
  g_streams.push_back({device, RandomState{g_seed, 0}});
  return g_streams.back().state;
}

// Calls the function with this thread's stream for the device.
template <class F>
auto with_stream(Device device, F&& body) {
  if (t_detour) return body(*t_detour);
  const std::lock_guard lock(g_mutex);
  return body(stream_of(device));
}

}  // namespace

void seed(uint64_t value) {
  if (t_detour) {
    *t_detour = {value, 0};
    return;
  }
  const std::lock_guard lock(g_mutex);
  g_seed = value;
  for (Stream& s : g_streams) s.state = {value, 0};
}

RandomState state(Device device) {
  return with_stream(device, [](RandomState& s) { return s; });
}

void set_state(RandomState state, Device device) {
  with_stream(device, [&](RandomState& s) { s = state; });
}

RandomState reserve(uint64_t numbers, Device device) {
  return with_stream(device, [&](RandomState& s) {
    const RandomState start = s;
    s.offset += (numbers + 3) / 4;
    return start;
  });
}

Places::Places() {
  if (t_detour) {
    states_.push_back(*t_detour);
    return;
  }
  const std::lock_guard lock(g_mutex);
  for (const Stream& s : g_streams) states_.push_back(s.state);
}

void Places::restore() const {
  if (t_detour) {
    *t_detour = states_[0];
    return;
  }
  const std::lock_guard lock(g_mutex);
  // A device that first drew since then starts from the beginning.
  for (size_t i = 0; i < g_streams.size(); ++i)
    g_streams[i].state = i < states_.size() ? states_[i] : RandomState{g_seed, 0};
}

Detour::Detour(RandomState start) : own_(start), outer_(t_detour) { t_detour = &own_; }

Detour::~Detour() { t_detour = outer_; }

}  // namespace oar::generator
