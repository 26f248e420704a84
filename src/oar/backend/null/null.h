#pragma once

#include "oar/base/api.h"

namespace OAR_API oar {
namespace null {

// Adds the device type "null".
void register_device();

}  // namespace null
}  // namespace oar
