// Runs of regions: each has an executor of its own.
#pragma once

namespace oar {

void install_regions();

}  // namespace oar
