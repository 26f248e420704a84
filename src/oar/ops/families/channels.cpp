// Normalisation of channels: groups of them within a sample, and a scale and shift for each.
#include "oar/ops/gen/channels.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/norm_rules.h"
#include "oar/ops/gen/norm.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

void check_channels(const Tensor& t, const char* name, Dim size) {
  if (!t.defined()) return;
  user_check(same(t.numel(), size), ErrorKind::InvalidArgument,
             "{} has shape {}; it must hold one number for each of {} channels.", name,
             to_string(t.dims()), size.str());
  user_check(is_floating(t.dtype()), ErrorKind::InvalidType, "{} has dtype {}; it must be a float.",
             name, name_of(t.dtype()));
}

// One number per channel, to be broadcast over x; and the axes that are not of channels.
Tensor spread(const Tensor& t, const Tensor& x, int64_t axis) {
  Shape shape(static_cast<size_t>(x.rank()), 1);
  shape[static_cast<size_t>(axis)] = x.dim(axis);
  return reshape(widened(t), shape);
}
SmallVector<int64_t, 6> other_axes(const Tensor& x, int64_t axis) {
  SmallVector<int64_t, 6> axes;
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis) axes.push_back(i);
  return axes;
}
Tensor fitted(const Tensor& grad, const Tensor& like) {
  return like.defined() ? narrowed(reshape(grad, like.dims()), like.dtype()) : Tensor();
}

// ---- a scale and a shift -------------------------------------------------------------------------

const OpDef channel_affine_op = {
    .schema =
        "channel_affine(Tensor x, Tensor scale, Tensor shift, int channel_axis = 1) -> Tensor",
    .brief = "x * scale + shift, with one number of each per channel.",
    .infer = [](const args::channel_affine& a) -> Metas {
      const int64_t axis = normalise_axis(a.channel_axis, a.x.rank(), "channel_axis");
      check_channels(a.scale, "scale", a.x.dim(axis));
      check_channels(a.shift, "shift", a.x.dim(axis));
      return infer::like(a.x);
    },
    .decompose = [](const args::channel_affine& a) -> Made {
      const int64_t axis = normalise_axis(a.channel_axis, a.x.rank(), "channel_axis");
      return narrowed(widened(a.x) * spread(a.scale, a.x, axis) + spread(a.shift, a.x, axis),
                      a.x.dtype());
    },
    .vjp = [](const vjp::channel_affine& v) -> Grads {
      const auto [x, scale, shift] = channel_affine_grad(v.x, v.scale, v.grad, v.channel_axis);
      return {x, fitted(scale, v.scale), fitted(shift, v.shift)};
    },
    .saves = "x scale shift:shape",
    .traits = Trait::Smooth,
    .dtypes = "float",
    .numpy =
        "(lambda k: x * scale.reshape(k) + shift.reshape(k))([-1 if i == channel_axis % x.ndim else "
        "1 for i in range(x.ndim)])",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({3}), t({3}))
              .add(t({2, 3, 4}), t({3}), t({3}), 1)
              .add(t({3, 2, 2}), t({2}), t({2}), -1)
              .add(t({0, 3}), t({3}), t({3}));
        },
};

const OpDef channel_affine_grad_op = {
    .schema =
        "channel_affine_grad(Tensor x, Tensor scale, Tensor grad, int channel_axis) -> (Tensor "
        "grad_x, Tensor grad_scale, Tensor grad_shift)",
    .brief = "The derivative of channel_affine.",
    .infer = [](const args::channel_affine_grad& a) -> Metas {
      const int64_t axis = normalise_axis(a.channel_axis, a.x.rank(), "channel_axis");
      check_channels(a.scale, "scale", a.x.dim(axis));
      infer::check_type(a.grad, "grad", infer::like(a.x));
      const TensorMeta parameter{wide_type(a.x.dtype()), Shape{a.x.dim(axis)}};
      return {infer::like(a.x), parameter, parameter};
    },
    .decompose = [](const args::channel_affine_grad& a) -> Made {
      const int64_t axis = normalise_axis(a.channel_axis, a.x.rank(), "channel_axis");
      const Tensor x = widened(a.x), grad = widened(a.grad);
      const auto axes = other_axes(x, axis);
      return {narrowed(grad * spread(a.scale, x, axis), a.x.dtype()), sum(grad * x, axes),
              sum(grad, axes)};
    },
    .dtypes = "float",
    .numpy =
        "(lambda k, ax: (grad * scale.reshape(k), np.sum(grad * x, ax, 'float64'), np.sum(grad, ax, "
        "'float64')))([-1 if i == channel_axis % x.ndim else 1 for i in range(x.ndim)], tuple(i for "
        "i in range(x.ndim) if i != channel_axis % x.ndim))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({3}), t({4, 3}), 1)
              .add(t({2, 3, 4}), t({3}), t({2, 3, 4}), 1)
              .add(t({3, 2, 2}), t({2}), t({3, 2, 2}), -1);
        },
};

// ---- groups of neighbouring channels, [batch, channels, …] -----------------------------------------

// No groups (0): every channel is one, whose number may be open.
struct GroupShape {
  GroupShape(const Tensor& x, int64_t groups) {
    user_check(x.rank() >= 2, ErrorKind::InvalidArgument,
               "x has shape {}; it must be [batch, channels, ...].", to_string(x.dims()));
    const Dim channels = x.dim(1), count = groups == 0 ? channels : Dim(groups);
    user_check(groups >= 0 && (groups == 0 || same(floor_mod(channels, count), Dim(0))),
               ErrorKind::InvalidArgument,
               "there are {} groups, which does not divide the {} channels of x (shape {}).",
               groups, channels.str(), to_string(x.dims()));
    statistics = {x.dim(0), count};
    Dim rest = groups == 0 ? Dim(1) : floor_div(channels, count);
    for (Dim d : x.dims().subspan(2)) rest = rest * d;
    rows = {x.dim(0), count, rest};
  }
  Shape statistics, rows;
};

const OpDef group_norm_rows_op = {
    .schema =
        "group_norm_rows(Tensor x, Tensor? weight, Tensor? bias, int groups, float epsilon) -> "
        "(Tensor out, Tensor mean, Tensor inv_std)",
    .brief =
        "Normalises groups of neighbouring channels of [batch, channels, …] (0: each by itself), then "
        "scales and shifts each channel; with the statistics that it used.",
    .infer = [](const args::group_norm_rows& a) -> Metas {
      const GroupShape shape(a.x, a.groups);
      check_channels(a.weight, "weight", a.x.dim(1));
      check_channels(a.bias, "bias", a.x.dim(1));
      const TensorMeta statistic{wide_type(a.x.dtype()), shape.statistics};
      return {infer::like(a.x), statistic, statistic};
    },
    .decompose = [](const args::group_norm_rows& a) -> Made {
      const GroupShape shape(a.x, a.groups);
      const auto [hat, centre, inv] =
          layer_norm_rows(reshape(widened(a.x), shape.rows), {}, {}, 2, a.epsilon);
      Tensor out = reshape(hat, a.x.dims());
      if (a.weight.defined()) out = out * spread(a.weight, a.x, 1);
      if (a.bias.defined()) out = out + spread(a.bias, a.x, 1);
      return {narrowed(out, a.x.dtype()), centre, inv};
    },
    .vjp = [](const vjp::group_norm_rows& v) -> Grads {
      const auto [x, weight, bias] = group_norm_rows_grad(
          v.x, v.weight, v.mean, v.inv_std, v.grad_out, v.grad_mean, v.grad_inv_std, v.groups);
      return {x, fitted(weight, v.weight), fitted(bias, v.bias)};
    },
    .saves = "x weight bias:shape mean inv_std",
    .dtypes = "float",
    .promotes = "x",
    .amp = Amp::Full,
    .numpy =
        "(lambda r, k: (lambda m, s: (((r - m) * s).reshape(x.shape) * (1 if weight is None else "
        "weight.reshape(k)) + (0 if bias is None else bias.reshape(k)), m[..., 0].astype('float64'), "
        "s[..., 0].astype('float64')))(r.mean(2, keepdims=True), 1 / np.sqrt(r.var(2, keepdims=True) "
        "+ epsilon)))(x.reshape(x.shape[0], groups or x.shape[1], -1), (1, -1) "
        "+ (1,) * (x.ndim - 2))",
    .samples =
        [] {
          const auto none = std::nullopt;
          return Samples()
              .add(t({2, 4, 3}), t({4}), t({4}), 2, 1e-5)
              .add(t({2, 4}), t({4}), none, 1, 1e-3)
              .add(t({2, 3, 2, 2}), none, t({3}), 0, 1e-3)
              .add(t({1, 2, 3}), none, none, 1, 1e-5);
        },
};

const OpDef group_norm_rows_grad_op = {
    .schema =
        "group_norm_rows_grad(Tensor x, Tensor? weight, Tensor mean, Tensor inv_std, Tensor grad, "
        "Tensor grad_mean, Tensor grad_inv_std, int groups) -> (Tensor grad_x, Tensor grad_weight, "
        "Tensor grad_bias)",
    .brief = "The derivative of group_norm_rows.",
    .infer = [](const args::group_norm_rows_grad& a) -> Metas {
      const GroupShape shape(a.x, a.groups);
      check_channels(a.weight, "weight", a.x.dim(1));
      infer::check_type(a.grad, "grad", infer::like(a.x));
      check_statistic(a.mean, "mean", shape.statistics, a.x.dtype());
      check_statistic(a.inv_std, "inv_std", shape.statistics, a.x.dtype());
      check_statistic(a.grad_mean, "grad_mean", shape.statistics, a.x.dtype());
      check_statistic(a.grad_inv_std, "grad_inv_std", shape.statistics, a.x.dtype());
      const TensorMeta parameter{wide_type(a.x.dtype()), Shape{a.x.dim(1)}};
      return {infer::like(a.x), parameter, parameter};
    },
    .decompose = [](const args::group_norm_rows_grad& a) -> Made {
      const GroupShape shape(a.x, a.groups);
      const Tensor x = widened(a.x), grad = widened(a.grad);
      const Tensor g = a.weight.defined() ? grad * spread(a.weight, x, 1) : grad;
      const Tensor rows = reshape(x, shape.rows);
      const Shape kept{shape.rows[0], shape.rows[1], 1};
      const Tensor hat =
          reshape((rows - reshape(a.mean, kept)) * reshape(a.inv_std, kept), x.dims());
      const auto [gx, none, nothing] =
          layer_norm_rows_grad(rows, {}, a.mean, a.inv_std, reshape(g, shape.rows), a.grad_mean,
                               a.grad_inv_std, 2, false);
      const auto axes = other_axes(x, 1);
      return {narrowed(reshape(gx, x.dims()), a.x.dtype()), sum(grad * hat, axes), sum(grad, axes)};
    },
    .dtypes = "float",
    .promotes = "x",
    .numpy =
        "(lambda n, k, ax: (lambda r, m, s: (lambda h, g: ((s * (g - (g.mean(2, keepdims=True) - "
        "grad_mean[..., None] / (n * s)) - h * ((g * h).mean(2, keepdims=True) + "
        "grad_inv_std[..., None] * s / n))).reshape(x.shape), np.sum(grad * h.reshape(x.shape), ax, "
        "'float64'), np.sum(grad, ax, 'float64')))((r - m) * s, (grad * (1 if weight is None else "
        "weight.reshape(k))).reshape(r.shape)))(x.reshape(x.shape[0], groups or x.shape[1], n), mean[..., None], "
        "inv_std[..., None]))(x[0].size // (groups or x.shape[1]), (1, -1) + (1,) * (x.ndim - 2), tuple(i for i in "
        "range(x.ndim) if i != 1))",
    .samples =
        [] {
          const auto s = [](const Shape& shape) { return positive(shape); };
          return Samples()
              .add(t({2, 4, 3}), t({4}), s({2, 2}), s({2, 2}), t({2, 4, 3}), s({2, 2}), s({2, 2}),
                   2)
              .add(t({2, 3, 2}), std::nullopt, s({2, 3}), s({2, 3}), t({2, 3, 2}), s({2, 3}),
                   s({2, 3}), 0);
        },
};

}  // namespace

OAR_FAMILY(channels, &channel_affine_op, &channel_affine_grad_op, &group_norm_rows_op,
           &group_norm_rows_grad_op)

}  // namespace oar
