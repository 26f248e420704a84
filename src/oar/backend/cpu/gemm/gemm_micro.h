// The innermost loop of a matrix product: a tile of C held in registers. Written once with vector
// extensions; each file that includes it is compiled for another instruction set, so everything
// here has internal linkage and uses nothing from other headers.
#pragma once

#include "oar/backend/cpu/gemm/gemm_table.h"

namespace oar::cpu {
namespace {

// Every element of C is one chain of multiply-adds in the order of k, whatever the tile: results do
// not depend on how the work was cut nor on the width of the vectors.
template <class T, int kBytes, int kRows, int kVectors>
void micro(const MicroTile<T>& t) {
  typedef T Vector __attribute__((vector_size(kBytes)));
  typedef T Unaligned __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
  constexpr int kLanes = kBytes / static_cast<int>(sizeof(T));
  const T* rows[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) rows[i] = t.a + i * t.a_row;
  const T* b = t.b;
  Vector sum[kRows][kVectors] = {};
  long offset = 0;
  for (long k = 0; k < t.depth; ++k) {
    Vector column[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j)
      column[j] = *reinterpret_cast<const Unaligned*>(b + j * kLanes);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const T factor = rows[i][offset];
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) sum[i][j] += column[j] * factor;
    }
    b += t.b_step;
    offset += t.a_step;
  }
  T* const c = t.c;
  const long c_row = t.c_row;
  if (t.accumulate) {
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j)
        sum[i][j] += *reinterpret_cast<const Unaligned*>(c + i * c_row + j * kLanes);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j)
      *reinterpret_cast<Unaligned*>(c + i * c_row + j * kLanes) = sum[i][j];
}

template <class T, int kBytes, int kRows, int kVectors>
void micro_places(const MicroPlaces<T>& t) {
  typedef T Vector __attribute__((vector_size(kBytes)));
  typedef T Unaligned __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
  const T* rows[kRows];
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) rows[i] = t.a + i * t.a_row;
  Vector sum[kRows][kVectors] = {};
  for (long k = 0; k < t.depth; ++k) {
    const T* b = t.b + t.places[k];
    Vector column[kVectors];
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j)
      column[j] = *reinterpret_cast<const Unaligned*>(b + j * t.b_vector);
#pragma GCC unroll 16
    for (int i = 0; i < kRows; ++i) {
      const T factor = rows[i][k];
#pragma GCC unroll 4
      for (int j = 0; j < kVectors; ++j) sum[i][j] += column[j] * factor;
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i)
#pragma GCC unroll 4
    for (int j = 0; j < kVectors; ++j)
      *reinterpret_cast<Unaligned*>(t.c + i * t.c_row + j * t.c_vector) = sum[i][j];
}

template <class T, int kBytes>
void add_rows(const T* rows, long stride, const T* factors, long count, T* sums) {
  typedef T Unaligned __attribute__((vector_size(kBytes), aligned(alignof(T)), may_alias));
  constexpr long kLanes = kBytes / static_cast<long>(sizeof(T));
  long i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    auto sum = *reinterpret_cast<const Unaligned*>(sums + i);
#pragma GCC unroll 8
    for (long r = 0; r < kAddedRows; ++r) {
      __builtin_prefetch(rows + (r + kAddedRows) * stride + i);
      sum += *reinterpret_cast<const Unaligned*>(rows + r * stride + i) * factors[r];
    }
    *reinterpret_cast<Unaligned*>(sums + i) = sum;
  }
  for (; i < count; ++i)
    for (long r = 0; r < kAddedRows; ++r) sums[i] += rows[r * stride + i] * factors[r];
}

template <class T, int kBytes, int kRows, int kVectors>
constexpr void fill_rows(MicroTable<T>& table) {
  table.run[kRows - 1][kVectors - 1] = micro<T, kBytes, kRows, kVectors>;
  table.run_places[kRows - 1][kVectors - 1] = micro_places<T, kBytes, kRows, kVectors>;
  if constexpr (kRows > 1) fill_rows<T, kBytes, kRows - 1, kVectors>(table);
}

template <class T, int kBytes, int kRows>
constexpr MicroTable<T> make_table() {
  MicroTable<T> table{};
  table.lanes = kBytes / static_cast<int>(sizeof(T));
  table.rows = kRows;
  table.add_rows = add_rows<T, kBytes>;
  fill_rows<T, kBytes, kRows, 1>(table);
  fill_rows<T, kBytes, kRows, 2>(table);
  fill_rows<T, kBytes, kRows, 3>(table);
  return table;
}

}  // namespace
}  // namespace oar::cpu
