// Gradients of depthwise kernels with the channels last.
#pragma once

#include "oar/device/device.h"

namespace oar::cpu {

// Null if it accepts the call, else why not.
const char* refuse_depthwise_weight_grad(const oar_kernel_call* call);
void depthwise_weight_grad_last(KernelCall& call);

}  // namespace oar::cpu
