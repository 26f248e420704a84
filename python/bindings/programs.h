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
// The program of a `_C.Program`; borrowed. Another object is a TypeError.
const Program& native_program(PyObject* object);
// What a `_C.TrainedProgram` holds; borrowed.
const TrainedProgram& trained_program_of(PyObject* object);
// Runs it. None if a call fails, with the Python error `_C.Unmet`: nothing has changed, and the function itself, called
// as Python, raises the error in the user's terms.
std::optional<std::vector<Tensor>> run_or_unmet(const TrainedProgram& program, TensorList inputs);
PyObject* unmet_error();  // borrowed

}  // namespace oar::python
