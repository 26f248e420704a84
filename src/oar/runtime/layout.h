// How the values of a program at known sizes will lie in memory, before there is any.
#pragma once

#include "oar/base/api.h"
#include "oar/ir/program.h"
#include "oar/ops/core/view.h"

namespace OAR_API oar {

// May the value be laid out ahead of a run? Not where its size depends on data, or on another device than the CPU.
bool can_be_laid_out(const ValueType& type);

// A tensor with the type's shape in row-major order. Its data pointer is not to be used.
Tensor layout_of(const ValueType& type);
// … that shows another one's elements as the spec says.
Tensor layout_of(const ViewSpec& spec, DType dtype);

// The kernel that takes a call on tensors laid out like these, of those that `counts`; none if there is none.
const oar_kernel* kernel_for(const Op& op, Args args, TensorList results,
                             bool (*counts)(const oar_kernel&) = nullptr);

}  // namespace oar
