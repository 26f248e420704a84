// The parts of sparse tensors as their forms of ops use them.
#pragma once

#include "oar/ops/families/sparse.h"

namespace oar {

Dim product(Dims sizes);
// The sizes of the axes that have coordinates.
Shape sparse_sizes(const Tensor& t);
// The product of all sizes but the last.
Dim row_count(const Tensor& t);
DType index_dtype(const Tensor& t);
// Index vectors of this dtype: the same tensor if it is theirs, where a cast would copy them.
Tensor as_dtype(const Tensor& indices, DType dtype);

Tensor stack_rows(const std::vector<Tensor>& rows);
Tensor row_of(const Tensor& indices, int64_t row);
// Are the places known to be the same? Without content, as in a capture, only if the tensors are.
bool same_places(const Tensor& x, const Tensor& y);
// Is each number known to be larger than the one before?
bool rises(const Tensor& x);

// Of a CSR tensor: the starts of all rows, of several matrices one after another.
Tensor global_crows(const Tensor& csr);
// The row-major positions of the elements on the sparse axes.
Tensor positions_of(const Tensor& t);
// A tensor with values at rising positions.
Tensor at_positions(const Tensor& positions, const Tensor& values, Kind kind, Dims shape,
                    DType index_dtype);
// … at rows, counted over all matrices and in order, and columns.
Tensor csr_at(const Tensor& rows, const Tensor& cols, const Tensor& values, Dims shape,
              DType index_dtype);
// The sums of the values whose place is the same.
Tensor summed(const Tensor& places, const Tensor& values, Dim size);

// A matrix, or a batch of matrices along the diagonal of a large one.
struct SparseMatrix {
  Tensor crows;  // of a CSR tensor
  Tensor rows, cols, values;
  Dim batches, height, width;  // of each matrix
};
SparseMatrix matrix_of(const Tensor& t);

}  // namespace oar
