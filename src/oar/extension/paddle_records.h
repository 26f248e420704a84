// Turns ops that a library described with Paddle's names into Oar's records.
#pragma once

#include "oar/base/api.h"
#include "oar/extension/extension.h"

namespace OAR_API oar {
namespace extension {

// Removes and returns what has been announced since the last call.
std::vector<Addition> take_paddle_records();

}  // namespace extension
}  // namespace oar
