// Gaussian elimination of groups of matrices.
#pragma once

#include "oar/backend/cpu/lapack/lanes.h"

namespace oar::cpu::lapack {

// From these sizes on systems, determinants and factors are computed side by side, if a batch has enough matrices of at most
// kLanesLu rows. The less there is to do, the better the smallest ones stay in registers as they are.
inline constexpr int64_t kLeastLanesSolve = 2, kLeastLanesDet = 3, kLeastLanesLu = 5, kLanesLu = 32;

// Row j gets the row `best` of each lane, and `old` what it was, from column j on.
template <class T>
void take_rows(Lanes<T>* a, int64_t width, int64_t j, const Mask<T>& best, Lanes<T>* old) {
  using R = real_t<T>;
  constexpr int64_t kWidth = kLanes<T>, kParts = kComplex<T> ? 2 : 1;
  const R* from[kWidth];
  for (int64_t lane = 0; lane < kWidth; ++lane)
    from[lane] = reinterpret_cast<const R*>(a + best[lane] * width) + lane;
  std::copy(a + j * width + j, a + (j + 1) * width, old + j);
  auto* to = reinterpret_cast<Reals<T>*>(a + j * width);
  for (int64_t k = j * kParts; k < width * kParts; ++k) {
    Reals<T> row;
    for (int64_t lane = 0; lane < kWidth; ++lane) row[lane] = from[lane][k * kWidth];
    to[k] = row;
  }
}

// P a = L U for the first n columns of a[n, width], with the largest pivot of each column; the other columns become L^-1 P b.
// Rows are exchanged from the pivot's column on, so factors stay in the order in which they were computed. pivots[j] is the row
// that was exchanged with row j.
template <class T>
void eliminate(int64_t n, int64_t width, Lanes<T>* a, Mask<T>* pivots) {
  using M = Mask<T>;
  const Scratch<Lanes<T>> old(width);
  for (int64_t j = 0; j < n; ++j) {
    Lanes<T>* top = a + j * width;
    const M here = all_rows<T>(j);
    M best = here;
    Reals<T> largest = lane_size(top[j]);
    for (int64_t i = j + 1; i < n; ++i) {
      const Reals<T> size = lane_size(a[i * width + j]);
      const M more = size > largest;
      largest = where(more, size, largest);
      best = where(more, all_rows<T>(i), best);
    }
    pivots[j] = best;
    const bool moved = any_lane(best != here);
    if (moved) take_rows<T>(a, width, j, best, old.data());
    const Lanes<T> pivot = top[j];
    const M zero = is_zero<T>(pivot);
    const Divider<T> divide(pivot);
    for (int64_t i = j + 1; i < n; ++i) {
      Lanes<T>* row = a + i * width;
      const M gets_old = best == all_rows<T>(i);
      if (moved) row[j] = where(gets_old, old[j], row[j]);
      const Lanes<T> factor = where(zero, Lanes<T>{}, divide(row[j]));
      row[j] = where(zero, row[j], factor);
      if (moved)
        for (int64_t k = j + 1; k < width; ++k)
          row[k] = where(gets_old, old[k], row[k]) - factor * top[k];
      else
        for (int64_t k = j + 1; k < width; ++k) row[k] = row[k] - factor * top[k];
    }
  }
}

// b = U^-1 b for the columns of a[n, width] after the first n, where U is in the first n.
template <class T>
void substitute_back(int64_t n, int64_t width, Lanes<T>* a) {
  for (int64_t i = n - 1; i >= 0; --i) {
    Lanes<T>* row = a + i * width;
    for (int64_t j = i + 1; j < n; ++j) {
      const Lanes<T> factor = row[j];
      const Lanes<T>* done = a + j * width;
      for (int64_t k = n; k < width; ++k) row[k] = row[k] - factor * done[k];
    }
    // Rounded once where possible: a reciprocal's error would grow with the rows above.
    if constexpr (kComplex<T>) {
      const Divider<T> divide(row[i]);
      for (int64_t k = n; k < width; ++k) row[k] = divide(row[k]);
    } else {
      for (int64_t k = n; k < width; ++k) row[k] = row[k] / row[i];
    }
  }
}

// The lanes of whose pivots none is zero.
template <class T>
Mask<T> is_regular(int64_t n, int64_t width, const Lanes<T>* a) {
  Mask<T> found = ~Mask<T>{};
  for (int64_t i = 0; i < n; ++i) found &= ~is_zero<T>(a[i * width + i]);
  return found;
}

}  // namespace oar::cpu::lapack
