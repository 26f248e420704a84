// Activations and functions of single elements.
#include <cmath>

#include "oar/interop/pytorch/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::pytorch {
namespace {

// Integers become real numbers first, as in PyTorch.
Tensor as_real_number(const Tensor& x) {
  return is_integral(x.dtype()) || is_bool(x.dtype()) ? cast(x, DType::Float32) : x;
}

template <Tensor (*function)(const Tensor&)>
Value unary(const Call& c) {
  return function(c.tensor("self"));
}
template <Tensor (*function)(const Tensor&)>
Value real_unary(const Call& c) {
  return function(as_real_number(c.tensor("self")));
}

Tensor selu_of_one(const Tensor& x) { return selu(x); }
Tensor hardsigmoid_of_one(const Tensor& x) { return hardsigmoid(x, 1.0 / 6, 0.5); }
Tensor floor_of(const Tensor& x) { return is_integral(x.dtype()) ? x : floor(x); }
Tensor ceil_of(const Tensor& x) { return is_integral(x.dtype()) ? x : ceil(x); }
Tensor trunc_of(const Tensor& x) { return is_integral(x.dtype()) ? x : trunc(x); }
Tensor power_of_two(const Tensor& x) { return exp(x * std::log(2.0)); }
Tensor erfc_of(const Tensor& x) { return 1.0 - erf(x); }
Tensor inverted(const Tensor& x) { return is_bool(x.dtype()) ? logical_not(x) : bitwise_not(x); }
Tensor not_of(const Tensor& x) {
  return is_bool(x.dtype()) ? logical_not(x) : equal(x, zeros_like(x));
}

Value hardtanh_of(const Call& c) {
  return hardtanh(c.tensor("self"), c.number("min_val"), c.number("max_val"));
}
Value gelu_of(const Call& c) { return gelu(c.tensor("self"), c.text("approximate") == "tanh"); }
Value elu_of(const Call& c) {
  const double alpha = c.number("alpha"), scale = c.number("scale"),
               inner = c.number("input_scale");
  const Tensor& x = c.tensor("self");
  if (scale == 1 && inner == 1) return elu(x, alpha);
  const Tensor negative = expm1(minimum(x, zeros_like(x)) * inner) * (alpha * scale);
  return relu(x) * scale + negative;
}
Value celu_of(const Call& c) { return celu(c.tensor("self"), c.number("alpha")); }
Value leaky(const Call& c) { return leaky_relu(c.tensor("self"), c.number("negative_slope")); }
Value prelu_of(const Call& c) { return prelu(c.tensor("self"), c.tensor("weight")); }
Value rrelu_of(const Call& c) {
  if (c.flag("training")) c.refuse("it is in training mode; call eval() before the export");
  return leaky_relu(c.tensor("self"), (c.number("lower") + c.number("upper")) / 2);
}
Value softplus_of(const Call& c) {
  return softplus(c.tensor("self"), c.number("beta"), c.number("threshold"));
}
Value threshold_of(const Call& c) {
  const Tensor& x = c.tensor("self");
  return where(greater_than(x, full_like(x, Scalar(c.number("threshold")))), x,
               full_like(x, Scalar(c.number("value"))));
}
Value softmax_of(const Call& c) {
  const Tensor& x = c.tensor("self");
  return softmax(as_real_number(x), c.axis("dim", x.rank()), c.dtype("dtype"));
}
Value log_softmax_of(const Call& c) {
  const Tensor& x = c.tensor("self");
  return log_softmax(as_real_number(x), c.axis("dim", x.rank()), c.dtype("dtype"));
}
Value core_softmax(const Call& c) {
  const Tensor& x = c.tensor("self");
  return softmax(c.flag("half_to_float") ? cast(x, DType::Float32) : x, c.axis("dim", x.rank()));
}
Value core_log_softmax(const Call& c) {
  const Tensor& x = c.tensor("self");
  return log_softmax(c.flag("half_to_float") ? cast(x, DType::Float32) : x,
                     c.axis("dim", x.rank()));
}
Value glu_of(const Call& c) { return glu(c.tensor("self"), c.integer("dim")); }
Value hardshrink_of(const Call& c) { return hardshrink(c.tensor("self"), c.number("lambd")); }
Value softshrink_of(const Call& c) { return softshrink(c.tensor("self"), c.number("lambd")); }
Value round_of(const Call& c) {
  const Tensor& x = c.tensor("self");
  return is_integral(x.dtype()) ? x : round(x, c.integer("decimals"));
}
Value without_nan(const Call& c) {
  const auto number = [&](const char* name) -> std::optional<double> {
    if (!c.has(name)) return std::nullopt;
    return c.number(name);
  };
  return nan_to_num(c.tensor("self"), number("nan").value_or(0), number("posinf"),
                    number("neginf"));
}
Value logit_of(const Call& c) {
  if (!c.has("eps")) return logit(c.tensor("self"));
  return logit(c.tensor("self"), c.number("eps"));
}

constexpr Converter kConverters[] = {
    {"relu(self)", unary<relu>},
    {"relu6(self)", unary<relu6>},
    {"hardtanh(self, min_val=-1, max_val=1)", hardtanh_of},
    {"hardswish(self)", unary<hardswish>},
    {"hardsigmoid(self)", unary<hardsigmoid_of_one>},
    {"silu(self)", unary<silu>},
    {"mish(self)", unary<mish>},
    {"gelu(self, approximate='none')", gelu_of},
    {"elu(self, alpha=1, scale=1, input_scale=1)", elu_of},
    {"selu(self)", unary<selu_of_one>},
    {"celu(self, alpha=1)", celu_of},
    {"leaky_relu(self, negative_slope=0.01)", leaky},
    {"prelu(self, weight)", prelu_of},
    {"_prelu_kernel(self, weight)", prelu_of},
    {"rrelu(self, lower=0.125, upper=0.3333333333333333, training=False, generator=None)",
     rrelu_of},
    {"softplus(self, beta=1, threshold=20)", softplus_of},
    {"log_sigmoid(self)", unary<log_sigmoid>},
    {"sigmoid(self)", real_unary<sigmoid>},
    {"threshold(self, threshold, value)", threshold_of},
    {"softmax(self, dim, dtype=None)", softmax_of},
    {"log_softmax(self, dim, dtype=None)", log_softmax_of},
    {"_softmax(self, dim, half_to_float)", core_softmax},
    {"_safe_softmax(self, dim, dtype=None)", softmax_of},
    {"_log_softmax(self, dim, half_to_float)", core_log_softmax},
    {"glu(self, dim=-1)", glu_of},
    {"hardshrink(self, lambd=0.5)", hardshrink_of},
    {"softshrink(self, lambd=0.5)", softshrink_of},
    {"abs(self:Tensor)", unary<abs>},
    {"neg(self:Tensor)", unary<neg>},
    {"exp(self:Tensor)", real_unary<exp>},
    {"exp2(self)", real_unary<power_of_two>},
    {"expm1(self)", real_unary<expm1>},
    {"log(self:Tensor)", real_unary<log>},
    {"log2(self:Tensor)", real_unary<log2>},
    {"log10(self:Tensor)", real_unary<log10>},
    {"log1p(self)", real_unary<log1p>},
    {"sqrt(self:Tensor)", real_unary<sqrt>},
    {"rsqrt(self)", real_unary<rsqrt>},
    {"reciprocal(self)", real_unary<reciprocal>},
    {"sin(self:Tensor)", real_unary<sin>},
    {"cos(self:Tensor)", real_unary<cos>},
    {"tan(self)", real_unary<tan>},
    {"asin(self)", real_unary<asin>},
    {"acos(self)", real_unary<acos>},
    {"atan(self)", real_unary<atan>},
    {"sinh(self)", real_unary<sinh>},
    {"cosh(self)", real_unary<cosh>},
    {"tanh(self:Tensor)", real_unary<tanh>},
    {"asinh(self)", real_unary<asinh>},
    {"acosh(self)", real_unary<acosh>},
    {"atanh(self)", real_unary<atanh>},
    {"erf(self)", real_unary<erf>},
    {"erfc(self)", real_unary<erfc_of>},
    {"erfinv(self)", real_unary<erfinv>},
    {"lgamma(self)", real_unary<lgamma>},
    {"digamma(self)", real_unary<digamma>},
    {"sinc(self)", real_unary<sinc>},
    {"floor(self:Tensor)", unary<floor_of>},
    {"ceil(self:Tensor)", unary<ceil_of>},
    {"round(self:Tensor, decimals=0)", round_of},
    {"trunc(self)", unary<trunc_of>},
    {"fix(self)", unary<trunc_of>},
    {"frac(self)", unary<frac>},
    {"sign(self)", unary<sign>},
    {"sgn(self)", unary<sgn>},
    {"square(self)", unary<square>},
    {"logical_not(self)", unary<not_of>},
    {"bitwise_not(self)", unary<inverted>},
    {"isnan(self:Tensor)", unary<isnan>},
    {"isinf(self:Tensor)", unary<isinf>},
    {"isfinite(self)", unary<isfinite>},
    {"isposinf(self)", unary<isposinf>},
    {"isneginf(self)", unary<isneginf>},
    {"signbit(self)", unary<signbit>},
    {"nan_to_num(self, nan=None, posinf=None, neginf=None)", without_nan},
    {"logit(self, eps=None)", logit_of},
    {"real(self)", unary<real>},
    {"imag(self)", unary<imag>},
    {"conj(self)", unary<conj>},
    {"angle(self)", unary<angle>},
    {"deg2rad(self)", real_unary<deg2rad>},
    {"rad2deg(self)", real_unary<rad2deg>},
};

}  // namespace

std::span<const Converter> activation_converters() { return kConverters; }

}  // namespace oar::pytorch
