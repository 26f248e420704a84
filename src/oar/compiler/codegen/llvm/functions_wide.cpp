// Functions with tables in registers, for AVX-512; the same source as the eager kernels'. They take the place of those in
// functions.cpp. The vectoriser calls the forms for 16 and 8 numbers; that for one gives the same bits, so it does not matter where a
// row ends.
#include "oar/backend/cpu/simd/pieces.h"

#if defined(__AVX512F__)

namespace {
using oar::cpu::functions::erf_by_pieces;
}

extern "C" {

__m512 oar_erf_f_16(__m512 x) { return erf_by_pieces(x); }
__m256 oar_erf_f_8(__m256 x) {
  return _mm512_castps512_ps256(erf_by_pieces(_mm512_castps256_ps512(x)));
}
float oar_erf_f(float x) { return _mm512_cvtss_f32(erf_by_pieces(_mm512_set1_ps(x))); }
}
#endif
