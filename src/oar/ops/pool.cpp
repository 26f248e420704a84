// Pooling: the maximum or the mean of windows of an image. The primitives take their arguments as
// plain numbers; the public ops resolve the forms that users write.
#include "oar/ops/gen/pool.h"

#include "oar/ops/gen/shape.h"
#include "oar/ops/infer.h"
#include "oar/ops/registry.h"
#include "oar/ops/window.h"
#include "oar/ops/window_batch.h"

namespace oar {
namespace {

void check_image(const Tensor& x) {
  user_check(x.rank() == 4, ErrorKind::InvalidArgument,
             "x must have 4 axes (batch, channels, height, width), but its shape is {}.",
             to_string(x.dims()));
}
Shape rank4(Dims shape) {
  user_check(shape.size() == 4, ErrorKind::InvalidArgument, "x_shape {} must have 4 sizes.",
             to_string(shape));
  return Shape(shape);
}

// The result of windows that slide over an image.
Shape pooled(const Shape& x, Ints window, Ints stride, Dims padding, bool ceil_mode) {
  check_windows(window, 2, "kernel_size");
  check_windows(stride, 2, "stride");
  check_padding(padding, 2);
  Shape out{x[0], x[1]};
  for (size_t i = 0; i < 2; ++i)
    out.push_back(window_count(x[2 + i], window[i], stride[i], padding[2 * i] + padding[2 * i + 1],
                               1, ceil_mode, i, 2));
  return out;
}

Shape adapted(const Shape& x, Dims output_size) {
  user_check(output_size.size() == 2, ErrorKind::InvalidArgument,
             "output_size {} must have two numbers.", to_string(output_size));
  for (Dim d : output_size)
    user_check(d.is_symbolic() || d.word() >= 0, ErrorKind::InvalidArgument,
               "output_size {} must not be negative.", to_string(output_size));
  for (size_t i = 0; i < 2; ++i)
    user_check(!(x[2 + i] == Dim(0)) || output_size[i] == Dim(0), ErrorKind::InvalidArgument,
               "an image of shape {} has no pixels to fill an output of {}.", x.str(),
               to_string(output_size));
  return {x[0], x[1], output_size[0], output_size[1]};
}

void check_mask(const Tensor& values, const Tensor& mask) {
  user_check(mask.dtype() == DType::Int32 && mask.rank() == 4 && values.rank() == 4 &&
                 same(mask.dim(0), values.dim(0)) && same(mask.dim(1), values.dim(1)),
             ErrorKind::InvalidArgument,
             "mask ({}) must be the int32 mask of a pooling of the same images ({}).",
             mask.describe(), values.describe());
}

const OpDef max_pool2d_with_index_op = {
    .schema =
        "max_pool2d_with_index(Tensor x, int[] kernel_size, int[] stride, shape padding, bool ceil_mode = False) -> (Tensor out, Tensor mask)",
    .brief =
        "The largest element of each window, and its place in the image (row * width + column). Padding "
        "is [top, bottom, left, right] and never wins.",
    .infer = [](const args::max_pool2d_with_index& a) -> Metas {
      check_image(a.x);
      const Shape out = pooled(a.x.shape(), a.kernel_size, a.stride, a.padding, a.ceil_mode);
      return {{a.x.dtype(), out}, {DType::Int32, out}};
    },
    .vjp = [](const vjp::max_pool2d_with_index& v) -> Grads {
      return max_pool2d_scatter(v.grad_out, v.mask, v.x.dims());
    },
    .saves = "x:shape mask",
    .batch = [](const BatchCall& c) -> Made {
      const args::max_pool2d_with_index a(c.args);
      const auto [out, mask] =
          max_pool2d_with_index(fold_batch(c, 0), a.kernel_size, a.stride, a.padding, a.ceil_mode);
      return {unfold_batch(out, c.size), unfold_batch(mask, c.size)};
    },
    .dtypes = "int float",
    .numpy =
        "(lambda s, k, q, o: (lambda w: (w.max(-1).astype(x.dtype), (lambda a: ((np.arange(o[0]) * s[0] - "
        "q[0])[:, None] + a // k[1]) * x.shape[3] + np.arange(o[1]) * s[1] - q[2] + a % k[1])(w.argmax(-1))."
        "astype('int32')))(np.lib.stride_tricks.sliding_window_view(np.pad(x.astype('float64'), ((0, 0), (0, "
        "0), (q[0], k[0] + s[0] + q[1]), (q[2], k[1] + s[1] + q[3])), constant_values=-np.inf), k, axis=(2, 3))"
        "[:, :, ::s[0], ::s[1]][:, :, :o[0], :o[1]].reshape(*x.shape[:2], *o, k[0] * k[1])))(stride, "
        "tuple(kernel_size), padding, [(n + a + b - k + (s - 1 if ceil_mode else 0)) // s + 1 for n, a, b, k, s "
        "in zip(x.shape[2:], padding[::2], padding[1::2], kernel_size, stride)])",
    .samples =
        [] {
          return Samples()
              .add(distinct({2, 2, 5, 6}), IntVector{2, 3}, IntVector{2, 1}, IntVector{0, 0, 0, 0})
              .add(distinct({1, 2, 5, 5}), IntVector{3, 3}, IntVector{2, 2}, IntVector{1, 0, 1, 1},
                   true)
              .add(distinct({1, 1, 4, 4}), IntVector{2, 2}, IntVector{3, 3}, IntVector{0, 0, 0, 0},
                   true)
              .add(distinct({0, 2, 4, 4}), IntVector{2, 2}, IntVector{2, 2}, IntVector{0, 0, 0, 0});
        },
    .onnx = "MaxPool",
};

const OpDef adaptive_max_pool2d_with_index_op = {
    .schema =
        "adaptive_max_pool2d_with_index(Tensor x, shape output_size) -> (Tensor out, Tensor mask)",
    .brief =
        "The largest elements of windows that divide the image into output_size parts, and their places.",
    .infer = [](const args::adaptive_max_pool2d_with_index& a) -> Metas {
      check_image(a.x);
      const Shape out = adapted(a.x.shape(), a.output_size);
      return {{a.x.dtype(), out}, {DType::Int32, out}};
    },
    .vjp = [](const vjp::adaptive_max_pool2d_with_index& v) -> Grads {
      return max_pool2d_scatter(v.grad_out, v.mask, v.x.dims());
    },
    .saves = "x:shape mask",
    .batch = [](const BatchCall& c) -> Made {
      const args::adaptive_max_pool2d_with_index a(c.args);
      const auto [out, mask] = adaptive_max_pool2d_with_index(fold_batch(c, 0), a.output_size);
      return {unfold_batch(out, c.size), unfold_batch(mask, c.size)};
    },
    .dtypes = "int float",
    .numpy =
        "(lambda h, w, c: (np.array([x[n, d, a:b, e:f].max() for n in range(x.shape[0]) for d in "
        "range(x.shape[1]) for a, b in h for e, f in w], dtype=x.dtype).reshape(c), np.array([np.where(x[n, d] "
        "== x[n, d, a:b, e:f].max(), np.arange(x.shape[2] * x.shape[3]).reshape(x.shape[2:]), "
        "x.size)[a:b, e:f].min() for n in range(x.shape[0]) for d in range(x.shape[1]) for a, b in h for e, f "
        "in w], dtype='int32').reshape(c)))(*[[(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] for n, m "
        "in zip(x.shape[2:], output_size)], (*x.shape[:2], *output_size))",
    .samples =
        [] {
          return Samples()
              .add(distinct({1, 2, 5, 7}), IntVector{3, 2})
              .add(distinct({1, 1, 2, 3}), IntVector{2, 5})
              .add(distinct({0, 2, 4, 4}), IntVector{2, 2});
        },
};

const OpDef max_pool2d_scatter_op = {
    .schema = "max_pool2d_scatter(Tensor grad, Tensor mask, shape x_shape) -> Tensor",
    .brief = "Adds each element of grad to the pixel that the mask names; -1 names none.",
    .infer = [](const args::max_pool2d_scatter& a) -> Metas {
      check_mask(a.grad, a.mask);
      user_check(same(a.grad.shape(), a.mask.shape()), ErrorKind::InvalidArgument,
                 "grad has shape {} and mask {}; they must be equal.", to_string(a.grad.dims()),
                 to_string(a.mask.dims()));
      const Shape x = rank4(a.x_shape);
      user_check(same(x[0], a.grad.dim(0)) && same(x[1], a.grad.dim(1)), ErrorKind::InvalidArgument,
                 "x_shape {} has other images than grad of shape {}.", x.str(),
                 to_string(a.grad.dims()));
      return TensorMeta{a.grad.dtype(), x};
    },
    .vjp = [](const vjp::max_pool2d_scatter& v) -> Grads {
      return {max_pool2d_gather(v.call.cotangents[0], v.mask), Tensor()};
    },
    .saves = "mask",
    .batch = [](const BatchCall& c) -> Made {
      const args::max_pool2d_scatter a(c.args);
      return unfold_batch(
          max_pool2d_scatter(fold_batch(c, 0), fold_batch(c, 1), folded_shape(c.size, a.x_shape)),
          c.size);
    },
    .dtypes = "int float complex",
    .numpy =
        "(lambda z: (np.add.at(z, (np.arange(grad.shape[0])[:, None, None], np.arange(grad.shape[1])[:, None], "
        "mask.reshape(*mask.shape[:2], mask.shape[2] * mask.shape[3])), grad.reshape(*grad.shape[:2], "
        "grad.shape[2] * grad.shape[3])), z.reshape(x_shape))[1])(np.zeros((*x_shape[:2], x_shape[2] * "
        "x_shape[3]), grad.dtype))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 2, 3}), ints(0, 20, {2, 2, 2, 3}, DType::Int32), IntVector{2, 2, 4, 5})
              .add(t({0, 1, 2, 2}), ints(0, 4, {0, 1, 2, 2}, DType::Int32), IntVector{0, 1, 4, 4});
        },
};

const OpDef max_pool2d_gather_op = {
    .schema = "max_pool2d_gather(Tensor x, Tensor mask) -> Tensor",
    .brief = "The pixels that the mask names, 0 for -1: the reverse of max_pool2d_scatter.",
    .infer = [](const args::max_pool2d_gather& a) -> Metas {
      check_mask(a.x, a.mask);
      return TensorMeta{a.x.dtype(), a.mask.shape()};
    },
    .vjp = [](const vjp::max_pool2d_gather& v) -> Grads {
      return {max_pool2d_scatter(v.grad, v.mask, v.x.dims()), Tensor()};
    },
    .saves = "x:shape mask",
    .batch = [](const BatchCall& c) -> Made {
      return unfold_batch(max_pool2d_gather(fold_batch(c, 0), fold_batch(c, 1)), c.size);
    },
    .dtypes = "int float complex",
    .numpy =
        "np.take_along_axis(x.reshape(*x.shape[:2], x.shape[2] * x.shape[3]), mask.reshape(*mask.shape[:2], "
        "mask.shape[2] * mask.shape[3]), 2).reshape(mask.shape)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 4, 5}), ints(0, 20, {2, 2, 2, 3}, DType::Int32))
              .add(t({0, 1, 2, 2}), ints(0, 4, {0, 1, 1, 2}, DType::Int32));
        },
};

const OpDef avg_pool2d_core_op = {
    .schema =
        "avg_pool2d_core(Tensor x, int[] kernel_size, int[] stride, shape padding, bool ceil_mode = False, bool exclusive = True) -> Tensor",
    .brief =
        "The mean of each window; padding [top, bottom, left, right] counts unless it is exclusive.",
    .infer = [](const args::avg_pool2d_core& a) -> Metas {
      check_image(a.x);
      return TensorMeta{a.x.dtype(),
                        pooled(a.x.shape(), a.kernel_size, a.stride, a.padding, a.ceil_mode)};
    },
    .vjp = [](const vjp::avg_pool2d_core& v) -> Grads {
      return avg_pool2d_grad(v.grad, v.x.dims(), v.kernel_size, v.stride, v.padding, v.ceil_mode,
                             v.exclusive);
    },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::avg_pool2d_core a(c.args);
      return unfold_batch(avg_pool2d_core(fold_batch(c, 0), a.kernel_size, a.stride, a.padding,
                                          a.ceil_mode, a.exclusive),
                          c.size);
    },
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy =
        "(lambda h, w: np.array([x[:, :, max(a, 0):b, max(c, 0):d].sum((2, 3)) / ((min(b, "
        "x.shape[2]) - max(a, 0)) * (min(d, x.shape[3]) - max(c, 0)) if exclusive else (b - a) * (d - c)) for "
        "a, b in h for c, d in w]).reshape(len(h), len(w), *x.shape[:2]).transpose(2, 3, 0, 1))(*[[(i * s - a, "
        "min(i * s - a + k, n + b)) for i in range((n + a + b - k + (s - 1 if ceil_mode else 0)) // s + 1)] for "
        "n, a, b, k, s in zip(x.shape[2:], padding[::2], padding[1::2], kernel_size, stride)])",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 5, 6}), IntVector{2, 3}, IntVector{2, 1}, IntVector{0, 0, 0, 0})
              .add(t({1, 2, 5, 5}), IntVector{3, 3}, IntVector{2, 2}, IntVector{1, 0, 1, 1}, true)
              .add(t({1, 2, 5, 5}), IntVector{3, 2}, IntVector{2, 2}, IntVector{1, 1, 0, 1}, true,
                   false)
              .add(t({0, 2, 4, 4}), IntVector{2, 2}, IntVector{2, 2}, IntVector{0, 0, 0, 0});
        },
    .onnx = "AveragePool",
};

const OpDef avg_pool2d_grad_op = {
    .schema =
        "avg_pool2d_grad(Tensor grad, shape x_shape, int[] kernel_size, int[] stride, shape padding, bool ceil_mode, bool exclusive) -> Tensor",
    .brief =
        "Spreads each window's gradient evenly over its pixels: the reverse of avg_pool2d_core.",
    .infer = [](const args::avg_pool2d_grad& a) -> Metas {
      const Shape x = rank4(a.x_shape);
      const Shape out = pooled(x, a.kernel_size, a.stride, a.padding, a.ceil_mode);
      user_check(same(out, a.grad.shape()), ErrorKind::InvalidArgument,
                 "grad has shape {}, but the pooling's result has shape {}.",
                 to_string(a.grad.dims()), out.str());
      return TensorMeta{a.grad.dtype(), x};
    },
    .vjp = [](const vjp::avg_pool2d_grad& v) -> Grads {
      return avg_pool2d_core(v.call.cotangents[0], v.kernel_size, v.stride, v.padding, v.ceil_mode,
                             v.exclusive);
    },
    .batch = [](const BatchCall& c) -> Made {
      const args::avg_pool2d_grad a(c.args);
      return unfold_batch(
          avg_pool2d_grad(fold_batch(c, 0), folded_shape(c.size, a.x_shape), a.kernel_size,
                          a.stride, a.padding, a.ceil_mode, a.exclusive),
          c.size);
    },
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy =
        "(lambda z, h, w: ([z.__setitem__(k, z[k] + (grad[:, :, i, j] / ((min(b, x_shape[2]) - "
        "max(a, 0)) * (min(d, x_shape[3]) - max(c, 0)) if exclusive else (b - a) * (d - c)))[:, :, None, None]) "
        "for i, (a, b) in enumerate(h) for j, (c, d) in enumerate(w) for k in [(slice(None), slice(None), "
        "slice(max(a, 0), max(b, 0)), slice(max(c, 0), max(d, 0)))]], z)[1])(np.zeros(x_shape, grad.dtype), *[[(i "
        "* s - a, min(i * s - a + k, n + b)) for i in range((n + a + b - k + (s - 1 if ceil_mode else 0)) // s + "
        "1)] for n, a, b, k, s in zip(x_shape[2:], padding[::2], padding[1::2], kernel_size, stride)])",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 2, 4}), IntVector{2, 2, 5, 6}, IntVector{2, 3}, IntVector{2, 1},
                   IntVector{0, 0, 0, 0}, false, true)
              .add(t({1, 2, 3, 3}), IntVector{1, 2, 5, 5}, IntVector{3, 3}, IntVector{2, 2},
                   IntVector{1, 0, 1, 1}, true, false)
              .add(t({0, 2, 2, 2}), IntVector{0, 2, 4, 4}, IntVector{2, 2}, IntVector{2, 2},
                   IntVector{0, 0, 0, 0}, false, true);
        },
};

const OpDef adaptive_avg_pool2d_core_op = {
    .schema = "adaptive_avg_pool2d_core(Tensor x, shape output_size) -> Tensor",
    .brief = "The means of windows that divide the image into output_size parts.",
    .infer = [](const args::adaptive_avg_pool2d_core& a) -> Metas {
      check_image(a.x);
      return TensorMeta{a.x.dtype(), adapted(a.x.shape(), a.output_size)};
    },
    .vjp = [](const vjp::adaptive_avg_pool2d_core& v) -> Grads {
      return adaptive_avg_pool2d_grad(v.grad, v.x.dims());
    },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::adaptive_avg_pool2d_core a(c.args);
      return unfold_batch(adaptive_avg_pool2d_core(fold_batch(c, 0), a.output_size), c.size);
    },
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy =
        "(lambda h, w: np.array([x[:, :, a:b, c:d].mean((2, 3)) for a, b in h for c, d in w]).reshape(len(h), "
        "len(w), *x.shape[:2]).transpose(2, 3, 0, 1))(*[[(i * n // m, -(-(i + 1) * n // m)) for i in range(m)] "
        "for n, m in zip(x.shape[2:], output_size)])",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 5, 7}), IntVector{3, 2})
              .add(t({1, 2, 4, 6}), IntVector{1, 1})
              .add(t({1, 1, 2, 3}), IntVector{4, 5})
              .add(t({0, 2, 4, 4}), IntVector{2, 2});
        },
};

const OpDef adaptive_avg_pool2d_grad_op = {
    .schema = "adaptive_avg_pool2d_grad(Tensor grad, shape x_shape) -> Tensor",
    .brief =
        "Spreads each window's gradient evenly over its pixels: the reverse of adaptive_avg_pool2d_core.",
    .infer = [](const args::adaptive_avg_pool2d_grad& a) -> Metas {
      check_image(a.grad);
      const Shape x = rank4(a.x_shape);
      user_check(same(x[0], a.grad.dim(0)) && same(x[1], a.grad.dim(1)), ErrorKind::InvalidArgument,
                 "x_shape {} has other images than grad of shape {}.", x.str(),
                 to_string(a.grad.dims()));
      return TensorMeta{a.grad.dtype(), x};
    },
    .vjp = [](const vjp::adaptive_avg_pool2d_grad& v) -> Grads {
      const Dims size = v.call.args[0].as_tensor().dims();
      return adaptive_avg_pool2d_core(v.call.cotangents[0], size.subspan(2));
    },
    .saves = "grad:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::adaptive_avg_pool2d_grad a(c.args);
      return unfold_batch(
          adaptive_avg_pool2d_grad(fold_batch(c, 0), folded_shape(c.size, a.x_shape)), c.size);
    },
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy =
        "(lambda z, h, w: ([z.__setitem__(k, z[k] + (grad[:, :, i, j] / ((b - a) * (d - c)))[:, :, None, None]) "
        "for i, (a, b) in enumerate(h) for j, (c, d) in enumerate(w) for k in [(slice(None), slice(None), "
        "slice(a, b), slice(c, d))]], z)[1])(np.zeros(x_shape, grad.dtype), *[[(i * n // m, -(-(i + 1) * n // m)) "
        "for i in range(m)] for n, m in zip(x_shape[2:], grad.shape[2:])])",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 3, 2}), IntVector{2, 2, 5, 7})
              .add(t({1, 2, 1, 1}), IntVector{1, 2, 4, 6})
              .add(t({1, 1, 4, 5}), IntVector{1, 1, 2, 3})
              .add(t({0, 2, 2, 2}), IntVector{0, 2, 4, 4});
        },
};

}  // namespace

OAR_FAMILY(pool, &max_pool2d_with_index_op, &adaptive_max_pool2d_with_index_op,
           &max_pool2d_scatter_op, &max_pool2d_gather_op, &avg_pool2d_core_op, &avg_pool2d_grad_op,
           &adaptive_avg_pool2d_core_op, &adaptive_avg_pool2d_grad_op)

}  // namespace oar
