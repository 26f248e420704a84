// Reductions, products of matrices, softmax.
#include <cmath>

#include "oar/interop/paddle/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::paddle {
namespace {

using List = std::vector<int64_t>;

// No axes: all of them.
std::optional<List> axes_of(const Call& c) {
  List axes = c.integers(1, "axis");
  if (axes.empty() || c.flag("reduce_all")) return std::nullopt;
  return axes;
}

using Reduction = Tensor (*)(const Tensor&, const std::optional<IntArgs>&, bool);
template <Reduction op>
Values reduced(const Call& c) {
  const std::optional<List> axes = axes_of(c);
  const bool keep = c.flag("keepdim");
  return {axes ? op(c.tensor(0), IntArgs(*axes), keep) : op(c.tensor(0), std::nullopt, keep)};
}
// Sums and products may have a dtype of their own; that of bools and small integers is int64.
Values summed(const Call& c) {
  const std::optional<List> axes = axes_of(c);
  const Tensor& x = c.tensor(0);
  const std::optional<DType> dtype = c.dtype("dtype");
  const bool keep = c.flag("keepdim");
  return {axes ? sum(x, IntArgs(*axes), dtype, keep) : sum(x, std::nullopt, dtype, keep)};
}
Values multiplied(const Call& c) {
  const std::optional<List> axes = axes_of(c);
  const bool keep = c.flag("keepdim");
  return {axes ? prod(c.tensor(0), IntArgs(*axes), keep) : prod(c.tensor(0), std::nullopt, keep)};
}
Values mean_all(const Call& c) { return {mean(c.tensor(0))}; }
Values squared_norm(const Call& c) { return {reshape(sum(square(c.tensor(0))), {1})}; }

using Search = Tensor (*)(const Tensor&, const std::optional<int64_t>&, bool, DType);
template <Search op>
Values searched(const Call& c) {
  const DType dtype = c.dtype("dtype").value_or(DType::Int64);
  const bool keep = c.flag("keepdims");
  if (c.flag("flatten")) return {op(c.tensor(0), std::nullopt, keep, dtype)};
  return {op(c.tensor(0), c.integer(1, "axis", -1), keep, dtype)};
}

Values accumulated(const Call& c) {
  Tensor x = c.tensor(0);
  if (c.flag("flatten")) x = reshape(x, {-1});
  return {cumsum_along(x, c.integer(1, "axis", -1), c.flag("exclusive"), c.flag("reverse"))};
}
Values accumulated_product(const Call& c) { return {cumprod(c.tensor(0), c.integer("dim", 0))}; }

Values normed(const Call& c) {
  const double order = c.number("porder", 2);
  const bool keep = c.flag("keepdim");
  if (c.flag("asvector")) return {p_norm(c.tensor(0), order, std::nullopt, keep)};
  return {p_norm(c.tensor(0), order, IntArgs({c.integer("axis", -1)}), keep)};
}
Values frobenius(const Call& c) {
  const std::optional<List> axes = axes_of(c);
  const bool keep = c.flag("keepdim", c.flag("keep_dim"));
  const Tensor squares = square(c.tensor(0));
  return {sqrt(axes ? sum(squares, IntArgs(*axes), std::nullopt, keep)
                    : sum(squares, std::nullopt, std::nullopt, keep))};
}
// x / sqrt(sum(x²) + epsilon) along an axis.
Values unit_length(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.integer("axis", -1);
  const Tensor length =
      sqrt(sum(square(x), IntArgs({axis}), std::nullopt, true) + c.number("epsilon", 1e-10));
  return {x / length, length};
}

Values product(const Call& c) {
  return {matmul(c.tensor(0), c.tensor(1), c.flag("transpose_x"), c.flag("transpose_y"))};
}
Values product_v1(const Call& c) {
  const Tensor made =
      matmul(c.tensor(0), c.tensor(1), c.flag("transpose_x"), c.flag("transpose_y"));
  return {scale(made, Scalar(c.number("alpha", 1)))};
}
// Of tensors that are seen as matrices.
Values product_of_flat(const Call& c) {
  const Tensor &x = c.tensor(0), &y = c.tensor(1);
  const int64_t left = c.integer("x_num_col_dims", 1), right = c.integer("y_num_col_dims", 1);
  const auto matrix = [](const Tensor& t, int64_t axis) {
    Dim rows = 1, columns = 1;
    for (int64_t i = 0; i < axis; ++i) rows = rows * t.dim(i);
    for (int64_t i = axis; i < t.rank(); ++i) columns = columns * t.dim(i);
    return reshape(t, {rows, columns});
  };
  std::vector<Dim> shape;
  for (int64_t i = 0; i < left; ++i) shape.push_back(x.dim(i));
  for (int64_t i = right; i < y.rank(); ++i) shape.push_back(y.dim(i));
  return {reshape(matmul(matrix(x, left), matrix(y, right)), shape)};
}
Values batched_product(const Call& c) { return {bmm(c.tensor(0), c.tensor(1))}; }
Values vector_product(const Call& c) { return {mv(c.tensor(0), c.tensor(1))}; }
Values dot_product(const Call& c) { return {dot(c.tensor(0), c.tensor(1))}; }
Values added_product(const Call& c) {
  return {addmm(c.tensor(0), c.tensor(1), c.tensor(2), c.number("beta", 1), c.number("alpha", 1))};
}
Values by_notation(const Call& c) { return {einsum(c.text("equation", ""), c.tensors(0))}; }
Values inverted(const Call& c) { return {inverse(c.tensor(0))}; }
Values kronecker(const Call& c) { return {kron(c.tensor(0), c.tensor(1))}; }
Values traced(const Call& c) {
  return {trace(c.tensor(0), c.integer("offset", 0), c.integer("axis1", 0), c.integer("axis2", 1))};
}
Values crossed(const Call& c) { return {cross(c.tensor(0), c.tensor(1), c.integer("axis", 9))}; }
Values distance(const Call& c) { return {dist(c.tensor(0), c.tensor(1), c.number("p", 2))}; }

Values soft_max(const Call& c) { return {softmax(c.tensor(0), c.integer("axis", -1))}; }
Values log_soft_max(const Call& c) { return {log_softmax(c.tensor(0), c.integer("axis", -1))}; }

constexpr Converter kConverters[] = {
    {"sum", summed},
    {"prod", multiplied},
    {"mean", reduced<mean>},
    {"mean_all", mean_all},
    {"max", reduced<max>},
    {"min", reduced<min>},
    {"amax", reduced<amax>},
    {"amin", reduced<amin>},
    {"all", reduced<all>},
    {"any", reduced<any>},
    {"logsumexp", reduced<logsumexp>},
    {"squared_l2_norm", squared_norm},
    {"argmax", searched<argmax>},
    {"argmin", searched<argmin>},
    {"cumsum", accumulated},
    {"cumprod", accumulated_product},
    {"p_norm", normed},
    {"frobenius_norm", frobenius},
    {"norm", unit_length},
    {"matmul", product},
    {"matmul_scaled", product_v1},
    {"matmul_flattened", product_of_flat},
    {"bmm", batched_product},
    {"mv", vector_product},
    {"dot", dot_product},
    {"addmm", added_product},
    {"einsum", by_notation},
    {"inverse", inverted},
    {"kron", kronecker},
    {"trace", traced},
    {"cross", crossed},
    {"dist", distance},
    {"softmax", soft_max},
    {"log_softmax", log_soft_max},
};

}  // namespace

std::span<const Converter> reduction_converters() { return kConverters; }

}  // namespace oar::paddle
