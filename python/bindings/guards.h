// `oar._C.Guards` for other files of the binding.
#pragma once

#include "common.h"

namespace oar::python {

// Is the object a Guards?
void check_guards(PyObject* object);
// Is everything that the captured function read outside unchanged?
bool guards_hold(PyObject* guards);

}  // namespace oar::python
