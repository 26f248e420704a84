// The dispatcher's layers of capture.
#pragma once

#include "oar/base/api.h"

namespace OAR_API oar {

// After the autograd layers: while a capture is running, writes are functionalised before the
// tape, so that the tape sees functional ops only.
void install_capture_layers();

}  // namespace oar
