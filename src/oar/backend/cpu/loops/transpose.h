// Transposition of a tile by squares that fit into registers, so that neither side touches a cache line
// more than once.
#pragma once

#include <cstdint>

#include "oar/backend/cpu/vector.h"

namespace oar::cpu {

// A transposition: to[r * to_step + c] = from[r + c * from_step] for r < rows, c < columns.
template <class Word>
struct Tile {
  Word* to;
  const Word* from;
  int64_t to_step, from_step;
};

// Squares that fit into registers; 0 if there are none.
template <class Word>
inline constexpr int64_t kSide = 0;
template <>
inline constexpr int64_t kSide<uint32_t> = 8;
template <>
inline constexpr int64_t kSide<uint64_t> = 4;
inline void transpose_square(const Tile<uint32_t>& t) {
  transpose_block(t.from, t.from_step, t.to, t.to_step);
}
inline void transpose_square(const Tile<uint64_t>& t) {
  transpose_block(t.from, t.from_step, t.to, t.to_step);
}

template <class Word>
void transpose_rest(const Tile<Word>& t, int64_t rows, int64_t columns) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c) t.to[r * t.to_step + c] = t.from[r + c * t.from_step];
}

template <class Word>
void transpose_tile(const Tile<Word>& t, int64_t rows, int64_t columns) {
  int64_t r = 0, whole = 0;
  if constexpr (kSide<Word> != 0) {
    constexpr int64_t side = kSide<Word>, kAhead = 4 * side;
    whole = columns / side * side;
    const auto square = [&](int64_t row, int64_t c) {
      transpose_square(
          {t.to + row * t.to_step + c, t.from + row + c * t.from_step, t.to_step, t.from_step});
    };
    // Two squares share the cache lines of the source, which are too far apart for the prefetcher.
    for (; r + 2 * side <= rows; r += 2 * side)
      for (int64_t c = 0; c < whole; c += side) {
        for (int64_t k = 0; c + kAhead < whole && k < side; ++k)
          __builtin_prefetch(t.from + r + (c + kAhead + k) * t.from_step);
        square(r, c);
        square(r + side, c);
      }
    for (; r + side <= rows; r += side)
      for (int64_t c = 0; c < whole; c += side) square(r, c);
    if (whole < columns)
      transpose_rest(Tile<Word>{t.to + whole, t.from + whole * t.from_step, t.to_step, t.from_step},
                     r, columns - whole);
  }
  transpose_rest(Tile<Word>{t.to + r * t.to_step, t.from + r, t.to_step, t.from_step}, rows - r,
                 columns);
}

}  // namespace oar::cpu
