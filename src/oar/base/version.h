// Which Oar this is.
#pragma once

#include "oar/base/api.h"

namespace OAR_RUNTIME_API oar {

// "0.1.0": the version of the library that is loaded, not of the headers.
const char* version();

}  // namespace oar
