#include "oar/base/version.h"

namespace oar {

// The build passes OAR_VERSION to the library only, so that the number has one home.
const char* version() { return OAR_VERSION; }

}  // namespace oar
