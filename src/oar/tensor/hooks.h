// Calls from here and from ops/ to folders above, about the content of tensors.
//
// A capture installs a hook for its thread: its program holds only as long as the content that it read stays. Queued calls install
// hooks for all threads: they have to run before their results are read.
#pragma once

#include <atomic>

#include "oar/base/api.h"
#include "oar/tensor/value.h"

namespace OAR_API oar {

class Op;

using ReadHook = void (*)(const Tensor& t);
extern thread_local ReadHook t_read_hook;

struct QueueHooks {
  void (*before_read)(const Tensor& t);            // of content
  void (*before_launch)(const Op& op, Args args);  // of a kernel that is not queued
  void (*before_lend)();                           // of memory, see exposed.h
  void (*before_wait)();  // for a stream, and before an event is put into one
};
// Null while no thread queues calls.
extern std::atomic<const QueueHooks*> g_queue_hooks;
inline const QueueHooks* queue_hooks() { return g_queue_hooks.load(std::memory_order_relaxed); }

inline void note_read(const Tensor& t) {
  if (t_read_hook) [[unlikely]]
    t_read_hook(t);
  if (const QueueHooks* hooks = queue_hooks()) [[unlikely]]
    hooks->before_read(t);
}

}  // namespace oar
