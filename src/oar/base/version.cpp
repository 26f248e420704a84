#include "oar/base/version.h"

namespace oar {

// The build passes OAR_VERSION to the library only, so that the number is in one place.
const char* version() { return OAR_VERSION; }

}  // namespace oar
