// Loops over rows for AVX-512. Only what this file defines may be compiled for it: an inline function
// of another header could end up in the program's only copy, and crash older machines.
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512dq,avx512vl,fma")
#endif

#include "oar/backend/cpu/rows/row_micro.h"

namespace oar::cpu {

#if defined(__x86_64__)
const RowTable<float> kAvx512RowsFloat = Rows<float, 64>::table();
const RowTable<double> kAvx512RowsDouble = OAR_AVX512_DOUBLES((Rows<double, 64>::table()));
#else
const RowTable<float> kAvx512RowsFloat{};
const RowTable<double> kAvx512RowsDouble{};
#endif

}  // namespace oar::cpu
