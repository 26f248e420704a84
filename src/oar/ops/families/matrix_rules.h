// Helpers of rules about matrices in the last two axes.
#pragma once

#include <algorithm>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/work.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/diagonals.h"
#include "oar/ops/gen/shape.h"

namespace oar::matrices {

inline Shape batch_of(const Tensor& x) {
  Shape batch;
  for (int i = 0; i + 2 < x.rank(); ++i) batch.push_back(x.dim(i));
  return batch;
}
inline Shape with_sizes(Shape batch, Dim rows, Dim columns) {
  batch.push_back(rows);
  batch.push_back(columns);
  return batch;
}

inline void check_matrices(const Tensor& x, const char* argument) {
  user_check(x.rank() >= 2, ErrorKind::InvalidArgument,
             "{} has shape {}; it needs at least two axes, those of the matrices.", argument,
             to_string(x.dims()));
}
inline void check_square(const Tensor& x, const char* argument) {
  check_matrices(x, argument);
  user_check(same(x.dim(-2), x.dim(-1)), ErrorKind::InvalidArgument,
             "{} of shape {} must hold square matrices in its last two axes.", argument,
             to_string(x.dims()));
}
// y has as many rows as the square matrices x.
inline void check_rows(const Tensor& x, const Tensor& y) {
  check_matrices(y, "y");
  user_check(same(x.dim(-1), y.dim(-2)), ErrorKind::InvalidArgument,
             "y of shape {} must have as many rows as the matrices of x of shape {}.",
             to_string(y.dims()), to_string(x.dims()));
}
inline void check_same_batch(const Tensor& x, const Tensor& y) {
  user_check(x.rank() == y.rank() && same(batch_of(x), batch_of(y)), ErrorKind::InvalidArgument,
             "x of shape {} and y of shape {} must have the same rank and the same leading axes.",
             to_string(x.dims()), to_string(y.dims()));
}

// The last two axes exchanged.
inline Tensor turned(const Tensor& x) { return swapaxes(x, -2, -1); }
// … and conjugated.
inline Tensor adjoint(const Tensor& x) { return conjugate(turned(x)); }
inline Tensor hermitian_part(const Tensor& x) { return (x + adjoint(x)) * 0.5; }
inline Tensor diagonal_of(const Tensor& x) { return diagonal(x, 0, -2, -1); }
// A factor for each row or each column.
inline Tensor scale_rows(const Tensor& factors, const Tensor& x) {
  return x * unsqueeze(factors, {-1});
}
inline Tensor scale_columns(const Tensor& x, const Tensor& factors) {
  return x * unsqueeze(factors, {-2});
}

inline Tensor identity_matrix(Dim n, DType dtype) {
  return diag_embed(broadcast_to(ones({}, dtype), {n}));
}

inline Tensor with_batch(const Tensor& x, const Shape& batch) {
  const Shape shape = with_sizes(batch, x.dim(-2), x.dim(-1));
  return shape == x.shape() ? x : broadcast_to(x, shape);
}

// Samples whose triangles are well conditioned, and which tests move in any direction.
inline TensorSpec with_triangles(SampleShape shape) {
  TensorSpec spec = definite(shape);
  spec.hermitian = false;
  return spec;
}

// About `factor` n^3 flops for each matrix of x, where n^3 is the product of its smaller size squared and its larger one.
inline Cost cubic_cost(const Tensor& x, double factor) {
  const double rows = extent(x, -2), columns = extent(x, -1);
  return Cost::of_products(factor * elements(x) * std::min(rows, columns));
}

}  // namespace oar::matrices
