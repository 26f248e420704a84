// Programs for others to run: the runtime library, which has kernels and no decompositions, or a format with ops of its own.
#pragma once

#include <functional>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

// An equal program whose calls have kernels on every machine; its sizes may be open. Calls that cannot be replaced stay as they
// are, and `Model` lists them when it reads the program.
Program for_deployment(const Program& program);

// An equal program in which every call that does not stay is replaced by its parts, and these by theirs. Calls without parts stay.
using Stays = std::function<bool(const Program& program, const Instruction& call)>;
Program expanded_until(const Program& program, const Stays& stays);

}  // namespace oar
