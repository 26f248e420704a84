#pragma once

namespace oar::cpu {
// Makes the CPU device type 0. Called once, before anything else is registered.
void register_device();
}  // namespace oar::cpu
