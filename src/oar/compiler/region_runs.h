// Runs of regions: each has its own executor.
#pragma once

namespace oar {

void install_regions();

}  // namespace oar
