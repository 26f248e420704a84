// The built-in families; the list itself is generated from the files of this folder.
#pragma once

#include "oar/base/api.h"

namespace OAR_API oar {
class Registry;
void register_families(Registry& registry);
}  // namespace oar
