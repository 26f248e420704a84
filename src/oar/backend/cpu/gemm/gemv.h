// Products that are bound by memory: a matrix with a vector, and a column with a row.
//
// Work is cut by elements of the result, so it does not matter how many threads there are.
#pragma once

#include <algorithm>
#include <cstring>

#include "oar/backend/cpu/gemm/gemm.h"
#include "oar/backend/cpu/loops/scratch.h"
#include "oar/base/parallel.h"

namespace oar::cpu {

template <class T>
struct Lanes {
  using Vector [[gnu::vector_size(32)]] = T;
  static constexpr int64_t kCount = 32 / sizeof(T);
  static Vector load(const T* from) {
    Vector v;
    std::memcpy(&v, from, sizeof(v));
    return v;
  }
  static void store(T* to, Vector v) { std::memcpy(to, &v, sizeof(v)); }
  static T sum(Vector v) {
    T total = 0;
    for (int64_t i = 0; i < kCount; ++i) total += v[i];
    return total;
  }
};

inline constexpr int64_t kVectorGrain = int64_t{1} << 15;  // elements of the matrix

// Elements of a vector one after another.
template <class T>
class Line {
 public:
  Line(const T* data, int64_t stride, int64_t count)
      : buffer_(stride == 1 ? 0 : count), data_(stride == 1 ? data : buffer_.data()) {
    if (stride == 1) return;
    for (int64_t i = 0; i < count; ++i) buffer_[i] = data[i * stride];
  }
  const T* data() const { return data_; }

 private:
  Scratch<T, 4096> buffer_;
  const T* data_;
};

// kRows sums of products along rows of memory.
template <int kRows, class T>
void dot_rows(const T* matrix, int64_t row, const T* vector, int64_t count, T* sums) {
  using L = Lanes<T>;
  constexpr int64_t kAhead = 1024 / sizeof(T);
  typename L::Vector even[kRows] = {}, odd[kRows] = {};
  int64_t j = 0;
  for (; j + 2 * L::kCount <= count; j += 2 * L::kCount) {
    const auto first = L::load(vector + j), second = L::load(vector + j + L::kCount);
    for (int r = 0; r < kRows; ++r) {
      __builtin_prefetch(matrix + r * row + j + kAhead);
      even[r] += L::load(matrix + r * row + j) * first;
      odd[r] += L::load(matrix + r * row + j + L::kCount) * second;
    }
  }
  for (int r = 0; r < kRows; ++r) sums[r] = L::sum(even[r] + odd[r]);
  for (; j < count; ++j)
    for (int r = 0; r < kRows; ++r) sums[r] += matrix[r * row + j] * vector[j];
}

template <class T>
void put(T* out, T value, bool accumulate) {
  *out = accumulate ? *out + value : value;
}

// Adds pairs until one number is left.
template <class T>
T sum_in_pairs(T* parts, int64_t count) {
  while (count > 1) {
    const int64_t half = (count + 1) / 2;
    for (int64_t i = half; i < count; ++i) parts[i - half] += parts[i];
    count = half;
  }
  return parts[0];
}

// Terms of a sum that are added one after another: longer chains lose digits, and leave threads
// without work where there are few rows.
inline constexpr int64_t kLongestSum = int64_t{1} << 14;

// The same for rows that are longer than that.
template <class T>
void times_vector_by_long_rows(int64_t rows, int64_t columns, Matrix<const T> matrix,
                               const T* vector, T* out, int64_t step, bool accumulate) {
  const int64_t pieces = (columns + kLongestSum - 1) / kLongestSum, groups = (rows + 3) / 4;
  const Scratch<T> parts(rows * pieces);
  parallel_for(0, groups * pieces, 2, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      const int64_t i = task / pieces * 4, p = task % pieces, from = p * kLongestSum;
      const int64_t height = std::min<int64_t>(4, rows - i);
      const int64_t count = std::min(kLongestSum, columns - from);
      const T* lines = matrix.data + i * matrix.row + from;
      T sums[4];
      if (height == 4)
        dot_rows<4>(lines, matrix.row, vector + from, count, sums);
      else
        for (int64_t r = 0; r < height; ++r)
          dot_rows<1>(lines + r * matrix.row, matrix.row, vector + from, count, sums + r);
      for (int64_t r = 0; r < height; ++r) parts[(i + r) * pieces + p] = sums[r];
    }
  });
  for (int64_t i = 0; i < rows; ++i)
    put(out + i * step, sum_in_pairs(parts.data() + i * pieces, pieces), accumulate);
}

// The matrix's rows are contiguous.
template <class T>
void times_vector_by_rows(int64_t rows, int64_t columns, Matrix<const T> matrix, const T* vector,
                          T* out, int64_t step, bool accumulate) {
  if (columns > kLongestSum)
    return times_vector_by_long_rows(rows, columns, matrix, vector, out, step, accumulate);
  const int64_t grain = std::max<int64_t>(4, kVectorGrain / std::max<int64_t>(columns, 1));
  parallel_for(0, rows, grain, [&](int64_t begin, int64_t end) {
    T sums[4];
    int64_t i = begin;
    for (; i + 4 <= end; i += 4) {
      dot_rows<4>(matrix.data + i * matrix.row, matrix.row, vector, columns, sums);
      for (int r = 0; r < 4; ++r) put(out + (i + r) * step, sums[r], accumulate);
    }
    for (; i < end; ++i) {
      dot_rows<1>(matrix.data + i * matrix.row, matrix.row, vector, columns, sums);
      put(out + i * step, sums[0], accumulate);
    }
  });
}

// The matrix's columns are contiguous. Sums are stored every kDepth columns, because
// long chains of additions lose digits.
template <class T>
void times_vector_by_columns(int64_t rows, int64_t columns, Matrix<const T> matrix, const T* vector,
                             T* out, int64_t step, bool accumulate) {
  constexpr int64_t kWidth = 1024, kDepth = 256;
  const MicroTable<T>& table = micro_table<T>();
  const int64_t pieces = (rows + kWidth - 1) / kWidth;
  const int64_t grain = std::max<int64_t>(1, kVectorGrain / kWidth / std::max<int64_t>(columns, 1));
  parallel_for(0, pieces, grain, [&](int64_t begin, int64_t end) {
    T totals[kWidth], sums[kWidth];
    for (int64_t piece = begin; piece < end; ++piece) {
      const int64_t first = piece * kWidth, count = std::min(kWidth, rows - first);
      std::fill(totals, totals + count, T(0));
      for (int64_t block = 0; block < columns; block += kDepth) {
        const int64_t last = std::min(columns, block + kDepth);
        std::fill(sums, sums + count, T(0));
        int64_t j = block;
        for (; j + kAddedRows <= last; j += kAddedRows)
          table.add_rows(matrix.data + first + j * matrix.column, matrix.column, vector + j, count,
                         sums);
        for (; j < last; ++j)
          for (int64_t i = 0; i < count; ++i)
            sums[i] += matrix.data[first + j * matrix.column + i] * vector[j];
        for (int64_t i = 0; i < count; ++i) totals[i] += sums[i];
      }
      for (int64_t i = 0; i < count; ++i) put(out + (first + i) * step, totals[i], accumulate);
    }
  });
}

// out[i * step] = sum of matrix(i, j) * vector[j], or added to it. False if neither axis is dense.
template <class T>
bool times_vector(int64_t rows, int64_t columns, Matrix<const T> matrix, const T* vector,
                  int64_t stride, T* out, int64_t step, bool accumulate) {
  if (matrix.column != 1 && matrix.row != 1) return false;
  const Line<T> line(vector, stride, columns);
  if (matrix.column == 1)
    times_vector_by_rows(rows, columns, matrix, line.data(), out, step, accumulate);
  else
    times_vector_by_columns(rows, columns, matrix, line.data(), out, step, accumulate);
  return true;
}

// C = column · row.
template <class T>
void outer_product(int64_t m, int64_t n, const T* column, int64_t column_stride, const T* row,
                   int64_t row_stride, Matrix<T> c, bool accumulate) {
  using L = Lanes<T>;
  const Line<T> line(row, row_stride, n);
  const int64_t grain = std::max<int64_t>(1, kVectorGrain / std::max<int64_t>(n, 1));
  parallel_for(0, m, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const T factor = column[i * column_stride];
      T* to = c.data + i * c.row;
      int64_t j = 0;
      for (; j + L::kCount <= n; j += L::kCount) {
        const auto value = L::load(line.data() + j) * factor;
        L::store(to + j, accumulate ? L::load(to + j) + value : value);
      }
      for (; j < n; ++j) put(to + j, factor * line.data()[j], accumulate);
    }
  });
}

// The product, if it is one of these. C's columns are dense.
template <class T>
bool thin_product(int64_t m, int64_t n, int64_t k, Matrix<const T> a, Matrix<const T> b,
                  Matrix<T> c, bool accumulate) {
  if (k == 1) {
    outer_product(m, n, a.data, a.row, b.data, b.column, c, accumulate);
    return true;
  }
  if (n == 1) return times_vector(m, k, a, b.data, b.row, c.data, c.row, accumulate);
  // A matrix that is in the cache already is multiplied faster by wider instructions.
  constexpr int64_t kCached = 1 << 15;
  return m == 1 && n * k > kCached &&
         times_vector(n, k, b.transposed(), a.data, a.column, c.data, 1, accumulate);
}

}  // namespace oar::cpu
