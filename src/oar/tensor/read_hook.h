// Who wants to know that the content of a tensor is looked at: a capture, whose program holds only
// for as long as that content stays.
#pragma once

#include "oar/tensor/tensor.h"

namespace oar {

using ReadHook = void (*)(const Tensor& t);
extern thread_local ReadHook t_read_hook;

inline void note_read(const Tensor& t) {
  if (t_read_hook) [[unlikely]]
    t_read_hook(t);
}

}  // namespace oar
