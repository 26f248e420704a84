// Piecewise functions, for AVX-512: the coefficients of sixteen polynomials are in registers, and one
// instruction selects those of sixteen numbers. On other sets this would cost as much as a longer formula.
#pragma once

#if defined(__AVX512F__)
#include <immintrin.h>

#include "oar/backend/cpu/simd/numbers.h"

namespace oar::cpu::functions {
namespace {

// Polynomials around the multiples of 17/64 up to 4. The first has its centre at 0, where the error must
// stay small relative to the result.
struct Piece {
  __m512 t;       // from the centre
  __m512i index;  // in the lowest bits
  __mmask16 first;
  // `size` is at most 4.11.
  OAR_SIMD_INLINE explicit Piece(__m512 size) {
    const __m512 shifter = _mm512_set1_ps(0x1.8p23f);
    const __m512 shifted = _mm512_fmadd_ps(size, _mm512_set1_ps(64.0f / 17), shifter);
    t = _mm512_fnmadd_ps(_mm512_sub_ps(shifted, shifter), _mm512_set1_ps(17.0f / 64), size);
    index = _mm512_castps_si512(shifted);
    first = _mm512_cmp_ps_mask(shifted, shifter, _CMP_EQ_OQ);
  }
  // With a mask, since g++ 12 reports the form without one as uninitialised.
  OAR_SIMD_INLINE __m512 of(const float (&row)[16]) const {
    return _mm512_maskz_permutexvar_ps(0xffff, index, _mm512_load_ps(row));
  }
  // All but the first of the terms, divided by t.
  template <int kTerms>
  OAR_SIMD_INLINE __m512 slope(const float (&rows)[kTerms][16]) const {
    __m512 sum = of(rows[kTerms - 1]);
#pragma GCC unroll 8
    for (int i = kTerms - 2; i >= 1; --i) sum = _mm512_fmadd_ps(sum, t, of(rows[i]));
    return sum;
  }
};
OAR_SIMD_INLINE __m512 limited(__m512 x, float most) {
  return _mm512_maskz_min_ps(0xffff, _mm512_set1_ps(most), _mm512_abs_ps(x));  // keeps a NaN
}

// From 4 on it rounds to 1.
alignas(64) constexpr float kErfPieces[][16] = {
    {0.0f, 0.2928232253f, 0.5475284457f, 0.7402369976f, 0.8670582771f, 0.939653337f, 0.9757977128f,
     0.9914503098f, 0.997345984f, 0.9992774129f, 0.999827683f, 0.9999640584f, 0.9999934435f,
     0.9999989867f, 0.9999998808f, 1.0f},
    {0.1283791661f, 1.051508188f, 0.8509139419f, 0.5979623199f, 0.3649028838f, 0.193373099f,
     0.08898772299f, 0.03556144983f, 0.01234082039f, 0.003718980821f, 0.0009732380859f,
     0.0002211716928f, 4.36470873e-05f, 7.479908163e-06f, 1.11314705e-06f, 1.557566662e-07f},
    {3.127776154e-07f, -0.2792958021f, -0.4520418048f, -0.4765034914f, -0.3877141774f,
     -0.2568203211f, -0.1418235898f, -0.0661322698f, -0.02622984536f, -0.00889963191f,
     -0.002578644315f, -0.0006443891907f, -0.000136264629f, -3.867101259e-05f, -1.54067875e-05f,
     -9.346833394e-05f},
    {-0.3761433363f, -0.3010050058f, -0.1235515475f, 0.05381413549f, 0.1529922336f, 0.1629406512f,
     0.1210275665f, 0.07011020929f, 0.03303770348f, 0.01292979997f, 0.004253373481f,
     0.001185013913f, 0.0002810567967f, 5.695537766e-05f, 9.888312889e-06f, -0.002807948971f},
    {0.0003106716322f, 0.1317680329f, 0.1823248118f, 0.1371480823f, 0.04841453582f, -0.02238319814f,
     -0.04892229289f, -0.04248899966f, -0.02608017996f, -0.01204737555f, -0.005187655799f,
     -0.001636027941f, -0.0005671975086f, 0.0006243651151f, 0.0006106634974f, -0.02812514082f},
    {0.110859625f, 0.07399072498f, -0.001070982195f, -0.05919772759f, -0.065979518f,
     -0.03700999916f, -0.005168959033f, 0.01094666962f, 0.01244758628f, 0.008073591627f,
     0.003828349989f, 0.001428710297f, 0.0004334095865f, 0.0001088474019f, 2.286496238e-05f,
     -0.09207422286f}};
OAR_SIMD_INLINE __m512 erf_by_pieces(__m512 x) {
  const Piece piece(limited(x, 4));
  // The slope at 0 is 1 plus what the table has, which has more digits than their sum.
  const __m512 start = _mm512_mask_mov_ps(piece.of(kErfPieces[0]), piece.first, piece.t);
  const __m512 sum = _mm512_fmadd_ps(piece.slope(kErfPieces), piece.t, start);
  // 0xca: each bit from the second where the first has one, else from the third.
  return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(
      _mm512_set1_epi32(0x7fffffff), _mm512_castps_si512(sum), _mm512_castps_si512(x), 0xca));
}

// |x| times the share of a normal distribution beyond |x|.
inline constexpr float kMostPieces = 4.1f;
alignas(64) constexpr float kTailPieces[][16] = {
    {0.0f, 0.1049920022f, 0.1581120938f, 0.1695445776f, 0.1530046463f, 0.1222783551f,
     0.08844678104f, 0.05854614452f, 0.03568577766f, 0.02010482363f, 0.01049418189f,
     0.005083056632f, 0.00228716596f, 0.000956743781f, 0.0003722674737f, 0.0001347873476f},
    {0.5f, 0.2929682136f, 0.1135776564f, -0.0186628513f, -0.09704172611f, -0.127272442f,
     -0.1230572388f, -0.1001988873f, -0.07186379284f, -0.04634289071f, -0.02717078663f,
     -0.01457992289f, -0.00719125336f, -0.003269785084f, -0.001373413601f, -0.0005337219336f},
    {-0.3989422917f, -0.3715259433f, -0.2975460887f, -0.1982125789f, -0.09880504757f,
     -0.01949551329f, 0.03025229834f, 0.05160290003f, 0.05247587338f, 0.04254438356f,
     0.02961655892f, 0.01825656183f, 0.01012353227f, 0.005096744746f, 0.002343586879f,
     0.0009882171871f},
    {7.96160748e-07f, 0.06699414551f, 0.1140421852f, 0.1297897398f, 0.115341492f, 0.08174427599f,
     0.04344547912f, 0.01191177499f, -0.007616433781f, -0.01565144584f, -0.01584891789f,
     -0.01234128512f, -0.008120035753f, -0.004684306215f, -0.002413916402f, -0.001123285503f},
    {0.06647307426f, 0.0561381653f, 0.02969079651f, 0.0003175514285f, -0.02572420053f,
     -0.03591421992f, -0.0343580842f, -0.0241711773f, -0.01237361506f, -0.00330903125f,
     0.002195165493f, 0.003986536991f, 0.003722082824f, 0.002680419246f, 0.001624946599f,
     0.0008609243087f},
    {0.000145618149f, -0.01469270792f, -0.0230521448f, -0.0219482407f, -0.01360051334f,
     -0.003149626777f, 0.0052474658f, 0.008819567971f, 0.008175559342f, 0.005607785191f,
     0.002515075495f, 0.0004182685807f, -0.0006103714695f, -0.0008519043913f, -0.0006998605095f,
     -0.0004525472177f},
    {-0.01037245337f, -0.0009302045219f, 0.02243109047f, -0.0274121426f, 0.03884908184f,
     0.00202052854f, 0.008989532478f, -0.005376464222f, -0.007288439665f, 0.002190878382f,
     -0.003366905032f, -0.001014003647f, 1.658942529e-05f, 0.0001376644796f, 0.0001585232385f,
     0.000115677547f}};
// gelu of |x| up to kMostPieces.
OAR_SIMD_INLINE __m512 gelu_by_pieces(__m512 x) {
  const Piece piece(limited(x, kMostPieces));
  const __m512 beyond =
      _mm512_fmadd_ps(piece.slope(kTailPieces), piece.t, piece.of(kTailPieces[0]));
  const __mmask16 below = _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_LT_OQ);
  return _mm512_sub_ps(_mm512_mask_mov_ps(x, below, _mm512_set1_ps(-0.0f)), beyond);
}

}  // namespace
}  // namespace oar::cpu::functions
#endif
