// Calls while a static program is written: names of results.
#pragma once

#include "common.h"
#include "oar/compiler/capture/builder.h"
#include "oar/ops/core/dispatcher.h"

namespace oar::python {

// Is a static program being written on this thread?
inline bool in_static_program() { return (t_layers.on & kCapture) != 0 && Builder::current(); }

// The result of `add(x, y, name="sum")` is called "sum.tmp_0", as in Paddle.
void name_result(Tensor& result, PyObject* name);

}  // namespace oar::python
