// Normalisation of channels within a sample: in groups, alone, by their neighbours.
#include "oar/ops/gen/group_norm.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/layer_dtypes.h"
#include "oar/ops/families/norm_rules.h"
#include "oar/ops/families/window.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/layer_norm.h"
#include "oar/ops/gen/pad.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/strided.h"

namespace oar {
namespace {

// No groups (0): every channel is a group; their number may be open.
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

// Normalises the elements of `groups` groups of neighbouring channels of each sample; 0: of each
// channel.
Tensor group_normalised(const Tensor& x, int64_t groups, double epsilon, const Tensor& weight,
                        const Tensor& bias, int64_t channel_axis) {
  const Dim channels = x.dim(channel_axis);
  check_affine(x, weight, "weight", channels, "channels");
  check_affine(x, bias, "bias", channels, "channels");
  const bool last = channel_axis != 1;
  const Tensor front = last ? moveaxis(x, {channel_axis}, {1}) : x;
  const Tensor made = std::get<0>(group_norm_rows(front, weight, bias, groups, epsilon));
  return last ? moveaxis(made, {1}, {channel_axis}) : made;
}

const OpDef group_norm_op = {
    .schema =
        "group_norm(Tensor x, int num_groups, float epsilon = 1e-05, Tensor? weight = "
        "None, Tensor? bias = None, str data_format = 'NCHW') -> Tensor",
    .brief =
        "Normalises each group of neighbouring channels of each sample; then scales and "
        "shifts the channels.",
    .decompose = [](const args::group_norm& a) -> Made {
      const int64_t axis = channel_axis_of(a.x, a.data_format);
      const Dim channels = a.x.dim(axis);
      user_check(
          a.num_groups > 0 && (channels.is_symbolic() || channels.word() % a.num_groups == 0),
          ErrorKind::InvalidArgument,
          "num_groups is {}, which does not divide the {} channels of x (shape {}).", a.num_groups,
          channels.str(), to_string(a.x.dims()));
      return group_normalised(a.x, a.num_groups, a.epsilon, a.weight, a.bias, axis);
    },
    .dtypes = "float",
    .promotes = "x",
    .amp = Amp::Full,
    .numpy =
        "(lambda f, b: b((lambda y: (lambda r: ((r - r.mean(2, keepdims=True)) / "
        "np.sqrt(r.var(2, keepdims=True) + epsilon)).reshape(y.shape) * (1 if weight is None "
        "else weight.reshape((1, -1) + (1,) * (y.ndim - 2))) + (0 if bias is None else "
        "bias.reshape((1, -1) + (1,) * (y.ndim - 2))))(y.reshape(y.shape[0], num_groups, "
        "-1)))(f(x))))(*((lambda v: v, lambda v: v) if data_format[1] == 'C' else (lambda v: "
        "np.moveaxis(v, -1, 1), lambda v: np.moveaxis(v, 1, -1))))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 4, 3}), 2, 1e-5, t({4}), t({4}))
              .add(t({2, 3, 2, 4}), 2, 1e-3, t({4}), std::nullopt, "NHWC")
              .add(t({3, 4}), 1);
        },
    .python = "oar.nn.functional",
};

// One number per channel, ready to be broadcast over x.
Tensor per_channel(const Tensor& t, const Tensor& x, int64_t channel_axis) {
  Shape shape(static_cast<size_t>(x.rank()), 1);
  shape[static_cast<size_t>(channel_axis)] = x.dim(channel_axis);
  return reshape(t, shape);
}

Tensor scaled(Tensor out, const Tensor& weight, const Tensor& bias, int64_t channel_axis) {
  if (weight.defined()) out = out * per_channel(weight, out, channel_axis);
  return bias.defined() ? out + per_channel(bias, out, channel_axis) : out;
}

const OpDef instance_norm_op = {
    .schema =
        "instance_norm(Tensor x, Tensor? running_mean = None, Tensor? running_var = None, "
        "Tensor? weight = None, Tensor? bias = None, bool use_input_stats = True, float momentum "
        "= 0.9, float eps = 1e-05, str data_format = 'NCHW') -> Tensor",
    .brief =
        "Normalises each channel of each sample; then scales and shifts the channels. The "
        "running statistics replace those of the data if use_input_stats is off; they "
        "are never changed.",
    .decompose = [](const args::instance_norm& a) -> Made {
      const int64_t axis = channel_axis_of(a.x, a.data_format);
      if (a.use_input_stats)  // mixed precision computes it in float32
        return narrowed(group_normalised(a.x, 0, a.eps, a.weight, a.bias, axis), a.x.dtype());
      user_check(a.running_mean.defined() && a.running_var.defined(), ErrorKind::InvalidArgument,
                 "use_input_stats is off, so running_mean and running_var are required.");
      const Tensor x = widened(a.x) - per_channel(a.running_mean, a.x, axis);
      const Tensor out = x * rsqrt(per_channel(a.running_var, a.x, axis) + a.eps);
      return narrowed(scaled(out, a.weight, a.bias, axis), a.x.dtype());
    },
    .dtypes = "float",
    .promotes = "x",
    .numpy =
        "(lambda ax, k: (x - (np.mean(x, ax, keepdims=True) if use_input_stats else "
        "running_mean.reshape(k))) / np.sqrt((np.var(x, ax, keepdims=True) if use_input_stats "
        "else running_var.reshape(k)) + eps) * (1 if weight is None else weight.reshape(k)) + (0 "
        "if bias is None else bias.reshape(k)))(tuple(range(2, x.ndim)) if data_format[1] == 'C' "
        "else tuple(range(1, x.ndim - 1)), (1, -1) + (1,) * (x.ndim - 2) if data_format[1] == "
        "'C' else (1,) * (x.ndim - 1) + (-1,))",
    .samples =
        [] {
          const auto none = std::nullopt;
          return Samples()
              .add(t({2, 3, 4}), none, none, t({3}), t({3}))
              .add(t({2, 4, 3}), none, none, none, none, true, 0.9, 1e-3, "NLC")
              .add(t({2, 3, 4}), t({3}), positive({3}), t({3}), t({3}), false);
        },
    .python = "oar.nn.functional",
};

const OpDef local_response_norm_op = {
    .schema =
        "local_response_norm(Tensor x, int size, float alpha = 0.0001, float beta = 0.75, float k = 1.0, str "
        "data_format = 'NCHW') -> Tensor",
    .brief =
        "x / (k + alpha * m) ** beta, where m is the mean of the squares of `size` channels around (zeros beyond the "
        "first and last).",
    .infer = [](const args::local_response_norm& a) -> Metas {
      user_check(a.x.rank() >= 3, ErrorKind::InvalidArgument,
                 "x must have 3 axes or more (batch, channels, places), but its shape is {}.",
                 to_string(a.x.dims()));
      user_check(a.data_format.starts_with("NC") || a.data_format.ends_with("C"),
                 ErrorKind::InvalidArgument,
                 "data_format is '{}'; it can be NCL, NLC, NCHW, NHWC, NCDHW or NDHWC.",
                 a.data_format);
      check_positive(a.size, "size");
      return infer::like(a.x);
    },
    .decompose = [](const args::local_response_norm& a) -> Made {
      const Tensor x = widened(a.x);
      const int64_t axis = a.data_format.starts_with("NC") ? 1 : a.x.rank() - 1;
      SmallVector<int64_t, 12> around(static_cast<size_t>(2 * x.rank()), 0);
      around[static_cast<size_t>(2 * axis)] = a.size / 2;
      around[static_cast<size_t>(2 * axis + 1)] = (a.size - 1) / 2;
      const Tensor total = sum(unfold(pad_constant(x * x, around), axis, a.size, 1), IntVector{-1});
      const Tensor damping = total * (a.alpha / static_cast<double>(a.size)) + a.k;
      return narrowed(x * pow(damping, literal(-a.beta)), a.x.dtype());
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda axis: x / (k + alpha / size * np.lib.stride_tricks.sliding_window_view(np.pad(x.astype('float64') ** "
        "2, [(size // 2, (size - 1) // 2) if i == axis else (0, 0) for i in range(x.ndim)]), size, axis).sum(-1)) ** "
        "beta)(1 if data_format.startswith('NC') else x.ndim - 1)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 5, 3}), 3, 0.5, 0.75, 1.0, "NCL")
              .add(t({2, 4, 2, 2}), 4, 0.3, 0.5, 2.0)
              .add(t({1, 2, 2, 5}), 5, 0.3, 0.75, 1.0, "NHWC")
              .add(t({0, 3, 2, 2}), 2);
        },
    .python = "oar.nn.functional",
    .onnx = "LRN",
};

}  // namespace

OAR_FAMILY(group_norm, &group_norm_rows_op, &group_norm_rows_grad_op, &group_norm_op,
           &instance_norm_op, &local_response_norm_op)

}  // namespace oar
