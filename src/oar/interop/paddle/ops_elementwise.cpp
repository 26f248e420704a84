// Ops that compute element by element.
#include <cmath>

#include "oar/interop/paddle/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::paddle {
namespace {

template <Tensor (*op)(const Tensor&)>
Values unary(const Call& c) {
  return {op(c.tensor(0))};
}

// Legacy ops may say at which axis of x the axes of y begin.
Tensor aligned(const Call& c) {
  const Tensor &x = c.tensor(0), &y = c.tensor(1);
  const int64_t axis = c.integer("axis", -1);
  if (axis < 0 || y.rank() == 0 || axis + y.rank() >= x.rank()) return y;
  std::vector<Dim> shape(y.dims().begin(), y.dims().end());
  shape.resize(static_cast<size_t>(x.rank() - axis), Dim(1));
  return reshape(y, shape);
}

template <Tensor (*op)(const Tensor&, const Tensor&)>
Values binary(const Call& c) {
  return {op(c.tensor(0), aligned(c))};
}

Dim plus(Dim a, Dim b) { return a + b; }
Dim minus(Dim a, Dim b) { return a - b; }
Dim times(Dim a, Dim b) { return a * b; }

// Integers that may be sizes: the result is known as expressions, too.
template <Tensor (*op)(const Tensor&, const Tensor&), Dim (*on_sizes)(Dim, Dim)>
Values arithmetic(const Call& c) {
  const Tensor result = op(c.tensor(0), aligned(c));
  if (!is_integral(result.dtype())) return {result};
  const auto a = c.maybe_sizes(0), b = c.maybe_sizes(1);
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) return {result};
  std::vector<Dim> sizes;
  for (size_t i = 0; i < std::max(a->size(), b->size()); ++i)
    sizes.push_back(on_sizes((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]));
  return {Item(result, std::move(sizes))};
}

Values divided_down(const Call& c) {
  const Tensor result = floor_divide(c.tensor(0), aligned(c));
  const auto a = c.maybe_sizes(0), b = c.maybe_sizes(1);
  if (!is_integral(result.dtype()) || !a || !b || b->size() != 1 || (*b)[0].is_symbolic() ||
      (*b)[0].value() <= 0)
    return {result};
  std::vector<Dim> sizes;
  for (const Dim d : *a) sizes.push_back(floor_div(d, (*b)[0]));
  return {Item(result, std::move(sizes))};
}

Values scaled(const Call& c) {
  const Tensor& x = c.tensor(0);
  const double by = c.number(1, "scale", 1), bias = c.number("bias", 0);
  const bool after = c.flag("bias_after_scale", true);
  const auto whole = [](double v) { return v == std::floor(v) && std::fabs(v) < 1e15; };
  if (!is_integral(x.dtype()) || !whole(by) || !whole(bias))
    return {scale(x, Scalar(by), Scalar(bias), after)};
  const auto factor = static_cast<int64_t>(by), added = static_cast<int64_t>(bias);
  const Tensor result = scale(x, Scalar(factor), Scalar(added), after);
  const auto sizes = c.maybe_sizes(0);
  if (!sizes) return {result};
  std::vector<Dim> made;
  for (const Dim d : *sizes) made.push_back(after ? d * factor + added : (d + added) * factor);
  return {Item(result, std::move(made))};
}

Values cast_to(const Call& c) {
  const auto dtype = c.given("out_dtype") ? c.dtype("out_dtype") : c.dtype("dtype");
  if (!dtype) c.refuse("it does not say to which dtype");
  const Tensor result = cast(c.tensor(0), *dtype);
  if (is_integral(*dtype)) return {Item(result, c.maybe_sizes(0))};
  return {result};
}

Values clipped(const Call& c) {
  const Tensor& x = c.tensor(0);
  const auto constant = [&](size_t i) { return !c.has(i) || c.item(i).numbers.has_value(); };
  if (constant(1) && constant(2)) {
    const double low = c.number(1, "min", 0), high = c.number(2, "max", 0);
    const auto bound = [&](double v) {
      return is_integral(x.dtype()) && std::fabs(v) < 9e18 ? Scalar(static_cast<int64_t>(v))
                                                           : Scalar(v);
    };
    return {clip(x, bound(low), bound(high))};
  }
  Tensor made = c.has(1) ? maximum(x, cast(c.tensor(1), x.dtype())) : x;
  if (c.has(2)) made = minimum(made, cast(c.tensor(2), x.dtype()));
  return {made};
}

Values power_of(const Call& c) {
  const Tensor& x = c.tensor(0);
  const double by = c.number(1, "y", 1);
  if (by == 2) return {square(x)};
  if (is_integral(x.dtype()) && by == std::floor(by))
    return {pow(x, Tensor::scalar(static_cast<int64_t>(by), x.dtype()))};
  return {pow(x, Tensor::scalar(by, x.dtype()))};
}

Values incremented(const Call& c) {
  const Tensor& x = c.tensor(0);
  const double step = c.number("step", c.number("value", 1));
  if (is_integral(x.dtype())) return {x + static_cast<int64_t>(step)};
  return {x + step};
}

Values leaky(const Call& c) { return {leaky_relu(c.tensor(0), c.number("negative_slope", 0.02))}; }
Values elu_of(const Call& c) { return {elu(c.tensor(0), c.number("alpha", 1))}; }
Values celu_of(const Call& c) { return {celu(c.tensor(0), c.number("alpha", 1))}; }
Values selu_of(const Call& c) {
  return {selu(c.tensor(0), c.number("scale", 1.0507009873554805),
               c.number("alpha", 1.6732632423543772))};
}
Values hard_sigmoid(const Call& c) {
  return {hardsigmoid(c.tensor(0), c.number("slope", 0.2), c.number("offset", 0.5))};
}
Values hard_swish(const Call& c) {
  const double threshold = c.number("threshold", 6), by = c.number("scale", 6),
               offset = c.number("offset", 3);
  const Tensor& x = c.tensor(0);
  if (threshold == 6 && by == 6 && offset == 3) return {hardswish(x)};
  return {x * clip(x + offset, Scalar(0.0), Scalar(threshold)) / by};
}
Values swish_of(const Call& c) {
  const double beta = c.number("beta", 1);
  const Tensor& x = c.tensor(0);
  return {beta == 1 ? swish(x) : x * sigmoid(x * beta)};
}
Values gelu_of(const Call& c) { return {gelu(c.tensor(0), c.flag("approximate"))}; }
Values softplus_of(const Call& c) {
  return {softplus(c.tensor(0), c.number("beta", 1), c.number("threshold", 20))};
}
Values hard_tanh(const Call& c) {
  return {hardtanh(c.tensor(0), c.number("t_min", -1), c.number("t_max", 1))};
}
Values hard_shrink(const Call& c) { return {hardshrink(c.tensor(0), c.number("threshold", 0.5))}; }
Values soft_shrink(const Call& c) { return {softshrink(c.tensor(0), c.number("threshold", 0.5))}; }
Values thresholded(const Call& c) {
  return {thresholded_relu(c.tensor(0), c.number("threshold", 1), c.number("value", 0))};
}
Values stanh_of(const Call& c) {
  return {stanh(c.tensor(0), c.number("scale_a", 0.67), c.number("scale_b", 1.7159))};
}
Values logit_of(const Call& c) { return {logit(c.tensor(0), c.number("eps", 1e-6))}; }
Values rounded(const Call& c) { return {round(c.tensor(0), c.integer("decimals", 0))}; }

Values parametric(const Call& c) {
  const Tensor &x = c.tensor(0), &slope = c.tensor(1);
  const std::string mode = c.text("mode", "all");
  std::vector<Dim> shape(static_cast<size_t>(x.rank()), Dim(1));
  if (mode == "channel") {
    const bool last = c.text("data_format", "NCHW") == "NHWC";
    shape.at(last ? shape.size() - 1 : 1) = slope.numel();
  } else if (mode == "element") {
    for (int64_t i = 1; i < x.rank(); ++i) shape[static_cast<size_t>(i)] = x.dim(i);
  }
  const Tensor zero = zeros_like(x);
  return {where(greater_than(x, zero), x, x * reshape(slope, shape))};
}

Values sum_of(const Call& c) { return {add_n(c.tensors(0))}; }
Values same(const Call& c) { return {c.item(0)}; }
Values without_dropout(const Call& c) {
  if (!c.flag("is_test", true)) c.refuse("it is in training mode");
  const double p = c.number(2, "p", 0.5);
  if (c.text("mode", "downgrade_in_infer") == "upscale_in_train") return {c.item(0)};
  return {scale(c.tensor(0), Scalar(1 - p))};
}
Values gated(const Call& c) { return {swiglu(c.tensor(0), c.maybe(1))}; }

constexpr Converter kConverters[] = {
    {"abs", unary<abs>},
    {"acos", unary<acos>},
    {"acosh", unary<acosh>},
    {"asin", unary<asin>},
    {"asinh", unary<asinh>},
    {"atan", unary<atan>},
    {"atanh", unary<atanh>},
    {"ceil", unary<ceil>},
    {"cos", unary<cos>},
    {"cosh", unary<cosh>},
    {"erf", unary<erf>},
    {"exp", unary<exp>},
    {"expm1", unary<expm1>},
    {"floor", unary<floor>},
    {"log", unary<log>},
    {"log10", unary<log10>},
    {"log1p", unary<log1p>},
    {"log2", unary<log2>},
    {"logsigmoid", unary<log_sigmoid>},
    {"mish", unary<mish>},
    {"reciprocal", unary<reciprocal>},
    {"relu", unary<relu>},
    {"relu6", unary<relu6>},
    {"rsqrt", unary<rsqrt>},
    {"sigmoid", unary<sigmoid>},
    {"sign", unary<sign>},
    {"silu", unary<silu>},
    {"sin", unary<sin>},
    {"sinh", unary<sinh>},
    {"softsign", unary<softsign>},
    {"sqrt", unary<sqrt>},
    {"square", unary<square>},
    {"tan", unary<tan>},
    {"tanh", unary<tanh>},
    {"tanh_shrink", unary<tanhshrink>},
    {"trunc", unary<trunc>},
    {"isfinite", unary<isfinite>},
    {"isinf", unary<isinf>},
    {"isnan", unary<isnan>},
    {"logical_not", unary<logical_not>},
    {"bitwise_not", unary<bitwise_not>},
    {"add", arithmetic<add, plus>},
    {"subtract", arithmetic<subtract, minus>},
    {"multiply", arithmetic<multiply, times>},
    {"divide", binary<divide>},
    {"floor_divide", divided_down},
    {"remainder", binary<remainder>},
    {"elementwise_pow", binary<pow>},
    {"maximum", binary<maximum>},
    {"minimum", binary<minimum>},
    {"fmax", binary<fmax>},
    {"fmin", binary<fmin>},
    {"atan2", binary<atan2>},
    {"equal", binary<equal>},
    {"not_equal", binary<not_equal>},
    {"less_than", binary<less_than>},
    {"less_equal", binary<less_equal>},
    {"greater_than", binary<greater_than>},
    {"greater_equal", binary<greater_equal>},
    {"logical_and", binary<logical_and>},
    {"logical_or", binary<logical_or>},
    {"logical_xor", binary<logical_xor>},
    {"bitwise_and", binary<bitwise_and>},
    {"bitwise_or", binary<bitwise_or>},
    {"bitwise_xor", binary<bitwise_xor>},
    {"equal_all", binary<equal_all>},
    {"scale", scaled},
    {"cast", cast_to},
    {"clip", clipped},
    {"pow", power_of},
    {"increment", incremented},
    {"leaky_relu", leaky},
    {"elu", elu_of},
    {"celu", celu_of},
    {"selu", selu_of},
    {"hardsigmoid", hard_sigmoid},
    {"hardswish", hard_swish},
    {"swish", swish_of},
    {"gelu", gelu_of},
    {"softplus", softplus_of},
    {"hardtanh", hard_tanh},
    {"hardshrink", hard_shrink},
    {"softshrink", soft_shrink},
    {"thresholded_relu", thresholded},
    {"stanh", stanh_of},
    {"logit", logit_of},
    {"round", rounded},
    {"prelu", parametric},
    {"add_n", sum_of},
    {"assign", same},
    {"assign_out", same},
    {"share_data", same},
    {"memcpy_d2h", same},
    {"memcpy_h2d", same},
    {"dropout", without_dropout},
    {"swiglu", gated},
};

}  // namespace

std::span<const Converter> elementwise_converters() { return kConverters; }

}  // namespace oar::paddle
