// Rows of a CSR matrix times a vector or the rows of a dense matrix. What is added in which order depends on the length of the row
// alone, not on threads.
#pragma once

#include <algorithm>
#include <atomic>

#include "oar/backend/cpu/sparse/positions.h"
#include "oar/backend/cpu/vector.h"

namespace oar::cpu {

// Elements whose columns are checked together and whose products with a vector are kept: they stay in the first cache.
inline constexpr int64_t kTogether = 1024;

// ---- Times a vector ------------------------------------------------------------------------------

// The sum of a row. Rows are of any length, so that a branch on it is often predicted wrong: up to kStep numbers are added
// without one.
template <class R>
class RowSum {
  using V = typename Vectors<R>::Values;
  using Mask = typename Vectors<R>::Mask;
  static constexpr int64_t kLanes = 32 / static_cast<int64_t>(sizeof(R)), kAtOnce = 4 * kLanes;

 public:
  static constexpr int64_t kStep = 32;

  void add(const R* p) {
    for (int64_t i = 0; i < kStep; i += kAtOnce) {
      a_ += load8<V>(p + i);
      b_ += load8<V>(p + i + kLanes);
      c_ += load8<V>(p + i + 2 * kLanes);
      d_ += load8<V>(p + i + 3 * kLanes);
    }
  }
  // The first n of kStep numbers; all of them are read.
  void add_first(const R* p, int64_t n) {
    for (int64_t i = 0; i < kStep; i += kAtOnce) {
      a_ += first(p + i, n - i);
      b_ += first(p + i + kLanes, n - i - kLanes);
      c_ += first(p + i + 2 * kLanes, n - i - 2 * kLanes);
      d_ += first(p + i + 3 * kLanes, n - i - 3 * kLanes);
    }
  }
  R total() const {
    const V all = (a_ + b_) + (c_ + d_), pairs = sums_of_pairs(all, all);
    if constexpr (kLanes == 4) {
      return pairs[0] + pairs[1];
    } else {
      return (pairs[0] + pairs[1]) + (pairs[2] + pairs[3]);
    }
  }

 private:
  static V first(const R* p, int64_t n) {
    using Word = std::remove_cvref_t<decltype(Mask{}[0])>;
    Mask lanes;
    if constexpr (kLanes == 4)
      lanes = Mask{0, 1, 2, 3};
    else
      lanes = Mask{0, 1, 2, 3, 4, 5, 6, 7};
    const Mask kept = lanes < Mask{} + static_cast<Word>(n);
    return reinterpret_cast<V>(load8<Mask>(p) & kept);
  }
  V a_{}, b_{}, c_{}, d_{};
};

// y[cols[k]] for the lanes of a vector. Single loads are as fast as a gather where that is fast, and elsewhere much faster.
template <class I>
Float8 pick(const float* y, const I* cols) {
  return Float8{y[cols[0]], y[cols[1]], y[cols[2]], y[cols[3]],
                y[cols[4]], y[cols[5]], y[cols[6]], y[cols[7]]};
}
template <class I>
Double4 pick(const double* y, const I* cols) {
  return Double4{y[cols[0]], y[cols[1]], y[cols[2]], y[cols[3]]};
}

// values[k] * y[cols[k]].
template <class R, class I>
void multiply_picked(const I* cols, const R* values, int64_t count, const R* y, R* __restrict out) {
  constexpr int64_t kLanes = 32 / static_cast<int64_t>(sizeof(R));
  int64_t k = 0;
  for (; k + kLanes <= count; k += kLanes)
    store8(out + k, pick(y, cols + k) * load8<typename Vectors<R>::Values>(values + k));
  for (; k < count; ++k) out[k] = values[k] * y[cols[k]];
}

// Rows with together at most kTogether elements, or one with more.
template <class R, class I>
void rows_times_vector(const I* crows, int64_t rows, const I* cols, const R* values, const R* y,
                       R* out) {
  using Sum = RowSum<R>;
  alignas(32) R products[kTogether + Sum::kStep];
  const int64_t from = crows[0], count = crows[rows] - from;
  const auto add = [&](Sum& sum, const R* p, int64_t n) {
    for (; n > Sum::kStep; p += Sum::kStep, n -= Sum::kStep) sum.add(p);
    sum.add_first(p, n);
  };
  if (count <= kTogether) {
    multiply_picked(cols + from, values + from, count, y, products);
    for (int64_t row = 0; row < rows; ++row) {
      Sum sum;
      add(sum, products + (crows[row] - from), crows[row + 1] - crows[row]);
      out[row] = sum.total();
    }
    return;
  }
  Sum sum;
  for (int64_t k = 0; k < count; k += kTogether) {
    const int64_t n = std::min(kTogether, count - k);
    multiply_picked(cols + from + k, values + from + k, n, y, products);
    add(sum, products, n);
  }
  out[0] = sum.total();
}

// The product of a row and a vector of other numbers, as four sums that do not wait for each other.
template <class T, class I>
T dot_row(const I* cols, const T* values, int64_t count, const T* y) {
  T a = 0, b = 0, c = 0, d = 0;
  int64_t k = 0;
  for (; k + 4 <= count; k += 4) {
    a += values[k] * y[cols[k]];
    b += values[k + 1] * y[cols[k + 1]];
    c += values[k + 2] * y[cols[k + 2]];
    d += values[k + 3] * y[cols[k + 3]];
  }
  for (; k < count; ++k) a += values[k] * y[cols[k]];
  return (a + b) + (c + d);
}

// ---- Times rows of a matrix ------------------------------------------------------------------------

// The columns that a row's sums keep in registers at once.
template <class T>
constexpr int64_t kBlock = 128 / static_cast<int64_t>(sizeof(T));

// The sums of value * y[col] over some elements, for kWidth columns.
template <class T, class I, int64_t kWidth>
void sum_block(const I* cols, const T* values, int64_t count, const T* y, int64_t stride,
               T* __restrict out) {
  T sums[kWidth] = {};
  for (int64_t k = 0; k < count; ++k) {
    const T* row = y + static_cast<int64_t>(cols[k]) * stride;
    const T value = values[k];
    for (int64_t j = 0; j < kWidth; ++j) sums[j] += value * row[j];
  }
  for (int64_t j = 0; j < kWidth; ++j) out[j] = sums[j];
}

// The same for kBlock columns of floats; two elements at a time, whose sums do not wait for each other.
template <class R, class I>
void sum_vectors(const I* cols, const R* values, int64_t count, const R* y, int64_t stride,
                 R* out) {
  using V = typename Vectors<R>::Values;
  constexpr int64_t kLanes = 32 / static_cast<int64_t>(sizeof(R));
  V a{}, b{}, c{}, d{}, e{}, f{}, g{}, h{};  // by name: so they stay in registers
  int64_t k = 0;
  for (; k + 2 <= count; k += 2) {
    const R *p = y + static_cast<int64_t>(cols[k]) * stride,
            *q = y + static_cast<int64_t>(cols[k + 1]) * stride, s = values[k], t = values[k + 1];
    a += s * load8<V>(p);
    b += s * load8<V>(p + kLanes);
    c += s * load8<V>(p + 2 * kLanes);
    d += s * load8<V>(p + 3 * kLanes);
    e += t * load8<V>(q);
    f += t * load8<V>(q + kLanes);
    g += t * load8<V>(q + 2 * kLanes);
    h += t * load8<V>(q + 3 * kLanes);
  }
  if (k < count) {
    const R *p = y + static_cast<int64_t>(cols[k]) * stride, s = values[k];
    a += s * load8<V>(p);
    b += s * load8<V>(p + kLanes);
    c += s * load8<V>(p + 2 * kLanes);
    d += s * load8<V>(p + 3 * kLanes);
  }
  store8(out, a + e);
  store8(out + kLanes, b + f);
  store8(out + 2 * kLanes, c + g);
  store8(out + 3 * kLanes, d + h);
}

// Wide rows of y are read from end to end, four at a time.
template <class T, class I>
void sum_wide_row(const I* cols, const T* values, int64_t count, const T* y, int64_t width,
                  T* __restrict out) {
  std::fill(out, out + width, T(0));
  int64_t k = 0;
  const auto row = [&](int64_t i) { return y + static_cast<int64_t>(cols[i]) * width; };
  for (; k + 4 <= count; k += 4) {
    const T *a = row(k), *b = row(k + 1), *c = row(k + 2), *d = row(k + 3);
    const T p = values[k], q = values[k + 1], r = values[k + 2], s = values[k + 3];
    for (int64_t j = 0; j < width; ++j) out[j] += p * a[j] + q * b[j] + r * c[j] + s * d[j];
  }
  for (; k < count; ++k) {
    const T *a = row(k), p = values[k];
    for (int64_t j = 0; j < width; ++j) out[j] += p * a[j];
  }
}

template <class T, class I>
void sum_row(const I* cols, const T* values, int64_t count, const T* y, int64_t width, T* out) {
  if (width > 2 * kBlock<T>) return sum_wide_row(cols, values, count, y, width, out);
  int64_t j = 0;
  for (; j + kBlock<T> <= width; j += kBlock<T>) {
    if constexpr (std::is_floating_point_v<T>)
      sum_vectors(cols, values, count, y + j, width, out + j);
    else
      sum_block<T, I, kBlock<T>>(cols, values, count, y + j, width, out + j);
  }
  for (; j + 8 <= width; j += 8) sum_block<T, I, 8>(cols, values, count, y + j, width, out + j);
  for (; j < width; ++j) sum_block<T, I, 1>(cols, values, count, y + j, width, out + j);
}

template <class T, class I>
void rows_times_matrix(const I* crows, int64_t rows, const I* cols, const T* values, const T* y,
                       int64_t width, T* out) {
  if constexpr (std::is_floating_point_v<T>)
    if (width == 1) return rows_times_vector(crows, rows, cols, values, y, out);
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t first = crows[row], count = crows[row + 1] - first;
    if (width == 1)
      out[row] = dot_row(cols + first, values + first, count, y);
    else
      sum_row(cols + first, values + first, count, y, width, out + row * width);
  }
}

// ---- All rows --------------------------------------------------------------------------------------

// Rows of about equal work for each chunk. A row is summed by one thread.
template <class T, class I>
void multiply_rows(const I* crows, int64_t rows, const I* cols, const T* values, const T* y,
                   int64_t y_rows, int64_t width, T* out) {
  const int64_t count = crows[rows];
  const auto work = [&](int64_t row) { return (crows[row] + row) * std::max<int64_t>(width, 1); };
  const int64_t chunks = std::clamp<int64_t>(work(rows) / kGrain, 1, int64_t{num_threads()} * 4);
  std::atomic<bool> good = true;
  const auto boundary = [&](int64_t chunk) {
    const int64_t target = (count + rows) * chunk / chunks;
    int64_t low = 0, high = rows;
    while (low < high) {
      const int64_t middle = (low + high) / 2;
      if (crows[middle] + middle < target)
        low = middle + 1;
      else
        high = middle;
    }
    return low;
  };
  parallel_chunks(chunks, [&](int64_t chunk) {
    const int64_t last = chunk + 1 == chunks ? rows : boundary(chunk + 1);
    for (int64_t row = boundary(chunk), end; row < last; row = end) {
      // The columns of a few rows are checked while they enter the cache.
      end = row + 1;
      while (end < last && crows[end + 1] - crows[row] <= kTogether) ++end;
      if (!in_range(cols + crows[row], crows[end] - crows[row], y_rows)) {
        good = false;
        return;
      }
      rows_times_matrix(crows + row, end - row, cols, values, y, width, out + row * width);
    }
  });
  if (!good) check_positions(cols, count, y_rows, "cols");
}

}  // namespace oar::cpu
