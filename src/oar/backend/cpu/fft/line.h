// The transform of one line of complex numbers that are contiguous in memory.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "oar/backend/cpu/fft/passes.h"

namespace oar::cpu::fft {

// A line of n = rows * columns numbers is a matrix. Its columns are transformed, as lanes of packets; the result is multiplied by
// roots and transposed, in squares of one packet; then the rows are transformed, again as lanes. So every step works on whole
// vectors. If the matrix is large, it is processed in groups of columns and rows that fit in the cache, by several threads.
template <class T>
class Line {
 public:
  explicit Line(int64_t n);
  int64_t size() const { return n_; }
  size_t bytes() const;

  // out may be in. Real and imaginary parts change places if `inverse`; the result is multiplied by `factor`.
  void run(const T* in, T* out, bool inverse, T factor) const;

 private:
  using P = Packet<T>;
  static constexpr int kLanes = P::kLanes;
  void split(int64_t n);
  void prepare_roots();
  template <bool kInverse>
  void run_as(const T* in, T* out, T factor) const;
  template <bool kInverse>
  void run_large(const T* in, T* out, T factor) const;
  template <bool kInverse>
  void run_chirp(const T* in, T* out, T factor) const;
  // The columns of packets first ... first + count - 1 of each row, transformed, are in the buffer that is returned.
  template <bool kInverse>
  P* transform_columns(const T* in, P* a, P* b, int64_t first, int64_t count) const;
  // Rows of transformed columns, `stride` packets apart, become the numbers block * kLanes ... of each row of the result.
  template <bool kInverse>
  void transform_rows(const P* columns, int64_t stride, T* out, int64_t block, int64_t count,
                      T factor) const;
  // The same of rows that are one packet each; kFull: for all lanes of the block there are rows.
  template <bool kInverse, bool kFull>
  void short_rows(const P* columns, T* out, int64_t block, T factor) const;
  template <bool kInverse>
  void store(T* out, int64_t row, int64_t block, const P& p, T factor) const;

  int64_t n_, rows_ = 1, columns_ = 1, width_ = 1;  // width_: packets of a row
  std::unique_ptr<Passes<T>> along_columns_, along_rows_;
  std::vector<P> roots_;  // [block][column], lanes along the rows
  std::unique_ptr<Line> inner_;
  std::vector<T> chirp_, spectrum_;
};

extern template class Line<float>;
extern template class Line<double>;

}  // namespace oar::cpu::fft
