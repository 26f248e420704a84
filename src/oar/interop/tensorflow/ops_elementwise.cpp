// Functions of elements, comparisons.
#include "oar/interop/tensorflow/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::tensorflow {
namespace {

template <Tensor (*function)(const Tensor&)>
Items unary(const Call& c) {
  return {function(c.tensor(0))};
}
template <Tensor (*function)(const Tensor&, const Tensor&)>
Items binary(const Call& c) {
  return {function(c.tensor(0), c.tensor(1))};
}

bool counts(const Tensor& x) { return is_integral(x.dtype()); }

// Integers are divided towards zero.
Tensor quotient(const Tensor& x, const Tensor& y) {
  if (!counts(x)) return x / y;
  return cast(cast(x, DType::Float64) / cast(y, DType::Float64), x.dtype());
}
Tensor rest_towards_zero(const Tensor& x, const Tensor& y) {
  return x - (counts(x) ? quotient(x, y) : trunc(x / y)) * y;
}
Tensor difference_squared(const Tensor& x, const Tensor& y) { return square(x - y); }
// Zero where the divisor is.
Tensor safe_quotient(const Tensor& x, const Tensor& y) {
  const Tensor none = equal(y, zeros_like(y));
  return where(none, zeros_like(x + y), x / where(none, ones_like(y), y));
}
Tensor safe_product(const Tensor& x, const Tensor& y) {
  return where(equal(y, zeros_like(y)), zeros_like(x + y), x * y);
}
// x log y, and x / y, zero where x is.
Tensor product_with_log(const Tensor& x, const Tensor& y) {
  return where(equal(x, zeros_like(x)), zeros_like(x + y), x * log(y));
}
Tensor product_with_log1p(const Tensor& x, const Tensor& y) {
  return where(equal(x, zeros_like(x)), zeros_like(x + y), x * log1p(y));
}
Tensor quotient_or_zero(const Tensor& x, const Tensor& y) {
  return where(equal(x, zeros_like(x)), zeros_like(x + y), x / y);
}

Tensor nearest_even(const Tensor& x) { return counts(x) ? x : round(x); }
Tensor zeros_of(const Tensor& x) { return zeros_like(x); }
Tensor ones_of(const Tensor& x) { return ones_like(x); }
Tensor elu_of(const Tensor& x) { return elu(x); }
Tensor selu_of(const Tensor& x) { return selu(x); }
Tensor softplus_of(const Tensor& x) { return softplus(x); }
Tensor erfc_of(const Tensor& x) { return ones_like(x) - erf(x); }

Items leaky(const Call& c) { return {leaky_relu(c.tensor(0), c.number("alpha", 0.2))}; }
Items prelu_of(const Call& c) {
  const Tensor& x = c.tensor(0);
  return {relu(x) - relu(-x) * c.tensor(1)};
}
Items clipped(const Call& c) { return {minimum(maximum(c.tensor(0), c.tensor(1)), c.tensor(2))}; }
Items sum_of_all(const Call& c) {
  const std::vector<Tensor> all = c.tensors();
  Tensor total = all[0];
  for (size_t i = 1; i < all.size(); ++i) total = total + all[i];
  return {total};
}

Items cast_of(const Call& c) {
  const DType to = c.dtype("DstT");
  const Tensor& x = c.tensor(0);
  return {x.dtype() == to ? x : cast(x, to)};
}

Items select(const Call& c) {
  const Tensor &condition = c.tensor(0), &x = c.tensor(1);
  if (condition.rank() != 1 || x.rank() <= 1) return {where(condition, x, c.tensor(2))};
  std::vector<Dim> rows(static_cast<size_t>(x.rank()), 1);  // one condition for each row
  rows[0] = condition.dim(0);
  return {where(reshape(condition, rows), x, c.tensor(2))};
}
Items select_broadcast(const Call& c) { return {where(c.tensor(0), c.tensor(1), c.tensor(2))}; }

Items by_chance(const Call& c) { c.refuse("its numbers are random"); }

constexpr Converter kConverters[] = {
    {"Add", binary<add>},
    {"AddV2", binary<add>},
    {"Sub", binary<subtract>},
    {"Mul", binary<multiply>},
    {"Div", binary<quotient>},
    {"TruncateDiv", binary<quotient>},
    {"RealDiv", binary<quotient>},
    {"DivNoNan", binary<safe_quotient>},
    {"MulNoNan", binary<safe_product>},
    {"Xdivy", binary<quotient_or_zero>},
    {"Xlogy", binary<product_with_log>},
    {"Xlog1py", binary<product_with_log1p>},
    {"FloorDiv", binary<floor_divide>},
    {"FloorMod", binary<floor_mod>},
    {"Mod", binary<rest_towards_zero>},
    {"TruncateMod", binary<rest_towards_zero>},
    {"Pow", binary<pow>},
    {"Maximum", binary<maximum>},
    {"Minimum", binary<minimum>},
    {"SquaredDifference", binary<difference_squared>},
    {"Atan2", binary<atan2>},
    {"AddN", sum_of_all},
    {"AccumulateNV2", sum_of_all},
    {"Less", binary<less_than>},
    {"LessEqual", binary<less_equal>},
    {"Greater", binary<greater_than>},
    {"GreaterEqual", binary<greater_equal>},
    {"Equal", binary<equal>},
    {"NotEqual", binary<not_equal>},
    {"LogicalAnd", binary<logical_and>},
    {"LogicalOr", binary<logical_or>},
    {"LogicalNot", unary<logical_not>},
    {"Abs", unary<abs>},
    {"Neg", unary<neg>},
    {"Sign", unary<sign>},
    {"Square", unary<square>},
    {"Sqrt", unary<sqrt>},
    {"Rsqrt", unary<rsqrt>},
    {"Reciprocal", unary<reciprocal>},
    {"Inv", unary<reciprocal>},
    {"Exp", unary<exp>},
    {"Expm1", unary<expm1>},
    {"Log", unary<log>},
    {"Log1p", unary<log1p>},
    {"Floor", unary<floor>},
    {"Ceil", unary<ceil>},
    {"Round", unary<nearest_even>},
    {"Rint", unary<nearest_even>},
    {"Sin", unary<sin>},
    {"Cos", unary<cos>},
    {"Tan", unary<tan>},
    {"Asin", unary<asin>},
    {"Acos", unary<acos>},
    {"Atan", unary<atan>},
    {"Sinh", unary<sinh>},
    {"Cosh", unary<cosh>},
    {"Asinh", unary<asinh>},
    {"Acosh", unary<acosh>},
    {"Atanh", unary<atanh>},
    {"Erf", unary<erf>},
    {"Erfc", unary<erfc_of>},
    {"Lgamma", unary<lgamma>},
    {"Digamma", unary<digamma>},
    {"IsNan", unary<isnan>},
    {"IsInf", unary<isinf>},
    {"IsFinite", unary<isfinite>},
    {"Sigmoid", unary<sigmoid>},
    {"Tanh", unary<tanh>},
    {"Relu", unary<relu>},
    {"Relu6", unary<relu6>},
    {"Elu", unary<elu_of>},
    {"Selu", unary<selu_of>},
    {"Softplus", unary<softplus_of>},
    {"Softsign", unary<softsign>},
    {"LeakyRelu", leaky},
    {"Prelu", prelu_of},
    {"ClipByValue", clipped},
    {"ZerosLike", unary<zeros_of>},
    {"OnesLike", unary<ones_of>},
    {"Cast", cast_of},
    {"Select", select},
    {"SelectV2", select_broadcast},
    {"RandomUniform", by_chance},
    {"RandomUniformInt", by_chance},
    {"RandomStandardNormal", by_chance},
    {"TruncatedNormal", by_chance},
    {"Multinomial", by_chance},
    {"StatelessRandomUniformV2", by_chance},
};

}  // namespace

std::span<const Converter> elementwise_converters() { return kConverters; }

}  // namespace oar::tensorflow
