#pragma once

#include "oar/device/abi.h"

namespace oar::cpu {
// Makes the CPU device type 0. Called once, before anything else is registered.
void register_device();
// Has the library this kernel on every machine? Not those of oneDNN, and those for some processors only.
bool is_everywhere(const oar_kernel& kernel);
// Is the kernel oneDNN's, which may cut sums by threads?
bool is_onednn(const oar_kernel& kernel);
}  // namespace oar::cpu
