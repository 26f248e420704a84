// Convolution in two dimensions. The primitive takes all it needs as numbers; its two derivatives are
// primitives too, and each of the three has the other two as its derivatives.
#include "oar/ops/gen/conv.h"

#include <algorithm>

#include "oar/ops/batching.h"
#include "oar/ops/gen/binary.h"
#include "oar/ops/gen/complex.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/infer.h"
#include "oar/ops/operators.h"
#include "oar/ops/registry.h"
#include "oar/ops/window.h"
#include "oar/ops/window_batch.h"

namespace oar {
namespace {

// The result's shape, from the shapes of the input and the weight; every mistake is found here.
Shape conv_result(const Shape& x, const Shape& weight, Ints stride, Dims padding, Ints dilation,
                  int64_t groups) {
  user_check(
      x.rank() == 4 && weight.rank() == 4, ErrorKind::InvalidArgument,
      "x and weight must have 4 axes, but their shapes are {} and {}.\nhint: x is [batch, "
      "channels, height, width], weight [out_channels, in_channels / groups, height, width].",
      x.str(), weight.str());
  check_windows(stride, "stride");
  check_windows(dilation, "dilation");
  check_padding(padding);
  user_check(groups >= 1, ErrorKind::InvalidArgument, "groups must be at least 1, not {}.", groups);
  user_check(
      same(x[1], weight[1] * Dim(groups)), ErrorKind::InvalidArgument,
      "weight of shape {} with groups {} takes {} input channels, but x of shape {} has {}.\nhint: "
      "Give weight {} // groups input channels, or change groups.",
      weight.str(), groups, (weight[1] * Dim(groups)).str(), x.str(), x[1].str(), x[1].str());
  user_check(same(floor_mod(weight[0], Dim(groups)), Dim(0)), ErrorKind::InvalidArgument,
             "the {} output channels of weight are not divisible by groups {}.", weight[0].str(),
             groups);
  Shape out{x[0], weight[0]};
  for (size_t i = 0; i < 2; ++i)
    out.push_back(window_count(x[2 + i], weight[2 + i], stride[i],
                               padding[2 * i] + padding[2 * i + 1], dilation[i], false,
                               i == 0 ? "height" : "width"));
  return out;
}

Shape rank4(Dims shape, const char* name) {
  user_check(shape.size() == 4, ErrorKind::InvalidArgument, "{} {} must have 4 sizes.", name,
             to_string(shape));
  return Shape(shape);
}

void check_grad(const Shape& expected, const Tensor& grad) {
  user_check(same(expected, grad.shape()), ErrorKind::InvalidArgument,
             "grad has shape {}, but the convolution's result has shape {}.",
             to_string(grad.dims()), expected.str());
}

// ---- Batching. Batched images are more images; with batched weights, more groups.

// [b, n, channels, …] as [n, b * channels, …], and back.
Tensor as_channels(const BatchCall& c, size_t i) {
  const Tensor t = transpose(with_batch(c, i), {1, 0, 2, 3, 4});
  return reshape(t, {t.dim(0), t.dim(1) * t.dim(2), t.dim(3), t.dim(4)});
}
Tensor from_channels(const Tensor& t, Dim batch, Dim channels) {
  return transpose(reshape(t, {t.dim(0), batch, channels, t.dim(2), t.dim(3)}), {1, 0, 2, 3, 4});
}

Made batch_conv(const BatchCall& c) {
  const args::conv2d_core a(c.args);
  if (!c.batched[1])
    return unfold_batch(
        conv2d_core(fold_batch(c, 0), a.weight, a.stride, a.padding, a.dilation, a.groups), c.size);
  const Tensor out = conv2d_core(as_channels(c, 0), fold_batch(c, 1), a.stride, a.padding,
                                 a.dilation, a.groups * c.size.value());
  return from_channels(out, c.size, a.weight.dim(1));
}

Made batch_input_grad(const BatchCall& c) {
  const args::conv2d_input_grad a(c.args);
  Shape x(a.x_shape);
  if (!c.batched[0]) {
    x[0] = x[0] * c.size;
    return unfold_batch(
        conv2d_input_grad(a.weight, fold_batch(c, 1), x, a.stride, a.padding, a.dilation, a.groups),
        c.size);
  }
  const Dim channels = x[1];
  x[1] = x[1] * c.size;
  const Tensor out = conv2d_input_grad(fold_batch(c, 0), as_channels(c, 1), x, a.stride, a.padding,
                                       a.dilation, a.groups * c.size.value());
  return from_channels(out, c.size, channels);
}

Made batch_weight_grad(const BatchCall& c) {
  const args::conv2d_weight_grad a(c.args);
  Shape weight(a.weight_shape);
  weight[0] = weight[0] * c.size;
  return unfold_batch(conv2d_weight_grad(as_channels(c, 0), as_channels(c, 1), weight, a.stride,
                                         a.padding, a.dilation, a.groups * c.size.value()),
                      c.size);
}

const OpDef conv2d_core_op = {
    .schema =
        "conv2d_core(Tensor x, Tensor weight, int[] stride, shape padding, int[] dilation, int groups) -> Tensor",
    .brief =
        "The convolution of x [n, c, h, w] with weight [o, c / groups, kh, kw]; padding is [top, "
        "bottom, left, right].",
    .infer = [](const args::conv2d_core& a) -> Metas {
      return TensorMeta{a.x.dtype(), conv_result(a.x.shape(), a.weight.shape(), a.stride, a.padding,
                                                 a.dilation, a.groups)};
    },
    .vjp = [](const vjp::conv2d_core& v) -> Grads {
      return {v.needs(0) ? conv2d_input_grad(conjugate(v.weight), v.grad, v.x.dims(), v.stride,
                                             v.padding, v.dilation, v.groups)
                         : Tensor(),
              v.needs(1) ? conv2d_weight_grad(conjugate(v.x), v.grad, v.weight.dims(), v.stride,
                                              v.padding, v.dilation, v.groups)
                         : Tensor()};
    },
    .saves = "x weight",
    .batch = batch_conv,
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy =
        "(lambda p: np.einsum('ngchwyx,gocyx->ngohw', p.reshape(p.shape[0], groups, -1 if p.size else "
        "p.shape[1] // groups, *p.shape[2:]), weight.reshape(groups, -1, *weight.shape[1:])).reshape("
        "p.shape[0], weight.shape[0], p.shape[2], p.shape[3]))(np.lib.stride_tricks.sliding_window_view("
        "np.pad(x, ((0, 0), (0, 0), tuple(padding[:2]), tuple(padding[2:]))), ((weight.shape[2] - 1) * "
        "dilation[0] + 1, (weight.shape[3] - 1) * dilation[1] + 1), axis=(2, 3))[:, :, ::stride[0], "
        "::stride[1], ::dilation[0], ::dilation[1]])",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 5, 6}), t({4, 3, 3, 2}), IntVector{1, 1}, IntVector{1, 1, 0, 1},
                   IntVector{1, 1}, 1)
              .add(t({1, 4, 6, 5}), t({6, 2, 3, 3}), IntVector{2, 1}, IntVector{1, 0, 2, 1},
                   IntVector{1, 2}, 2)
              .add(t({2, 3, 5, 5}), t({3, 1, 3, 3}), IntVector{2, 1}, IntVector{1, 1, 1, 1},
                   IntVector{1, 1}, 3)
              .add(t({1, 3, 2, 3}), t({2, 3, 1, 1}), IntVector{1, 1}, IntVector{0, 0, 0, 0},
                   IntVector{1, 1}, 1)
              .add(t({0, 2, 4, 4}), t({3, 2, 2, 2}), IntVector{1, 1}, IntVector{0, 0, 0, 0},
                   IntVector{1, 1}, 1);
        },
    .onnx = "Conv",
};

const OpDef conv2d_input_grad_op = {
    .schema =
        "conv2d_input_grad(Tensor weight, Tensor grad, shape x_shape, int[] stride, shape padding, int[] dilation, int groups) -> Tensor",
    .brief = "The derivative of conv2d_core by its input; also a transposed convolution.",
    .infer = [](const args::conv2d_input_grad& a) -> Metas {
      const Shape x = rank4(a.x_shape, "x_shape");
      check_grad(conv_result(x, a.weight.shape(), a.stride, a.padding, a.dilation, a.groups),
                 a.grad);
      return TensorMeta{a.grad.dtype(), x};
    },
    .vjp = [](const vjp::conv2d_input_grad& v) -> Grads {
      const Tensor& cotangent = v.call.cotangents[0];
      const Tensor& grad = v.call.args[1].as_tensor();
      return {v.needs(0) ? conv2d_weight_grad(cotangent, conjugate(grad), v.weight.dims(), v.stride,
                                              v.padding, v.dilation, v.groups)
                         : Tensor(),
              v.needs(1) ? conv2d_core(cotangent, conjugate(v.weight), v.stride, v.padding,
                                       v.dilation, v.groups)
                         : Tensor()};
    },
    .saves = "weight grad",
    .batch = batch_input_grad,
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy =
        "(lambda z, w, g, s, d: ([z.__setitem__(k, z[k] + np.einsum('gocq,ngohw->ngchw', w[:, :, :, y, x, "
        "None], g).reshape(x_shape[0], x_shape[1], *g.shape[3:])) for y in range(w.shape[3]) for x in "
        "range(w.shape[4]) for k in [(slice(None), slice(None), slice(y * d[0], y * d[0] + (g.shape[3] - 1) "
        "* s[0] + 1, s[0]), slice(x * d[1], x * d[1] + (g.shape[4] - 1) * s[1] + 1, s[1]))]], z[:, :, "
        "padding[0]:padding[0] + x_shape[2], padding[2]:padding[2] + x_shape[3]])[1])(np.zeros(("
        "x_shape[0], x_shape[1], x_shape[2] + sum(padding[:2]), x_shape[3] + sum(padding[2:])), grad.dtype), "
        "weight.reshape(groups, -1, *weight.shape[1:]), grad.reshape(grad.shape[0], groups, "
        "weight.shape[0] // groups, *grad.shape[2:]), stride, dilation)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3, 3, 2}), t({2, 4, 5, 6}), IntVector{2, 3, 5, 6}, IntVector{1, 1},
                   IntVector{1, 1, 0, 1}, IntVector{1, 1}, 1)
              .add(t({6, 2, 3, 3}), t({1, 6, 3, 4}), IntVector{1, 4, 6, 5}, IntVector{2, 1},
                   IntVector{1, 0, 2, 1}, IntVector{1, 2}, 2)
              .add(t({3, 1, 3, 3}), t({2, 3, 3, 5}), IntVector{2, 3, 5, 5}, IntVector{2, 1},
                   IntVector{1, 1, 1, 1}, IntVector{1, 1}, 3)
              .add(t({3, 2, 2, 2}), t({0, 3, 3, 3}), IntVector{0, 2, 4, 4}, IntVector{1, 1},
                   IntVector{0, 0, 0, 0}, IntVector{1, 1}, 1);
        },
    .onnx = "ConvTranspose",
};

const OpDef conv2d_weight_grad_op = {
    .schema =
        "conv2d_weight_grad(Tensor x, Tensor grad, shape weight_shape, int[] stride, shape padding, int[] dilation, int groups) -> Tensor",
    .brief = "The derivative of conv2d_core by its weight.",
    .infer = [](const args::conv2d_weight_grad& a) -> Metas {
      const Shape weight = rank4(a.weight_shape, "weight_shape");
      check_grad(conv_result(a.x.shape(), weight, a.stride, a.padding, a.dilation, a.groups),
                 a.grad);
      return TensorMeta{a.grad.dtype(), weight};
    },
    .vjp = [](const vjp::conv2d_weight_grad& v) -> Grads {
      const Tensor& cotangent = v.call.cotangents[0];
      const Tensor& grad = v.call.args[1].as_tensor();
      return {v.needs(0) ? conv2d_input_grad(cotangent, conjugate(grad), v.x.dims(), v.stride,
                                             v.padding, v.dilation, v.groups)
                         : Tensor(),
              v.needs(1) ? conv2d_core(conjugate(v.x), cotangent, v.stride, v.padding, v.dilation,
                                       v.groups)
                         : Tensor()};
    },
    .saves = "x grad",
    .batch = batch_weight_grad,
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy =
        "(lambda p: np.einsum('ngchwyx,ngohw->gocyx', p.reshape(p.shape[0], groups, p.shape[1] // groups, "
        "*p.shape[2:]), grad.reshape(grad.shape[0], groups, grad.shape[1] // groups, *grad.shape[2:]))"
        ".reshape(weight_shape))(np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), "
        "tuple(padding[:2]), tuple(padding[2:]))), ((weight_shape[2] - 1) * dilation[0] + 1, "
        "(weight_shape[3] - 1) * dilation[1] + 1), axis=(2, 3))[:, :, ::stride[0], ::stride[1], "
        "::dilation[0], ::dilation[1]])",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 5, 6}), t({2, 4, 5, 6}), IntVector{4, 3, 3, 2}, IntVector{1, 1},
                   IntVector{1, 1, 0, 1}, IntVector{1, 1}, 1)
              .add(t({1, 4, 6, 5}), t({1, 6, 3, 4}), IntVector{6, 2, 3, 3}, IntVector{2, 1},
                   IntVector{1, 0, 2, 1}, IntVector{1, 2}, 2)
              .add(t({2, 3, 5, 5}), t({2, 3, 3, 5}), IntVector{3, 1, 3, 3}, IntVector{2, 1},
                   IntVector{1, 1, 1, 1}, IntVector{1, 1}, 3)
              .add(t({0, 2, 4, 4}), t({0, 3, 3, 3}), IntVector{3, 2, 2, 2}, IntVector{1, 1},
                   IntVector{0, 0, 0, 0}, IntVector{1, 1}, 1);
        },
};

// The public forms of the arguments, resolved.
Tensor convolve(const Tensor& x, const Tensor& weight, const Tensor& bias, Ints stride_given,
                Ints padding, Ints dilation_given, int64_t groups, std::string_view data_format,
                std::string_view padding_algorithm) {
  user_check(x.rank() == 4 && weight.rank() == 4, ErrorKind::InvalidArgument,
             "x and weight must have 4 axes, but their shapes are {} and {}.", to_string(x.dims()),
             to_string(weight.dims()));
  const bool channels_last = is_channels_last(data_format);
  const Tensor image = channels_last ? transpose(x, {0, 3, 1, 2}) : x;
  const auto stride = expand_ints(stride_given, 2, "stride");
  auto dilation = expand_ints(dilation_given, 2, "dilation");
  check_windows(Ints(stride), "stride");
  const Shape kernel{weight.dim(2), weight.dim(3)};
  const Shape image_size{image.dim(2), image.dim(3)};
  const Shape pads = resolve_padding(padding_algorithm, padding, image_size, kernel, Ints(stride));
  if (padding_algorithm == "SAME") dilation[0] = dilation[1] = 1;  // as Paddle defines it
  Tensor out = conv2d_core(image, weight, stride, pads, dilation, groups);
  if (bias.defined()) {
    user_check(bias.rank() == 1 && same(bias.dim(0), weight.dim(0)), ErrorKind::InvalidArgument,
               "bias of shape {} must have one number for each of the {} output channels.",
               to_string(bias.dims()), weight.dim(0).str());
    out = add(out, reshape(bias, {bias.dim(0), 1, 1}));
  }
  return channels_last ? transpose(out, {0, 2, 3, 1}) : out;
}

const OpDef conv2d_impl_op = {
    .schema =
        "conv2d_impl(Tensor x, Tensor weight, Tensor? bias = None, int[] stride = 1, int[] padding = 0, int[] dilation = 1, int groups = 1, str data_format = 'NCHW', str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief =
        "conv2d with padding as numbers (EXPLICIT: one, [height, width] or [top, bottom, left, right]) "
        "or by name: SAME, VALID.",
    .decompose = [](const args::conv2d_impl& a) -> Made {
      return convolve(a.x, a.weight, a.bias, a.stride, a.padding, a.dilation, a.groups,
                      a.data_format, a.padding_algorithm);
    },
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy =
        "(lambda x, s, k: (lambda e: (lambda p: (lambda o: o if data_format == 'NCHW' else "
        "np.transpose(o, (0, 2, 3, 1)))(np.einsum('nchwyx,ocyx->nohw', p, weight) + (0 if bias is None "
        "else bias[:, None, None])))(np.lib.stride_tricks.sliding_window_view(np.pad(x, ((0, 0), (0, 0), "
        "*[(q // 2, q - q // 2) for q in e])), k, axis=(2, 3))[:, :, ::s[0], ::s[1]]))([max((-(-n // t) - 1) "
        "* t + m - n, 0) if padding_algorithm == 'SAME' else 0 for n, t, m in zip(x.shape[2:], s, k)]))(x if "
        "data_format == 'NCHW' else np.transpose(x, (0, 3, 1, 2)), [stride[0], stride[-1]], weight.shape[2:])",
    .samples =
        [] {
          const auto x = t({1, 2, 5, 4});
          const auto w = t({3, 2, 3, 2});
          return Samples()
              .add(x, w, t({3}), IntVector{2, 1}, IntVector{0}, IntVector{1}, 1, "NCHW", "SAME")
              .add(x, w, std::nullopt, IntVector{1}, IntVector{0}, IntVector{1}, 1, "NCHW", "VALID")
              .add(t({1, 5, 4, 2}), w, t({3}), IntVector{2}, IntVector{0}, IntVector{1}, 1, "NHWC",
                   "SAME");
        },
};

const OpDef conv2d_op = {
    .schema =
        "conv2d(Tensor x, Tensor weight, Tensor? bias = None, int[] stride = 1, int[] padding = 0, int[] dilation = 1, int groups = 1, str data_format = 'NCHW') -> Tensor",
    .brief =
        "The convolution of images with a weight of shape [out_channels, in_channels / groups, height, "
        "width].",
    .decompose = [](const args::conv2d& a) -> Made {
      return convolve(a.x, a.weight, a.bias, a.stride, a.padding, a.dilation, a.groups,
                      a.data_format, "EXPLICIT");
    },
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .amp = Amp::Low,
    .numpy =
        "(lambda x, q, s, d: (lambda p: (lambda o: o if data_format == 'NCHW' else np.transpose(o, (0, 2, 3, "
        "1)))(np.einsum('ngchwyx,gocyx->ngohw', p.reshape(p.shape[0], groups, p.shape[1] // groups, "
        "*p.shape[2:]), weight.reshape(groups, -1, *weight.shape[1:])).reshape(p.shape[0], weight.shape[0], "
        "p.shape[2], p.shape[3]) + (0 if bias is None else bias[:, None, None])))(np.lib.stride_tricks."
        "sliding_window_view(np.pad(x, ((0, 0), (0, 0), tuple(q[:2]), tuple(q[2:]))), ((weight.shape[2] - 1) * "
        "d[0] + 1, (weight.shape[3] - 1) * d[1] + 1), axis=(2, 3))[:, :, ::s[0], ::s[1], ::d[0], ::d[1]]))(x if "
        "data_format == 'NCHW' else np.transpose(x, (0, 3, 1, 2)), padding if len(padding) == 4 else "
        "[padding[0], padding[0], padding[-1], padding[-1]], [stride[0], stride[-1]], [dilation[0], "
        "dilation[-1]])",
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
              .add(t({0, 2, 4, 4}), t({3, 2, 2, 2}), t({3}));
        },
    .python = "oar.nn.functional",
    .onnx = "Conv",
};

}  // namespace

OAR_FAMILY(conv, &conv2d_core_op, &conv2d_input_grad_op, &conv2d_weight_grad_op, &conv2d_impl_op,
           &conv2d_op)

}  // namespace oar
