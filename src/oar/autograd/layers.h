// Puts autograd's layers into the dispatcher.
#pragma once

namespace oar {
void install_autograd_layers();
}  // namespace oar
