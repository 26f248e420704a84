// What a program keeps of one of its calls between runs, for the kernel that makes it.
#pragma once

#include <cstdint>
#include <memory>

#include "oar/base/api.h"
#include "oar/device/abi.h"

namespace OAR_API oar {

// One per call and working set, so one run at a time uses it.
struct LaunchMemory {
  std::shared_ptr<void>
      kept;                // the kernel's own, null at first: a plan, operands in another layout
  uint64_t unchanged = 0;  // inputs, by bit, that hold what they held in the run before

  bool is_unchanged(int input) const { return (unchanged >> input & 1) != 0; }
};

// Null where the call is not a program's.
inline LaunchMemory* launch_memory(const oar_kernel_call& call) {
  return static_cast<LaunchMemory*>(call.host);
}

}  // namespace oar
