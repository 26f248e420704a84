// What the calls of a program cost, by their types.
#pragma once

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

// Programs inside it count once each: a branch as if it were taken, a loop as if it ran once.
Cost cost_of(const Program& program, const Instruction& call);
Cost cost_of(const Program& program);

}  // namespace oar
