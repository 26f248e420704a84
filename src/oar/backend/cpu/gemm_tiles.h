// Matrix products of 16-bit floats on tiles (AMX), where the machine has them.
#pragma once

#include "oar/backend/cpu/gemm.h"
#include "oar/backend/cpu/tile_table.h"

namespace oar::cpu {

// C = A · B, or added to C, for bfloat16 and float16; sums are made in float. False where it is not
// for tiles, with nothing written. A float16 is the sum of two bfloat16, so its products are four.
template <class T>
bool gemm_tiles(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c,
                bool accumulate);

}  // namespace oar::cpu
