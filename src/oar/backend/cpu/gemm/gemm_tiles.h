// Matrix products of 16-bit floats on tiles, if the machine has instructions for them.
#pragma once

#include "oar/backend/cpu/gemm/gemm.h"
#include "oar/backend/cpu/gemm/tile_table.h"

namespace oar::cpu {

// C = A · B, or added to C, for bfloat16 and float16; sums are in float. False if tiles do not
// fit, with nothing written. A float16 is the sum of two bfloat16, so its products are four.
template <class T>
bool gemm_tiles(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c,
                bool accumulate);

// The right factor of a block product: for each 16 columns, step by step, a tile.
inline int64_t tiles_across(int64_t size) { return (size + kTileRows - 1) / kTileRows; }
inline int64_t tile_steps(int64_t depth) { return (depth + kTileDepth - 1) / kTileDepth; }
inline int64_t packed_size(int64_t size, int64_t depth) {
  return tiles_across(size) * tile_steps(depth) * kTileSize;
}
// Lines of memory hold the depth (`along`) or the columns. Of a left factor: the rows.
void pack_right(const TileTable& table, const bfloat16* from, int64_t row, bool along,
                int64_t columns, int64_t depth, uint16_t* to);
void pack_left(const TileTable& table, const bfloat16* from, int64_t row, bool along, int64_t rows,
               int64_t depth, uint16_t* to);

// A factor as a block product reads it: elements between neighbouring tiles of rows (of A) or columns
// (of B), between steps, and bytes between rows of a tile.
struct TileFactor {
  const uint16_t* data;
  int64_t next, step, row;
};
// C (whole tiles) = A · B, or added to it, by this thread, which has its tiles set up.
void tile_block(const TileTable& table, int64_t rows, int64_t columns, int64_t depth, TileFactor a,
                TileFactor b, float* c, int64_t c_row, bool accumulate);

}  // namespace oar::cpu
