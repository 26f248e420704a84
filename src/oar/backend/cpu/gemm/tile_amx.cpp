// Tiles of AMX. Compiled for machines that have it: nothing may be defined here but the table.
#if defined(__x86_64__)
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16,f16c,amx-tile,amx-bf16")
#include <immintrin.h>
// g++ 12 warns of its own header's undefined vectors.
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#include "oar/backend/cpu/gemm/tile_table.h"
#if defined(__x86_64__)
#include "oar/backend/cpu/gemm/tile_lines.h"
#endif

namespace oar::cpu {

#if defined(__x86_64__)
namespace {

struct alignas(64) Configuration {
  uint8_t palette, start_row, reserved[14];
  uint16_t row_bytes[16];
  uint8_t rows[16];
};

constexpr Configuration full_tiles() {
  Configuration c{};
  c.palette = 1;
  for (int i = 0; i < 8; ++i) {
    c.row_bytes[i] = 64;
    c.rows[i] = kTileRows;
  }
  return c;
}
constexpr Configuration kFull = full_tiles();

void begin() { _tile_loadconfig(&kFull); }
void end() { _tile_release(); }

template <bool kTall, bool kWide>
void multiply_tiles(const TileTask& t) {
  float* const below = t.c + kTileRows * t.c_row;
  const int64_t c_bytes = t.c_row * 4;
  if (t.accumulate) {
    _tile_loadd(0, t.c, c_bytes);
    if constexpr (kWide) _tile_loadd(1, t.c + 16, c_bytes);
    if constexpr (kTall) _tile_loadd(2, below, c_bytes);
    if constexpr (kTall && kWide) _tile_loadd(3, below + 16, c_bytes);
  } else {
    _tile_zero(0);
    if constexpr (kWide) _tile_zero(1);
    if constexpr (kTall) _tile_zero(2);
    if constexpr (kTall && kWide) _tile_zero(3);
  }
  for (int64_t s = 0; s < t.steps; ++s) {
    _tile_loadd(4, t.a[0] + t.a_at[s], t.a_row);
    _tile_loadd(6, t.b[0] + t.b_at[s], t.b_row);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (kWide) {
      _tile_loadd(7, t.b[1] + t.b_at[s], t.b_row);
      _tile_dpbf16ps(1, 4, 7);
    }
    if constexpr (kTall) {
      _tile_loadd(5, t.a[1] + t.a_at[s], t.a_row);
      _tile_dpbf16ps(2, 5, 6);
    }
    if constexpr (kTall && kWide) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, t.c, c_bytes);
  if constexpr (kWide) _tile_stored(1, t.c + 16, c_bytes);
  if constexpr (kTall) _tile_stored(2, below, c_bytes);
  if constexpr (kTall && kWide) _tile_stored(3, below + 16, c_bytes);
}

void multiply(const TileTask& t) {
  if (t.a[1] && t.b[1]) return multiply_tiles<true, true>(t);
  if (t.a[1]) return multiply_tiles<true, false>(t);
  if (t.b[1]) return multiply_tiles<false, true>(t);
  multiply_tiles<false, false>(t);
}

}  // namespace

const TileTable kAmxTiles{begin,       end,    multiply,    pack,        pack_half,
                          finite_half, narrow, narrow_half, narrow_pair, true};
#else
const TileTable kAmxTiles{};
#endif

}  // namespace oar::cpu
