// Convolutions of bfloat16 on tiles (AMX), if the machine has them.
#pragma once

#include "oar/device/device.h"

namespace oar::cpu {

// Why these kernels decline a call; null if they accept it.
const char* tiles_refuse_conv(const oar_kernel_call* call);
const char* tiles_refuse_conv_input_grad(const oar_kernel_call* call);
const char* tiles_refuse_conv_weight_grad(const oar_kernel_call* call);

void conv_on_tiles(KernelCall& call);
void conv_input_grad_on_tiles(KernelCall& call);
void conv_weight_grad_on_tiles(KernelCall& call);

}  // namespace oar::cpu
