#pragma once

#include "oar/backend/cts/conformance.h"

namespace oar::cts {

// What every device must offer besides kernels.
std::vector<Finding> check_services(Device device);

}  // namespace oar::cts
