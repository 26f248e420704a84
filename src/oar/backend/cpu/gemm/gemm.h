// Matrix products: C = A · B, or added to C, with any strides and in any number type.
//
// One element of C is one chain of multiply-adds in fixed blocks of k, so results depend
// neither on the number of threads nor on the instruction set.
#pragma once

#include <cstdint>

#include "oar/backend/cpu/gemm/gemm_table.h"
#include "oar/base/function_ref.h"
#include "oar/tensor/element.h"

namespace oar::cpu {

// The micro kernels that this machine runs; for float and double.
template <class T>
const MicroTable<T>& micro_table();

// Element (i, j) is data[i * row + j * column].
template <class T>
struct Matrix {
  T* data;
  int64_t row, column;
  Matrix<T> transposed() const { return {data, column, row}; }
};

// Part of B as the micro kernels read it: panels of `width` columns side by side, in each the rows
// one after another. Columns past `columns` are zeros up to a multiple of `lanes`.
template <class T>
struct Panels {
  int64_t first_row, rows;  // of B
  int64_t first_column, columns;
  int64_t width, lanes;
  T* data;

  int64_t padded() const { return (columns + lanes - 1) / lanes * lanes; }
  // Columns of the panel that starts at `column` (counted from first_column), padding included.
  int64_t width_at(int64_t column) const {
    const int64_t left = padded() - column;
    return left < width ? left : width;
  }
  T* panel(int64_t column) const { return data + column * rows; }
  // Spreads a row, given with its padding, over the panels.
  void store_row(int64_t row, const T* values) const {
    for (int64_t column = 0; column < padded(); column += width) {
      const int64_t w = width_at(column);
      T* to = panel(column) + row * w;
      for (int64_t j = 0; j < w; ++j) to[j] = values[column + j];
    }
  }
};
// The most rows and padded columns that are ever requested at once.
inline constexpr int64_t kMaxPanelRows = 256, kMaxPanelColumns = 1024;

template <class T>
using PanelSource = FunctionRef<void(const Panels<T>&)>;

// For float and double.
template <class T>
void gemm_panels(int64_t m, int64_t n, int64_t k, Matrix<const T> a, PanelSource<T> b, Matrix<T> c,
                 bool accumulate);

// For every number type; small floats add up in float, integers wrap.
template <class T>
void gemm(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b, Matrix<T> c,
          bool accumulate = false);

// The plain loop, for tiny sizes and integers.
template <class T>
void gemm_reference(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b,
                    Matrix<T> c, bool accumulate = false);

}  // namespace oar::cpu
