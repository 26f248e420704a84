// Triangular systems with few right sides, which LAPACK's product of blocks has no use for: every element of the triangle is read
// once, and a row of the right sides is two vectors.
#pragma once

#include "oar/backend/cpu/lapack/lanes.h"

namespace oar::cpu::lapack {

template <class R>
class NarrowTriangle {
 public:
  using V = Reals<R>;
  static constexpr int64_t kVectors = 2, kColumns = kVectors * kLanes<R>;
  // More right sides than this are left to the library.
  static constexpr int64_t kMostColumns = 2 * kColumns;

  NarrowTriangle(int64_t n, bool upper, bool transposed, bool unit)
      : n_(n), backwards_(upper != transposed), transposed_(transposed), unit_(unit), rows_(n) {}

  // b[n, columns] = T^-1 b, where T is a triangle of a, or its transpose.
  void run(const R* a, R* b, int64_t columns) const {
    for (int64_t first = 0; first < columns; first += kColumns) {
      const int64_t width = std::min(kColumns, columns - first);
      for (int64_t i = 0; i < n_; ++i) {
        rows_[i] = {};
        std::copy_n(b + i * columns + first, width, words(i));
      }
      for (int64_t done = 0; done < n_; done += kBlock) {
        const int64_t count = std::min(kBlock, n_ - done);
        const int64_t top = backwards_ ? n_ - done - count : done;
        if (!transposed_) subtract_solved(a, top, count);
        solve_block(a, top, count);
        if (transposed_) subtract_from_rest(a, top, count);
      }
      for (int64_t i = 0; i < n_; ++i) std::copy_n(words(i), width, b + i * columns + first);
    }
  }

 private:
  static constexpr int64_t kBlock = 4;
  struct Row {
    V v[kVectors];
  };
  R* words(int64_t i) const { return reinterpret_cast<R*>(rows_.data() + i); }
  R factor(const R* a, int64_t i, int64_t j) const {
    return transposed_ ? a[j * n_ + i] : a[i * n_ + j];
  }

  // What the rows that are solved add to `count` rows from `top` on.
  void subtract_solved(const R* a, int64_t top, int64_t count) const {
    const int64_t begin = backwards_ ? top + count : 0, end = backwards_ ? n_ : top;
    if (count < kBlock) {
      for (int64_t i = top; i < top + count; ++i)
        for (int64_t j = begin; j < end; ++j) subtract(rows_[i], a[i * n_ + j], rows_[j]);
      return;
    }
    // Names rather than arrays, which would not stay in registers.
    const R *p = a + top * n_, *q = p + n_, *r = q + n_, *s = r + n_;
    V p0{}, p1{}, q0{}, q1{}, r0{}, r1{}, s0{}, s1{};
    const Row* rows = rows_.data();
    for (int64_t j = begin; j < end; ++j) {
      const V x = rows[j].v[0], y = rows[j].v[1];
      p0 += p[j] * x, p1 += p[j] * y;
      q0 += q[j] * x, q1 += q[j] * y;
      r0 += r[j] * x, r1 += r[j] * y;
      s0 += s[j] * x, s1 += s[j] * y;
    }
    Row* to = rows_.data() + top;
    to[0].v[0] -= p0, to[0].v[1] -= p1;
    to[1].v[0] -= q0, to[1].v[1] -= q1;
    to[2].v[0] -= r0, to[2].v[1] -= r1;
    to[3].v[0] -= s0, to[3].v[1] -= s1;
  }
  // What `count` rows from `top` on, just solved, add to those that are not.
  void subtract_from_rest(const R* a, int64_t top, int64_t count) const {
    const int64_t begin = backwards_ ? 0 : top + count, end = backwards_ ? top : n_;
    if (count < kBlock) {
      for (int64_t j = top; j < top + count; ++j)
        for (int64_t i = begin; i < end; ++i) subtract(rows_[i], a[j * n_ + i], rows_[j]);
      return;
    }
    const R *p = a + top * n_, *q = p + n_, *r = q + n_, *s = r + n_;
    Row* rows = rows_.data();
    const Row a0 = rows[top], a1 = rows[top + 1], a2 = rows[top + 2], a3 = rows[top + 3];
    for (int64_t i = begin; i < end; ++i)
#pragma GCC unroll 2
      for (int k = 0; k < kVectors; ++k)
        rows[i].v[k] -= p[i] * a0.v[k] + q[i] * a1.v[k] + r[i] * a2.v[k] + s[i] * a3.v[k];
  }
  void solve_block(const R* a, int64_t top, int64_t count) const {
    for (int64_t step = 0; step < count; ++step) {
      const int64_t i = backwards_ ? top + count - 1 - step : top + step;
      for (int64_t before = 0; before < step; ++before) {
        const int64_t j = backwards_ ? top + count - 1 - before : top + before;
        subtract(rows_[i], factor(a, i, j), rows_[j]);
      }
      if (unit_) continue;
      for (V& each : rows_[i].v) each = each / a[i * (n_ + 1)];
    }
  }
  static void subtract(Row& from, R factor, const Row& row) {
#pragma GCC unroll 2
    for (int64_t k = 0; k < kVectors; ++k) from.v[k] -= factor * row.v[k];
  }

  const int64_t n_;
  const bool backwards_, transposed_, unit_;
  const Scratch<Row> rows_;
};

}  // namespace oar::cpu::lapack
