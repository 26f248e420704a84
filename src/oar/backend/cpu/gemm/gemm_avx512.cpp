// Micro kernels for AVX-512. Only what this file defines may be compiled for it: an inline function
// of another header could end up in the program's only copy, and crash older machines.
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512vl,fma")
#endif

#include "oar/backend/cpu/gemm/gemm_micro.h"

namespace oar::cpu {

#if defined(__x86_64__)
const MicroTable<float> kAvx512Float = make_table<float, 64, 8>();
const MicroTable<double> kAvx512Double = make_table<double, 64, 8>();
#else
const MicroTable<float> kAvx512Float{};
const MicroTable<double> kAvx512Double{};
#endif

}  // namespace oar::cpu
