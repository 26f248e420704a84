// Notifies of reads of a tensor's content: a capture, whose program is valid only as long as that
// content stays, and queues of kernel calls, which have to compute it first.
#pragma once

#include <atomic>

#include "oar/tensor/tensor.h"

namespace oar {

using ReadHook = void (*)(const Tensor& t);
extern thread_local ReadHook t_read_hook;
// For all threads, after the thread's own.
extern std::atomic<ReadHook> g_read_hook;

inline void note_read(const Tensor& t) {
  if (t_read_hook) [[unlikely]]
    t_read_hook(t);
  if (const ReadHook hook = g_read_hook.load(std::memory_order_relaxed)) [[unlikely]]
    hook(t);
}

}  // namespace oar
