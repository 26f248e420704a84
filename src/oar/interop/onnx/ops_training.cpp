// Updates of optimisers.
#include "oar/interop/onnx/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::onnx {
namespace {

// Inputs: the rate, the number of updates, then the parameters, their gradients and their states.
struct Update {
  Tensor rate, step;
  size_t count;
};
Update update_of(const Call& c, size_t states) {
  if (c.count() < 2 || (c.count() - 2) % (2 + states) != 0) c.refuse("its inputs do not fit");
  return {cast(c.tensor(0), DType::Float32), c.tensor(1), (c.count() - 2) / (2 + states)};
}
Tensor power(double base, const Tensor& exponent) {
  return pow(full({}, base, DType::Float32), cast(exponent, DType::Float32));
}

Values adam(const Call& c) {
  const Update u = update_of(c, 2);
  const double alpha = c.number("alpha", 0.9), beta = c.number("beta", 0.999);
  const Tensor zero = zeros({}, DType::Float32);
  const Tensor fixed = u.rate * sqrt(1.0 - power(beta, u.step)) / (1.0 - power(alpha, u.step));
  const Tensor rate = where(greater_than(cast(u.step, DType::Float32), zero), fixed, u.rate);
  std::vector<Tensor> x, v, h;
  for (size_t i = 0; i < u.count; ++i) {
    const Tensor& param = c.tensor(2 + i);
    const Tensor grad = c.tensor(2 + u.count + i) + param * c.number("norm_coefficient", 0);
    v.push_back(c.tensor(2 + 2 * u.count + i) * alpha + grad * (1 - alpha));
    h.push_back(c.tensor(2 + 3 * u.count + i) * beta + grad * grad * (1 - beta));
    const Tensor moved = param - rate * v.back() / (sqrt(h.back()) + c.number("epsilon", 1e-6));
    x.push_back(moved * (1 - c.number("norm_coefficient_post", 0)));
  }
  Values all(x.begin(), x.end());
  all.insert(all.end(), v.begin(), v.end());
  all.insert(all.end(), h.begin(), h.end());
  return all;
}
Values adagrad(const Call& c) {
  const Update u = update_of(c, 1);
  const Tensor rate = u.rate / (cast(u.step, DType::Float32) * c.number("decay_factor", 0) + 1.0);
  std::vector<Tensor> x, h;
  for (size_t i = 0; i < u.count; ++i) {
    const Tensor& param = c.tensor(2 + i);
    const Tensor grad = c.tensor(2 + u.count + i) + param * c.number("norm_coefficient", 0);
    h.push_back(c.tensor(2 + 2 * u.count + i) + grad * grad);
    x.push_back(param - rate * grad / (sqrt(h.back()) + c.number("epsilon", 1e-6)));
  }
  Values all(x.begin(), x.end());
  all.insert(all.end(), h.begin(), h.end());
  return all;
}
Values momentum(const Call& c) {
  const Update u = update_of(c, 1);
  const double alpha = c.number("alpha", 0);
  const bool nesterov = c.text("mode", "standard") == "nesterov";
  const Tensor first = full({}, c.number("beta", 1), DType::Float32), later = ones_like(first);
  const Tensor beta =
      where(greater_than(cast(u.step, DType::Float32), zeros({}, DType::Float32)), first, later);
  std::vector<Tensor> x, v;
  for (size_t i = 0; i < u.count; ++i) {
    const Tensor& param = c.tensor(2 + i);
    const Tensor grad = c.tensor(2 + u.count + i) + param * c.number("norm_coefficient", 0);
    v.push_back(c.tensor(2 + 2 * u.count + i) * alpha + grad * beta);
    x.push_back(param - u.rate * (nesterov ? grad + v.back() * alpha : v.back()));
  }
  Values all(x.begin(), x.end());
  all.insert(all.end(), v.begin(), v.end());
  return all;
}

constexpr std::string_view kDomain = "ai.onnx.preview.training";
constexpr Converter kConverters[] = {
    {"Adam", adam, kDomain}, {"Adagrad", adagrad, kDomain}, {"Momentum", momentum, kDomain}};

}  // namespace

std::span<const Converter> training_converters() { return kConverters; }

}  // namespace oar::onnx
