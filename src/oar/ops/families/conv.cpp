// Convolution over one, two or three spatial axes. The primitive `conv` takes all it needs as numbers; its
// derivatives by the image and by the weight are primitives too, and each of the three has the other two as its
// derivatives. conv1d, conv2d and conv3d are what users call: one number for all axes, padding by name,
// channels first or last.
#include "oar/ops/gen/conv.h"

#include <algorithm>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/work.h"
#include "oar/ops/families/activated.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/conv_rules.h"
#include "oar/ops/families/layer_dtypes.h"
#include "oar/ops/families/window.h"
#include "oar/ops/families/window_batch.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/batch_norm.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

// Every axis but the channels'.
IntVector axes_beside_channels(const Tensor& image, const Sliding& s) {
  IntVector axes;
  for (int64_t i = 0; i < image.rank(); ++i)
    if (i != static_cast<int64_t>(s.axes().channel())) axes.push_back(i);
  return axes;
}

// Axes first, first + 1, …, except `moved`, which is inserted before axis `before`.
IntVector moved_axis(int rank, int64_t moved, int64_t before) {
  IntVector order;
  for (int64_t i = 0; i < rank; ++i) {
    if (i == before) order.push_back(moved);
    if (i != moved) order.push_back(i);
  }
  return order;
}

// [b, n, channels, …] as [n, b * channels, …] or [n, …, b * channels], and back.
Tensor as_channels(const BatchCall& c, size_t i, const Sliding& s) {
  const Tensor t = with_batch(c, i);
  const auto channel = static_cast<int64_t>(s.axes().channel()) + 1;
  const Tensor moved = transpose(t, moved_axis(t.rank(), 0, channel));
  Shape shape(moved.dims().subspan(0, static_cast<size_t>(channel - 1)));
  shape.push_back(t.dim(0) * t.dim(channel));
  for (Dim d : t.dims().subspan(static_cast<size_t>(channel + 1))) shape.push_back(d);
  return reshape(moved, shape);
}

Tensor from_channels(const Tensor& t, Dim batch, Dim channels, const Sliding& s) {
  const auto channel = static_cast<int64_t>(s.axes().channel());
  Shape shape(t.dims().subspan(0, static_cast<size_t>(channel)));
  shape.push_back(batch);
  shape.push_back(channels);
  for (Dim d : t.dims().subspan(static_cast<size_t>(channel + 1))) shape.push_back(d);
  return transpose(reshape(t, shape), moved_axis(shape.rank(), channel, 0));
}

Made batch_conv(const BatchCall& c) {
  const args::conv a(c.args);
  const Sliding s(a);
  if (c.batched[1]) {
    const Tensor bias = a.bias.defined() ? fold_batch(c, 2) : Tensor();
    const Tensor out = conv(as_channels(c, 0, s), fold_batch(c, 1), bias, a.stride, a.padding,
                            a.dilation, a.groups * c.size.value(), a.channels_last);
    return from_channels(out, c.size, a.weight.dim(1), s);
  }
  const Tensor out = unfold_batch(conv(fold_batch(c, 0), a.weight, c.batched[2] ? Tensor() : a.bias,
                                       a.stride, a.padding, a.dilation, a.groups, a.channels_last),
                                  c.size);
  if (!c.batched[2]) return out;
  Shape sides(static_cast<size_t>(out.rank()), Dim(1));
  sides[0] = c.size;
  sides[s.axes().channel() + 1] = a.bias.dim(1);
  return out + reshape(a.bias, sides);
}

struct ConvSample {
  Shape x, weight, out;
  IntVector stride, padding, dilation;
  int64_t groups;
  bool channels_last;
};

std::vector<ConvSample> conv_samples() {
  return {
      {{2, 3, 5, 6}, {4, 3, 3, 2}, {2, 4, 5, 6}, {1, 1}, {1, 1, 0, 1}, {1, 1}, 1, false},
      {{1, 4, 6, 5}, {6, 2, 3, 3}, {1, 6, 3, 4}, {2, 1}, {1, 0, 2, 1}, {1, 2}, 2, false},
      {{2, 3, 5, 5}, {3, 1, 3, 3}, {2, 3, 3, 5}, {2, 1}, {1, 1, 1, 1}, {1, 1}, 3, false},
      {{1, 3, 2, 3}, {2, 3, 1, 1}, {1, 2, 2, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, false},
      {{1, 5, 4, 4}, {6, 2, 3, 2}, {1, 3, 4, 6}, {2, 1}, {1, 1, 0, 1}, {1, 1}, 2, true},
      {{0, 2, 4, 4}, {3, 2, 2, 2}, {0, 3, 3, 3}, {1, 1}, {0, 0, 0, 0}, {1, 1}, 1, false},
      {{2, 2, 7}, {3, 2, 3}, {2, 3, 3}, {2}, {1, 0}, {1}, 1, false},
      {{1, 6, 2}, {4, 1, 2}, {1, 5, 4}, {1}, {0, 1}, {2}, 2, true},
      {{1, 2, 4, 3, 4},
       {2, 1, 2, 2, 3},
       {1, 2, 4, 2, 2},
       {1, 1, 2},
       {1, 0, 0, 0, 1, 1},
       {1, 1, 1},
       2,
       false},
      {{1, 3, 3, 4, 2},
       {2, 2, 2, 3, 2},
       {1, 2, 3, 1, 2},
       {1, 1, 3},
       {0, 0, 1, 1, 0, 0},
       {1, 1, 1},
       1,
       true},
  };
}

// Images are cut by batch, input channels (a sum) and output channels, or by groups. The rule is for
// channels first; channels_last moves c and o after the spatial axes. If there are several groups, channels
// are cut by groups or not at all.
void plan_convolution(ShardPlan& plan, PlanTensor& x, PlanTensor& weight, PlanTensor& out,
                      PlanTensor* bias, const Sliding& s) {
  const size_t channel = s.axes().channel();
  const int batch = plan.add(x.shape[0], Join::Sum);
  plan.put(x, 0, batch);
  plan.put(out, 0, batch);
  if (s.groups == 1) {
    const int in = plan.add(x.shape[channel], Join::Sum);
    plan.put(x, channel, in);
    plan.put(weight, 1, in);
  }
  const int made = plan.add(s.groups == 1 ? weight.shape[0] : Dim(s.groups), Join::Sum);
  const Dim inner = s.groups == 1 ? Dim(1) : floor_div(weight.shape[0], s.groups);
  plan.put(weight, 0, made, inner);
  plan.put(out, channel, made, inner);
  if (bias) plan.put(*bias, 0, made, inner);
  if (s.groups > 1) plan.put(x, channel, made, floor_div(x.shape[channel], s.groups));
}

// Each element of the image on the result's side meets the weights of one filter.
Cost conv_cost(const Tensor& out, const Tensor& weight) {
  return Cost::of_products(2 * elements(out) * elements(weight) / std::max(1.0, extent(weight, 0)));
}

const OpDef conv_op = {
    .schema =
        "conv(Tensor x, Tensor weight, Tensor? bias, int[] stride, shape padding, int[] dilation, int groups, bool channels_last = False) -> Tensor",
    .brief =
        "The convolution of x [batch, channels, spatial…] with weight [out_channels, channels / groups, "
        "spatial…]; padding is [before, after] of each spatial axis.",
    .infer = [](const args::conv& a) -> Metas {
      const Shape out = conv_result(a.x.shape(), a.weight.shape(), Sliding(a));
      check_bias(a.bias, a.weight.shape());
      return TensorMeta{a.x.dtype(), out};
    },
    .cost = [](const CostCall& c) { return conv_cost(c.results[0], c.args[1].as_tensor()); },
    .vjp = [](const vjp::conv& v) -> Grads {
      return {v.needs(0) ? conv_input_grad(conjugate(v.weight), v.grad, v.x.dims(), v.stride,
                                           v.padding, v.dilation, v.groups, v.channels_last)
                         : Tensor(),
              v.needs(1) ? conv_weight_grad(conjugate(v.x), v.grad, v.weight.dims(), v.stride,
                                            v.padding, v.dilation, v.groups, v.channels_last)
                         : Tensor(),
              v.bias.defined() && v.needs(2) ? sum(v.grad, axes_beside_channels(v.grad, Sliding(v)))
                                             : Tensor()};
    },
    .saves = "x>weight weight>x bias:shape",
    .batch = batch_conv,
    .plan =
        [](const PlanCall& c) {
          const args::conv a(c.args);
          plan_convolution(c.plan, c.plan.operands[0], c.plan.operands[1], c.plan.results[0],
                           c.plan.operand(2), Sliding(a));
        },
    .localise =
        [](const PieceCall& piece) {
          localise_groups(piece, piece.plan.operands[1]);
          // Partial sums over the input channels: only the first has the bias.
          if (piece.plan.operands[1].axes[1].factor == static_cast<int>(piece.factor) &&
              !(piece.start == Dim(0)))
            piece.frame.set(2, Value());
        },
    .layout = {.images = "x", .weight = "weight"},
    .epilogue = {.steps = {EpilogueStep::ScaleShift, EpilogueStep::Residual,
                           EpilogueStep::Activation},
                 .fused = "conv_fused",
                 .activations = kActivations},
    .cuts_sums = [](const Args&) { return false; },
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy =
        "(lambda n, k: (lambda p: (lambda v: (lambda o: np.moveaxis(o, 1, -1) if channels_last else o)(np.einsum("
        "f\"ngc{'xyz'[:n]}{'pqr'[:n]},gfc{'pqr'[:n]}->ngf{'xyz'[:n]}\", v.reshape(v.shape[0], groups, v.shape[1] // "
        "groups, *v.shape[2:]), weight.reshape(groups, -1, *weight.shape[1:])).reshape(v.shape[0], weight.shape[0], "
        "*v.shape[2:2 + n]) + (0 if bias is None else bias.reshape(-1, *[1] * n))))(np.lib.stride_tricks."
        "sliding_window_view(p, [(m - 1) * d + 1 for m, d in zip(k, dilation)], axis=tuple(range(2, 2 + n)))[(..., "
        "*[slice(None, None, s) for s in (*stride, *dilation)])]))(np.pad(np.moveaxis(x, -1, 1) if channels_last else "
        "x, ((0, 0), (0, 0), *zip(padding[::2], padding[1::2])))))(x.ndim - 2, weight.shape[2:])",
    .samples =
        [] {
          Samples samples;
          for (const ConvSample& s : conv_samples()) {
            const auto add = [&](const auto& bias) {
              samples.add(t(s.x), t(s.weight), bias, s.stride, s.padding, s.dilation, s.groups,
                          s.channels_last);
            };
            if (s.x.rank() == 4 && s.groups == 1)
              add(std::nullopt);
            else
              add(t({s.weight[0]}));
          }
          return samples;
        },
    .onnx = "Conv",
};

void check_grad(const Shape& expected, const Tensor& grad) {
  user_check(same(expected, grad.shape()), ErrorKind::InvalidArgument,
             "grad has shape {}, but the convolution's result has shape {}.",
             to_string(grad.dims()), expected.str());
}

Made batch_input_grad(const BatchCall& c) {
  const args::conv_input_grad a(c.args);
  const Sliding s(a);
  if (!c.batched[0])
    return unfold_batch(conv_input_grad(a.weight, fold_batch(c, 1), folded_shape(c.size, a.x_shape),
                                        a.stride, a.padding, a.dilation, a.groups, a.channels_last),
                        c.size);
  Shape x(a.x_shape);
  Dim& channels = x[s.axes().channel()];
  const Dim each = channels;
  channels = each * c.size;
  const Tensor out = conv_input_grad(fold_batch(c, 0), as_channels(c, 1, s), x, a.stride, a.padding,
                                     a.dilation, a.groups * c.size.value(), a.channels_last);
  return from_channels(out, c.size, each, s);
}

const OpDef conv_input_grad_op = {
    .schema =
        "conv_input_grad(Tensor weight, Tensor grad, shape x_shape, int[] stride, shape padding, int[] dilation, int groups, bool channels_last = False) -> Tensor",
    .brief = "The derivative of conv by its input; also a transposed convolution.",
    .infer = [](const args::conv_input_grad& a) -> Metas {
      const Shape x(a.x_shape);
      check_grad(conv_result(x, a.weight.shape(), Sliding(a)), a.grad);
      return TensorMeta{a.grad.dtype(), x};
    },
    .cost =
        [](const CostCall& c) { return conv_cost(c.args[1].as_tensor(), c.args[0].as_tensor()); },
    .vjp = [](const vjp::conv_input_grad& v) -> Grads {
      const Tensor& cotangent = v.call.cotangents[0];
      const Tensor& grad = v.call.args[1].as_tensor();
      return {v.needs(0) ? conv_weight_grad(cotangent, conjugate(grad), v.weight.dims(), v.stride,
                                            v.padding, v.dilation, v.groups, v.channels_last)
                         : Tensor(),
              v.needs(1) ? conv(cotangent, conjugate(v.weight), Tensor(), v.stride, v.padding,
                                v.dilation, v.groups, v.channels_last)
                         : Tensor()};
    },
    .saves = "weight>grad grad>weight",
    .batch = batch_input_grad,
    .plan =
        [](const PlanCall& c) {
          const args::conv_input_grad a(c.args);
          plan_convolution(c.plan, c.plan.results[0], c.plan.operands[0], c.plan.operands[1],
                           nullptr, Sliding(a));
        },
    .localise =
        [](const PieceCall& piece) {
          localise_groups(piece, piece.plan.operands[0]);
          sharding::result_shape("x_shape")(piece);
        },
    .layout = {.images = "grad", .sizes = "x_shape", .weight = "weight"},
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy =
        "(lambda n, w, g, p, x: (lambda z: ([z.__setitem__(k, z[k] + np.einsum('goc,ngo...->ngc...', w[(..., *tap)], "
        "g).reshape(x[0], x[1], *g.shape[3:])) for tap in np.ndindex(*w.shape[3:]) for k in [(..., *[slice(q * d, q * "
        "d + (m - 1) * s + 1, s) for q, d, m, s in zip(tap, dilation, g.shape[3:], stride)])]], (lambda o: "
        "np.moveaxis(o, 1, -1) if channels_last else o)(z[(..., *[slice(b, b + m) for b, m in zip(p[::2], "
        "x[2:])])]))[1])(np.zeros((x[0], x[1], *[m + a + b for m, a, b in zip(x[2:], p[::2], p[1::2])]), "
        "grad.dtype)))(grad.ndim - 2, weight.reshape(groups, -1, *weight.shape[1:]), (lambda g: g.reshape(g.shape[0], "
        "groups, g.shape[1] // groups, *g.shape[2:]))(np.moveaxis(grad, -1, 1) if channels_last else grad), padding, "
        "[x_shape[0], x_shape[-1], *x_shape[1:-1]] if channels_last else x_shape)",
    .samples =
        [] {
          Samples samples;
          for (const ConvSample& s : conv_samples())
            samples.add(t(s.weight), t(s.out),
                        IntVector(as_words(s.x).begin(), as_words(s.x).end()), s.stride, s.padding,
                        s.dilation, s.groups, s.channels_last);
          return samples;
        },
    .onnx = "ConvTranspose",
};

Made batch_weight_grad(const BatchCall& c) {
  const args::conv_weight_grad a(c.args);
  const Sliding s(a);
  return unfold_batch(conv_weight_grad(as_channels(c, 0, s), as_channels(c, 1, s),
                                       folded_shape(c.size, a.weight_shape), a.stride, a.padding,
                                       a.dilation, a.groups * c.size.value(), a.channels_last),
                      c.size);
}

const OpDef conv_weight_grad_op = {
    .schema =
        "conv_weight_grad(Tensor x, Tensor grad, shape weight_shape, int[] stride, shape padding, int[] dilation, int groups, bool channels_last = False) -> Tensor",
    .brief = "The derivative of conv by its weight.",
    .infer = [](const args::conv_weight_grad& a) -> Metas {
      const Shape weight(a.weight_shape);
      check_grad(conv_result(a.x.shape(), weight, Sliding(a)), a.grad);
      return TensorMeta{a.grad.dtype(), weight};
    },
    .cost = [](const CostCall& c) { return conv_cost(c.args[1].as_tensor(), c.results[0]); },
    .vjp = [](const vjp::conv_weight_grad& v) -> Grads {
      const Tensor& cotangent = v.call.cotangents[0];
      const Tensor& grad = v.call.args[1].as_tensor();
      return {v.needs(0) ? conv_input_grad(cotangent, conjugate(grad), v.x.dims(), v.stride,
                                           v.padding, v.dilation, v.groups, v.channels_last)
                         : Tensor(),
              v.needs(1) ? conv(conjugate(v.x), cotangent, Tensor(), v.stride, v.padding,
                                v.dilation, v.groups, v.channels_last)
                         : Tensor()};
    },
    .saves = "x>grad grad>x",
    .batch = batch_weight_grad,
    .plan =
        [](const PlanCall& c) {
          const args::conv_weight_grad a(c.args);
          plan_convolution(c.plan, c.plan.operands[0], c.plan.results[0], c.plan.operands[1],
                           nullptr, Sliding(a));
        },
    .localise =
        [](const PieceCall& piece) {
          localise_groups(piece, piece.plan.results[0]);
          sharding::result_shape("weight_shape")(piece);
        },
    .layout = {.images = "x grad", .weight = "out"},
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy =
        "(lambda n, k, g: (lambda p: (lambda v: np.einsum(f\"ngc{'xyz'[:n]}{'pqr'[:n]},ngf{'xyz'[:n]}->gfc"
        "{'pqr'[:n]}\", v.reshape(v.shape[0], groups, v.shape[1] // groups, *v.shape[2:]), g.reshape(g.shape[0], "
        "groups, g.shape[1] // groups, *g.shape[2:])).reshape(weight_shape))(np.lib.stride_tricks."
        "sliding_window_view(p, [(m - 1) * d + 1 for m, d in zip(k, dilation)], axis=tuple(range(2, 2 + n)))[(..., "
        "*[slice(None, None, s) for s in (*stride, *dilation)])]))(np.pad(np.moveaxis(x, -1, 1) if channels_last else "
        "x, ((0, 0), (0, 0), *zip(padding[::2], padding[1::2])))))(x.ndim - 2, weight_shape[2:], np.moveaxis(grad, "
        "-1, 1) if channels_last else grad)",
    .samples =
        [] {
          Samples samples;
          for (const ConvSample& s : conv_samples())
            samples.add(t(s.x), t(s.out),
                        IntVector(as_words(s.weight).begin(), as_words(s.weight).end()), s.stride,
                        s.padding, s.dilation, s.groups, s.channels_last);
          return samples;
        },
};

// A convolution fused with the calls that follow it. Only programs call it, so it has no derivative of its own.
const OpDef conv_fused_op = {
    .schema =
        "conv_fused(Tensor x, Tensor weight, Tensor? bias, Tensor? scale, Tensor? shift, Tensor? residual, int[] stride, shape padding, int[] dilation, int groups, bool channels_last = False, str activation = '') -> Tensor",
    .brief =
        "conv, then a scale and a shift of each channel, the sum with residual and an activation, of which each "
        "may be missing.",
    .infer = [](const args::conv_fused& a) -> Metas {
      const Shape out = conv_result(a.x.shape(), a.weight.shape(), Sliding(a));
      check_bias(a.bias, a.weight.shape());
      user_check(a.scale.defined() == a.shift.defined(), ErrorKind::InvalidArgument,
                 "scale and shift belong together.");
      check_bias(a.scale, a.weight.shape());
      check_bias(a.shift, a.weight.shape());
      user_check(!a.residual.defined() || same(a.residual.shape(), out), ErrorKind::InvalidArgument,
                 "residual has shape {}, but the convolution's result has shape {}.",
                 a.residual.defined() ? to_string(a.residual.dims()) : "", out.str());
      return TensorMeta{a.x.dtype(), out};
    },
    .decompose = [](const args::conv_fused& a) -> Made {
      Tensor out =
          conv(a.x, a.weight, a.bias, a.stride, a.padding, a.dilation, a.groups, a.channels_last);
      if (a.scale.defined())
        out = channel_affine(out, a.scale, a.shift, a.channels_last ? out.rank() - 1 : 1);
      if (a.residual.defined()) out = out + a.residual;
      return activated(out, a.activation);
    },
    .cost = [](const CostCall& c) { return conv_cost(c.results[0], c.args[1].as_tensor()); },
    .layout = {.images = "x residual"},
    .cuts_sums = [](const Args&) { return false; },
    .traits = Trait::Promote,
    .dtypes = "float",
    .amp = Amp::Low,
    .numpy =
        "(lambda y, k: (lambda z: {'': z, 'relu': np.maximum(z, 0), 'hardswish': z * np.clip(z + 3, 0, 6) / 6, "
        "'silu': z / (1 + np.exp(-z)), 'sigmoid': 1 / (1 + np.exp(-z)), 'tanh': np.tanh(z)}[activation])((y if scale is "
        "None else y * "
        "scale.reshape(k) + shift.reshape(k)) + (0 if residual is None else residual)))(*(lambda n, m: (lambda p: "
        "(lambda v: (lambda o: (np.moveaxis(o, 1, -1) if channels_last else o, (-1,) if channels_last else (-1, *[1] "
        "* n)))(np.einsum("
        "f\"ngc{'xyz'[:n]}{'pqr'[:n]},gfc{'pqr'[:n]}->ngf{'xyz'[:n]}\", v.reshape(v.shape[0], groups, v.shape[1] // "
        "groups, *v.shape[2:]), weight.reshape(groups, -1, *weight.shape[1:])).reshape(v.shape[0], weight.shape[0], "
        "*v.shape[2:2 + n]) + (0 if bias is None else bias.reshape(-1, *[1] * n))))(np.lib.stride_tricks."
        "sliding_window_view(p, [(i - 1) * d + 1 for i, d in zip(m, dilation)], axis=tuple(range(2, 2 + n)))[(..., "
        "*[slice(None, None, s) for s in (*stride, *dilation)])]))(np.pad(np.moveaxis(x, -1, 1) if channels_last else "
        "x, ((0, 0), (0, 0), *zip(padding[::2], padding[1::2])))))(x.ndim - 2, weight.shape[2:]))",
    .samples =
        [] {
          Samples samples;
          const std::span<const char* const> activations = kActivations;
          size_t next = 0;
          for (const ConvSample& s : conv_samples()) {
            if (s.x.rank() != 4) continue;
            const Shape channels{s.weight[0]};
            const char* const activation = activations[next % activations.size()];
            switch (next++ % 3) {
              case 0:
                samples.add(t(s.x), t(s.weight), std::nullopt, t(channels), t(channels), t(s.out),
                            s.stride, s.padding, s.dilation, s.groups, s.channels_last, activation);
                break;
              case 1:
                samples.add(t(s.x), t(s.weight), t(channels), std::nullopt, std::nullopt, t(s.out),
                            s.stride, s.padding, s.dilation, s.groups, s.channels_last, activation);
                break;
              default:
                samples.add(t(s.x), t(s.weight), t(channels), t(channels), t(channels),
                            std::nullopt, s.stride, s.padding, s.dilation, s.groups,
                            s.channels_last, activation);
            }
          }
          return samples;
        },
};

template <class A>
Made convolve(const A& a, size_t spatial) {
  const Resolved r(a, spatial);
  return conv(a.x, a.weight, a.bias, r.stride, r.padding, r.dilation, a.groups,
              r.axes.channels_last);
}

// One reference for every number of axes.
constexpr const char* kConvReference =
    "(lambda n, last: (lambda x, k, s, d: (lambda q: (lambda v: (lambda o: np.moveaxis(o, 1, -1) if last else o)("
    "np.einsum(f\"ngc{'xyz'[:n]}{'pqr'[:n]},gfc{'pqr'[:n]}->ngf{'xyz'[:n]}\", v.reshape(v.shape[0], groups, "
    "v.shape[1] // groups, *v.shape[2:]), weight.reshape(groups, -1, *weight.shape[1:])).reshape(v.shape[0], "
    "weight.shape[0], *v.shape[2:2 + n]) + (0 if bias is None else bias.reshape(-1, *[1] * n))))(np.lib."
    "stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), *q)), [(m - 1) * e + 1 for m, e in zip(k, d)], "
    "axis=tuple(range(2, 2 + n)))[(..., *[slice(None, None, e) for e in (*s, *d)])]))([(0, 0)] * n if "
    "padding_algorithm == 'VALID' else [(e // 2, e - e // 2) for m, f, g in zip(x.shape[2:], k, s) for e in "
    "[max((-(-m // g) - 1) * g + f - m, 0)]] if padding_algorithm == 'SAME' else list(zip(padding[::2], padding[1::2])) "
    "if len(padding) == 2 * n else [(e, e) for e in (list(padding) * n)[:n]]))(np.moveaxis(x, -1, 1) if last else x, "
    "weight.shape[2:], (list(stride) * n)[:n], [1] * n if padding_algorithm == 'SAME' else (list(dilation) * n)[:n]))("
    "x.ndim - 2, data_format[-1] == 'C')";

const OpDef conv1d_op = {
    .schema =
        "conv1d(Tensor x, Tensor weight, Tensor? bias = None, int[] stride = 1, int[] padding = 0, int[] dilation = 1, int groups = 1, str data_format = 'NCL', str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief =
        "The convolution of sequences with a weight of shape [out_channels, in_channels / groups, length]; "
        "padding as numbers (EXPLICIT) or by name: SAME, VALID.",
    .decompose = [](const args::conv1d& a) -> Made { return convolve(a, 1); },
    .localise = local_groups,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy = kConvReference,
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 7}), t({4, 3, 3}), t({4}))
              .add(t({1, 4, 8}), t({6, 2, 3}), t({6}), IntVector{2}, IntVector{1, 2}, IntVector{2},
                   2)
              .add(t({2, 6, 3}), t({2, 3, 2}), std::nullopt, IntVector{1}, IntVector{1},
                   IntVector{1}, 1, "NLC")
              .add(t({1, 2, 5}), t({3, 2, 4}), t({3}), IntVector{2}, IntVector{0}, IntVector{3}, 1,
                   "NCL", "SAME")
              .add(t({1, 2, 5}), t({3, 2, 2}), t({3}), IntVector{1}, IntVector{0}, IntVector{1}, 1,
                   "NCL", "VALID");
        },
    .onnx = "Conv",
};

const OpDef conv2d_op = {
    .schema =
        "conv2d(Tensor x, Tensor weight, Tensor? bias = None, int[] stride = 1, int[] padding = 0, int[] dilation = 1, int groups = 1, str data_format = 'NCHW', str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief =
        "The convolution of images with a weight of shape [out_channels, in_channels / groups, height, width]; "
        "padding as numbers (EXPLICIT) or by name: SAME, VALID.",
    .decompose = [](const args::conv2d& a) -> Made { return convolve(a, 2); },
    .localise = local_groups,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy = kConvReference,
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 5, 6}), t({4, 3, 3, 2}), t({4}))
              .add(t({1, 4, 6, 5}), t({6, 2, 3, 3}), t({6}), IntVector{2, 1}, IntVector{1, 2},
                   IntVector{1, 2}, 2)
              .add(t({1, 2, 4, 4}), t({2, 2, 3, 3}), std::nullopt, IntVector{1},
                   IntVector{1, 0, 2, 1})
              .add(t({2, 5, 4, 3}), t({2, 3, 2, 2}), t({2}), IntVector{1}, IntVector{1},
                   IntVector{1}, 1, "NHWC")
              .add(t({0, 2, 4, 4}), t({3, 2, 2, 2}), t({3}))
              .add(t({1, 2, 5, 4}), t({3, 2, 3, 2}), t({3}), IntVector{2, 1}, IntVector{0},
                   IntVector{1}, 1, "NCHW", "SAME")
              .add(t({1, 2, 5, 4}), t({3, 2, 3, 2}), std::nullopt, IntVector{1}, IntVector{0},
                   IntVector{1}, 1, "NCHW", "VALID")
              .add(t({1, 5, 4, 2}), t({3, 2, 3, 2}), t({3}), IntVector{2}, IntVector{0},
                   IntVector{1}, 1, "NHWC", "SAME");
        },
    .onnx = "Conv",
};

const OpDef conv3d_op = {
    .schema =
        "conv3d(Tensor x, Tensor weight, Tensor? bias = None, int[] stride = 1, int[] padding = 0, int[] dilation = 1, int groups = 1, str data_format = 'NCDHW', str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief =
        "The convolution of volumes with a weight of shape [out_channels, in_channels / groups, depth, height, width]; "
        "padding as numbers (EXPLICIT) or by name: SAME, VALID.",
    .decompose = [](const args::conv3d& a) -> Made { return convolve(a, 3); },
    .localise = local_groups,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy = kConvReference,
    .samples =
        [] {
          return Samples()
              .add(t({1, 2, 3, 4, 3}), t({3, 2, 2, 2, 2}), t({3}))
              .add(t({1, 2, 4, 3, 4}), t({2, 1, 2, 2, 2}), t({2}), IntVector{2, 1, 1},
                   IntVector{1, 0, 1}, IntVector{1, 2, 1}, 2)
              .add(t({1, 3, 3, 3, 2}), t({2, 2, 2, 3, 2}), std::nullopt, IntVector{1}, IntVector{1},
                   IntVector{1}, 1, "NDHWC")
              .add(t({1, 1, 3, 3, 4}), t({2, 1, 2, 2, 3}), t({2}), IntVector{2, 1, 1}, IntVector{0},
                   IntVector{1}, 1, "NCDHW", "SAME");
        },
    .onnx = "Conv",
};

}  // namespace

OAR_FAMILY(conv, &conv_op, &conv_input_grad_op, &conv_weight_grad_op, &conv_fused_op, &conv1d_op,
           &conv2d_op, &conv3d_op)

}  // namespace oar
