// Functions of axes.
#include "oar/interop/tensorflow/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::tensorflow {
namespace {

using List = std::vector<int64_t>;

struct Along {
  List axes;
  bool keeps;
};
Along along(const Call& c) { return {c.axes(1), c.flag("keep_dims")}; }

// No axes at all: nothing is reduced.
template <class F>
Items reduced(const Call& c, F&& function) {
  const auto [axes, keeps] = along(c);
  if (axes.empty()) return {c.tensor(0)};
  return {function(c.tensor(0), IntArgs(axes), keeps)};
}

Items mean_of(const Call& c) {
  return reduced(c, [](const Tensor& x, const IntArgs& axes, bool keeps) {
    return is_integral(x.dtype()) ? cast(mean(cast(x, DType::Float64), axes, keeps), x.dtype())
                                  : mean(x, axes, keeps);
  });
}
Items sum_of(const Call& c) {
  return reduced(c, [](const Tensor& x, const IntArgs& axes, bool keeps) {
    return sum(x, axes, x.dtype(), keeps);
  });
}
Items product_of(const Call& c) {
  return reduced(c, [](const Tensor& x, const IntArgs& axes, bool keeps) {
    return prod(x, axes, keeps, x.dtype());
  });
}
Items max_of(const Call& c) {
  return reduced(
      c, [](const Tensor& x, const IntArgs& axes, bool keeps) { return max(x, axes, keeps); });
}
Items min_of(const Call& c) {
  return reduced(
      c, [](const Tensor& x, const IntArgs& axes, bool keeps) { return min(x, axes, keeps); });
}
Items any_of(const Call& c) {
  return reduced(
      c, [](const Tensor& x, const IntArgs& axes, bool keeps) { return any(x, axes, keeps); });
}
Items all_of(const Call& c) {
  return reduced(
      c, [](const Tensor& x, const IntArgs& axes, bool keeps) { return all(x, axes, keeps); });
}
Items norm_of(const Call& c) {
  return reduced(c, [](const Tensor& x, const IntArgs& axes, bool keeps) {
    return sqrt(sum(square(x), axes, x.dtype(), keeps));
  });
}

Items arg_max(const Call& c) {
  return {argmax(c.tensor(0), c.axis(c.has(1) ? c.integer(1) : 0), false,
                 c.dtype("output_type", DType::Int64))};
}
Items arg_min(const Call& c) {
  return {argmin(c.tensor(0), c.axis(c.has(1) ? c.integer(1) : 0), false,
                 c.dtype("output_type", DType::Int64))};
}

Items softmax_of(const Call& c) { return {softmax(c.tensor(0), -1)}; }
Items log_softmax_of(const Call& c) { return {log_softmax(c.tensor(0), -1)}; }

// Each element before this one, in this or the other direction.
Items cumulative(const Call& c, Tensor (*function)(const Tensor&, int64_t), int64_t first) {
  Tensor x = c.tensor(0);
  const int64_t axis = c.axis(c.integer(1)), size = x.dim(axis).value();
  const bool reverse = c.flag("reverse");
  if (reverse) x = flip(x, {axis});
  x = function(x, axis);
  if (c.flag("exclusive") && size > 0) {
    List paddings(2 * static_cast<size_t>(x.rank()), 0);
    paddings[2 * static_cast<size_t>(axis)] = 1;
    x = pad_constant(slice(x, {axis}, {0}, {size - 1}), paddings, Scalar(first));
  }
  return {reverse ? flip(x, {axis}) : x};
}
Tensor sums(const Tensor& x, int64_t axis) { return cumsum(x, axis, x.dtype()); }
Tensor products(const Tensor& x, int64_t axis) { return cumprod(x, axis, x.dtype()); }
Items cumulative_sum(const Call& c) { return cumulative(c, sums, 0); }
Items cumulative_product(const Call& c) { return cumulative(c, products, 1); }

constexpr Converter kConverters[] = {
    {"Mean", mean_of},
    {"Sum", sum_of},
    {"Prod", product_of},
    {"Max", max_of},
    {"Min", min_of},
    {"Any", any_of},
    {"All", all_of},
    {"EuclideanNorm", norm_of},
    {"ArgMax", arg_max},
    {"ArgMin", arg_min},
    {"Softmax", softmax_of},
    {"LogSoftmax", log_softmax_of},
    {"Cumsum", cumulative_sum},
    {"Cumprod", cumulative_product},
};

}  // namespace

std::span<const Converter> reduction_converters() { return kConverters; }

}  // namespace oar::tensorflow
