// Programs: capture, print, verify, differentiate, run.
#include "common.h"

namespace oar::python {

void init_programs(PyObject*) {}

}  // namespace oar::python
