// Positions that a sparse kernel reads are checked before they are used as offsets into memory.
#pragma once

#include <algorithm>
#include <limits>

#include "oar/backend/cpu/loops/compact.h"

namespace oar::cpu {

// Do all numbers lie in [0, size)?
template <class I>
bool in_range(const I* numbers, int64_t count, int64_t size) {
  using U = std::make_unsigned_t<I>;
  // The sign of n, or that of what is left above it.
  const auto last =
      static_cast<U>(std::min(size - 1, static_cast<int64_t>(std::numeric_limits<I>::max())));
  U signs = size > 0 || count == 0 ? 0 : ~U(0);
  for (int64_t k = 0; k < count; ++k) {
    const auto n = static_cast<U>(numbers[k]);
    signs |= n | (last - n);
  }
  return static_cast<I>(signs) >= 0;
}

template <class I>
void check_positions(const I* numbers, int64_t count, int64_t size, const char* argument) {
  if (in_range(numbers, count, size)) return;
  for (int64_t k = 0; k < count; ++k)
    user_check(numbers[k] >= 0 && numbers[k] < size, ErrorKind::OutOfRange,
               "{} holds {}, which is out of range: there are {} (0 to {}).", argument, numbers[k],
               size, size - 1);
}

// crows rises from 0 to the number of elements.
template <class I>
void check_row_starts(const I* crows, int64_t rows, int64_t count, const char* argument = "crows") {
  bool rises = crows[0] == 0 && crows[rows] == count;
  for (int64_t row = 0; row < rows; ++row) rises &= crows[row] <= crows[row + 1];
  user_check(
      rises, ErrorKind::InvalidArgument,
      "{} must rise from 0 to {}, the number of elements; it begins with {} and ends with {}.",
      argument, count, crows[0], crows[rows]);
}

}  // namespace oar::cpu
