#include "oar/tensor/exposed.h"

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "oar/base/fork_mutex.h"
#include "oar/tensor/hooks.h"

namespace oar {
namespace {

ForkMutex& g_mutex = *new ForkMutex;  // outlives static destructors
std::atomic<size_t> g_count{0};       // how many are exposed: the usual case, 0, needs no lock

std::unordered_map<const void*, uint32_t>& exposed() {
  static auto* const map = new std::unordered_map<const void*, uint32_t>();  // outlives all tensors
  return *map;
}

}  // namespace

void expose(const void* memory) {
  if (!memory) return;
  const std::lock_guard lock(g_mutex);
  ++exposed()[memory];
  g_count = exposed().size();
}

void conceal(const void* memory) {
  if (!memory) return;
  const std::lock_guard lock(g_mutex);
  const auto it = exposed().find(memory);
  if (it == exposed().end() || --it->second > 0) return;
  exposed().erase(it);
  g_count = exposed().size();
}

void lend(const Storage& storage) {
  if (const QueueHooks* hooks = queue_hooks()) hooks->before_lend();
  expose(storage.data());
}

bool is_exposed(const Storage& storage) {
  if (g_count.load(std::memory_order_relaxed) == 0) return false;
  const std::lock_guard lock(g_mutex);
  return exposed().contains(storage.data());
}

}  // namespace oar
