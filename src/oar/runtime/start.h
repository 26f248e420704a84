// What must be in place before a program runs: the CPU, and runs of branches and loops.
#pragma once

#include "oar/base/api.h"

namespace OAR_API oar {

void start_runtime();

}  // namespace oar
