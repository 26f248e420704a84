// The layout of the values of a program at known sizes, before memory is allocated.
#pragma once

#include "oar/base/api.h"
#include "oar/device/device.h"
#include "oar/ir/program.h"
#include "oar/ops/core/view.h"

namespace OAR_API oar {

// May the value be laid out ahead of a run? Not where its size depends on data.
bool can_be_laid_out(const ValueType& type);

// A tensor with the type's shape in row-major order. Its data pointer must not be used.
Tensor layout_of(const ValueType& type);
// … that shows another one's elements as the spec says.
Tensor layout_of(const ViewSpec& spec, const Tensor& base);

// The kernel that takes a call on tensors laid out like these, of those that `counts` accepts; none if there is none.
const oar_kernel* kernel_for(const Op& op, Args args, TensorList results, Device device,
                             bool (*counts)(const oar_kernel&) = nullptr);
// What that kernel prepares for such calls; null if nothing.
std::shared_ptr<oar_plan> plan_for(const oar_kernel& kernel, Args args, TensorList results,
                                   Device device);

}  // namespace oar
