// Normalisation of channels over a batch, and a scale and shift for each channel.
#include "oar/ops/gen/batch_norm.h"

#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/activated.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/layer_dtypes.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/families/norm_rules.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/relu.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/statistics.h"

namespace oar {
namespace {

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
    .layout = {.images = "x"},
    .epilogue = {.role = EpilogueRole::ScaleShift},
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
    .layout = {.images = "x grad"},
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

// The axis of channels, the others, and a shape that broadcasts one number per channel over x.
struct Channels {
  Channels(const Tensor& x, int64_t channel_axis)
      : axis(normalise_axis(channel_axis, x.rank(), "channel_axis")), size(x.dim(axis)), image(x) {
    user_check(x.rank() >= 2, ErrorKind::InvalidArgument,
               "x has shape {}; it needs a batch and an axis of channels.", to_string(x.dims()));
    for (int64_t i = 0; i < x.rank(); ++i) {
      kept.push_back(i == axis ? size : Dim(1));
      if (i == axis) continue;
      others.push_back(i);
      rest.push_back(x.dim(i));
    }
  }
  Tensor spread(const Tensor& t) const { return reshape(widened(t), kept); }
  void check(const Tensor& t, const char* name) const {
    if (!t.defined()) return;
    check_norm_parameter(image, t, name);
    user_check(t.rank() == 1 && same(t.dim(0), size), ErrorKind::InvalidArgument,
               "{} has shape {}; it must hold one number for each of the {} channels.", name,
               to_string(t.dims()), size.str());
    user_check(is_floating(t.dtype()), ErrorKind::InvalidType,
               "{} has dtype {}; it must be a float.", name, name_of(t.dtype()));
  }

  int64_t axis;
  Dim size;
  const Tensor& image;
  SmallVector<int64_t, 6> others;
  Shape kept, rest;
};

Tensor narrowed_like(const Tensor& grad, const Tensor& like) {
  return like.defined() ? narrowed(grad, like.dtype()) : Tensor();
}

const OpDef batch_norm_train_op = {
    .schema =
        "batch_norm_train(Tensor x, Tensor? weight, Tensor? bias, float epsilon, int "
        "channel_axis, bool relu = False) -> (Tensor out, Tensor mean, Tensor var)",
    .brief =
        "Each channel less its mean, divided by sqrt(variance + epsilon), times weight plus "
        "bias, and relu of that if requested; with the mean and the (biased) variance.",
    .infer = [](const args::batch_norm_train& a) -> Metas {
      const Channels c(a.x, a.channel_axis);
      c.check(a.weight, "weight");
      c.check(a.bias, "bias");
      const TensorMeta statistic{wide_type(a.x.dtype()), Shape{c.size}};
      return {infer::like(a.x), statistic, statistic};
    },
    .decompose = [](const args::batch_norm_train& a) -> Made {
      const Channels c(a.x, a.channel_axis);
      const Tensor x = widened(a.x);
      const Tensor centre = mean(x, c.others), variance = var(x, c.others, false);
      Tensor out = (x - c.spread(centre)) * c.spread(rsqrt(variance + a.epsilon));
      if (a.weight.defined()) out = out * c.spread(a.weight);
      if (a.bias.defined()) out = out + c.spread(a.bias);
      if (a.relu) out = relu(out);
      return {narrowed(out, a.x.dtype()), centre, variance};
    },
    .vjp = [](const vjp::batch_norm_train& v) -> Grads {
      const auto [gx, gw, gb] =
          batch_norm_train_grad(v.x, v.weight, v.mean, v.var, v.grad_out, v.grad_mean, v.grad_var,
                                v.epsilon, v.channel_axis, v.bias, v.relu);
      return {gx, narrowed_like(gw, v.weight), narrowed_like(gb, v.bias)};
    },
    .saves = "x weight bias mean var",
    .layout = {.images = "x"},
    .epilogue = {.steps = {EpilogueStep::Activation},
                 .activations = kOnlyRelu,
                 .gradient = "batch_norm_train_grad"},
    .dtypes = "float",
    .promotes = "x",
    .numpy =
        "(lambda ax, k: (lambda m, v: (np.maximum((x - m) / np.sqrt(v + epsilon) * (1 if weight is "
        "None else weight.reshape(k)) + (0 if bias is None else bias.reshape(k)), 0 if relu else "
        "-np.inf), m.reshape(-1).astype('float64'), v.reshape(-1).astype('float64')))(np.mean(x, ax, "
        "keepdims=True), np.var(x, ax, keepdims=True)))(tuple(i for i in range(x.ndim) if i != "
        "channel_axis % x.ndim), [-1 if i == channel_axis % x.ndim else 1 for i in "
        "range(x.ndim)])",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({3}), t({3}), 1e-5, 1)
              .add(t({2, 3, 4}), t({3}), std::nullopt, 1e-3, 1)
              .add(t({3, 2, 2}), std::nullopt, t({2}), 1e-3, -1)
              .add(t({2, 3, 4}), t({3}), t({3}), 1e-3, 1, true)
              .add(t({3, 2, 4}), t({4}), std::nullopt, 1e-3, 2, true);
        },
};

const OpDef batch_norm_train_grad_op = {
    .schema =
        "batch_norm_train_grad(Tensor x, Tensor? weight, Tensor mean, Tensor var, Tensor "
        "grad, Tensor grad_mean, Tensor grad_var, float epsilon, int channel_axis, Tensor? bias = "
        "None, bool relu = False) -> (Tensor grad_x, Tensor grad_weight, Tensor grad_bias)",
    .brief = "The derivative of batch_norm_train.",
    .infer = [](const args::batch_norm_train_grad& a) -> Metas {
      const Channels c(a.x, a.channel_axis);
      c.check(a.weight, "weight");
      c.check(a.bias, "bias");
      const TensorMeta parameter{wide_type(a.x.dtype()), Shape{c.size}};
      infer::check_type(a.grad, "grad", infer::like(a.x));
      check_statistic(a.mean, "mean", Shape{c.size}, a.x.dtype());
      check_statistic(a.var, "var", Shape{c.size}, a.x.dtype());
      check_statistic(a.grad_mean, "grad_mean", Shape{c.size}, a.x.dtype());
      check_statistic(a.grad_var, "grad_var", Shape{c.size}, a.x.dtype());
      return {infer::like(a.x), parameter, parameter};
    },
    .decompose = [](const args::batch_norm_train_grad& a) -> Made {
      const Channels c(a.x, a.channel_axis);
      const Tensor x = widened(a.x), n = count_of(c.rest, x.dtype());
      const Tensor inv = rsqrt(a.var + a.epsilon);
      const Tensor distance = x - c.spread(a.mean), hat = distance * c.spread(inv);
      const Tensor scale = a.weight.defined() ? inv * widened(a.weight) : inv;
      Tensor grad = widened(a.grad);
      if (a.relu) {
        const Tensor scaled = distance * c.spread(scale);
        grad = relu_grad(a.bias.defined() ? scaled + c.spread(a.bias) : scaled, grad);
      }
      const Tensor gb = sum(grad, c.others), gw = sum(grad * hat, c.others);
      const Tensor gx = c.spread(scale) * (grad - c.spread(gb / n) - hat * c.spread(gw / n)) +
                        c.spread(a.grad_mean / n) + distance * c.spread(2.0 * a.grad_var / n);
      return {narrowed(gx, a.x.dtype()), gw, gb};
    },
    .layout = {.images = "x grad"},
    .dtypes = "float",
    .promotes = "x",
    .numpy =
        "(lambda ax, k: (lambda m, s, n: (lambda h: (lambda grad: (s * (1 if weight is None else "
        "weight.reshape(k)) * (grad - grad.mean(ax, keepdims=True) - h * (grad * h).mean(ax, "
        "keepdims=True)) + grad_mean.reshape(k) / n + (x - m) * 2 * grad_var.reshape(k) / n, "
        "(grad * h).sum(ax, 'float64'), grad.sum(ax, 'float64')))(np.where(h * (1 if weight is None "
        "else weight.reshape(k)) + (0 if bias is None else bias.reshape(k)) > 0, grad, 0) if relu "
        "else grad))((x - m) * s))(mean.reshape(k), "
        "1 / np.sqrt(var.reshape(k) + epsilon), x.size // mean.size))(tuple(i for i in "
        "range(x.ndim) if i != channel_axis % x.ndim), [-1 if i == channel_axis % x.ndim else 1 "
        "for i in range(x.ndim)])",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({3}), t({3}), positive({3}), t({4, 3}), t({3}), t({3}), 1e-5, 1)
              .add(t({2, 2, 3}), std::nullopt, t({3}), positive({3}), t({2, 2, 3}), t({3}), t({3}),
                   1e-3, -1)
              .add(t({2, 3, 4}), t({3}), t({3}), positive({3}), t({2, 3, 4}), t({3}), t({3}), 1e-3,
                   1, t({3}), true)
              .add(t({2, 2, 4}), std::nullopt, t({4}), positive({4}), t({2, 2, 4}), t({4}), t({4}),
                   1e-3, 2, std::nullopt, true);
        },
};

// Channels normalised by given statistics: one scale and one shift each.
Tensor by_running(const args::batch_norm& a, const Channels& c) {
  Tensor scale = rsqrt(widened(a.running_var) + a.epsilon);
  if (a.weight.defined()) scale = scale * widened(a.weight);
  Tensor shift = -widened(a.running_mean) * scale;
  if (a.bias.defined()) shift = shift + widened(a.bias);
  return channel_affine(a.x, scale, shift, c.axis);
}

// One value for each channel has no variance: it is returned as it is, and does not change the running statistics.
// Scale and shift do nothing, so their gradients are zeros.
Tensor passed(const args::batch_norm& a, const Channels& c) {
  Tensor out = a.x;
  for (const Tensor& unused : {a.weight, a.bias})
    if (unused.defined())
      out = out + reshape(narrowed(zero_where(ones_like(unused, DType::Bool), unused), a.x.dtype()),
                          c.kept);
  return out;
}

// running = momentum * running + (1 - momentum) * batch, without a gradient.
void move_on(const Tensor& running, const Tensor& batch, double momentum) {
  const LayersOff quiet(kRecording);
  copy_into(running, widened(running) * momentum + batch * (1 - momentum));
}

TensorSpec fixed(TensorSpec spec) {
  spec.differentiable = false;
  return spec;
}

const OpDef batch_norm_op = {
    .schema =
        "batch_norm(Tensor x, Tensor(a!) running_mean, Tensor(b!) running_var, Tensor? "
        "weight = None, Tensor? bias = None, bool training = False, float momentum = 0.9, float "
        "epsilon = 1e-05, str data_format = 'NCHW', bool? use_global_stats = None) -> Tensor",
    .brief =
        "Normalises channels: in training by the batch's statistics, which the running ones "
        "then follow, otherwise by the running ones. use_global_stats overrides training.",
    .decompose = [](const args::batch_norm& a) -> Made {
      const Channels c(a.x, channel_axis_of(a.x, a.data_format));
      c.check(a.running_mean, "running_mean");
      c.check(a.running_var, "running_var");
      c.check(a.weight, "weight");
      c.check(a.bias, "bias");
      if (a.use_global_stats.value_or(!a.training)) return by_running(a, c);
      if (c.rest.numel() == Dim(1)) return passed(a, c);
      const auto [out, centre, variance] =
          batch_norm_train(a.x, a.weight, a.bias, a.epsilon, c.axis);
      move_on(a.running_mean, centre, a.momentum);
      move_on(a.running_var, variance, a.momentum);
      return out;
    },
    .dtypes = "float",
    .promotes = "x",
    .numpy =
        "[(x - (np.mean(x, ax, keepdims=True) if own else running_mean.reshape(k))) / "
        "np.sqrt((np.var(x, ax, keepdims=True) if own else running_var.reshape(k)) + epsilon) * "
        "(1 if weight is None else weight.reshape(k)) + (0 if bias is None else bias.reshape(k)) "
        "for c in [1 if data_format[1] == 'C' else x.ndim - 1] for ax in [tuple(i for i in "
        "range(x.ndim) if i != c)] for k in [[-1 if i == c else 1 for i in range(x.ndim)]] for "
        "own in [training if use_global_stats is None else not use_global_stats]][0]",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({3}), positive({3}), t({3}), t({3}))
              .add(t({2, 3, 4}), fixed(t({3})), fixed(positive({3})), t({3}), std::nullopt, true)
              .add(t({2, 4, 3}), fixed(t({3})), fixed(positive({3})), std::nullopt, t({3}), true,
                   0.8, 1e-3, "NLC")
              .add(t({2, 3, 4}), t({3}), positive({3}), std::nullopt, std::nullopt, true, 0.9, 1e-5,
                   "NCL", true);
        },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(batch_norm, &channel_affine_op, &channel_affine_grad_op, &batch_norm_train_op,
           &batch_norm_train_grad_op, &batch_norm_op)

}  // namespace oar
