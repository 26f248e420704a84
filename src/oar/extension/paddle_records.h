// Turns ops that a library described with Paddle's names into Oar's records.
#pragma once

#include "oar/extension/extension.h"

namespace oar::extension {

// Removes and returns what has been announced since the last call.
std::vector<Addition> take_paddle_records();

}  // namespace oar::extension
