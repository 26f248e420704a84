// The decomposition of one call.
#pragma once

#include <optional>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

// Captured at the call's sizes, on a device. None where there is none, or where it looks at values or draws random numbers by itself.
std::optional<Program> parts_of(const Program& program, const Instruction& call, Device target);

}  // namespace oar
