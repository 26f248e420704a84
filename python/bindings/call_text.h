// What an error says about the call it comes from.
#pragma once

#include "oar/base/error.h"
#include "oar/ops/core/dispatcher.h"

namespace oar::python {

// Adds the call to an error whose text names none of the op's arguments: rules that several ops
// share, such as broadcasting, do not know what their operands are called.
void add_call(Error& error, const Op& op, Args args);

}  // namespace oar::python
