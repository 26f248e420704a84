// Parameters that take programs: `program` and `program[]` in a schema.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/core/schema.h"
#include "oar/tensor/closure.h"

namespace OAR_API oar {

bool takes_programs(const Schema& schema);
// A list of programs, `program[]`, of which a run executes one.
bool takes_branches(const Schema& schema);

}  // namespace oar
