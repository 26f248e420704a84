// Ops that a library described in Paddle's way, as Oar's records.
#pragma once

#include "oar/base/api.h"
#include "oar/extension/extension.h"

namespace OAR_API oar {
namespace extension {

// Takes what has been announced since the last time.
std::vector<Addition> take_paddle_records();

}  // namespace extension
}  // namespace oar
