// Batches of samples; what convert.cpp has for them.
#pragma once

#include "common.h"

namespace oar::python {

// The dtype that a tensor on a buffer has; 16 unsigned bits are a bfloat16.
std::optional<DType> dtype_of_buffer(const Py_buffer& view);
// On the memory of an array that nobody else reads or writes while the tensor exists.
Tensor adopt(PyObject* array);

void init_collate(PyObject* module);

}  // namespace oar::python
