// The kernels by oneDNN, one list per file of this folder. Free of oneDNN's headers.
#pragma once

#include <span>

#include "oar/device/abi.h"

namespace oar::cpu {

std::span<const oar_kernel> onednn_conv_kernels();
std::span<const oar_kernel> onednn_matmul_kernels();

}  // namespace oar::cpu
