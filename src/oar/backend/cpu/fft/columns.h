// Transforms along an axis of which several lines are processed at once, one in each lane.
#pragma once

#include <cstdint>

#include "oar/backend/cpu/fft/passes.h"

namespace oar::cpu::fft {

// A tensor as outer x length x inner. Its lines run along the middle; line i starts at offset(i).
struct Lines {
  int64_t outer, length, inner;
  int64_t count() const { return outer * inner; }
  int64_t offset(int64_t line) const { return line / inner * length * inner + line % inner; }
};

// Working memory for the lines of one length. Each function transforms the lines first ... first + count - 1: at most kLanes of
// complex numbers, or twice as many of real ones. The result is multiplied by `factor`.
template <class T>
class Columns {
 public:
  Columns(const Passes<T>& passes, T factor);
  ~Columns();
  Columns(const Columns&) = delete;
  Columns& operator=(const Columns&) = delete;

  // out may be in, for lines of the same length.
  void complex_lines(const T* in, T* out, const Lines& lines, int64_t first, int64_t count,
                     bool inverse);
  // Two real lines are the parts of one complex line. `to` has n / 2 + 1 numbers in a line, or n; they are conjugate if `conj`.
  void real_lines(const T* in, const Lines& from, T* out, const Lines& to, int64_t first,
                  int64_t count, bool conj);
  // Contiguous real lines of even length, as complex ones of half the length, for which the passes are; at most kLanes. `roots` are
  // those of the whole length.
  void even_lines(const T* in, T* out, const Lines& to, int64_t first, int64_t count,
                  const T* roots, bool conj);
  void hermitian_lines(const T* in, const Lines& from, T* out, const Lines& to, int64_t first,
                       int64_t count, bool conj);

  static constexpr int64_t kLanes = Packet<T>::kLanes;

 private:
  using P = Packet<T>;
  const Passes<T>& passes_;
  const T factor_;
  P *a_, *b_, *c_;
  int64_t bytes_;
};

extern template class Columns<float>;
extern template class Columns<double>;

}  // namespace oar::cpu::fft
