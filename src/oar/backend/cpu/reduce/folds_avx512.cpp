// Folds for AVX-512. As in rows_avx512.cpp, only what this file defines may be compiled for it.
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512dq,avx512vl,fma")
#endif

#include "oar/backend/cpu/reduce/fold_micro.h"

namespace oar::cpu {

#if defined(__x86_64__)
const FoldTable<float> kAvx512FoldsFloat = Folds<float, 64>::table();
const FoldTable<double> kAvx512FoldsDouble = OAR_AVX512_DOUBLES((Folds<double, 64>::table()));
const IntegerFolds kAvx512FoldsInteger = Integers<uint64_t, 64>::table();
#else
const FoldTable<float> kAvx512FoldsFloat{};
const FoldTable<double> kAvx512FoldsDouble{};
const IntegerFolds kAvx512FoldsInteger{};
#endif

}  // namespace oar::cpu
