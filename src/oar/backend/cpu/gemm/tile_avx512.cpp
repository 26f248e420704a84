// Tiles in the registers of AVX-512 with its products of pairs of bfloat16. Compiled for machines that
// have them: nothing may be defined here but the table.
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,f16c")
#include <immintrin.h>
// g++ 12 warns of its own header's undefined vectors.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include <cstring>

#include "oar/backend/cpu/gemm/tile_table.h"
#if defined(__x86_64__)
#include "oar/backend/cpu/gemm/tile_lines.h"
#endif

namespace oar::cpu {

#if defined(__x86_64__)
namespace {

__m512bh pairs_at(const void* from) { return reinterpret_cast<__m512bh>(_mm512_loadu_si512(from)); }
// Two neighbours of a row, for all columns.
__m512bh pair_of(const char* from) {
  int32_t two;
  std::memcpy(&two, from, sizeof two);
  return reinterpret_cast<__m512bh>(_mm512_set1_epi32(two));
}

// kRows rows of the sums from row `first` on, whose registers hold them over all steps.
template <int kRows, int kTiles>
void multiply_rows(const TileTask& t, int64_t first) {
  const auto* a =
      reinterpret_cast<const char*>(t.a[first / kTileRows]) + first % kTileRows * t.a_row;
  float* c = t.c + first * t.c_row;
  __m512 sums[kRows][kTiles];
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < kTiles; ++j)
      sums[i][j] =
          t.accumulate ? _mm512_loadu_ps(c + i * t.c_row + j * kTileRows) : _mm512_setzero_ps();
  for (int64_t s = 0; s < t.steps; ++s) {
    const char* left = a + 2 * t.a_at[s];
    const char* right[kTiles];
    for (int j = 0; j < kTiles; ++j) right[j] = reinterpret_cast<const char*>(t.b[j] + t.b_at[s]);
    for (int p = 0; p < kTileDepth / 2; ++p) {
      __m512bh b[kTiles];
#pragma GCC unroll 2
      for (int j = 0; j < kTiles; ++j) b[j] = pairs_at(right[j] + p * t.b_row);
#pragma GCC unroll 8
      for (int i = 0; i < kRows; ++i) {
        const __m512bh pair = pair_of(left + i * t.a_row + 4 * p);
#pragma GCC unroll 2
        for (int j = 0; j < kTiles; ++j) sums[i][j] = _mm512_dpbf16_ps(sums[i][j], pair, b[j]);
      }
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 2
    for (int j = 0; j < kTiles; ++j) _mm512_storeu_ps(c + i * t.c_row + j * kTileRows, sums[i][j]);
}

template <int kTiles>
void multiply_strips(const TileTask& t) {
  for (int64_t i = 0; i < t.rows; i += 8) {
    const int64_t left = t.rows - i;
    if (left > 4)
      multiply_rows<8, kTiles>(t, i);
    else if (left > 2)
      multiply_rows<4, kTiles>(t, i);
    else if (left > 1)
      multiply_rows<2, kTiles>(t, i);
    else
      multiply_rows<1, kTiles>(t, i);
  }
}

void multiply(const TileTask& t) {
  t.b[1] != nullptr ? multiply_strips<2>(t) : multiply_strips<1>(t);
}

void nothing() {}

}  // namespace

const TileTable kAvx512Tiles{nothing,     nothing, multiply,    pack,        pack_half,
                             finite_half, narrow,  narrow_half, narrow_pair, false};
#else
const TileTable kAvx512Tiles{};
#endif

}  // namespace oar::cpu
