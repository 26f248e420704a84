// The layer of sparse tensors: each call on one becomes calls on its index vectors and values. An elementwise function
// that keeps zeros applies to the values; the table at the end has the forms of other ops.
#include <algorithm>
#include <unordered_map>

#include "oar/ops/core/dispatcher.h"
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
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/gen/softmax.h"
#include "oar/ops/gen/sort.h"
#include "oar/ops/gen/sparse_index.h"
#include "oar/ops/gen/sparse_products.h"

namespace oar {
namespace {

Outputs one(Tensor t) {
  Outputs outputs;
  outputs.push_back(std::move(t));
  return outputs;
}

const char* kind_name(const Tensor& t) {
  return t.kind() == Kind::SparseCoo ? "sparse (COO)" : "sparse (CSR)";
}

// The elements in order and all different, as functions other than linear ones need them.
Tensor in_order(const Tensor& t) { return t.kind() == Kind::SparseCoo ? coalesce(t) : t; }

Tensor like_kind(const Tensor& t, const Tensor& model) {
  if (t.kind() == model.kind()) return t;
  return model.kind() == Kind::SparseCsr ? to_csr(t) : to_coo(t, t.rank());
}

[[noreturn]] void refuse(const Op& op, Args args, const char* why) {
  const OpScope scope(op.name().c_str());
  for (size_t i = 0; i < args.size(); ++i)
    for_each_tensor(args.subspan(i, 1), [&](const Tensor& t) {
      if (is_sparse(t))
        fail(ErrorKind::Unsupported,
             "{} is a {} tensor, {}, and {} has no sparse form{}.\nhint: Pass {}.to_dense(), or apply it to the "
             "values alone: {}.values().",
             op.schema().parameters[i].name, kind_name(t), t.describe(), op.name(), why,
             op.schema().parameters[i].name, op.schema().parameters[i].name);
    });
  fail(ErrorKind::Internal, "{} was called without a sparse tensor", op.name());
}

// ---- elementwise -------------------------------------------------------------------------------

// A call with other tensors instead of the first ones.
Outputs with_tensors(const Op& op, Args args, std::initializer_list<Tensor> tensors) {
  Frame frame(args);
  size_t i = 0;
  for (const Tensor& t : tensors) frame.set_tensor(i++, t);
  return dispatch(op, frame.args());
}

// Is the result zero where the sparse operands are?
bool keeps_zeros(const Op& op, Args args) {
  const LayersOff alone(kDispatchMask);
  const Op& pure = rules_of(op);
  Frame frame(args);
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_tensor()) continue;
    const Tensor& t = args[i].as_tensor();
    if (is_sparse(t))
      frame.set_tensor(i, zeros({}, t.dtype()));
    else if (!t.is_dense())  // a number that is not known yet
      return op.has(Trait::Linear);
  }
  const Tensor at_zero = dispatch(pure, frame.args())[0];
  return not_equal(at_zero, zeros({}, at_zero.dtype())).item_int() == 0;
}

size_t tensor_count(Args args) {
  size_t count = 0;
  for_each_tensor(args, [&](const Tensor&) { ++count; });
  return count;
}

// One sparse operand; others are numbers.
Outputs on_values(const Op& op, Args args, size_t place) {
  const Tensor& given = args[place].as_tensor();
  if (!keeps_zeros(op, args)) refuse(op, args, ", because it is not zero at 0");
  const Tensor t = op.has(Trait::Linear) || op.has(Trait::Inplace) ? given : in_order(given);
  Frame frame(args);
  frame.set_tensor(place, sparse(t).values);
  const Outputs outputs = dispatch(op, frame.args());
  if (op.has(Trait::Inplace)) return one(given);
  Outputs wrapped;
  for (const Tensor& values : outputs) wrapped.push_back(with_values(t, values));
  return wrapped;
}

// Values spread over the union of both patterns; zero where a tensor has no element.
Outputs on_union(const Op& op, Args args) {
  const Tensor& x = args[0].as_tensor();
  const Tensor y = like_kind(args[1].as_tensor(), x);
  user_check(same(x.shape(), y.shape()), ErrorKind::InvalidArgument,
             "x of shape {} and y of shape {} must have one shape: sparse tensors are not broadcast.",
             to_string(x.dims()), to_string(y.dims()));
  user_check(sparse_dim(x) == sparse_dim(y), ErrorKind::InvalidArgument,
             "x has {} sparse axes and y {}.\nhint: Convert one with to_dense().to_sparse_coo({}).",
             sparse_dim(x), sparse_dim(y), sparse_dim(x));
  const Tensor a = in_order(x), b = in_order(y);
  if (same_places(a, b))
    return one(with_values(a, with_tensors(op, args, {sparse(a).values, sparse(b).values})[0]));
  const auto sorted = [](const Tensor& t) {
    const Tensor positions = positions_of(t);
    if (t.kind() == Kind::SparseCoo || !positions.is_dense() || rises(positions))
      return std::pair(positions, sparse(t).values);
    const auto [unique, index, inverse, counts] = unique_flat(positions, false, true);
    return std::pair(unique, summed(inverse, sparse(t).values, unique.dim(0)));
  };
  const auto [left, left_values] = sorted(a);
  const auto [right, right_values] = sorted(b);
  const auto [all, left_places, right_places] = merge_sorted(left, right);
  const Tensor values =
      with_tensors(op, args, {summed(left_places, left_values, all.dim(0)),
                              summed(right_places, right_values, all.dim(0))})[0];
  return one(at_positions(all, values, x.kind(), x.dims(), index_dtype(x)));
}

// 0 / 0 is not a number, so every element of a quotient is held.
Outputs divide_form(const Op& op, Args args) {
  const Tensor &x = args[0].as_tensor(), &y = args[1].as_tensor();
  const Tensor quotient = with_tensors(op, args, {to_dense(x), to_dense(y)})[0];
  const Tensor positions = range(Scalar(0), Scalar(specialised(product(sparse_sizes(x)))), Scalar(1),
                                 DType::Int64);
  Shape flat{positions.dim(0)};
  for (Dim d : x.dims().subspan(static_cast<size_t>(sparse_dim(x)))) flat.push_back(d);
  return one(at_positions(positions, reshape(quotient, flat), x.kind(), x.dims(), index_dtype(x)));
}

// A sparse and a dense tensor of one shape.
Outputs with_dense(const Op& op, Args args) {
  static const Op &multiply_op = get_op("multiply"), &add_op = get_op("add"),
                  &subtract_op = get_op("subtract");
  const size_t place = is_sparse(args[0].as_tensor()) ? 0 : 1;
  const Tensor &t = args[place].as_tensor(), &other = args[1 - place].as_tensor();
  if (!same(t.shape(), other.shape()))
    refuse(op, args, " with a dense tensor of another shape");
  if (&op == &add_op || &op == &subtract_op)  // the result has all elements
    return place == 0 ? with_tensors(op, args, {to_dense(t), other})
                      : with_tensors(op, args, {other, to_dense(t)});
  if (&op != &multiply_op) refuse(op, args, " with a dense tensor");
  const Tensor ordered = in_order(t);
  return one(with_values(ordered, sparse(ordered).values * sparse(mask_as(other, ordered)).values));
}

Outputs elementwise(const Op& op, Args args) {
  static const Op& divide_op = get_op("divide");
  std::vector<size_t> sparse_places;
  bool numbers = true;
  for (size_t i = 0; i < args.size(); ++i) {
    if (!args[i].is_tensor()) continue;
    const Tensor& t = args[i].as_tensor();
    if (is_sparse(t))
      sparse_places.push_back(i);
    else
      numbers &= t.rank() == 0;
  }
  const size_t count = tensor_count(args);
  if (sparse_places.size() == 1 && numbers) return on_values(op, args, sparse_places[0]);
  if (op.has(Trait::Inplace) || count != 2) refuse(op, args, " for these operands");
  if (sparse_places.size() == 1) return with_dense(op, args);
  if (&op == &divide_op) return divide_form(op, args);
  if (!keeps_zeros(op, args)) refuse(op, args, ", because it is not zero at 0");
  return on_union(op, args);
}

// ---- products ----------------------------------------------------------------------------------

Tensor transposed_matrix(const Tensor& t) {
  std::vector<int64_t> perm;
  for (int i = 0; i < t.rank(); ++i) perm.push_back(i);
  std::swap(perm[perm.size() - 1], perm[perm.size() - 2]);
  return transpose(t, perm);
}

Shape product_shape(const Tensor& x, const Tensor& y) {
  bool fits = x.rank() == y.rank() && same(x.dim(-1), y.dim(-2));
  for (int i = 0; fits && i < x.rank() - 2; ++i) fits = same(x.dim(i), y.dim(i));
  user_check(fits, ErrorKind::InvalidArgument,
             "x of shape {} cannot be multiplied by y of shape {}.\nhint: The shapes are [..., m, k] and [..., "
             "k, n], with the same sizes before; sparse tensors are not broadcast.",
             to_string(x.dims()), to_string(y.dims()));
  Shape shape(x.dims());
  shape.back() = y.dim(-1);
  return shape;
}

Tensor times_dense(const Tensor& x, const Tensor& y) {
  if (y.rank() == 1) return squeeze(times_dense(x, unsqueeze(y, {1})), IntVector{-1});
  const Shape shape = product_shape(x, y);
  if (x.kind() == Kind::SparseCsr && x.rank() == 2)
    return csr_matmul(sparse(x).places[0], sparse(x).places[1], sparse(x).values, y);
  const SparseMatrix m = matrix_of(x);
  const Tensor tall = reshape(y, {m.batches * m.width, y.dim(-1)});
  return reshape(coo_matmul(m.rows, m.cols, m.values, tall, Shape{m.batches * m.height}), shape);
}

Tensor csr_times_csr(const Tensor& x, const Tensor& y) {
  const Shape shape = product_shape(x, y);
  const auto as_csr = [](const SparseMatrix& m, const Tensor& t) {
    if (m.crows.defined()) return std::tuple(m.crows, m.cols, m.values);
    const Tensor flat = csr_at(m.rows, m.cols, m.values,
                               Shape{m.batches * m.height, m.batches * m.width}, index_dtype(t));
    return std::tuple(sparse(flat).places[0], sparse(flat).places[1], m.values);
  };
  const SparseMatrix left = matrix_of(in_order(x)), right = matrix_of(in_order(y));
  const auto [x_crows, x_cols, x_values] = as_csr(left, x);
  const auto [y_crows, y_cols, y_values] = as_csr(right, y);
  const auto [crows, cols, values] =
      csr_product(x_crows, x_cols, x_values, y_crows, y_cols, y_values,
                  Shape{right.batches * right.width});
  if (x.kind() == Kind::SparseCsr && x.rank() == 2)
    return make_csr(cast(crows, index_dtype(x)), cast(cols, index_dtype(x)), values, shape);
  const Tensor rows = expand_rows(crows, cols);
  const Tensor within =
      left.batches == Dim(1) ? cols
                             : row_of(unravel_indices(cols, {right.batches, right.width}), 1);
  const Tensor positions =
      ravel_indices(stack_rows({rows, within}), {left.batches * left.height, right.width});
  return at_positions(positions, values, x.kind(), shape, index_dtype(x));
}

Outputs matmul_form(const Op&, Args args) {
  const args::matmul a(args);
  const Tensor x = a.transpose_x ? transposed_matrix(a.x) : a.x,
               y = a.transpose_y ? transposed_matrix(a.y) : a.y;
  user_check(x.dtype() == y.dtype(), ErrorKind::InvalidType,
             "x has dtype {} and y {}; they must have one.\nhint: Cast one with astype.",
             name_of(x.dtype()), name_of(y.dtype()));
  if (is_sparse(x) && is_sparse(y)) return one(csr_times_csr(x, like_kind(y, x)));
  if (is_sparse(x)) return one(times_dense(x, y));
  user_check(x.rank() >= 2, ErrorKind::InvalidArgument,
             "x of shape {} must have at least two axes.", to_string(x.dims()));
  return one(transposed_matrix(times_dense(transposed_matrix(y), transposed_matrix(x))));
}

// Ops that are defined by others, which have a form.
Outputs by_definition(const Op& op, Args args) { return Outputs(op.def().decompose(args)); }

Outputs mv_form(const Op&, Args args) {
  const args::mv a(args);
  user_check(a.x.rank() == 2 && a.vec.rank() == 1, ErrorKind::InvalidArgument,
             "x of shape {} must be a matrix and vec of shape {} a vector.", to_string(a.x.dims()),
             to_string(a.vec.dims()));
  return one(matmul(a.x, a.vec));
}

Outputs addmm_form(const Op&, Args args) {
  const args::addmm a(args);
  return one(a.input * a.beta + matmul(a.x, a.y) * a.alpha);
}

// ---- shapes ------------------------------------------------------------------------------------

Outputs transpose_form(const Op&, Args args) {
  const args::transpose a(args);
  const auto perm = checked_permutation(a.perm, a.x.rank());
  if (a.x.kind() == Kind::SparseCsr && a.x.rank() == 2 && perm[0] == 1) {
    const std::vector<Tensor>& places = sparse(a.x).places;
    const Tensor order = key_order(places[1], Shape{a.x.dim(1)});
    const Tensor rows = cast(expand_rows(places[0], places[1]), index_dtype(a.x));
    const Tensor crows = cast(compress_rows(places[1], Shape{a.x.dim(1)}), index_dtype(a.x));
    return one(make_csr(crows, index_take(rows, {order}), index_take(sparse(a.x).values, {order}),
                        Shape{a.x.dim(1), a.x.dim(0)}));
  }
  const Tensor coo = a.x.kind() == Kind::SparseCoo ? a.x : to_coo(a.x, a.x.rank());
  const int axes = sparse_dim(coo);
  std::vector<int64_t> order, dense{0};
  Shape shape;
  for (int i = 0; i < a.x.rank(); ++i) {
    const int64_t axis = perm[static_cast<size_t>(i)];
    user_check((axis < axes) == (i < axes), ErrorKind::Unsupported,
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
  user_check(fits, ErrorKind::Unsupported,
             "x of shape {} has {} sparse axes; a new shape must keep the sizes of the dense ones, and {} does "
             "not.\nhint: Reshape x.to_dense().",
             to_string(a.x.dims()), axes, to_string(shape));
  const Dims sizes = Dims(shape).first(shape.size() - dense);
  const Tensor indices =
      cast(unravel_indices(positions_of(coo), sizes), index_dtype(coo));
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
    const auto place = [size](int64_t p) { return std::clamp<int64_t>(p < 0 ? p + size : p, 0, size); };
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
  const DType dtype = sum(slice_view(values, SliceIndex().range(0, 0)), std::nullopt, a.dtype).dtype();
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
    const Tensor rows = Tensor::from_vector(rest, Shape{static_cast<int64_t>(rest.size())}, DType::Int64);
    const Tensor all = ravel_indices(index_take(sparse(coo).places[0], {rows}), inner);
    const auto [unique, index, inverse, counts] = unique_flat(all, false, true);
    positions = unique;
    values = summed(inverse, values, unique.dim(0));
  }
  for (Dim d : values.dims().subspan(1)) sizes.push_back(d);
  return one(at_positions(positions, values, a.x.kind(), sizes, index_dtype(a.x)));
}

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
  const Tensor flat = reshape(transpose(reshape(values, {count, columns}), {1, 0}), {columns * count});
  const Tensor made = reshape(csr_softmax(all, flat), {columns, count});
  return reshape(transpose(made, {1, 0}), values.dims());
}

// Over the elements that are held, those of one line along the axis together.
Outputs softmax_form(const Op&, Args args) {
  const args::softmax a(args);
  const int64_t axis = normalise_axis(a.axis, a.x.rank());
  const Tensor x = a.dtype ? cast(a.x, *a.dtype) : a.x;
  if (x.kind() == Kind::SparseCsr) {
    user_check(axis == x.rank() - 1, ErrorKind::Unsupported,
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

// ---- the layer ---------------------------------------------------------------------------------

// x takes over a copy of another sparse tensor.
Outputs copy_into_form(const Op& op, Args args) {
  const args::copy_into a(args);
  if (!is_sparse(a.x) || !is_sparse(a.value)) refuse(op, args, " with a dense tensor");
  user_check(same(a.x.shape(), a.value.shape()), ErrorKind::InvalidArgument,
             "x of shape {} cannot take values of shape {}.", to_string(a.x.dims()),
             to_string(a.value.dims()));
  const Tensor values = assign(cast(sparse(a.value).values, a.x.dtype()));
  a.x->become(*with_values(a.value, values).impl());
  return one(a.x);
}

using Form = Outputs (*)(const Op&, Args);

Form form_of(const Op& op) {
  static const std::unordered_map<const Op*, Form> forms = {
      {&get_op("matmul"), matmul_form},       {&get_op("mm"), by_definition},
      {&get_op("bmm"), by_definition},        {&get_op("mv"), mv_form},
      {&get_op("addmm"), addmm_form},         {&get_op("transpose"), transpose_form},
      {&get_op("reshape"), reshape_form},     {&get_op("slice"), slice_form},
      {&get_op("sum"), sum_form},             {&get_op("softmax"), softmax_form},
      {&get_op("copy_into"), copy_into_form},
  };
  const auto found = forms.find(&op);
  if (found != forms.end()) return found->second;
  return op.has(Trait::Elementwise) ? elementwise : nullptr;
}

Outputs sparse_layer(const Op& op, Args args) {
  const Form form = form_of(op);
  if (!form) refuse(op, args, "");
  const OpScope scope(op.name().c_str());
  return form(op, args);
}

}  // namespace

void install_sparse_layer() {
  install_layer(kSparseCoo, sparse_layer);
  install_layer(kSparseCsr, sparse_layer);
}

}  // namespace oar
