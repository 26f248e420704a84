// The base that gradients of reads are written into.
#pragma once

#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/creation.h"

namespace oar {

// Zeros that take no memory, as an operand of ops that return a changed copy of it.
inline Tensor blank(Dims shape, DType dtype) { return broadcast_to(zeros({}, dtype), shape); }

}  // namespace oar
