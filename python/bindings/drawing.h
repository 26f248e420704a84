// Pictures of programs.
#pragma once

#include "common.h"
#include "oar/ir/program.h"

namespace oar::python {

// The boxes of a program's picture: [(title, detail, tooltip, style, [reads], layer)]
PyObject* box_rows(const Program& program);

}  // namespace oar::python
