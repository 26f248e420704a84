// Tables of the Tensor type's native properties and methods; the rest is Python (oar/_tensor.py).
#pragma once

#include "common.h"

namespace oar::python {
extern PyGetSetDef tensor_getters[];
extern PyMethodDef tensor_methods[];
// What the hooks of a tensor hold, for the garbage collector: nothing if native code shares them.
int visit_hooks(const Tensor& t, visitproc visit, void* arg);
void clear_hooks(const Tensor& t);
// Runs it without the lock, then the hooks for its end. Returns None, or null after an error in one of them.
PyObject* run_backward(TensorList roots, TensorList cotangents, bool retain_graph);
}  // namespace oar::python
