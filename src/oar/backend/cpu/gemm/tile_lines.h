// Lines of memory into tiles and sums into lines, as every table of tiles does it. Included only after
// the pragma that names a unit's instruction set: nothing here may be seen by another unit.
#pragma once

#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,f16c")
#include <immintrin.h>

#include "oar/backend/cpu/gemm/tile_table.h"

namespace oar::cpu {
namespace {

__mmask32 first_of_32(int64_t count) {
  return count >= 32 ? ~__mmask32{0} : (__mmask32{1} << count) - 1;
}
__mmask16 first_of_16(int64_t count) {
  return count >= 16 ? static_cast<__mmask16>(0xffff) : static_cast<__mmask16>((1 << count) - 1);
}

// Line p of a tile: row p, or rows 2p and 2p + 1 interleaved. The whole ones need
// no masks.
template <bool kWhole>
__m512i row_line(const uint16_t* from, int64_t row, int64_t rows, __mmask32 inside, int64_t p) {
  if constexpr (kWhole) return _mm512_loadu_si512(from + p * row);
  return p < rows ? _mm512_maskz_loadu_epi16(inside, from + p * row) : _mm512_setzero_si512();
}
template <bool kWhole>
__m512i half_line(const uint16_t* from, int64_t row, int64_t rows, __mmask16 inside, int64_t r) {
  if constexpr (kWhole)
    return _mm512_cvtepu16_epi32(
        _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from + r * row)));
  return r < rows ? _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(inside, from + r * row))
                  : _mm512_setzero_si512();
}

// 16 x 16 words of 32 bits.
void transpose(__m512i (&r)[16]) {
  __m512i s[16];
#pragma GCC unroll 8
  for (int i = 0; i < 16; i += 2) {
    s[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
    s[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 16; i += 4) {
    r[i] = _mm512_unpacklo_epi64(s[i], s[i + 2]);
    r[i + 1] = _mm512_unpackhi_epi64(s[i], s[i + 2]);
    r[i + 2] = _mm512_unpacklo_epi64(s[i + 1], s[i + 3]);
    r[i + 3] = _mm512_unpackhi_epi64(s[i + 1], s[i + 3]);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512i low = _mm512_shuffle_i32x4(r[i], r[i + 4], 0x88);
    const __m512i high = _mm512_shuffle_i32x4(r[i], r[i + 4], 0xdd);
    const __m512i low2 = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0x88);
    const __m512i high2 = _mm512_shuffle_i32x4(r[i + 8], r[i + 12], 0xdd);
    s[i] = _mm512_shuffle_i32x4(low, low2, 0x88);
    s[i + 4] = _mm512_shuffle_i32x4(high, high2, 0x88);
    s[i + 8] = _mm512_shuffle_i32x4(low, low2, 0xdd);
    s[i + 12] = _mm512_shuffle_i32x4(high, high2, 0xdd);
  }
#pragma GCC unroll 16
  for (int i = 0; i < 16; ++i) r[i] = s[i];
}

template <bool kWhole>
void load_rows(const uint16_t* from, int64_t row, int64_t rows, int64_t count, __m512i (&r)[16]) {
  const __mmask32 inside = first_of_32(count);
#pragma GCC unroll 16
  for (int p = 0; p < 16; ++p) r[p] = row_line<kWhole>(from, row, rows, inside, p);
}
template <bool kWhole>
void load_pairs(const uint16_t* from, int64_t row, int64_t rows, int64_t count, __m512i (&r)[16]) {
  const __mmask16 inside = first_of_16(count);
#pragma GCC unroll 16
  for (int p = 0; p < 16; ++p)
    r[p] = _mm512_or_si512(
        half_line<kWhole>(from, row, rows, inside, 2 * p),
        _mm512_slli_epi32(half_line<kWhole>(from, row, rows, inside, 2 * p + 1), 16));
}

inline __attribute__((always_inline)) void load_tile(TileFrom how, const uint16_t* from,
                                                     int64_t row, int64_t rows, int64_t count,
                                                     __m512i (&r)[16]) {
  if (how == TileFrom::Rows || how == TileFrom::RowsTurned)
    rows == 16 && count == 32 ? load_rows<true>(from, row, rows, count, r)
                              : load_rows<false>(from, row, rows, count, r);
  else
    rows == 32 && count == 16 ? load_pairs<true>(from, row, rows, count, r)
                              : load_pairs<false>(from, row, rows, count, r);
  if (how == TileFrom::RowsTurned || how == TileFrom::PairsTurned) transpose(r);
}

void pack(TileFrom how, const uint16_t* from, int64_t row, int64_t rows, int64_t count,
          uint16_t* to) {
  __m512i r[16];
  load_tile(how, from, row, rows, count, r);
#pragma GCC unroll 16
  for (int p = 0; p < 16; ++p) _mm512_storeu_si512(to + p * kTileDepth, r[p]);
}

__m512i narrowed(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}
// Elements 0 to 15, or 16 to 31, of a line of bfloat16.
__m512 widened(__m256i half) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16));
}

void pack_half(TileFrom how, const uint16_t* from, int64_t row, int64_t rows, int64_t count,
               uint16_t* to) {
  __m512i r[16];
  load_tile(how, from, row, rows, count, r);
  for (int p = 0; p < 16; ++p) {
    const __m512 low = _mm512_cvtph_ps(_mm512_castsi512_si256(r[p]));
    const __m512 high = _mm512_cvtph_ps(_mm512_extracti64x4_epi64(r[p], 1));
    const __m512i coarse = narrowed(low, high);
    const __m512 low_rest = _mm512_sub_ps(low, widened(_mm512_castsi512_si256(coarse)));
    const __m512 high_rest = _mm512_sub_ps(high, widened(_mm512_extracti64x4_epi64(coarse, 1)));
    _mm512_storeu_si512(to + p * kTileDepth, coarse);
    _mm512_storeu_si512(to + kTileSize + p * kTileDepth, narrowed(low_rest, high_rest));
  }
}

bool finite_half(const uint16_t* from, int64_t count) {
  const __m512i exponent = _mm512_set1_epi16(0x7c00);
  __mmask32 odd = 0;
  for (int64_t i = 0; i < count; i += 32) {
    const __m512i v = _mm512_maskz_loadu_epi16(first_of_32(count - i), from + i);
    odd |= _mm512_cmpeq_epi16_mask(_mm512_and_si512(v, exponent), exponent);
  }
  return odd == 0;
}

void narrow(const float* from, int64_t count, uint16_t* to) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 inside = first_of_16(count - i);
    const __m512 v = _mm512_maskz_loadu_ps(inside, from + i);
    _mm256_mask_storeu_epi16(to + i, inside, reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v)));
  }
}

void narrow_half(const float* from, int64_t count, uint16_t* to) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 inside = first_of_16(count - i);
    const __m512 v = _mm512_maskz_loadu_ps(inside, from + i);
    _mm256_mask_storeu_epi16(to + i, inside, _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT));
  }
}

void narrow_pair(const float* even, const float* odd, int64_t count, uint16_t* to) {
  for (int64_t i = 0; i < count; i += 16) {
    const __mmask16 inside = first_of_16(count - i);
    const auto half = [&](const float* from) {
      return _mm512_cvtepu16_epi32(
          reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(inside, from + i))));
    };
    const __m512i both = _mm512_or_si512(half(even), _mm512_slli_epi32(half(odd), 16));
    _mm512_mask_storeu_epi32(to + 2 * i, inside, both);
  }
}

}  // namespace
}  // namespace oar::cpu
