// Functions of elements.
#include <cmath>

#include "oar/interop/caffe/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::caffe {
namespace {

Tensors rectified(const Call& c) {
  const double slope = c.params("relu_param").number("negative_slope", 0);
  return {slope == 0 ? relu(c.bottom(0)) : leaky_relu(c.bottom(0), slope)};
}
Tensors rectified6(const Call& c) { return {relu6(c.bottom(0))}; }
Tensors prelu_of(const Call& c) { return {prelu(c.bottom(0), reshape(c.blob(0), {-1}))}; }
Tensors elu_of(const Call& c) {
  return {elu(c.bottom(0), c.params("elu_param").number("alpha", 1))};
}
Tensors sigmoid_of(const Call& c) { return {sigmoid(c.bottom(0))}; }
Tensors tanh_of(const Call& c) { return {tanh(c.bottom(0))}; }
Tensors abs_of(const Call& c) { return {abs(c.bottom(0))}; }
Tensors softplus_of(const Call& c) { return {softplus(c.bottom(0))}; }
Tensors swish_of(const Call& c) {
  const double beta = c.params("swish_param").number("beta", 1);
  return {c.bottom(0) * sigmoid(c.bottom(0) * beta)};
}
Tensors same(const Call& c) { return Tensors(c.layer.tops.size(), c.bottom(0)); }
Tensors nothing(const Call&) { return {}; }

Tensors power(const Call& c) {
  const TextMessage& p = c.params("power_param");
  const double exponent = p.number("power", 1);
  const Tensor base = scale(c.bottom(0), p.number("scale", 1), p.number("shift", 0));
  return {exponent == 1 ? base : pow(base, Tensor::scalar(exponent, DType::Float32))};
}

// base^(shift + scale * x); a base of -1 stands for e.
Tensors exponential(const Call& c) {
  const TextMessage& p = c.params("exp_param");
  const double base = p.number("base", -1), log_base = base == -1 ? 1 : std::log(base);
  return {exp(scale(c.bottom(0), p.number("scale", 1), p.number("shift", 0)) * log_base)};
}
Tensors logarithm(const Call& c) {
  const TextMessage& p = c.params("log_param");
  const double base = p.number("base", -1), log_base = base == -1 ? 1 : std::log(base);
  return {log(scale(c.bottom(0), p.number("scale", 1), p.number("shift", 0))) * (1 / log_base)};
}
Tensors threshold_of(const Call& c) {
  const double at = c.params("threshold_param").number("threshold", 0);
  return {cast(greater_than(c.bottom(0), Tensor::scalar(at, DType::Float32)), DType::Float32)};
}

Tensors eltwise(const Call& c) {
  const TextMessage& p = c.params("eltwise_param");
  const std::string kind = p.text("operation", "SUM");
  const std::vector<double> factors = p.numbers("coeff");
  const bool sums = kind == "SUM" || kind == "1";
  if (!factors.empty() && (!sums || factors.size() != c.count()))
    c.refuse("its coeff do not fit the bottoms");
  const auto term = [&](size_t i) {
    return factors.empty() || factors[i] == 1 ? c.bottom(i) : c.bottom(i) * factors[i];
  };
  Tensor made = term(0);
  for (size_t i = 1; i < c.count(); ++i) {
    if (c.bottom(i).shape() != c.bottom(0).shape()) c.refuse("its bottoms differ in shape");
    if (sums)
      made = made + term(i);
    else if (kind == "PROD" || kind == "0")
      made = made * c.bottom(i);
    else if (kind == "MAX" || kind == "2")
      made = maximum(made, c.bottom(i));
    else
      c.refuse(format("its operation is '{}'", kind));
  }
  return {made};
}

Tensors softmax_of(const Call& c) {
  return {softmax(c.bottom(0), c.axis(c.params("softmax_param").integer("axis", 1)))};
}

constexpr Converter kConverters[] = {
    {"ReLU", rectified},     {"ReLU6", rectified6},
    {"PReLU", prelu_of},     {"ELU", elu_of},
    {"Sigmoid", sigmoid_of}, {"TanH", tanh_of},
    {"AbsVal", abs_of},      {"BNLL", softplus_of},
    {"Swish", swish_of},     {"Dropout", same},
    {"Split", same},         {"Silence", nothing},
    {"Power", power},        {"Exp", exponential},
    {"Log", logarithm},      {"Threshold", threshold_of},
    {"Eltwise", eltwise},    {"Softmax", softmax_of},
};

}  // namespace

std::span<const Converter> elementwise_converters() { return kConverters; }

}  // namespace oar::caffe
