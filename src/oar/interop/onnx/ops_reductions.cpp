// Reductions, normalisations over axes, products.
#include "oar/interop/onnx/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

using Axes = std::optional<IntArgs>;

// Calls reduce(x, axes, keepdims). No axes are all of them, unless the node says that they are none.
template <class Reduce>
Values over_axes(const Call& c, Reduce reduce) {
  const Tensor& x = c.tensor(0);
  const auto axes = c.axes(1);
  const bool keep = c.flag("keepdims", true);
  if (!axes || axes->empty()) return {c.flag("noop_with_empty_axes") ? x : reduce(x, Axes(), keep)};
  return {reduce(x, Axes(IntArgs(*axes)), keep)};
}

Tensor summed(const Tensor& x, const Axes& axes, bool keep) {
  return sum(x, axes, x.dtype(), keep);
}
Values reduce_sum(const Call& c) { return over_axes(c, summed); }
Values reduce_mean(const Call& c) {
  return over_axes(
      c, [](const Tensor& x, const Axes& a, bool k) { return cast(mean(x, a, k), x.dtype()); });
}
// Of no elements it is the least number, or the largest.
Tensor with_edge(const Tensor& x, const Axes& axes, double edge) {
  if (!(x.numel() == Dim(0)) || !axes || is_integral(x.dtype())) return x;
  std::vector<Dim> one(x.dims().begin(), x.dims().end());
  for (const int64_t a : Ints(*axes)) one.at(static_cast<size_t>(a < 0 ? a + x.rank() : a)) = 1;
  return full(one, edge, x.dtype());
}
constexpr double kInfinity = std::numeric_limits<double>::infinity();
Values reduce_max(const Call& c) {
  return over_axes(c, [](const Tensor& x, const Axes& a, bool k) {
    return max(with_edge(x, a, -kInfinity), a, k);
  });
}
Values reduce_min(const Call& c) {
  return over_axes(c, [](const Tensor& x, const Axes& a, bool k) {
    return min(with_edge(x, a, kInfinity), a, k);
  });
}
Values reduce_prod(const Call& c) {
  Values made =
      over_axes(c, [](const Tensor& x, const Axes& a, bool k) { return prod(x, a, k, x.dtype()); });
  if (const auto sizes = is_integral(c.tensor(0).dtype()) ? c.maybe_sizes(0) : std::nullopt;
      sizes && c.tensor(0).rank() == 1) {
    Dim product = 1;
    for (const Dim d : *sizes) product = product * d;
    made[0].sizes = {product};
  }
  return made;
}
Values reduce_l1(const Call& c) {
  return over_axes(c, [](const Tensor& x, const Axes& a, bool k) { return summed(abs(x), a, k); });
}
Values reduce_l2(const Call& c) {
  return over_axes(
      c, [](const Tensor& x, const Axes& a, bool k) { return sqrt(summed(x * x, a, k)); });
}
Values reduce_sum_square(const Call& c) {
  return over_axes(c, [](const Tensor& x, const Axes& a, bool k) { return summed(x * x, a, k); });
}
Values reduce_log_sum(const Call& c) {
  return over_axes(c, [](const Tensor& x, const Axes& a, bool k) { return log(summed(x, a, k)); });
}
Values reduce_log_sum_exp(const Call& c) {
  return over_axes(c, [](const Tensor& x, const Axes& a, bool k) { return logsumexp(x, a, k); });
}

// select_last_index: the index counted from the other end of the flipped axis.
template <Tensor (*op)(const Tensor&, const std::optional<int64_t>&, bool, DType)>
Values arg_extreme(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.integer("axis", 0);
  const bool keep = c.flag("keepdims", true);
  if (!c.flag("select_last_index")) return {op(x, axis, keep, DType::Int64)};
  const Tensor last = product_of({x.dim(axis) - 1}, DType::Int64);
  return {last - op(flip(x, {axis}), axis, keep, DType::Int64)};
}

// Before version 13 the axes from `axis` on were one.
template <Tensor (*op)(const Tensor&, int64_t, const std::optional<DType>&)>
Values soft(const Call& c) {
  const Tensor& x = c.tensor(0);
  if (c.opset >= 13) return {op(x, c.integer("axis", -1), std::nullopt)};
  const int64_t axis = c.integer("axis", 1);
  const Tensor rows = x.rank() == 0 ? x : flatten(x, axis < 0 ? axis + x.rank() : axis, -1);
  return {reshape(op(rows, -1, std::nullopt), x.shape())};
}
Values hard_max(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.integer("axis", c.opset >= 13 ? -1 : 1);
  const Tensor found = argmax(x, axis, true, DType::Int64);
  const Dim size = x.dim(axis);
  std::vector<Dim> line(static_cast<size_t>(x.rank()), 1);
  line[static_cast<size_t>(axis < 0 ? axis + x.rank() : axis)] = size;
  const Tensor places = reshape(range(0, size.value(), 1, DType::Int64), line);
  return {cast(equal(places, found), x.dtype())};
}

Values cumulative_sum(const Call& c) {
  const int64_t axis = c.integers(1).at(0);
  return {cumsum_along(c.tensor(0), axis, c.flag("exclusive"), c.flag("reverse"))};
}

Values cumulative_product(const Call& c) {
  const int64_t axis = c.integers(1).at(0);
  const bool back = c.flag("reverse");
  const Tensor& x = c.tensor(0);
  const Tensor made = cumprod_along(back ? flip(x, {axis}) : x, axis, c.flag("exclusive"));
  return {back ? flip(made, {axis}) : made};
}

Values multiply_matrices(const Call& c) { return {matmul(c.tensor(0), c.tensor(1))}; }
Values gemm(const Call& c) {
  Tensor made = matmul(c.tensor(0), c.tensor(1), c.flag("transA"), c.flag("transB"));
  const double alpha = c.number("alpha", 1), beta = c.number("beta", 1);
  if (alpha != 1) made = made * alpha;
  if (!c.has(2)) return {made};
  return {made + (beta == 1 ? c.tensor(2) : c.tensor(2) * beta)};
}
Values einsum_of(const Call& c) { return {einsum(c.text("equation", ""), c.tensors())}; }
Values determinant(const Call& c) { return {det(c.tensor(0))}; }

Values layer_normalise(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.integer("axis", -1), first = axis < 0 ? axis + x.rank() : axis;
  std::vector<int64_t> axes;
  for (int64_t a = first; a < x.rank(); ++a) axes.push_back(a);
  const double epsilon = c.number("epsilon", 1e-5);
  const Shape shape(x.dims().subspan(static_cast<size_t>(first)));
  if (c.node.outputs.size() == 1) return {layer_norm(x, shape, c.tensor(1), c.maybe(2), epsilon)};
  const Tensor middle = mean(x, IntArgs(axes), true);
  const Tensor spread = rsqrt(var(x, IntArgs(axes), false, true) + epsilon);
  return {layer_norm(x, shape, c.tensor(1), c.maybe(2), epsilon), middle, spread};
}
Values rms_normalise(const Call& c) {
  const Tensor& x = c.tensor(0);
  const int64_t axis = c.integer("axis", -1), first = axis < 0 ? axis + x.rank() : axis;
  return {rms_norm(x, Shape(x.dims().subspan(static_cast<size_t>(first))), c.tensor(1),
                   c.number("epsilon", 1e-5))};
}
Values lp_normalise(const Call& c) {
  return {
      normalize(c.tensor(0), static_cast<double>(c.integer("p", 2)), c.integer("axis", -1), 1e-30)};
}
Values mean_variance(const Call& c) {
  const Tensor& x = c.tensor(0);
  const std::vector<int64_t> axes = c.list("axes", {0, 2, 3});
  const Tensor centred = x - mean(x, IntArgs(axes), true);
  return {centred / (sqrt(mean(centred * centred, IntArgs(axes), true)) + 1e-9)};
}

// The classes stand along axis 1. `scores` are logarithms of probabilities.
Tensor negative_log_likelihood(const Call& c, const Tensor& scores) {
  const Tensor label = cast(c.tensor(1), DType::Int64);
  const int64_t ignored = c.integer("ignore_index", -1);
  const Tensor is_used =
      not_equal(label, full_like(label, c.given("ignore_index") ? ignored : int64_t{-1} << 40));
  const Tensor safe = where(is_used, label, zeros_like(label));
  const Tensor picked =
      squeeze(take_along_axis(scores, unsqueeze(safe, {1}), 1, false), IntArgs({1}));
  Tensor weight = cast(is_used, scores.dtype());
  if (c.has(2))
    weight = weight * reshape(index_select(c.tensor(2), reshape(safe, {-1}), 0), label.shape());
  Tensor loss = neg(picked * weight);
  const std::string reduction = c.text("reduction", "mean");
  if (reduction == "none") return loss;
  return reduction == "sum" ? sum(loss) : sum(loss) / sum(weight);
}
Values nll(const Call& c) { return {negative_log_likelihood(c, c.tensor(0))}; }
Values softmax_cross_entropy_loss(const Call& c) {
  const Tensor scores = log_softmax(c.tensor(0), 1);
  return {negative_log_likelihood(c, scores), scores};
}

constexpr Converter kConverters[] = {
    {"ReduceSum", reduce_sum},
    {"ReduceMean", reduce_mean},
    {"ReduceMax", reduce_max},
    {"ReduceMin", reduce_min},
    {"ReduceProd", reduce_prod},
    {"ReduceL1", reduce_l1},
    {"ReduceL2", reduce_l2},
    {"ReduceSumSquare", reduce_sum_square},
    {"ReduceLogSum", reduce_log_sum},
    {"ReduceLogSumExp", reduce_log_sum_exp},
    {"ArgMax", arg_extreme<argmax>},
    {"ArgMin", arg_extreme<argmin>},
    {"Softmax", soft<softmax>},
    {"LogSoftmax", soft<log_softmax>},
    {"Hardmax", hard_max},
    {"CumSum", cumulative_sum},
    {"CumProd", cumulative_product},
    {"MatMul", multiply_matrices},
    {"Gemm", gemm},
    {"Einsum", einsum_of},
    {"Det", determinant},
    {"LayerNormalization", layer_normalise},
    {"RMSNormalization", rms_normalise},
    {"NegativeLogLikelihoodLoss", nll},
    {"SoftmaxCrossEntropyLoss", softmax_cross_entropy_loss},
    {"LpNormalization", lp_normalise},
    {"MeanVarianceNormalization", mean_variance},
};

}  // namespace

std::span<const Converter> reduction_converters() { return kConverters; }

}  // namespace oar::onnx
