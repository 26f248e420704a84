// Puts autograd's layers into the dispatcher.
#pragma once

#include "oar/base/api.h"

namespace OAR_API oar {
void install_autograd_layers();
}  // namespace oar
