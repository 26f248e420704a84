#pragma once

namespace oar::null {

// Adds the device type "null".
void register_device();

}  // namespace oar::null
