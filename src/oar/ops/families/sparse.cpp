// Sparse tensors: how they are built, and conversions.
#include "oar/ops/families/sparse.h"

#include <algorithm>
#include <cstring>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/sparse_parts.h"
#include "oar/ops/families/sparse_rules.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/counting.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/cumulative.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/index.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/gen/sparse_index.h"
#include "oar/ops/gen/sparse_products.h"
#include "oar/tensor/hooks.h"

namespace oar {

const Sparse& sparse(const Tensor& t) {
  internal_check(is_sparse(t), "{} is not sparse", t.describe());
  return static_cast<const Sparse&>(*t->payload);
}

int sparse_dim(const Tensor& t) {
  return t.kind() == Kind::SparseCsr ? t.rank()
                                     : static_cast<int>(sparse(t).places[0].dim(0).value());
}

// ---- creation ----------------------------------------------------------------------------------

Tensor make_coo(const Tensor& indices, const Tensor& values, Dims shape, bool coalesced) {
  check_integers(indices, "indices", 2);
  user_check(values.rank() >= 1, ErrorKind::InvalidArgument,
             "values is 0-d; it must have an element for each column of indices.");
  const auto axes = static_cast<size_t>(specialised(indices.dim(0)));
  user_check(
      same(indices.dim(1), values.dim(0)), ErrorKind::InvalidArgument,
      "indices has {} columns and values {} elements; there must be one of each per element.",
      indices.dim(1).str(), values.dim(0).str());
  bool fits = shape.size() == axes + static_cast<size_t>(values.rank()) - 1;
  for (size_t i = axes; fits && i < shape.size(); ++i)
    fits = same(shape[i], values.dim(static_cast<int64_t>(i - axes) + 1));
  user_check(
      fits, ErrorKind::InvalidArgument,
      "shape {} does not fit indices with {} rows and values of shape {}.\nhint: It has a size for "
      "each row of indices, then the sizes of values after the first.",
      to_string(shape), axes, to_string(values.dims()));
  return Tensor::with_payload(
      Kind::SparseCoo, shape, values.dtype(), values.device(), 0,
      make_intrusive<Sparse>(std::vector<Tensor>{indices}, values, coalesced));
}

Tensor make_csr(const Tensor& crows, const Tensor& cols, const Tensor& values, Dims shape) {
  check_integers(crows, "crows", 1);
  check_integers(cols, "cols", 1);
  check_rank(values, "values", 1);
  check_count(cols, "cols", values, "values");
  user_check(
      shape.size() == 2 || shape.size() == 3, ErrorKind::InvalidArgument,
      "shape {} must have 2 axes, or 3 for several matrices.\nhint: Use sparse_coo_tensor for others.",
      to_string(shape));
  const Dim rows = shape[shape.size() - 2] + 1;
  const Dim expected = shape.size() == 3 ? shape[0] * rows : rows;
  user_check(same(crows.dim(0), expected), ErrorKind::InvalidArgument,
             "crows has {} entries; shape {} needs {}: one more than the number of rows{}.",
             crows.dim(0).str(), to_string(shape), expected.str(),
             shape.size() == 3 ? ", for each matrix" : "");
  return Tensor::with_payload(
      Kind::SparseCsr, shape, values.dtype(), values.device(), 0,
      make_intrusive<Sparse>(std::vector<Tensor>{crows, cols}, values, true));
}

void check_places(const Tensor& t) {
  const std::vector<Tensor>& places = sparse(t).places;
  if (t.kind() == Kind::SparseCoo) {
    ravel_indices(places[0], sparse_sizes(t));  // checks every coordinate
    return;
  }
  const Tensor rows = expand_rows(global_crows(t), places[1]);
  ravel_indices(stack_rows({rows, places[1]}), {row_count(t), t.dim(-1)});
}

// ---- derivatives -------------------------------------------------------------------------------

const Tensor& carrier_of(const Tensor& t) { return is_sparse(t) ? sparse(t).values : t; }

Tensor with_values(const Tensor& like, const Tensor& values) {
  const Sparse& parts = sparse(like);
  Shape shape(like.dims().first(static_cast<size_t>(sparse_dim(like))));
  for (Dim d : values.dims().subspan(1)) shape.push_back(d);
  return Tensor::with_payload(like.kind(), shape, values.dtype(), values.device(), 0,
                              make_intrusive<Sparse>(parts.places, values, parts.coalesced));
}

Tensor values_for(const Tensor& like, const Tensor& gradient) {
  user_check(same(gradient.shape(), like.shape()), ErrorKind::InvalidArgument,
             "a gradient of shape {} does not fit a tensor of shape {}.",
             to_string(gradient.dims()), to_string(like.dims()));
  if (!is_sparse(gradient)) return sparse(mask_as(gradient, like)).values;
  user_check(same_places(gradient, like), ErrorKind::InvalidArgument,
             "the gradient of a sparse tensor must hold the same elements as the tensor.\nhint: "
             "sparse.mask_as(gradient.to_dense(), x) selects them.");
  return sparse(gradient).values;
}

// ---- index vectors -----------------------------------------------------------------------------

Shape sparse_sizes(const Tensor& t) {
  return Shape(t.dims().first(static_cast<size_t>(sparse_dim(t))));
}

Dim product(Dims sizes) {
  Dim all = 1;
  for (Dim d : sizes) all = all * d;
  return all;
}

Dim row_count(const Tensor& t) {
  return product(t.dims().first(static_cast<size_t>(t.rank() - 1)));
}

Tensor stack_rows(const std::vector<Tensor>& rows) {
  std::vector<Tensor> wide;
  for (const Tensor& row : rows) wide.push_back(as_dtype(row, DType::Int64));
  return stack(wide, 0);
}

Tensor row_of(const Tensor& indices, int64_t row) {
  return slice_view(indices, SliceIndex().at(row));
}

bool same_places(const Tensor& x, const Tensor& y) {
  if (x.kind() != y.kind()) return false;
  const std::vector<Tensor>&a = sparse(x).places, &b = sparse(y).places;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].is_same(b[i])) continue;
    const bool comparable = a[i].is_dense() && b[i].is_dense() && a[i].is_contiguous() &&
                            b[i].is_contiguous() && a[i].dtype() == b[i].dtype() &&
                            a[i].shape() == b[i].shape();
    if (!comparable) return false;
    note_read(a[i]);
    note_read(b[i]);
    const auto bytes = static_cast<size_t>(a[i]->numel) * size_of(a[i].dtype());
    if (a[i]->data != b[i]->data && std::memcmp(a[i]->data, b[i]->data, bytes) != 0) return false;
  }
  return true;
}

bool rises(const Tensor& x) {
  if (!x.is_dense() || x.dtype() != DType::Int64 || !x.is_contiguous()) return false;
  note_read(x);
  const auto* numbers = x.data<int64_t>();
  const int64_t n = x->numel;
  bool rising = true;
  for (int64_t k = 0; k + 1 < n && rising; ++k) rising = numbers[k] < numbers[k + 1];
  return rising;
}

Tensor global_crows(const Tensor& csr) {
  const Tensor& crows = sparse(csr).places[0];
  if (csr.rank() == 2) return crows;
  const Dim rows = csr.dim(1);
  const Tensor each = cast(reshape(crows, {csr.dim(0), rows + 1}), DType::Int64);
  const Tensor counts = slice_view(each, SliceIndex().all().range(1, rows + 1)) -
                        slice_view(each, SliceIndex().all().range(0, rows));
  const Tensor ends = cumsum_along(reshape(counts, {csr.dim(0) * rows}), 0);
  return concat({zeros({1}, DType::Int64), ends});
}

Tensor positions_of(const Tensor& t) {
  const std::vector<Tensor>& places = sparse(t).places;
  if (t.kind() == Kind::SparseCoo) return ravel_indices(places[0], sparse_sizes(t));
  const Tensor rows = expand_rows(global_crows(t), places[1]);
  return ravel_indices(stack_rows({rows, places[1]}), {row_count(t), t.dim(-1)});
}

Tensor csr_at(const Tensor& rows, const Tensor& cols, const Tensor& values, Dims shape,
              DType index_dtype) {
  const Dim m = shape[shape.size() - 2];
  Tensor crows = compress_rows(rows, Shape{product(shape.first(shape.size() - 1))});
  if (shape.size() == 3) {  // each matrix counts from 0
    const Dim last = shape[0] * m;
    const Tensor starts = reshape(slice_view(crows, SliceIndex().range(0, last)), {shape[0], m});
    const Tensor ends = reshape(slice_view(crows, SliceIndex().range(1, last + 1)), {shape[0], m});
    const Tensor first = slice_view(starts, SliceIndex().all().range(0, 1));
    crows = reshape(concat({zeros_like(first), ends - first}, 1), {shape[0] * (m + 1)});
  }
  return make_csr(as_dtype(crows, index_dtype), cast(cols, index_dtype), values, shape);
}

Tensor at_positions(const Tensor& positions, const Tensor& values, Kind kind, Dims shape,
                    DType index_dtype) {
  if (kind == Kind::SparseCoo) {
    const Dims sizes = shape.first(shape.size() - static_cast<size_t>(values.rank() - 1));
    return make_coo(as_dtype(unravel_indices(positions, sizes), index_dtype), values, shape, true);
  }
  const Shape flat{product(shape.first(shape.size() - 1)), shape.back()};
  const Tensor indices = unravel_indices(positions, flat);
  return csr_at(row_of(indices, 0), row_of(indices, 1), values, shape, index_dtype);
}

Tensor as_dtype(const Tensor& indices, DType dtype) {
  return indices.dtype() == dtype ? indices : cast(indices, dtype);
}

DType index_dtype(const Tensor& t) { return sparse(t).places[0].dtype(); }

Tensor summed(const Tensor& places, const Tensor& values, Dim size) {
  if (values.dtype() == DType::Bool)  // whether one of them is true
    return cast(sums_at(places, cast(values, DType::Int64), Shape{size}), DType::Bool);
  return sums_at(places, values, Shape{size});
}

SparseMatrix matrix_of(const Tensor& t) {
  const std::vector<Tensor>& places = sparse(t).places;
  user_check(
      t.rank() >= 2 && sparse_dim(t) == t.rank(), ErrorKind::InvalidArgument,
      "x of shape {} with {} sparse axes is not a matrix or a batch of matrices.\nhint: All axes of at "
      "least two must be sparse.",
      to_string(t.dims()), sparse_dim(t));
  SparseMatrix m{.values = sparse(t).values,
                 .batches = product(t.dims().first(static_cast<size_t>(t.rank() - 2))),
                 .height = t.dim(-2),
                 .width = t.dim(-1)};
  if (t.kind() == Kind::SparseCsr) {
    m.crows = global_crows(t);
    m.rows = expand_rows(m.crows, places[1]);
    m.cols = places[1];
    if (t.rank() == 3) {
      const Tensor batch = row_of(unravel_indices(m.rows, {m.batches, m.height}), 0);
      m.cols = ravel_indices(stack_rows({batch, m.cols}), {m.batches, m.width});
    }
    return m;
  }
  if (t.rank() == 2) {
    m.rows = row_of(places[0], 0);
    m.cols = row_of(places[0], 1);
    return m;
  }
  const auto batch_axes = t.rank() - 2;
  const Tensor batch = ravel_indices(slice_view(places[0], SliceIndex().range(0, batch_axes)),
                                     t.dims().first(static_cast<size_t>(batch_axes)));
  const Shape by_row{m.batches, m.height}, by_col{m.batches, m.width};
  m.rows = ravel_indices(stack_rows({batch, row_of(places[0], batch_axes)}), by_row);
  m.cols = ravel_indices(stack_rows({batch, row_of(places[0], batch_axes + 1)}), by_col);
  return m;
}

// ---- conversions -------------------------------------------------------------------------------

Tensor coalesce(const Tensor& t) {
  user_check(t.kind() == Kind::SparseCoo, ErrorKind::InvalidType,
             "coalesce is for COO tensors; x is {}.", t.describe());
  const Sparse& parts = sparse(t);
  if (parts.coalesced) return t;
  const Tensor positions = positions_of(t);
  if (rises(positions)) return make_coo(parts.places[0], parts.values, t.dims(), true);
  const auto [unique, index, inverse, counts] = unique_flat(positions, false, true);
  return at_positions(unique, summed(inverse, parts.values, unique.dim(0)), Kind::SparseCoo,
                      t.dims(), index_dtype(t));
}

Tensor to_dense(const Tensor& t) {
  if (!is_sparse(t)) return t;
  return reshape(summed(positions_of(t), sparse(t).values, product(sparse_sizes(t))), t.dims());
}

Tensor to_coo(const Tensor& t, int axes) {
  user_check(axes >= 1 && axes <= t.rank(), ErrorKind::InvalidArgument,
             "sparse_dim is {}; for a tensor of shape {} it must be from 1 to {}.", axes,
             to_string(t.dims()), t.rank());
  if (is_sparse(t)) {
    user_check(
        axes == sparse_dim(t), ErrorKind::InvalidArgument,
        "sparse_dim is {}, and the tensor has {} sparse axes.\nhint: Other axes become sparse by "
        "x.to_dense().to_sparse_coo({}).",
        axes, sparse_dim(t), axes);
    if (t.kind() == Kind::SparseCoo) return t;
    return at_positions(positions_of(t), sparse(t).values, Kind::SparseCoo, t.dims(),
                        index_dtype(t));
  }
  const Dims sizes = t.dims().first(static_cast<size_t>(axes));
  Shape flat{product(sizes)};
  for (Dim d : t.dims().subspan(static_cast<size_t>(axes))) flat.push_back(d);
  const Tensor all = reshape(t, flat);
  Tensor set = not_equal(all, zeros({}, t.dtype()));
  if (flat.size() > 1) {
    IntVector dense_axes;
    for (int i = 1; i < all.rank(); ++i) dense_axes.push_back(i);
    set = any(set, dense_axes);
  }
  const Tensor found = nonzero(set);
  const Tensor positions = reshape(found, {found.dim(0)});
  return at_positions(positions, index_take(all, {positions}), Kind::SparseCoo, t.dims(),
                      DType::Int64);
}

Tensor to_csr(const Tensor& t) {
  if (t.kind() == Kind::SparseCsr) return t;
  user_check(
      t.rank() == 2 || t.rank() == 3, ErrorKind::InvalidArgument,
      "a tensor of shape {} has no CSR form: it must have 2 axes, or 3 for several matrices.",
      to_string(t.dims()));
  const Tensor coo = coalesce(is_sparse(t) ? t : to_coo(t, t.rank()));
  user_check(
      sparse_dim(coo) == coo.rank(), ErrorKind::InvalidArgument,
      "a COO tensor with dense axes has no CSR form; this one of shape {} has {} sparse axes.",
      to_string(t.dims()), sparse_dim(coo));
  const Tensor& indices = sparse(coo).places[0];
  const Tensor rows = coo.rank() == 2 ? row_of(indices, 0)
                                      : ravel_indices(slice_view(indices, SliceIndex().range(0, 2)),
                                                      coo.dims().first(2));
  return csr_at(rows, row_of(indices, coo.rank() - 1), sparse(coo).values, t.dims(),
                indices.dtype());
}

Tensor mask_as(const Tensor& x, const Tensor& mask) {
  user_check(is_sparse(mask), ErrorKind::InvalidType, "mask must be a sparse tensor; it is {}.",
             mask.describe());
  user_check(!is_sparse(x), ErrorKind::InvalidType,
             "x must be a dense tensor; it is sparse.\nhint: Pass x.to_dense().");
  user_check(same(x.shape(), mask.shape()), ErrorKind::InvalidArgument,
             "x of shape {} and mask of shape {} must have one shape.", to_string(x.dims()),
             to_string(mask.dims()));
  Shape flat{product(sparse_sizes(mask))};
  for (Dim d : x.dims().subspan(static_cast<size_t>(sparse_dim(mask)))) flat.push_back(d);
  return with_values(mask, index_take(reshape(x, flat), {positions_of(mask)}));
}

Tensor masked_matmul(const Tensor& x, const Tensor& y, const Tensor& mask) {
  user_check(is_sparse(mask), ErrorKind::InvalidType, "mask must be a sparse tensor; it is {}.",
             mask.describe());
  user_check(!is_sparse(x) && !is_sparse(y), ErrorKind::InvalidType,
             "x and y must be dense tensors.\nhint: sparse.matmul multiplies sparse ones.");
  const auto fits = [&] {
    if (x.rank() != mask.rank() || y.rank() != mask.rank() || mask.rank() < 2) return false;
    for (int i = 0; i < mask.rank() - 2; ++i)
      if (!same(x.dim(i), mask.dim(i)) || !same(y.dim(i), mask.dim(i))) return false;
    return same(x.dim(-1), y.dim(-2)) && same(x.dim(-2), mask.dim(-2)) &&
           same(y.dim(-1), mask.dim(-1));
  };
  user_check(
      fits(), ErrorKind::InvalidArgument,
      "x of shape {} times y of shape {} does not have the shape of mask, {}.\nhint: The shapes are "
      "[..., m, k], [..., k, n] and [..., m, n].",
      to_string(x.dims()), to_string(y.dims()), to_string(mask.dims()));
  const SparseMatrix m = matrix_of(mask);
  const Dim k = x.dim(-1);
  const Tensor right = swapaxes(y, -1, -2);
  return with_values(mask, sampled_matmul(m.rows, m.cols, reshape(x, {m.batches * m.height, k}),
                                          reshape(right, {m.batches * m.width, k})));
}

}  // namespace oar
