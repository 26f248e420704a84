// What layers are built with. Not part of the interface.
#pragma once

#include "oar/base/error.h"
#include "oar/nn/init.h"

namespace oar::nn {

inline Tensor unfilled(const Shape& shape) { return Tensor::empty(shape, default_dtype()); }

inline Tensor filled(const Shape& shape, double value) {
  const Tensor made = unfilled(shape);
  init::constant(made, value);
  return made;
}

inline Tensor drawn_xavier(const Shape& shape) {
  const Tensor made = unfilled(shape);
  init::xavier_uniform(made);
  return made;
}

inline void check_positive(const char* what, int64_t size) {
  user_check(size > 0, ErrorKind::InvalidArgument, "{} must be greater than 0, but is {}.", what,
             size);
}

// One of three functions, by the number of axes.
template <int N, class One, class Two, class Three>
constexpr auto for_axes(One one, Two two, Three three) {
  if constexpr (N == 1) return one;
  if constexpr (N == 2) return two;
  if constexpr (N == 3) return three;
}

}  // namespace oar::nn
