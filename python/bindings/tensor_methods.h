// Tables of the Tensor type's native properties and methods; the rest is Python (oar/_tensor.py).
#pragma once

#include "common.h"

namespace oar::python {
extern PyGetSetDef tensor_getters[];
extern PyMethodDef tensor_methods[];
}  // namespace oar::python
