#include "oar/ops/families/sparse_axes.h"

#include <algorithm>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/sparse_parts.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/counting.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/index.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/gen/softmax.h"
#include "oar/ops/gen/sort.h"
#include "oar/ops/gen/sparse_index.h"
#include "oar/ops/gen/sparse_products.h"

namespace oar {

// ---- shapes ------------------------------------------------------------------------------------

Outputs transpose_form(const Op&, Args args) {
  const args::transpose a(args);
  const auto perm = checked_permutation(a.perm, a.x.rank());
  if (a.x.kind() == Kind::SparseCsr && a.x.rank() == 2 && perm[0] == 1) {
    const std::vector<Tensor>& places = sparse(a.x).places;
    const Tensor order = key_order(places[1], Shape{a.x.dim(1)});
    const Tensor rows = as_dtype(expand_rows(places[0], places[1]), index_dtype(a.x));
    const Tensor crows = as_dtype(compress_rows(places[1], Shape{a.x.dim(1)}), index_dtype(a.x));
    return one(make_csr(crows, index_take(rows, {order}), index_take(sparse(a.x).values, {order}),
                        Shape{a.x.dim(1), a.x.dim(0)}));
  }
  const Tensor coo = a.x.kind() == Kind::SparseCoo ? a.x : to_coo(a.x, a.x.rank());
  const int axes = sparse_dim(coo);
  std::vector<int64_t> order, dense{0};
  Shape shape;
  for (int i = 0; i < a.x.rank(); ++i) {
    const int64_t axis = perm[static_cast<size_t>(i)];
    user_check(
        (axis < axes) == (i < axes), ErrorKind::Unsupported,
        "perm {} mixes the {} sparse axes with the dense ones.\nhint: Transpose x.to_dense().",
        to_string(as_dims(a.perm)), axes);
    if (i < axes)
      order.push_back(axis);
    else
      dense.push_back(axis - axes + 1);
    shape.push_back(a.x.dim(axis));
  }
  const Tensor rows = Tensor::from_vector(order, Shape{axes}, DType::Int64);
  const Tensor indices = index_take(sparse(coo).places[0], {rows});
  const Tensor values =
      dense.size() > 2 ? transpose(sparse(coo).values, dense) : sparse(coo).values;
  const Tensor made = make_coo(indices, values, shape);
  return one(a.x.kind() == Kind::SparseCsr ? to_csr(made) : made);
}

Outputs reshape_form(const Op&, Args args) {
  const args::reshape a(args);
  const Shape shape = resolve_reshape(a.x.shape(), a.shape);
  const Tensor coo = a.x.kind() == Kind::SparseCoo ? a.x : to_coo(a.x, a.x.rank());
  const auto axes = static_cast<size_t>(sparse_dim(coo));
  const size_t dense = static_cast<size_t>(a.x.rank()) - axes;
  bool fits = shape.size() > dense;
  for (size_t i = 1; fits && i <= dense; ++i)
    fits = same(shape[shape.size() - i], a.x.dim(-static_cast<int64_t>(i)));
  user_check(
      fits, ErrorKind::Unsupported,
      "x of shape {} has {} sparse axes; a new shape must keep the sizes of the dense ones, and {} does "
      "not.\nhint: Reshape x.to_dense().",
      to_string(a.x.dims()), axes, to_string(shape));
  const Dims sizes = Dims(shape).first(shape.size() - dense);
  const Tensor indices = as_dtype(unravel_indices(positions_of(coo), sizes), index_dtype(coo));
  const Tensor made = make_coo(indices, sparse(coo).values, shape, sparse(coo).coalesced);
  return one(a.x.kind() == Kind::SparseCsr ? to_csr(made) : made);
}

Outputs slice_form(const Op&, Args args) {
  const args::slice a(args);
  user_check(a.axes.size() == a.starts.size() && a.axes.size() == a.ends.size(),
             ErrorKind::InvalidArgument, "axes, starts and ends have {}, {} and {} entries.",
             a.axes.size(), a.starts.size(), a.ends.size());
  const Tensor coo = a.input.kind() == Kind::SparseCoo ? a.input : to_coo(a.input, a.input.rank());
  const int axes = sparse_dim(coo);
  Shape shape = coo.shape();
  Tensor indices = sparse(coo).places[0], values = sparse(coo).values, kept;
  std::vector<int64_t> first(static_cast<size_t>(axes), 0);
  for (size_t i = 0; i < a.axes.size(); ++i) {
    const int64_t axis = normalise_axis(a.axes[i], coo.rank(), "axes"),
                  size = specialised(coo.dim(axis));
    const auto place = [size](int64_t p) {
      return std::clamp<int64_t>(p < 0 ? p + size : p, 0, size);
    };
    const int64_t start = place(a.starts[i]), end = std::max(start, place(a.ends[i]));
    shape[static_cast<size_t>(axis)] = end - start;
    if (axis >= axes) {
      values = slice(values, {axis - axes + 1}, {start}, {end});
      continue;
    }
    first[static_cast<size_t>(axis)] = start;
    const Tensor row = row_of(indices, axis);
    const Tensor inside = logical_and(greater_equal(row, full({}, Scalar(start), row.dtype())),
                                      less_than(row, full({}, Scalar(end), row.dtype())));
    kept = kept.defined() ? logical_and(kept, inside) : inside;
  }
  if (kept.defined()) {
    const Tensor found = nonzero(kept);
    const Tensor which = reshape(found, {found.dim(0)});
    indices = index_select(indices, which, 1) -
              Tensor::from_vector(first, Shape{axes, 1}, indices.dtype());
    values = index_take(values, {which});
  }
  const Tensor made = make_coo(indices, values, shape, sparse(coo).coalesced);
  return one(a.input.kind() == Kind::SparseCsr ? to_csr(made) : made);
}

// ---- reductions --------------------------------------------------------------------------------

// The sums over axes. As in Paddle, a COO result has at least one axis, a CSR result at least two.
Outputs sum_form(const Op&, Args args) {
  const args::sum a(args);
  const bool csr = a.x.kind() == Kind::SparseCsr;
  const Tensor coo = csr ? to_coo(a.x, a.x.rank()) : a.x;
  const int axes = sparse_dim(coo), rank = a.x.rank();
  const auto reduced = normalise_axes(a.axis && a.axis->empty() ? std::nullopt : a.axis, rank);
  const auto is_reduced = [&](int axis) { return std::ranges::count(reduced, axis) > 0; };
  std::vector<int64_t> dense;
  for (int i = axes; i < rank; ++i)
    if (is_reduced(i)) dense.push_back(i - axes + 1);
  Tensor values = sparse(coo).values;
  // Also for no dense axes: the dtype of the result is that of a sum.
  const DType dtype =
      sum(slice_view(values, SliceIndex().range(0, 0)), std::nullopt, a.dtype).dtype();
  values = dense.empty() ? cast(values, dtype) : sum(values, dense, dtype, a.keepdim);
  const bool keep = a.keepdim || (csr && rank - static_cast<int>(reduced.size()) < 2);
  std::vector<int64_t> rest;
  Shape inner, sizes;
  for (int i = 0; i < axes; ++i) {
    if (!is_reduced(i)) {
      rest.push_back(i);
      inner.push_back(coo.dim(i));
    }
    if (!is_reduced(i) || keep) sizes.push_back(is_reduced(i) ? Dim(1) : coo.dim(i));
  }
  if (sizes.empty()) sizes.push_back(1);
  Tensor positions;
  if (rest.empty()) {
    positions = zeros({1}, DType::Int64);
    values = sum(values, IntVector{0}, dtype, true);
  } else {
    const Tensor rows =
        Tensor::from_vector(rest, Shape{static_cast<int64_t>(rest.size())}, DType::Int64);
    const Tensor all = ravel_indices(index_take(sparse(coo).places[0], {rows}), inner);
    const auto [unique, index, inverse, counts] = unique_flat(all, false, true);
    positions = unique;
    values = summed(inverse, values, unique.dim(0));
  }
  for (Dim d : values.dims().subspan(1)) sizes.push_back(d);
  return one(at_positions(positions, values, a.x.kind(), sizes, index_dtype(a.x)));
}

namespace {

// csr_softmax of each column of values [count, dense axes...]: the columns one after another are rows of a longer list.
Tensor line_softmax(const Tensor& crows, const Tensor& values) {
  if (values.rank() == 1) return csr_softmax(crows, values);
  const Dim count = values.dim(0), lines = crows.dim(0) - 1;
  const Dim columns = product(values.dims().subspan(1));
  const Tensor starts = slice_view(crows, SliceIndex().range(0, lines));
  const Tensor first = range(Scalar(0), Scalar(specialised(columns)), Scalar(1), DType::Int64) *
                       full({}, Scalar(specialised(count)), DType::Int64);
  const Tensor all = concat({reshape(reshape(first, {columns, 1}) + starts, {columns * lines}),
                             full({1}, Scalar(specialised(columns * count)), DType::Int64)});
  const Tensor flat =
      reshape(transpose(reshape(values, {count, columns}), {1, 0}), {columns * count});
  const Tensor made = reshape(csr_softmax(all, flat), {columns, count});
  return reshape(transpose(made, {1, 0}), values.dims());
}

}  // namespace

// Over the elements that are held, those of one line along the axis together.
Outputs softmax_form(const Op&, Args args) {
  const args::softmax a(args);
  const int64_t axis = normalise_axis(a.axis, a.x.rank());
  const Tensor x = a.dtype ? cast(a.x, *a.dtype) : a.x;
  if (x.kind() == Kind::SparseCsr) {
    user_check(
        axis == x.rank() - 1, ErrorKind::Unsupported,
        "axis is {}; the softmax of a CSR tensor is along its last axis.\nhint: Convert it with "
        "to_sparse_coo({}) for other axes.",
        a.axis, x.rank());
    return one(with_values(x, csr_softmax(global_crows(x), sparse(x).values)));
  }
  const Tensor coo = coalesce(x);
  if (axis >= sparse_dim(coo))
    return one(with_values(coo, softmax(sparse(coo).values, axis - sparse_dim(coo) + 1)));
  std::vector<int64_t> others;
  Shape sizes;
  for (int i = 0; i < sparse_dim(coo); ++i)
    if (i != axis) {
      others.push_back(i);
      sizes.push_back(coo.dim(i));
    }
  const Tensor& values = sparse(coo).values;
  const Tensor rows =
      Tensor::from_vector(others, Shape{static_cast<int64_t>(others.size())}, DType::Int64);
  const Tensor lines = others.empty()
                           ? zeros({values.dim(0)}, DType::Int64)
                           : ravel_indices(index_take(sparse(coo).places[0], {rows}), sizes);
  const Tensor crows = compress_rows(lines, Shape{product(sizes)});
  if (axis == sparse_dim(coo) - 1) return one(with_values(coo, line_softmax(crows, values)));
  const Tensor order = key_order(lines, Shape{product(sizes)});
  const Tensor sorted = line_softmax(crows, index_take(values, {order}));
  return one(with_values(coo, index_take(sorted, {argsort(order)})));
}

}  // namespace oar
