#include "oar/device/generator.h"

#include <mutex>

namespace oar::generator {
namespace {
std::mutex g_mutex;
RandomState g_state{34342423252, 0};
}  // namespace

void seed(uint64_t value) { set_state({value, 0}); }

RandomState state() {
  std::lock_guard lock(g_mutex);
  return g_state;
}

void set_state(RandomState state) {
  std::lock_guard lock(g_mutex);
  g_state = state;
}

RandomState reserve(uint64_t numbers) {
  std::lock_guard lock(g_mutex);
  const RandomState start = g_state;
  g_state.offset += (numbers + 3) / 4;
  return start;
}

}  // namespace oar::generator
