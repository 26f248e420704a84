#pragma once

#include "oar/ops/gen/shape.h"

namespace oar {

// All axes but the last as one.
inline Tensor last_axis_rows(const Tensor& x) {
  const Dim last = x.dim(-1);
  Dim rows = 1;
  for (int i = 0; i + 1 < x.rank(); ++i) rows = rows * x.dims()[static_cast<size_t>(i)];
  return reshape(x, {rows, last});
}

}  // namespace oar
