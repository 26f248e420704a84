// Programs as Python sees them.
#pragma once

#include "common.h"
#include "oar/ir/program.h"

namespace oar::python {

// A new `_C.Program`, ready to run.
PyObject* wrap_program(Program program);

}  // namespace oar::python
