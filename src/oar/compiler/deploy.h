// Programs for the runtime library, which has kernels and no decompositions.
#pragma once

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

// An equal program whose calls have kernels on every machine; its sizes may be open. Calls that cannot be replaced stay as they
// are, and `Model` lists them when it reads the program.
Program for_deployment(const Program& program);

}  // namespace oar
