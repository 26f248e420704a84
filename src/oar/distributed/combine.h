// One step of a reduction: two lists of elements become one.
#pragma once

#include "oar/base/api.h"
#include "oar/distributed/backend.h"
#include "oar/tensor/dtype.h"

namespace OAR_API oar {
namespace distributed {

// An Error that names `what` (the collective) if elements of the dtype cannot be combined so.
Reduction reduction_of(ReduceKind kind, DType dtype, const char* what);

// data[i] / divisor, for averages.
void divide(void* data, size_t count, DType dtype, double divisor);

}  // namespace distributed
}  // namespace oar
