// The table of a device as its author filled it in.
#pragma once

#include "oar/base/api.h"
#include "oar/device/abi.h"

namespace oar::devices {

// An InvalidArgument where no device can be made of the table.
void check_table(const oar_device_api& table);

}  // namespace oar::devices
