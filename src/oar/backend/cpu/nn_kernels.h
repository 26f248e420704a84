// The CPU backend's kernel lists of networks: activations, losses, random numbers, updates.
#pragma once

#include <span>

#include "oar/device/abi.h"

namespace oar::cpu {

std::span<const oar_kernel> ctc_kernels();
std::span<const oar_kernel> distribution_kernels();
std::span<const oar_kernel> gates_kernels();
std::span<const oar_kernel> pointwise_loss_kernels();
std::span<const oar_kernel> rnnt_kernels();
std::span<const oar_kernel> units_kernels();
std::span<const oar_kernel> updates_kernels();

}  // namespace oar::cpu
