// Functions of elements, comparisons, reductions.
#include "oar/interop/tflite/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::tflite {
namespace {

using List = std::vector<int64_t>;

template <Tensor (*function)(const Tensor&)>
Tensors unary(const Call& c) {
  return {function(c.tensor(0))};
}
template <Tensor (*function)(const Tensor&, const Tensor&)>
Tensors binary(const Call& c) {
  return {function(c.tensor(0), c.tensor(1))};
}
// With a function at the end.
template <Tensor (*function)(const Tensor&, const Tensor&)>
Tensors activated_binary(const Call& c) {
  return {c.activated(function(c.tensor(0), c.tensor(1)), c.options().number<int8_t>(0, 0))};
}

Tensor quotient(const Tensor& x, const Tensor& y) {
  if (!is_integral(x.dtype())) return x / y;
  // Integers are divided towards zero.
  const Tensor wide = cast(x, DType::Float64) / cast(y, DType::Float64);
  return cast(wide, x.dtype());
}
Tensor difference_squared(const Tensor& x, const Tensor& y) { return square(x - y); }
Tensor nearest_even(const Tensor& x) { return round(x); }
Tensor same(const Tensor& x) { return x; }
Tensor zeros_of(const Tensor& x) { return zeros_like(x); }
Tensor unit(const Tensor& x) { return clip(x, Scalar(0.0), Scalar(1.0)); }
Tensor clipped(const Tensor& x) { return hardtanh(x); }
Tensor elu_of(const Tensor& x) { return elu(x); }

Tensors leaky(const Call& c) {
  return {leaky_relu(c.tensor(0), static_cast<double>(c.options().number<float>(0, 0)))};
}
Tensors prelu_of(const Call& c) {
  const Tensor& x = c.tensor(0);
  return {relu(x) - relu(-x) * c.tensor(1)};
}
Tensors gelu_of(const Call& c) { return {gelu(c.tensor(0), c.options().flag(0))}; }

Tensors softmax_of(const Call& c) {
  const double beta = static_cast<double>(c.options().number<float>(0, 0));
  return {softmax(beta == 1 ? c.tensor(0) : c.tensor(0) * beta, -1)};
}
Tensors log_softmax_of(const Call& c) { return {log_softmax(c.tensor(0), -1)}; }
Tensors l2_normalised(const Call& c) {
  const Tensor& x = c.tensor(0);
  const Tensor total = sum(square(x), IntArgs(List{-1}), std::nullopt, true);
  return {x / sqrt(maximum(total, Tensor::scalar(1e-12, DType::Float32)))};
}

// From half precision or quantised numbers; these are real numbers already.
Tensors dequantised(const Call& c) { return {cast(c.tensor(0), DType::Float32)}; }
Tensors cast_of(const Call& c) { return {cast(c.tensor(0), c.result(0).dtype())}; }
Tensors select(const Call& c) {
  const Tensor &condition = c.tensor(0), &x = c.tensor(1);
  if (condition.rank() != 1 || x.rank() <= 1) return {where(condition, x, c.tensor(2))};
  std::vector<Dim> rows(static_cast<size_t>(x.rank()), 1);  // one condition for each row
  rows[0] = condition.dim(0);
  return {where(reshape(condition, rows), x, c.tensor(2))};
}
Tensors select_broadcast(const Call& c) { return {where(c.tensor(0), c.tensor(1), c.tensor(2))}; }

// ---- reductions --------------------------------------------------------------------------------

List axes_of(const Call& c) {
  List axes;
  for (const int64_t given : c.integers(1)) axes.push_back(c.axis(given));
  return axes;
}
Tensors mean_of(const Call& c) {
  return {mean(c.tensor(0), IntArgs(axes_of(c)), c.options().flag(0))};
}
Tensors sum_of(const Call& c) {
  return {sum(c.tensor(0), IntArgs(axes_of(c)), c.tensor(0).dtype(), c.options().flag(0))};
}
Tensors max_of_axes(const Call& c) {
  return {max(c.tensor(0), IntArgs(axes_of(c)), c.options().flag(0))};
}
Tensors min_of_axes(const Call& c) {
  return {min(c.tensor(0), IntArgs(axes_of(c)), c.options().flag(0))};
}
Tensors product_of_axes(const Call& c) {
  return {prod(c.tensor(0), IntArgs(axes_of(c)), c.options().flag(0), c.tensor(0).dtype())};
}
Tensors any_of_axes(const Call& c) {
  return {any(c.tensor(0), IntArgs(axes_of(c)), c.options().flag(0))};
}
Tensors all_of_axes(const Call& c) {
  return {all(c.tensor(0), IntArgs(axes_of(c)), c.options().flag(0))};
}
Tensors arg_max(const Call& c) {
  return {argmax(c.tensor(0), c.axis(c.integer(1)), false, c.result(0).dtype())};
}
Tensors arg_min(const Call& c) {
  return {argmin(c.tensor(0), c.axis(c.integer(1)), false, c.result(0).dtype())};
}
Tensors cumulative(const Call& c) {
  if (c.options().flag(0) || c.options().flag(1)) c.refuse("it is exclusive or reversed");
  return {cumsum(c.tensor(0), c.axis(c.integer(1)))};
}
Tensors largest(const Call& c) {
  const auto [values, places] = topk(c.tensor(0), c.integer(1), -1);
  return {values, cast(places, c.result(1).dtype())};
}

constexpr Converter kConverters[] = {
    {0, activated_binary<add>},
    {18, activated_binary<multiply>},
    {41, activated_binary<subtract>},
    {42, activated_binary<quotient>},
    {55, binary<maximum>},
    {57, binary<minimum>},
    {78, binary<pow>},
    {90, binary<floor_divide>},
    {95, binary<floor_mod>},
    {99, binary<difference_squared>},
    {58, binary<less_than>},
    {61, binary<greater_than>},
    {62, binary<greater_equal>},
    {63, binary<less_equal>},
    {71, binary<equal>},
    {72, binary<not_equal>},
    {84, binary<logical_or>},
    {86, binary<logical_and>},
    {87, unary<logical_not>},
    {8, unary<floor>},
    {14, unary<sigmoid>},
    {19, unary<relu>},
    {20, unary<clipped>},
    {21, unary<relu6>},
    {28, unary<tanh>},
    {47, unary<exp>},
    {59, unary<neg>},
    {66, unary<sin>},
    {73, unary<log>},
    {75, unary<sqrt>},
    {76, unary<rsqrt>},
    {92, unary<square>},
    {93, unary<zeros_of>},
    {101, unary<abs>},
    {104, unary<ceil>},
    {108, unary<cos>},
    {111, unary<elu_of>},
    {114, unary<same>},
    {116, unary<nearest_even>},
    {117, unary<hardswish>},
    {152, unary<unit>},
    {158, unary<sign>},
    {98, leaky},
    {54, prelu_of},
    {150, gelu_of},
    {25, softmax_of},
    {50, log_softmax_of},
    {11, l2_normalised},
    {6, dequantised},
    {53, cast_of},
    {64, select},
    {123, select_broadcast},
    {40, mean_of},
    {74, sum_of},
    {82, max_of_axes},
    {89, min_of_axes},
    {81, product_of_axes},
    {91, any_of_axes},
    {140, all_of_axes},
    {56, arg_max},
    {79, arg_min},
    {128, cumulative},
    {48, largest},
};

}  // namespace

std::span<const Converter> elementwise_converters() { return kConverters; }

}  // namespace oar::tflite
