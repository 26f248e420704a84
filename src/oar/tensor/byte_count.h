// Counts of elements and bytes. Sizes come from calls and from files, so a sum or product that does not
// fit is a user's error and never wraps.
#pragma once

#include <cstdint>

#include "oar/base/api.h"
#include "oar/tensor/dim.h"
#include "oar/tensor/dtype.h"

namespace OAR_API oar {

class Count {
 public:
  constexpr Count(int64_t value) : value_(value) {}  // a number is a count

  constexpr int64_t value() const { return value_; }
  constexpr size_t size() const { return static_cast<size_t>(value_); }

  friend constexpr Count operator*(Count a, Count b) {
    int64_t product = 0;
    if (__builtin_mul_overflow(a.value_, b.value_, &product)) [[unlikely]]
      throw_overflow(a.value_, '*', b.value_);
    return product;
  }
  friend constexpr Count operator+(Count a, Count b) {
    int64_t sum = 0;
    if (__builtin_add_overflow(a.value_, b.value_, &sum)) [[unlikely]]
      throw_overflow(a.value_, '+', b.value_);
    return sum;
  }
  // The next multiple of a power of two.
  constexpr Count aligned(int64_t to) const { return (*this + (to - 1)).value_ & ~(to - 1); }
  friend constexpr bool operator==(Count, Count) = default;

 private:
  [[noreturn]] static void throw_overflow(int64_t a, char op, int64_t b);

  int64_t value_;
};

// Bytes of a tensor that has its own memory. InvalidArgument with shape, dtype and bytes if a size
// is negative or the tensor is too large to be addressed. The limit holds for empty tensors too, with a size of 0 counting
// as 1: their strides are products of the other sizes.
Count bytes_of(Dims shape, DType dtype);

}  // namespace oar
