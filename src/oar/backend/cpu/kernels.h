// The CPU backend's kernel lists, one per file of this folder.
#pragma once

#include <span>

#include "oar/device/abi.h"

namespace oar::cpu {

std::span<const oar_kernel> activation_kernels();
std::span<const oar_kernel> along_kernels();
std::span<const oar_kernel> binary_kernels();
std::span<const oar_kernel> columns_kernels();
std::span<const oar_kernel> compare_kernels();
std::span<const oar_kernel> complex_kernels();
std::span<const oar_kernel> conv_kernels();
std::span<const oar_kernel> creation_kernels();
std::span<const oar_kernel> elementwise_kernels();
std::span<const oar_kernel> embedding_kernels();
std::span<const oar_kernel> extremes_kernels();
std::span<const oar_kernel> index_kernels();
std::span<const oar_kernel> linalg_kernels();
std::span<const oar_kernel> loss_kernels();
std::span<const oar_kernel> norm_kernels();
std::span<const oar_kernel> optimizer_kernels();
std::span<const oar_kernel> pool_kernels();
std::span<const oar_kernel> random_kernels();
std::span<const oar_kernel> reduction_kernels();
std::span<const oar_kernel> resample_kernels();
std::span<const oar_kernel> sampling_kernels();
std::span<const oar_kernel> scan_kernels();
std::span<const oar_kernel> shape_kernels();
std::span<const oar_kernel> softmax_kernels();
std::span<const oar_kernel> sort_kernels();
std::span<const oar_kernel> statistics_kernels();
std::span<const oar_kernel> trigonometry_kernels();

}  // namespace oar::cpu
