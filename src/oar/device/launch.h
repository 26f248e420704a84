// What a program keeps for one of its calls between runs, for the kernel that runs it.
#pragma once

#include <cstdint>
#include <memory>

#include "oar/device/abi.h"

namespace oar {

// One per call and working set, so one run at a time uses it.
struct LaunchMemory {
  std::shared_ptr<void>
      kept;                // the kernel's own, null at first: a plan, operands in another layout
  uint64_t unchanged = 0;  // inputs, by bit, that have not changed since the previous run

  bool is_unchanged(int input) const { return (unchanged >> input & 1) != 0; }
};

// Null if the call is not from a program.
inline LaunchMemory* launch_memory(const oar_kernel_call& call) {
  return static_cast<LaunchMemory*>(call.host);
}

}  // namespace oar
