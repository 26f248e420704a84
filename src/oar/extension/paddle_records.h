// Ops that a library described in Paddle's way, as Oar's records.
#pragma once

#include "oar/extension/extension.h"

namespace oar::extension {

// Takes what has been announced since the last time.
std::vector<Addition> take_paddle_records();

}  // namespace oar::extension
