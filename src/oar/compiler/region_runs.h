// Runs of regions: each has its own executor.
#pragma once

#include "oar/base/api.h"

namespace OAR_API oar {

void install_regions();

}  // namespace oar
