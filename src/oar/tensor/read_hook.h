// Who wants to know that the content of a tensor is looked at: a capture, whose program holds only
// for as long as that content stays, and kernel calls that wait, which have to make it first.
#pragma once

#include <atomic>

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {

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
