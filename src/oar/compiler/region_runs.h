// Runs of regions: each has an executor of its own.
#pragma once

#include "oar/base/api.h"

namespace OAR_API oar {

void install_regions();

}  // namespace oar
