// A row of a tensor in the type of sums: in place, or in a buffer.
#pragma once

#include "oar/backend/cpu/loops/groups.h"
#include "oar/backend/cpu/loops/scratch.h"
#include "oar/tensor/element.h"

namespace oar::cpu {

template <class T>
class RowBuffer {
 public:
  using C = compute_t<T>;
  explicit RowBuffer(int64_t n) : n_(n), own_(kSame ? 0 : n) {}

  const C* read(const T* row) const {
    if constexpr (kSame) {
      return row;
    } else {
      fill_groups(own_.data(), n_, [=](int64_t i) { return static_cast<C>(row[i]); });
      return own_.data();
    }
  }
  // Where a row is written; `finish` stores it in the tensor.
  C* place(T* row) const {
    if constexpr (kSame)
      return row;
    else
      return own_.data();
  }
  void finish(T* row) const {
    if constexpr (!kSame) {
      const C* from = own_.data();
      fill_groups(row, n_, [=](int64_t i) { return from[i]; });
    }
  }

 private:
  static constexpr bool kSame = std::is_same_v<T, C>;
  int64_t n_;
  Scratch<C> own_;
};

}  // namespace oar::cpu
