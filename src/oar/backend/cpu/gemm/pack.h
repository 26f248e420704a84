// Copies of matrix parts in the order in which micro kernels read them.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "oar/backend/cpu/gemm/gemm.h"
#include "oar/backend/cpu/vector.h"

namespace oar::cpu {

// to[k * step + i] = from[i * row + k], for any number of rows and any type that converts.
template <class To, class From>
void transpose_into(const From* from, int64_t row, int64_t rows, int64_t depth, To* to,
                    int64_t step) {
  int64_t done_rows = 0;
  if constexpr (std::is_same_v<To, From>) {
    constexpr int64_t kBlock = 32 / sizeof(To);
    const int64_t deep = depth / kBlock * kBlock;
    for (; done_rows + kBlock <= rows; done_rows += kBlock) {
      for (int64_t k = 0; k < deep; k += kBlock)
        transpose_block(from + done_rows * row + k, row, to + k * step + done_rows, step);
      for (int64_t k = deep; k < depth; ++k)
        for (int64_t i = done_rows; i < done_rows + kBlock; ++i)
          to[k * step + i] = from[i * row + k];
    }
  }
  for (int64_t k = 0; k < depth; ++k)
    for (int64_t i = done_rows; i < rows; ++i)
      to[k * step + i] = static_cast<To>(from[i * row + k]);
}

// to[k * step + i] = from[i * row + k * column].
template <class To, class From>
void pack_strided(const From* from, int64_t row, int64_t column, int64_t rows, int64_t depth,
                  To* to, int64_t step) {
  if (column == 1) return transpose_into(from, row, rows, depth, to, step);
  for (int64_t k = 0; k < depth; ++k) {
    const From* line = from + k * column;
    if (row == 1)
      for (int64_t i = 0; i < rows; ++i) to[k * step + i] = static_cast<To>(line[i]);
    else
      for (int64_t i = 0; i < rows; ++i) to[k * step + i] = static_cast<To>(line[i * row]);
  }
}

// Rows of B that are contiguous in memory are read from end to end: the panels are in the cache, B is
// not.
template <class To, class From>
void pack_rows(const From* from, int64_t row, const Panels<To>& panels) {
  for (int64_t k = 0; k < panels.rows; ++k, from += row)
    for (int64_t column = 0; column < panels.padded(); column += panels.width) {
      const int64_t width = panels.width_at(column);
      const int64_t filled = std::min(width, panels.columns - column);
      To* to = panels.panel(column) + k * width;
      for (int64_t j = 0; j < filled; ++j) to[j] = static_cast<To>(from[column + j]);
      for (int64_t j = filled; j < width; ++j) to[j] = To(0);
    }
}

template <class To, class From>
void pack_matrix(Matrix<const From> b, const Panels<To>& panels) {
  const From* start = b.data + panels.first_row * b.row + panels.first_column * b.column;
  if (b.column == 1) return pack_rows(start, b.row, panels);
  for (int64_t column = 0; column < panels.padded(); column += panels.width) {
    const int64_t width = panels.width_at(column);
    const int64_t filled = std::min(width, panels.columns - column);
    To* to = panels.panel(column);
    pack_strided(start + column * b.column, b.column, b.row, filled, panels.rows, to, width);
    if (filled == width) continue;
    for (int64_t k = 0; k < panels.rows; ++k)
      std::fill(to + k * width + filled, to + (k + 1) * width, To(0));
  }
}

}  // namespace oar::cpu
