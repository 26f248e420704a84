// Normalisation of rows: everything from an axis on is normalised together.
#include "oar/ops/gen/layer_norm.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/layer_dtypes.h"
#include "oar/ops/families/norm_rules.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/statistics.h"

namespace oar {
namespace {

using Axes = SmallVector<int64_t, 6>;

Axes axes_between(int64_t begin, int64_t end) {
  Axes axes;
  for (int64_t i = begin; i < end; ++i) axes.push_back(i);
  return axes;
}

Shape part(Dims dims, size_t begin, size_t end) { return Shape(dims.subspan(begin, end - begin)); }

struct RowShape {
  RowShape(const Tensor& x, int64_t begin_axis) {
    user_check(begin_axis >= 0 && begin_axis < x.rank(), ErrorKind::InvalidArgument,
               "the axes from {} on are to be normalised, but x has shape {}.", begin_axis,
               to_string(x.dims()));
    const auto begin = static_cast<size_t>(begin_axis), end = static_cast<size_t>(x.rank());
    lead = part(x.dims(), 0, begin);
    row = part(x.dims(), begin, end);
    kept = lead;
    for (size_t i = begin; i < end; ++i) kept.push_back(1);
    row_axes = axes_between(begin_axis, x.rank());
    lead_axes = axes_between(0, begin_axis);
  }
  Shape lead, row, kept;  // kept: lead with ones for the axes of a row
  Axes row_axes, lead_axes;
};

const OpDef layer_norm_rows_op = {
    .schema =
        "layer_norm_rows(Tensor x, Tensor? weight, Tensor? bias, int begin_axis, float "
        "epsilon) -> (Tensor out, Tensor mean, Tensor inv_std)",
    .brief =
        "(x - mean) / sqrt(variance + epsilon) over the axes from begin_axis on, times "
        "weight plus bias; with the statistics that it used.",
    .infer = [](const args::layer_norm_rows& a) -> Metas {
      const RowShape shape(a.x, a.begin_axis);
      check_affine(a.x, a.weight, "weight", shape.row.numel(), "elements of a row");
      check_affine(a.x, a.bias, "bias", shape.row.numel(), "elements of a row");
      const TensorMeta statistic{wide_type(a.x.dtype()), shape.lead};
      return {infer::like(a.x), statistic, statistic};
    },
    .decompose = [](const args::layer_norm_rows& a) -> Made {
      const RowShape shape(a.x, a.begin_axis);
      const Tensor x = widened(a.x);
      const Tensor centre = mean(x, shape.row_axes, true);
      const Tensor inv = rsqrt(var(x, shape.row_axes, false, true) + a.epsilon);
      Tensor out = (x - centre) * inv;
      if (a.weight.defined()) out = out * reshape(a.weight, shape.row);
      if (a.bias.defined()) out = out + reshape(a.bias, shape.row);
      return {narrowed(out, a.x.dtype()), reshape(centre, shape.lead), reshape(inv, shape.lead)};
    },
    .vjp = [](const vjp::layer_norm_rows& v) -> Grads {
      const bool affine = (v.weight.defined() && v.needs(1)) || (v.bias.defined() && v.needs(2));
      const auto [gx, gw, gb] =
          layer_norm_rows_grad(v.x, v.weight, v.mean, v.inv_std, v.grad_out, v.grad_mean,
                               v.grad_inv_std, v.begin_axis, affine);
      if (!affine) return {gx, Tensor(), Tensor()};
      return {gx, fitted(gw, v.weight), fitted(gb, v.bias)};
    },
    .saves = "x weight bias:shape mean inv_std",
    .dtypes = "float",
    .promotes = "x",
    .amp = Amp::Full,
    .numpy =
        "(lambda ax, row: (lambda m, s: ((x - m) * s * (1 if weight is None else "
        "weight.reshape(row)) + (0 if bias is None else bias.reshape(row)), "
        "m.reshape(x.shape[:begin_axis]).astype('float64'), "
        "s.reshape(x.shape[:begin_axis]).astype('float64')))(np.mean(x, ax, keepdims=True), 1 / "
        "np.sqrt(np.var(x, ax, keepdims=True) + epsilon)))(tuple(range(begin_axis, x.ndim)), "
        "x.shape[begin_axis:])",
    .samples =
        [] {
          const auto none = std::nullopt;
          return Samples()
              .add(t({4, 6}), t({6}), t({6}), 1, 1e-5)
              .add(t({2, 3, 4}), t({3, 4}), none, 1, 1e-3)
              .add(t({2, 3, 4}), none, t({12}), 1, 1e-3)
              .add(t({3, 5}), none, none, 0, 1e-5)
              .add(t({0, 3}), t({3}), t({3}), 1, 1e-5);
        },
};

// Sums over axes; without axes the tensor is returned as it is.
Tensor sum_over(const Tensor& x, const Axes& axes) { return axes.empty() ? x : sum(x, axes); }

const OpDef layer_norm_rows_grad_op = {
    .schema =
        "layer_norm_rows_grad(Tensor x, Tensor? weight, Tensor mean, Tensor inv_std, "
        "Tensor grad, Tensor grad_mean, Tensor grad_inv_std, int begin_axis, bool affine = True) "
        "-> (Tensor grad_x, Tensor grad_weight, Tensor grad_bias)",
    .brief = "The derivative of layer_norm_rows. Without `affine` the last two results are empty.",
    .infer = [](const args::layer_norm_rows_grad& a) -> Metas {
      const RowShape shape(a.x, a.begin_axis);
      check_affine(a.x, a.weight, "weight", shape.row.numel(), "elements of a row");
      infer::check_type(a.grad, "grad", infer::like(a.x));
      check_statistic(a.mean, "mean", shape.lead, a.x.dtype());
      check_statistic(a.inv_std, "inv_std", shape.lead, a.x.dtype());
      check_statistic(a.grad_mean, "grad_mean", shape.lead, a.x.dtype());
      check_statistic(a.grad_inv_std, "grad_inv_std", shape.lead, a.x.dtype());
      const TensorMeta parameter{wide_type(a.x.dtype()), a.affine ? shape.row : Shape{0}};
      return {infer::like(a.x), parameter, parameter};
    },
    .decompose = [](const args::layer_norm_rows_grad& a) -> Made {
      const RowShape shape(a.x, a.begin_axis);
      const Tensor x = widened(a.x), grad = widened(a.grad);
      const Tensor inv = reshape(a.inv_std, shape.kept), n = count_of(shape.row, x.dtype());
      const Tensor hat = (x - reshape(a.mean, shape.kept)) * inv;
      const Tensor g = a.weight.defined() ? grad * widened(reshape(a.weight, shape.row)) : grad;
      const Tensor level =
          mean(g, shape.row_axes, true) - reshape(a.grad_mean, shape.kept) / (n * inv);
      const Tensor slope =
          mean(g * hat, shape.row_axes, true) + reshape(a.grad_inv_std, shape.kept) * inv / n;
      const Tensor gx = narrowed(inv * (g - level - hat * slope), a.x.dtype());
      if (!a.affine) return {gx, zeros({0}, x.dtype()), zeros({0}, x.dtype())};
      return {gx, sum_over(grad * hat, shape.lead_axes), sum_over(grad, shape.lead_axes)};
    },
    .dtypes = "float",
    .promotes = "x",
    .numpy =
        "(lambda ax, row, k: (lambda m, s, n: (lambda h, g: (s * (g - (np.mean(g, ax, "
        "keepdims=True) - grad_mean.reshape(k) / (n * s)) - h * (np.mean(g * h, ax, "
        "keepdims=True) + grad_inv_std.reshape(k) * s / n)), np.sum(grad * h, "
        "tuple(range(begin_axis)), 'float64') if affine else np.zeros(0), np.sum(grad, "
        "tuple(range(begin_axis)), 'float64') if affine else np.zeros(0)))((x - m) * s, grad * "
        "(1 if weight is None else weight.reshape(row))))(mean.reshape(k), inv_std.reshape(k), "
        "int(np.prod(row))))(tuple(range(begin_axis, x.ndim)), x.shape[begin_axis:], "
        "x.shape[:begin_axis] + (1,) * (x.ndim - begin_axis))",
    .samples =
        [] {
          const auto s = [](const Shape& shape) { return positive(shape); };
          return Samples()
              .add(t({4, 6}), t({6}), s({4}), s({4}), t({4, 6}), s({4}), s({4}), 1)
              .add(t({2, 3, 4}), std::nullopt, s({2, 3}), s({2, 3}), t({2, 3, 4}), s({2, 3}),
                   s({2, 3}), 2, false)
              .add(t({3, 2}), t({6}), s({}), s({}), t({3, 2}), s({}), s({}), 0);
        },
};

const OpDef layer_norm_op = {
    .schema =
        "layer_norm(Tensor x, shape normalized_shape, Tensor? weight = None, Tensor? bias "
        "= None, float epsilon = 1e-05) -> Tensor",
    .brief =
        "Normalises the last axes, of the given sizes, to mean 0 and variance 1; then "
        "scales and shifts.",
    .decompose = [](const args::layer_norm& a) -> Made {
      const auto count = static_cast<int64_t>(a.normalized_shape.size());
      bool fits = count > 0 && count <= a.x.rank();
      const int64_t begin = a.x.rank() - count;
      for (int64_t i = 0; fits && i < count; ++i)
        fits = same(a.normalized_shape[static_cast<size_t>(i)], a.x.dim(begin + i));
      user_check(fits, ErrorKind::InvalidArgument,
                 "normalized_shape is {}, but x has shape {}.\nhint: Pass the last sizes of x.",
                 to_string(a.normalized_shape), to_string(a.x.dims()));
      return std::get<0>(layer_norm_rows(a.x, a.weight, a.bias, begin, a.epsilon));
    },
    .dtypes = "float",
    .promotes = "x",
    .amp = Amp::Full,
    .numpy =
        "(lambda ax: (x - np.mean(x, ax, keepdims=True)) / np.sqrt(np.var(x, ax, "
        "keepdims=True) + epsilon) * (1 if weight is None else weight.reshape(normalized_shape)) "
        "+ (0 if bias is None else bias.reshape(normalized_shape)))(tuple(range(x.ndim - "
        "len(normalized_shape), x.ndim)))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 6}), IntVector{6}, t({6}), t({6}))
              .add(t({2, 3, 4}), IntVector{3, 4}, t({12}), std::nullopt, 1e-3)
              .add(t({3, 5}), IntVector{5});
        },
    .python = "oar.nn.functional",
    .onnx = "LayerNormalization",
};

const OpDef rms_norm_op = {
    .schema =
        "rms_norm(Tensor x, shape normalized_shape, Tensor? weight = None, float epsilon = "
        "1e-05) -> Tensor",
    .brief =
        "x / sqrt(mean(x²) + epsilon) over the last axes, of the given sizes, times "
        "weight.",
    .decompose = [](const args::rms_norm& a) -> Made {
      const auto count = static_cast<int64_t>(a.normalized_shape.size());
      user_check(count > 0 && count <= a.x.rank(), ErrorKind::InvalidArgument,
                 "normalized_shape is {}, but x has shape {}.", to_string(a.normalized_shape),
                 to_string(a.x.dims()));
      const RowShape shape(a.x, a.x.rank() - count);
      user_check(same(shape.row, Shape(a.normalized_shape)), ErrorKind::InvalidArgument,
                 "normalized_shape is {}, but x has shape {}.\nhint: Pass the last sizes of x.",
                 to_string(a.normalized_shape), to_string(a.x.dims()));
      check_affine(a.x, a.weight, "weight", shape.row.numel(), "elements of a row");
      const Tensor x = widened(a.x);
      const Tensor out = x * rsqrt(mean(square(x), shape.row_axes, true) + a.epsilon);
      return narrowed(a.weight.defined() ? out * reshape(a.weight, shape.row) : out, a.x.dtype());
    },
    .dtypes = "float",
    .promotes = "x",
    .numpy =
        "(lambda ax: x / np.sqrt(np.mean(x * x, ax, keepdims=True) + epsilon) * (1 if "
        "weight is None else weight.reshape(normalized_shape)))(tuple(range(x.ndim - "
        "len(normalized_shape), x.ndim)))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 6}), IntVector{6}, t({6}))
              .add(t({2, 3, 4}), IntVector{3, 4})
              .add(t({3, 5}), IntVector{5}, t({5}), 1e-3);
        },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(layer_norm, &layer_norm_rows_op, &layer_norm_rows_grad_op, &layer_norm_op, &rms_norm_op)

}  // namespace oar
