#include "oar/device/generator.h"

#include <mutex>

#include "oar/base/fork_mutex.h"

namespace oar::generator {
namespace {
ForkMutex& g_mutex = *new ForkMutex;  // outlives static destructors
RandomState g_state{34342423252, 0};
thread_local RandomState* t_detour = nullptr;

// The stream of this thread, for as long as it takes.
template <class F>
auto with_stream(F&& body) {
  if (t_detour) return body(*t_detour);
  const std::lock_guard lock(g_mutex);
  return body(g_state);
}
}  // namespace

void seed(uint64_t value) { set_state({value, 0}); }

RandomState state() {
  return with_stream([](RandomState& s) { return s; });
}

void set_state(RandomState state) {
  with_stream([&](RandomState& s) { s = state; });
}

RandomState reserve(uint64_t numbers) {
  return with_stream([&](RandomState& s) {
    const RandomState start = s;
    s.offset += (numbers + 3) / 4;
    return start;
  });
}

Detour::Detour(RandomState start) : own_(start), outer_(t_detour) { t_detour = &own_; }

Detour::~Detour() { t_detour = outer_; }

}  // namespace oar::generator
