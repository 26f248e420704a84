// The layer of sparse tensors: each call on one becomes calls on its index vectors and values. An elementwise function
// that keeps zeros applies to the values; the table at the end has the forms of other ops.
#include <unordered_map>

#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/sparse_axes.h"
#include "oar/ops/families/sparse_parts.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/counting.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/index.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/sparse_index.h"
#include "oar/ops/gen/sparse_products.h"

namespace oar {
namespace {

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
        fail(
            ErrorKind::Unsupported,
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
  user_check(
      same(x.shape(), y.shape()), ErrorKind::InvalidArgument,
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
  const Tensor values = with_tensors(op, args,
                                     {summed(left_places, left_values, all.dim(0)),
                                      summed(right_places, right_values, all.dim(0))})[0];
  return one(at_positions(all, values, x.kind(), x.dims(), index_dtype(x)));
}

// 0 / 0 is not a number, so every element of a quotient is held.
Outputs divide_form(const Op& op, Args args) {
  const Tensor &x = args[0].as_tensor(), &y = args[1].as_tensor();
  const Tensor quotient = with_tensors(op, args, {to_dense(x), to_dense(y)})[0];
  const Tensor positions =
      range(Scalar(0), Scalar(specialised(product(sparse_sizes(x)))), Scalar(1), DType::Int64);
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
  if (!same(t.shape(), other.shape())) refuse(op, args, " with a dense tensor of another shape");
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
  user_check(
      fits, ErrorKind::InvalidArgument,
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
  const auto [crows, cols, values] = csr_product(x_crows, x_cols, x_values, y_crows, y_cols,
                                                 y_values, Shape{right.batches * right.width});
  if (x.kind() == Kind::SparseCsr && x.rank() == 2)
    return make_csr(as_dtype(crows, index_dtype(x)), as_dtype(cols, index_dtype(x)), values, shape);
  const Tensor rows = expand_rows(crows, cols);
  const Tensor within = left.batches == Dim(1)
                            ? cols
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

Form form_of(const Op& op) {
  static const std::unordered_map<const Op*, Form> forms = {
      {&get_op("matmul"), matmul_form},
      {&get_op("mm"), by_definition},
      {&get_op("bmm"), by_definition},
      {&get_op("mv"), mv_form},
      {&get_op("addmm"), addmm_form},
      {&get_op("transpose"), transpose_form},
      {&get_op("reshape"), reshape_form},
      {&get_op("slice"), slice_form},
      {&get_op("sum"), sum_form},
      {&get_op("softmax"), softmax_form},
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
