// Micro kernels in the instruction set that the whole library is compiled for: AVX2 on x86-64.
#include "oar/backend/cpu/gemm/gemm_micro.h"

namespace oar::cpu {

constexpr int kBytes = 32;
const MicroTable<float> kBaseFloat = make_table<float, kBytes, 4>();
const MicroTable<double> kBaseDouble = make_table<double, kBytes, 4>();

}  // namespace oar::cpu
