// Eigenvectors and singular vectors are determined up to a factor of magnitude 1. Kernels choose it so that one element of each
// vector, the leading one, is real and positive; here is what that means for derivatives.
#pragma once

#include "oar/ops/families/blank.h"
#include "oar/ops/families/matrix_rules.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/search.h"

namespace oar::matrices {

// Elements whose squared magnitude is at least this part of the largest one may lead; the first of them does. So equal elements are
// not told apart by rounding.
inline constexpr double kLeads = 0.999;

// The row of the leading element of each column: [..., 1, columns].
inline Tensor leading_rows(const Tensor& vectors) {
  const Tensor sizes = real(vectors * conj(vectors));
  const Tensor leads = greater_equal(sizes, max(sizes, IntArgs{-2}, true) * kLeads);
  return argmax(cast(leads, DType::Int32), -2, true);
}

// The cotangent of vectors whose factor is free, from that of vectors with the factor that kernels choose. `turn` is the change
// of the loss if all of a vector is turned: one number for each column.
inline Tensor without_gauge(const Tensor& vectors, const Tensor& grad, const Tensor& turn) {
  const Tensor rows = leading_rows(vectors);
  const Tensor leading = real(take_along_axis(vectors, rows, -2, false));
  const Tensor change = unsqueeze(turn, {-2}) / leading;
  const Tensor along_imaginary = oar::complex(zeros_like(change), -change);
  return grad + put_along(blank(vectors.dims(), vectors.dtype()), rows, along_imaginary, -2);
}

// How the loss changes if a column of the vectors is turned.
inline Tensor turn_of(const Tensor& vectors, const Tensor& grad) {
  return imag(sum(conj(vectors) * grad, IntArgs{-2}));
}

// The relative rounding error of a float or complex dtype.
inline double epsilon_of(DType dtype) {
  switch (real_type_of(dtype)) {
    case DType::Float64:
      return 0x1p-52;
    case DType::Float32:
      return 0x1p-23;
    case DType::Float16:
      return 0x1p-10;
    default:
      return 0x1p-7;
  }
}

// 1 / (values_j - values_i), and 0 where the values are equal up to rounding.
inline Tensor inverse_gaps(const Tensor& values) {
  Tensor gaps = unsqueeze(values, {-2}) - unsqueeze(values, {-1});
  if (values.dim(-1) == Dim(0)) return gaps;
  const Tensor limit = max(abs(values), IntArgs{-1}, true) * (8 * epsilon_of(values.dtype()));
  const Tensor none = less_equal(abs(gaps), unsqueeze(limit, {-1}));
  return where(none, zeros_like(gaps), reciprocal(where(none, ones_like(gaps), gaps)));
}

}  // namespace oar::matrices
