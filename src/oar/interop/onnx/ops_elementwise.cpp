// Operators that compute element by element.
#include "oar/interop/onnx/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

template <Tensor (*op)(const Tensor&)>
Values unary(const Call& c) {
  return {op(c.tensor(0))};
}

template <Tensor (*op)(const Tensor&, const Tensor&)>
Values binary(const Call& c) {
  return {op(c.tensor(0), c.tensor(1))};
}

// Wide unsigned integers are for storage; int64 computes with them as long as they have no more than 63 bits.
template <Tensor (*op)(const Tensor&, const Tensor&)>
Tensor widened(const Tensor& x, const Tensor& y) {
  const DType dtype = x.dtype();
  if (dtype != DType::UInt32 && dtype != DType::UInt64) return op(x, y);
  const Tensor made = op(cast(x, DType::Int64), cast(y, DType::Int64));
  return made.dtype() == DType::Bool ? made : cast(made, dtype);
}

// Sum, Mean, Max, Min of any number of tensors.
template <Tensor (*op)(const Tensor&, const Tensor&)>
Tensor folded(const Call& c) {
  Tensor all = c.tensor(0);
  for (size_t i = 1; i < c.count(); ++i) all = op(all, c.tensor(i));
  return all;
}
template <Tensor (*op)(const Tensor&, const Tensor&)>
Values variadic(const Call& c) {
  return {folded<op>(c)};
}
Values mean_of(const Call& c) { return {folded<add>(c) * (1.0 / static_cast<double>(c.count()))}; }

// Integers that may be sizes: the result is known as expressions, too.
template <Tensor (*op)(const Tensor&, const Tensor&), Dim (*on_sizes)(Dim, Dim)>
Values arithmetic(const Call& c) {
  const Tensor result = op(c.tensor(0), c.tensor(1));
  if (!is_integral(result.dtype())) return {result};
  const auto a = c.maybe_sizes(0), b = c.maybe_sizes(1);
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) return {result};
  std::vector<Dim> sizes;
  for (size_t i = 0; i < std::max(a->size(), b->size()); ++i)
    sizes.push_back(on_sizes((*a)[a->size() == 1 ? 0 : i], (*b)[b->size() == 1 ? 0 : i]));
  return {Item(result, std::move(sizes))};
}

// Integers are divided towards zero.
Tensor quotient(const Tensor& x, const Tensor& y) {
  if (!is_integral(x.dtype())) return divide(x, y);
  const Tensor down = floor_divide(x, y), rest = x - down * y;
  const Tensor zero = zeros_like(x);
  const Tensor up =
      logical_and(not_equal(rest, zero), logical_xor(less_than(x, zero), less_than(y, zero)));
  return down + cast(up, x.dtype());
}

Values modulo(const Call& c) {
  const Tensor &x = c.tensor(0), &y = c.tensor(1);
  if (!c.flag("fmod")) return {widened<remainder>(x, y)};
  const Tensor whole = is_integral(x.dtype()) ? quotient(x, y) : trunc(x / y);
  return {x - whole * y};
}

Values power(const Call& c) {
  const Tensor &x = c.tensor(0), &y = c.tensor(1);
  if (x.dtype() == y.dtype()) return {pow(x, y)};
  const DType wide = is_integral(x.dtype()) ? DType::Float64 : x.dtype();
  return {cast(pow(cast(x, wide), cast(y, wide)), x.dtype())};
}

Values cast_to(const Call& c) {
  const DType dtype = dtype_of(c.integer("to", 1));
  const Tensor result = cast(c.tensor(0), dtype);
  if (const auto sizes = is_integral(dtype) ? c.maybe_sizes(0) : std::nullopt)
    return {Item(result, *sizes)};
  return {result};
}

Values bit_cast(const Call& c) {
  const bool narrows = c.item(0).number == kUInt16;  // held as int32
  const Tensor x = narrows ? cast(c.tensor(0), DType::Int16) : c.tensor(0);
  return {bitcast(x, dtype_of(c.integer("to", 1)))};
}
Values cast_like(const Call& c) {
  if (c.item(1).number != 0 && c.item(1).number != kUInt16)
    dtype_of(c.item(1).number);  // an error: results are not rounded to what Oar does not have
  return {cast(c.tensor(0), c.tensor(1).dtype())};
}
Values bits_turned(const Call& c) {
  if (c.item(0).number != kUInt16) return {bitwise_not(c.tensor(0))};
  return {full({}, 65535, DType::Int32) - c.tensor(0)};
}

// A bound that is a number at import.
std::optional<double> bound_of(const Call& c, size_t i) {
  if (!c.has(i) || !c.item(i).numbers || c.item(i).numbers->size() != 1) return std::nullopt;
  return c.item(i).numbers->at(0);
}
Values clip_to(const Call& c) {
  Tensor x = c.tensor(0);
  const std::optional<double> low = bound_of(c, 1), high = bound_of(c, 2);
  if (is_floating(x.dtype()) && low && high && *low <= *high)
    return {clip(x, Scalar(*low), Scalar(*high))};
  if (c.has(1)) x = maximum(x, c.tensor(1));
  if (c.has(2)) x = minimum(x, c.tensor(2));
  if (c.opset >= 11) return {x};
  if (c.given("min")) x = clip(x, Scalar(c.number("min", 0)), std::nullopt);
  if (c.given("max")) x = clip(x, std::nullopt, Scalar(c.number("max", 0)));
  return {x};
}

Values leaky(const Call& c) { return {leaky_relu(c.tensor(0), c.number("alpha", 0.01))}; }
Values elu_of(const Call& c) { return {elu(c.tensor(0), c.number("alpha", 1))}; }
Values celu_of(const Call& c) { return {celu(c.tensor(0), c.number("alpha", 1))}; }
Values selu_of(const Call& c) {
  return {selu(c.tensor(0), c.number("gamma", 1.0507009873554805),
               c.number("alpha", 1.6732632423543772))};
}
Values hard_sigmoid(const Call& c) {
  return {hardsigmoid(c.tensor(0), c.number("alpha", 0.2), c.number("beta", 0.5))};
}
Values thresholded(const Call& c) { return {thresholded_relu(c.tensor(0), c.number("alpha", 1))}; }
Values gelu_of(const Call& c) {
  return {gelu(c.tensor(0), c.text("approximate", "none") == "tanh")};
}
Values softplus_of(const Call& c) { return {logaddexp(c.tensor(0), zeros_like(c.tensor(0)))}; }
Values shrink(const Call& c) {
  const Tensor& x = c.tensor(0);
  const double limit = c.number("lambd", 0.5), bias = c.number("bias", 0);
  const Tensor zero = zeros_like(x), edge = full_like(x, limit);
  return {where(less_than(x, neg(edge)), x + bias, where(greater_than(x, edge), x - bias, zero))};
}
Values swish_of(const Call& c) {
  const Tensor& x = c.tensor(0);
  return {x * sigmoid(x * c.number("alpha", 1))};
}
// A slope that does not broadcast from the last axis is one per channel, as old exporters wrote it.
Values sloped_relu(const Call& c) {
  const Tensor& x = c.tensor(0);
  Tensor slope = c.tensor(1);
  if (slope.rank() == 1 && x.rank() > 2 && slope.dim(0) != Dim(1) && slope.dim(0) != x.dim(-1)) {
    std::vector<Dim> shape(static_cast<size_t>(x.rank()), 1);
    shape[1] = slope.dim(0);
    slope = reshape(slope, shape);
  }
  return {where(less_than(x, zeros_like(x)), x * slope, x)};
}

Values round_even(const Call& c) { return {oar::round(c.tensor(0))}; }
Values is_infinite(const Call& c) {
  const bool up = c.flag("detect_positive", true), down = c.flag("detect_negative", true);
  const Tensor& x = c.tensor(0);
  if (up && down) return {isinf(x)};
  if (up) return {isposinf(x)};
  return {down ? isneginf(x) : zeros_like(x, DType::Bool)};
}
Tensor to_left(const Tensor& x, const Tensor& y) { return bitwise_left_shift(x, y, false); }
Tensor to_right(const Tensor& x, const Tensor& y) { return bitwise_right_shift(x, y, false); }
Values shift(const Call& c) {
  const bool left = c.text("direction", "") == "LEFT";
  return {(left ? widened<to_left> : widened<to_right>)(c.tensor(0), c.tensor(1))};
}
Values choose(const Call& c) { return {where(c.tensor(0), c.tensor(1), c.tensor(2))}; }

Dim plus(Dim a, Dim b) { return a + b; }
Dim minus(Dim a, Dim b) { return a - b; }
Dim times(Dim a, Dim b) { return a * b; }
Dim over(Dim a, Dim b) { return floor_div(a, b); }  // sizes are not negative

// 1 above the threshold, else 0.
Values binarised(const Call& c) {
  const Tensor& x = c.tensor(0);
  const Tensor threshold = full({}, c.number("threshold", 0), x.dtype());
  return {cast(greater_than(x, threshold), x.dtype())};
}

constexpr Converter kConverters[] = {
    {"Binarizer", binarised, "ai.onnx.ml"},
    {"Abs", unary<abs>},
    {"Acos", unary<acos>},
    {"Acosh", unary<acosh>},
    {"Asin", unary<asin>},
    {"Asinh", unary<asinh>},
    {"Atan", unary<atan>},
    {"Atanh", unary<atanh>},
    {"Ceil", unary<ceil>},
    {"Cos", unary<cos>},
    {"Cosh", unary<cosh>},
    {"Erf", unary<erf>},
    {"Exp", unary<exp>},
    {"Floor", unary<floor>},
    {"IsNaN", unary<isnan>},
    {"Log", unary<log>},
    {"Neg", unary<neg>},
    {"Not", unary<logical_not>},
    {"BitwiseNot", bits_turned},
    {"Reciprocal", unary<reciprocal>},
    {"Relu", unary<relu>},
    {"Sigmoid", unary<sigmoid>},
    {"Sign", unary<sign>},
    {"Sin", unary<sin>},
    {"Sinh", unary<sinh>},
    {"Softsign", unary<softsign>},
    {"Sqrt", unary<sqrt>},
    {"Tan", unary<tan>},
    {"Tanh", unary<tanh>},
    {"HardSwish", unary<hardswish>},
    {"Mish", unary<mish>},
    {"Add", arithmetic<widened<add>, plus>},
    {"Sub", arithmetic<widened<subtract>, minus>},
    {"Mul", arithmetic<widened<multiply>, times>},
    {"Div", arithmetic<widened<quotient>, over>},
    {"And", binary<logical_and>},
    {"Or", binary<logical_or>},
    {"Xor", binary<logical_xor>},
    {"BitwiseAnd", binary<widened<bitwise_and>>},
    {"BitwiseOr", binary<widened<bitwise_or>>},
    {"BitwiseXor", binary<widened<bitwise_xor>>},
    {"Equal", binary<widened<equal>>},
    {"Less", binary<widened<less_than>>},
    {"LessOrEqual", binary<widened<less_equal>>},
    {"Greater", binary<widened<greater_than>>},
    {"GreaterOrEqual", binary<widened<greater_equal>>},
    {"Sum", variadic<add>},
    {"Max", variadic<widened<maximum>>},
    {"Min", variadic<widened<minimum>>},
    {"Mean", mean_of},
    {"Mod", modulo},
    {"Pow", power},
    {"Cast", cast_to},
    {"CastLike", cast_like},
    {"BitCast", bit_cast},
    {"Clip", clip_to},
    {"LeakyRelu", leaky},
    {"Elu", elu_of},
    {"Celu", celu_of},
    {"Selu", selu_of},
    {"HardSigmoid", hard_sigmoid},
    {"ThresholdedRelu", thresholded},
    {"Gelu", gelu_of},
    {"Gelu", gelu_of, "com.microsoft"},
    {"Softplus", softplus_of},
    {"Shrink", shrink},
    {"Swish", swish_of},
    {"PRelu", sloped_relu},
    {"Round", round_even},
    {"IsInf", is_infinite},
    {"BitShift", shift},
    {"Where", choose},
};

}  // namespace

std::span<const Converter> elementwise_converters() { return kConverters; }

}  // namespace oar::onnx
