// Tables of the Tensor type's native properties and methods; the rest is Python (oar/_tensor.py).
#pragma once

#include "common.h"

namespace oar::python {
extern PyGetSetDef tensor_getters[];
extern PyMethodDef tensor_methods[];
// What the hooks of a tensor hold, for the garbage collector: nothing if native code shares them.
int visit_hooks(const Tensor& t, visitproc visit, void* arg);
void clear_hooks(const Tensor& t);
}  // namespace oar::python
