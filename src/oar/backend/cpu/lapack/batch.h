// Batches of matrices: which threads work on them, and which one failed.
#pragma once

#include <algorithm>
#include <atomic>
#include <complex>

#include "oar/backend/cpu/lapack/library.h"
#include "oar/backend/cpu/loops/compact.h"
#include "oar/backend/cpu/loops/transpose.h"

namespace oar::cpu::lapack {

// Matrices up to this size are factored by our own loops.
inline constexpr int64_t kSmall = 8;

// The matrices in the last two axes of a tensor.
struct MatrixShape {
  explicit MatrixShape(const oar_tensor& t)
      : rows(t.shape[t.ndim - 2]), columns(t.shape[t.ndim - 1]) {
    for (int i = 0; i + 2 < t.ndim; ++i) count *= t.shape[i];
  }
  int64_t size() const { return rows * columns; }
  int64_t count = 1, rows, columns;
};

inline Int as_int(int64_t n) {
  user_check(n <= INT32_MAX, ErrorKind::Unsupported,
             "a matrix with {} rows or columns is too large for LAPACK.", n);
  return static_cast<Int>(n);
}

// Calls body(begin, end) so that all matrices are covered, where `work` is about the flops of one. Our threads share the batch,
// and the library uses one thread in each; or the library uses all threads for one matrix after the other.
inline void over_library_batch(int64_t count, double work,
                               FunctionRef<void(int64_t, int64_t)> body) {
  const int threads = in_parallel() ? 1 : num_threads();
  if (count == 1 || (count < threads && work > 1e8)) {
    const LibraryThreads use(work > 2e5 ? threads : 1);
    body(0, count);
    return;
  }
  const auto grain = static_cast<int64_t>(std::max(1.0, 1e5 / std::max(work, 1.0)));
  parallel_for(0, count, grain, [&](int64_t begin, int64_t end) {
    const LibraryThreads use(1);
    body(begin, end);
  });
}

// The same for our own loops, which use one thread for a matrix.
inline void over_batch(int64_t count, double work, FunctionRef<void(int64_t, int64_t)> body) {
  parallel_for(0, count, static_cast<int64_t>(std::max(1.0, 3e4 / std::max(work, 1.0))), body);
}

// The first matrix of a batch that an op could not handle. Threads report, and the caller raises the error.
class Failure {
 public:
  void report(int64_t index) {
    int64_t known = first_.load(std::memory_order_relaxed);
    while (index < known && !first_.compare_exchange_weak(known, index)) {
    }
  }
  // Raises "<matrix> <what>" if any matrix failed.
  void raise(int64_t count, const char* what) const {
    const int64_t index = first_.load();
    if (count == 1)
      user_check(index == INT64_MAX, ErrorKind::InvalidArgument, "the matrix {}", what);
    else
      user_check(index == INT64_MAX, ErrorKind::InvalidArgument, "matrix {} of the batch {}", index,
                 what);
  }

 private:
  std::atomic<int64_t> first_{INT64_MAX};
};

// to = from[rows, columns] transposed, in tiles that stay in the cache; steps are from row to row.
template <class T>
void transpose_part(const T* from, int64_t from_step, int64_t rows, int64_t columns, T* to,
                    int64_t to_step) {
  constexpr int64_t kTile = 64;
  using Word =
      std::conditional_t<sizeof(T) == 4, uint32_t, std::conditional_t<sizeof(T) == 8, uint64_t, T>>;
  for (int64_t i = 0; i < rows; i += kTile)
    for (int64_t j = 0; j < columns; j += kTile)
      transpose_tile(
          Tile<Word>{reinterpret_cast<Word*>(to + j * to_step + i),
                     reinterpret_cast<const Word*>(from + i * from_step + j), to_step, from_step},
          std::min(kTile, columns - j), std::min(kTile, rows - i));
}

// The same for whole matrices.
template <class T>
void transpose_into(const T* from, int64_t rows, int64_t columns, T* to) {
  transpose_part(from, columns, rows, columns, to, rows);
}

template <class T>
T conjugate(T v) {
  if constexpr (kComplex<T>)
    return std::conj(v);
  else
    return v;
}

template <class T>
real_t<T> size_squared(T v) {
  if constexpr (kComplex<T>)
    return v.real() * v.real() + v.imag() * v.imag();
  else
    return v * v;
}

// What LAPACK compares pivots by.
template <class T>
real_t<T> pivot_size(T v) {
  return std::abs(std::real(v)) + (kComplex<T> ? std::abs(std::imag(v)) : 0);
}

// Products without the care for infinities that std::complex takes.
template <class T>
T product(T a, T b) {
  if constexpr (kComplex<T>)
    return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
  else
    return a * b;
}

// How much working memory a routine wants, by what it wrote into its first element.
template <class T>
Int wanted_size(T reported) {
  return std::max<Int>(1, static_cast<Int>(std::real(reported)));
}

}  // namespace oar::cpu::lapack
