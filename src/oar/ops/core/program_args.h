// Parameters that take programs: `program` and `program[]` in a schema.
#pragma once

#include "oar/base/api.h"
#include "oar/ops/core/schema.h"
#include "oar/tensor/closure.h"

namespace OAR_API oar {

// Behind the types of schema.h, which are those that a kernel may be given.
inline constexpr auto kProgramType = static_cast<ArgType>(static_cast<int>(ArgType::Shape) + 1);

bool takes_programs(const Schema& schema);
// A list of programs, `program[]`, of which a run takes one.
bool takes_branches(const Schema& schema);

}  // namespace oar
