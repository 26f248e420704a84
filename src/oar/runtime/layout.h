// The layout of the values of a program at known sizes, before memory is allocated.
#pragma once

#include "oar/ir/program.h"
#include "oar/ops/core/view.h"

namespace oar {

// Can the value be laid out before a run? Not if its size depends on data, or if it is not on the CPU.
bool can_be_laid_out(const ValueType& type);

// A tensor with the type's shape in row-major order. Its data pointer must not be used.
Tensor layout_of(const ValueType& type);
// … that is a view of another one, by the spec.
Tensor layout_of(const ViewSpec& spec, DType dtype);

// The kernel that accepts a call on tensors with these layouts, or null.
const oar_kernel* kernel_for(const Op& op, Args args, TensorList results);

}  // namespace oar
