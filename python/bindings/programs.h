// Programs as Python sees them.
#pragma once

#include "common.h"
#include "oar/ir/program.h"

namespace oar {
class TrainedProgram;
}

namespace oar::python {

// A new `_C.Program`, ready to run.
PyObject* wrap_program(Program program);
// What a `_C.TrainedProgram` holds; borrowed.
const TrainedProgram& trained_program_of(PyObject* object);

}  // namespace oar::python
