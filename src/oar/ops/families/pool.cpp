// Pooling: the maximum or the mean of windows of an image with one to three spatial axes, as many as x has.
// Windows slide, divide the image into equal parts, or into parts of random sizes; the rest is common.
// The primitives take their arguments as plain numbers; pooling.cpp resolves the forms that users write.
#include "oar/ops/gen/pool.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/window.h"
#include "oar/ops/families/window_batch.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

ImageAxes image_axes(const Shape& x, bool channels_last) {
  return axes_of_rank(x.rank(), channels_last);
}

// The result of windows that slide over an image.
template <class A>
Shape pooled(const Shape& x, const A& a) {
  const ImageAxes axes = image_axes(x, a.channels_last);
  check_windows(a.kernel_size, axes.spatial, "kernel_size");
  check_windows(a.stride, axes.spatial, "stride");
  check_padding(a.padding, axes.spatial);
  Shape sizes;
  for (size_t i = 0; i < axes.spatial; ++i)
    sizes.push_back(window_count(axes.size(x, i), a.kernel_size[i], a.stride[i],
                                 a.padding[2 * i] + a.padding[2 * i + 1], 1, a.ceil_mode, i,
                                 axes.spatial));
  return axes.image(x[0], x[axes.channel()], sizes);
}

// … of as many windows as output_size says.
Shape divided(const Shape& x, Dims output_size, bool channels_last) {
  const ImageAxes axes = image_axes(x, channels_last);
  user_check(output_size.size() == axes.spatial, ErrorKind::InvalidArgument,
             "output_size {} must have one number for each of {} spatial axes.",
             to_string(output_size), axes.spatial);
  for (size_t i = 0; i < axes.spatial; ++i) {
    user_check(output_size[i].is_symbolic() || output_size[i].word() >= 0,
               ErrorKind::InvalidArgument, "output_size {} must not be negative.",
               to_string(output_size));
    user_check(!(axes.size(x, i) == Dim(0)) || output_size[i] == Dim(0), ErrorKind::InvalidArgument,
               "an image of shape {} has no pixels to fill an output of {}.", x.str(),
               to_string(output_size));
  }
  return axes.image(x[0], x[axes.channel()], output_size);
}

void check_same_images(const Shape& x, const Shape& grad, bool channels_last) {
  const ImageAxes axes = image_axes(x, channels_last);
  user_check(x.rank() == grad.rank() && same(x[0], grad[0]) &&
                 same(x[axes.channel()], grad[axes.channel()]),
             ErrorKind::InvalidArgument, "x_shape {} has other images than grad of shape {}.",
             x.str(), grad.str());
}

void check_mask(const Tensor& values, const Tensor& mask, bool channels_last) {
  const size_t channel = image_axes(values.shape(), channels_last).channel();
  user_check(mask.dtype() == DType::Int32 && mask.rank() == values.rank() &&
                 same(mask.dim(0), values.dim(0)) &&
                 same(mask.dims()[channel], values.dims()[channel]),
             ErrorKind::InvalidArgument,
             "mask ({}) must be the int32 mask of a pooling of the same images ({}).",
             mask.describe(), values.describe());
}

Metas with_mask(const Tensor& x, const Shape& out) {
  return {{x.dtype(), out}, {DType::Int32, out}};
}

const OpDef max_pool_op = {
    .schema =
        "max_pool(Tensor x, int[] kernel_size, int[] stride, shape padding, bool ceil_mode = False, bool channels_last = False) -> (Tensor out, Tensor mask)",
    .brief =
        "The largest element of each window, and its place in the image: the number of elements before "
        "it. Padding is [before, after] of each spatial axis and never wins.",
    .infer = [](const args::max_pool& a) -> Metas {
      return with_mask(a.x, pooled(a.x.shape(), a));
    },
    .vjp = [](const vjp::max_pool& v) -> Grads {
      return max_pool_scatter(v.grad_out, v.mask, v.x.dims(), v.channels_last);
    },
    .saves = "x:shape mask",
    .batch = [](const BatchCall& c) -> Made {
      const args::max_pool a(c.args);
      const auto [out, mask] = max_pool(fold_batch(c, 0), a.kernel_size, a.stride, a.padding,
                                        a.ceil_mode, a.channels_last);
      return {unfold_batch(out, c.size), unfold_batch(mask, c.size)};
    },
    .shard = "nc... -> nc..., nc... ; c@channels_last, ... whole",
    .dtypes = "int float",
    .numpy =
        "(lambda f, w: (lambda q, r: tuple((lambda o: np.moveaxis(o, 1, -1) if channels_last else "
        "o)(np.moveaxis(np.array(o, t).reshape(*[len(l) for l in w], *f.shape[:2]), (-2, -1), (0, 1))) for o, t "
        "in [(q, x.dtype), (r, 'int32')]))(*[list(o) for o in zip(*[(m, np.where(v == m.reshape(*m.shape, *[1] * "
        "len(w)), np.arange(math.prod(f.shape[2:])).reshape(f.shape[2:])[j], f.size).min(tuple(range(2, "
        "f.ndim)))) for i in np.ndindex(*[len(l) for l in w]) for j in [tuple(slice(max(l[c][0], 0), min(l[c][1], "
        "l[c][2])) for l, c in zip(w, i))] for v in [f[(..., *j)]] for m in [v.max(tuple(range(2, "
        "f.ndim)))]])]))(np.moveaxis(x, -1, 1) if channels_last else x, [[(i * s - a, i * s - a + k, n, n + b) "
        "for i in range((n + a + b - k + (s - 1 if ceil_mode else 0)) // s + 1)] for n, a, b, k, s in "
        "zip((x.shape[1:-1] if channels_last else x.shape[2:]), padding[::2], padding[1::2], kernel_size, "
        "stride)])",
    .samples =
        [] {
          return Samples()
              .add(distinct({2, 2, 5, 6}), IntVector{2, 3}, IntVector{2, 1}, IntVector{0, 0, 0, 0})
              .add(distinct({1, 2, 5, 5}), IntVector{3, 3}, IntVector{2, 2}, IntVector{1, 0, 1, 1},
                   true)
              .add(distinct({1, 4, 4, 3}), IntVector{2, 2}, IntVector{3, 2}, IntVector{0, 0, 1, 0},
                   true, true)
              .add(distinct({2, 1, 9}), IntVector{3}, IntVector{2}, IntVector{1, 0})
              .add(distinct({1, 2, 3, 4, 3}), IntVector{2, 2, 3}, IntVector{1, 2, 1},
                   IntVector{0, 1, 0, 0, 1, 1})
              .add(distinct({1, 3, 3, 2, 2}), IntVector{2, 1, 2}, IntVector{1, 1, 1},
                   IntVector{0, 0, 0, 0, 0, 0}, false, true)
              .add(distinct({0, 2, 4, 4}), IntVector{2, 2}, IntVector{2, 2}, IntVector{0, 0, 0, 0});
        },
    .onnx = "MaxPool",
};

const OpDef adaptive_max_pool_op = {
    .schema =
        "adaptive_max_pool(Tensor x, shape output_size, bool channels_last = False) -> (Tensor out, Tensor mask)",
    .brief =
        "The largest elements of windows that divide the image into output_size parts, and their places.",
    .infer = [](const args::adaptive_max_pool& a) -> Metas {
      return with_mask(a.x, divided(a.x.shape(), a.output_size, a.channels_last));
    },
    .vjp = [](const vjp::adaptive_max_pool& v) -> Grads {
      return max_pool_scatter(v.grad_out, v.mask, v.x.dims(), v.channels_last);
    },
    .saves = "x:shape mask",
    .batch = [](const BatchCall& c) -> Made {
      const args::adaptive_max_pool a(c.args);
      const auto [out, mask] = adaptive_max_pool(fold_batch(c, 0), a.output_size, a.channels_last);
      return {unfold_batch(out, c.size), unfold_batch(mask, c.size)};
    },
    .shard = "nc... -> nc..., nc... ; c@channels_last, ... whole",
    .dtypes = "int float",
    .numpy =
        "(lambda f, w: (lambda q, r: tuple((lambda o: np.moveaxis(o, 1, -1) if channels_last else "
        "o)(np.moveaxis(np.array(o, t).reshape(*[len(l) for l in w], *f.shape[:2]), (-2, -1), (0, 1))) for o, t "
        "in [(q, x.dtype), (r, 'int32')]))(*[list(o) for o in zip(*[(m, np.where(v == m.reshape(*m.shape, *[1] * "
        "len(w)), np.arange(math.prod(f.shape[2:])).reshape(f.shape[2:])[j], f.size).min(tuple(range(2, "
        "f.ndim)))) for i in np.ndindex(*[len(l) for l in w]) for j in [tuple(slice(max(l[c][0], 0), min(l[c][1], "
        "l[c][2])) for l, c in zip(w, i))] for v in [f[(..., *j)]] for m in [v.max(tuple(range(2, "
        "f.ndim)))]])]))(np.moveaxis(x, -1, 1) if channels_last else x, [[(i * n // m, -(-(i + 1) * n // m), n, "
        "n) for i in range(m)] for n, m in zip((x.shape[1:-1] if channels_last else x.shape[2:]), output_size)])",
    .samples =
        [] {
          return Samples()
              .add(distinct({1, 2, 5, 7}), IntVector{3, 2})
              .add(distinct({1, 1, 2, 3}), IntVector{2, 5})
              .add(distinct({2, 2, 7}), IntVector{3})
              .add(distinct({1, 4, 3, 5, 2}), IntVector{2, 3, 2}, true)
              .add(distinct({0, 2, 4, 4}), IntVector{2, 2});
        },
};

const OpDef fractional_max_pool_op = {
    .schema =
        "fractional_max_pool(Tensor x, Tensor u, shape output_size, int[]? kernel_size = None) -> (Tensor out, Tensor mask)",
    .brief =
        "The largest elements of output_size windows whose places the number u, of dtype float64 and in "
        "(0, 1), decides; the windows do not overlap unless they have a kernel_size.",
    .infer = [](const args::fractional_max_pool& a) -> Metas {
      const Shape out = divided(a.x.shape(), a.output_size, false);
      user_check(a.u.rank() == 0 && a.u.dtype() == DType::Float64, ErrorKind::InvalidArgument,
                 "u must be one float64, not {}.", a.u.describe());
      if (a.kernel_size) check_windows(*a.kernel_size, out.size() - 2, "kernel_size");
      for (size_t i = 2; i < out.size(); ++i) {
        const Dim least = a.kernel_size ? out[i] + Dim((*a.kernel_size)[i - 2]) - Dim(1) : out[i];
        user_check(out[i] == Dim(0) || !known_less(a.x.shape()[i], least),
                   ErrorKind::InvalidArgument,
                   "output_size {} is too large: {} windows need {} elements of axis {}, but x has "
                   "shape {}.",
                   to_string(a.output_size), out[i].str(), least.str(), i, to_string(a.x.dims()));
      }
      return with_mask(a.x, out);
    },
    .vjp = [](const vjp::fractional_max_pool& v) -> Grads {
      return {max_pool_scatter(v.grad_out, v.mask, v.x.dims()), Tensor()};
    },
    .saves = "x:shape mask",
    .shard = "nc...,  -> nc..., nc... ; ... whole",
    .dtypes = "int float",
    .numpy =
        "(lambda f, w: (lambda q, r: tuple((np.moveaxis(np.array(o, t).reshape(*[len(l) for l in w], "
        "*f.shape[:2]), (-2, -1), (0, 1))) for o, t in [(q, x.dtype), (r, 'int32')]))(*[list(o) for o in "
        "zip(*[(m, np.where(v == m.reshape(*m.shape, *[1] * len(w)), "
        "np.arange(math.prod(f.shape[2:])).reshape(f.shape[2:])[j], f.size).min(tuple(range(2, f.ndim)))) for i "
        "in np.ndindex(*[len(l) for l in w]) for j in [tuple(slice(max(l[c][0], 0), min(l[c][1], l[c][2])) for l, "
        "c in zip(w, i))] for v in [f[(..., *j)]] for m in [v.max(tuple(range(2, f.ndim)))]])]))(x, [[(int((i + "
        "v) * p) - int(v * p), int((i + v) * p) - int(v * p) + k if k else int((i + 1 + v) * p) - int(v * p), n, "
        "n) for i in range(m)] for n, m, k in zip(x.shape[2:], output_size, kernel_size or [0] * 3) for p in "
        "[np.float32(n - k) / np.float32(max(m - (1 if k else 0), 1)) if not k or m > 1 else np.float32(0)] for v "
        "in [np.float32(u) if k else np.float32(u) * min(np.float32(n // m + 2) / p - 1, np.float32(n + 1 - n // "
        "m) / p - np.float32(m - 1))]])",
    .samples =
        [] {
          TensorSpec u = of_dtype(uniform_in(0.3, 0.7, {}), DType::Float64);
          u.differentiable = false;
          return Samples()
              .add(distinct({1, 2, 7, 8}), u, IntVector{3, 5})
              .add(distinct({2, 1, 8, 7}), u, IntVector{3, 4}, IntVector{2, 3})
              .add(distinct({1, 1, 5, 6, 4}), u, IntVector{2, 3, 4})
              .add(distinct({0, 2, 4, 4}), u, IntVector{2, 2});
        },
};

const OpDef max_pool_scatter_op = {
    .schema =
        "max_pool_scatter(Tensor grad, Tensor mask, shape x_shape, bool channels_last = False) -> Tensor",
    .brief = "Adds each element of grad to the pixel that the mask names; -1 names none.",
    .infer = [](const args::max_pool_scatter& a) -> Metas {
      check_mask(a.grad, a.mask, a.channels_last);
      user_check(same(a.grad.shape(), a.mask.shape()), ErrorKind::InvalidArgument,
                 "grad has shape {} and mask {}; they must be equal.", to_string(a.grad.dims()),
                 to_string(a.mask.dims()));
      const Shape x(a.x_shape);
      check_same_images(x, a.grad.shape(), a.channels_last);
      return TensorMeta{a.grad.dtype(), x};
    },
    .vjp = [](const vjp::max_pool_scatter& v) -> Grads {
      return {max_pool_gather(v.call.cotangents[0], v.mask, v.channels_last), Tensor()};
    },
    .saves = "mask",
    .batch = [](const BatchCall& c) -> Made {
      const args::max_pool_scatter a(c.args);
      return unfold_batch(max_pool_scatter(fold_batch(c, 0), fold_batch(c, 1),
                                           folded_shape(c.size, a.x_shape), a.channels_last),
                          c.size);
    },
    .shard = "nc..., nc... -> nc... ; c@channels_last, ... whole",
    .localise = sharding::result_shape("x_shape"),
    .dtypes = "int float complex",
    .numpy =
        "(lambda g, m, s: (lambda z: (np.add.at(z, (np.arange(s[0])[:, None, None], np.arange(s[1])[:, None], "
        "m.reshape(s[0], s[1], math.prod(m.shape[2:]))), g.reshape(s[0], s[1], math.prod(g.shape[2:]))), (lambda o: "
        "np.moveaxis(o, 1, -1) if channels_last else o)(z.reshape(s)))[1])(np.zeros((s[0], s[1], math.prod(s[2:])), "
        "grad.dtype)))(*([np.moveaxis(grad, -1, 1), np.moveaxis(mask, -1, 1), [x_shape[0], x_shape[-1], "
        "*x_shape[1:-1]]] if channels_last else [grad, mask, x_shape]))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 2, 3}), ints(0, 20, {2, 2, 2, 3}, DType::Int32), IntVector{2, 2, 4, 5})
              .add(t({2, 3, 4}), ints(0, 6, {2, 3, 4}, DType::Int32), IntVector{2, 6, 4}, true)
              .add(t({1, 2, 2, 1, 2}), ints(0, 24, {1, 2, 2, 1, 2}, DType::Int32),
                   IntVector{1, 2, 4, 3, 2})
              .add(t({0, 1, 2, 2}), ints(0, 4, {0, 1, 2, 2}, DType::Int32), IntVector{0, 1, 4, 4});
        },
};

const OpDef max_pool_gather_op = {
    .schema = "max_pool_gather(Tensor x, Tensor mask, bool channels_last = False) -> Tensor",
    .brief = "The pixels that the mask names, 0 for -1: the reverse of max_pool_scatter.",
    .infer = [](const args::max_pool_gather& a) -> Metas {
      check_mask(a.x, a.mask, a.channels_last);
      return TensorMeta{a.x.dtype(), a.mask.shape()};
    },
    .vjp = [](const vjp::max_pool_gather& v) -> Grads {
      return {max_pool_scatter(v.grad, v.mask, v.x.dims(), v.channels_last), Tensor()};
    },
    .saves = "x:shape mask",
    .batch = [](const BatchCall& c) -> Made {
      const args::max_pool_gather a(c.args);
      return unfold_batch(max_pool_gather(fold_batch(c, 0), fold_batch(c, 1), a.channels_last),
                          c.size);
    },
    .shard = "nc..., nc... -> nc... ; c@channels_last, ... whole",
    .dtypes = "int float complex",
    .numpy =
        "(lambda f, m: (lambda o: np.moveaxis(o, 1, -1) if channels_last else o)(np.take_along_axis(f.reshape("
        "*f.shape[:2], math.prod(f.shape[2:])), m.reshape(*m.shape[:2], math.prod(m.shape[2:])), 2).reshape("
        "m.shape)))(*([np.moveaxis(x, -1, 1), np.moveaxis(mask, -1, 1)] if channels_last else [x, mask]))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 4, 5}), ints(0, 20, {2, 2, 2, 3}, DType::Int32))
              .add(t({2, 5, 3}), ints(0, 5, {2, 2, 3}, DType::Int32), true)
              .add(t({0, 1, 2, 2}), ints(0, 4, {0, 1, 1, 2}, DType::Int32));
        },
};

const OpDef avg_pool_op = {
    .schema =
        "avg_pool(Tensor x, int[] kernel_size, int[] stride, shape padding, bool ceil_mode = False, bool exclusive = True, float? divisor = None, bool channels_last = False) -> Tensor",
    .brief =
        "The mean of each window, or its sum over a divisor; padding, [before, after] of each spatial "
        "axis, counts unless it is exclusive.",
    .infer = [](const args::avg_pool& a) -> Metas {
      return TensorMeta{a.x.dtype(), pooled(a.x.shape(), a)};
    },
    .vjp = [](const vjp::avg_pool& v) -> Grads {
      return avg_pool_grad(v.grad, v.x.dims(), v.kernel_size, v.stride, v.padding, v.ceil_mode,
                           v.exclusive, v.divisor, v.channels_last);
    },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::avg_pool a(c.args);
      return unfold_batch(avg_pool(fold_batch(c, 0), a.kernel_size, a.stride, a.padding,
                                   a.ceil_mode, a.exclusive, a.divisor, a.channels_last),
                          c.size);
    },
    .shard = "nc... -> nc... ; c@channels_last, ... whole",
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy =
        "(lambda f, w: (lambda o: np.moveaxis(o, 1, -1) if channels_last else o)(np.moveaxis(np.array([f[(..., "
        "*[slice(max(a, 0), min(b, n)) for a, b, n, e in t])].sum(tuple(range(2, f.ndim))) / (divisor or "
        "math.prod((min(b, n) - max(a, 0)) if exclusive else min(b, e) - a for a, b, n, e in t)) for i in "
        "np.ndindex(*[len(l) for l in w]) for t in [[l[c] for l, c in zip(w, i)]]], f.dtype).reshape(*[len(l) for "
        "l in w], *f.shape[:2]), (-2, -1), (0, 1))))(np.moveaxis(x, -1, 1) if channels_last else x, [[(i * s - a, "
        "i * s - a + k, n, n + b) for i in range((n + a + b - k + (s - 1 if ceil_mode else 0)) // s + 1)] for n, "
        "a, b, k, s in zip((x.shape[1:-1] if channels_last else x.shape[2:]), padding[::2], padding[1::2], "
        "kernel_size, stride)])",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 5, 6}), IntVector{2, 3}, IntVector{2, 1}, IntVector{0, 0, 0, 0})
              .add(t({1, 2, 5, 5}), IntVector{3, 3}, IntVector{2, 2}, IntVector{1, 0, 1, 1}, true)
              .add(t({1, 2, 5, 5}), IntVector{3, 2}, IntVector{2, 2}, IntVector{1, 1, 0, 1}, true,
                   false)
              .add(t({1, 4, 5, 2}), IntVector{3, 2}, IntVector{1, 2}, IntVector{1, 1, 0, 1}, false,
                   true, std::nullopt, true)
              .add(t({1, 2, 7}), IntVector{3}, IntVector{2}, IntVector{1, 1}, true, true, 2.5)
              .add(t({1, 2, 3, 4, 3}), IntVector{2, 2, 2}, IntVector{1, 2, 1},
                   IntVector{1, 0, 0, 0, 0, 1})
              .add(t({1, 3, 3, 2, 2}), IntVector{2, 2, 1}, IntVector{1, 1, 1},
                   IntVector{0, 1, 0, 0, 0, 0}, false, false, std::nullopt, true)
              .add(t({0, 2, 4, 4}), IntVector{2, 2}, IntVector{2, 2}, IntVector{0, 0, 0, 0});
        },
    .onnx = "AveragePool",
};

const OpDef avg_pool_grad_op = {
    .schema =
        "avg_pool_grad(Tensor grad, shape x_shape, int[] kernel_size, int[] stride, shape padding, bool ceil_mode, bool exclusive, float? divisor, bool channels_last = False) -> Tensor",
    .brief = "Spreads each window's gradient evenly over its pixels: the reverse of avg_pool.",
    .infer = [](const args::avg_pool_grad& a) -> Metas {
      const Shape x(a.x_shape), out = pooled(x, a);
      user_check(same(out, a.grad.shape()), ErrorKind::InvalidArgument,
                 "grad has shape {}, but the pooling's result has shape {}.",
                 to_string(a.grad.dims()), out.str());
      return TensorMeta{a.grad.dtype(), x};
    },
    .vjp = [](const vjp::avg_pool_grad& v) -> Grads {
      return avg_pool(v.call.cotangents[0], v.kernel_size, v.stride, v.padding, v.ceil_mode,
                      v.exclusive, v.divisor, v.channels_last);
    },
    .batch = [](const BatchCall& c) -> Made {
      const args::avg_pool_grad a(c.args);
      return unfold_batch(
          avg_pool_grad(fold_batch(c, 0), folded_shape(c.size, a.x_shape), a.kernel_size, a.stride,
                        a.padding, a.ceil_mode, a.exclusive, a.divisor, a.channels_last),
          c.size);
    },
    .shard = "nc... -> nc... ; c@channels_last, ... whole",
    .localise = sharding::result_shape("x_shape"),
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy =
        "(lambda g, w, z: ([z.__setitem__(k, z[k] + (g[(..., *i)] / (divisor or math.prod((min(b, n) - max(a, 0)) "
        "if exclusive else min(b, e) - a for a, b, n, e in t))).reshape(*g.shape[:2], *[1] * len(w))) for i in "
        "np.ndindex(*[len(l) for l in w]) for t in [[l[c] for l, c in zip(w, i)]] for k in [(..., *[slice(max(a, "
        "0), max(min(b, n), 0)) for a, b, n, e in t])]], np.moveaxis(z, 1, -1) if channels_last else "
        "z)[1])(np.moveaxis(grad, -1, 1) if channels_last else grad, [[(i * s - a, i * s - a + k, n, n + b) for i "
        "in range((n + a + b - k + (s - 1 if ceil_mode else 0)) // s + 1)] for n, a, b, k, s in "
        "zip((x_shape[1:-1] if channels_last else x_shape[2:]), padding[::2], padding[1::2], kernel_size, "
        "stride)], np.zeros([x_shape[0], x_shape[-1], *x_shape[1:-1]] if channels_last else x_shape, grad.dtype))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 2, 4}), IntVector{2, 2, 5, 6}, IntVector{2, 3}, IntVector{2, 1},
                   IntVector{0, 0, 0, 0}, false, true, std::nullopt)
              .add(t({1, 2, 3, 3}), IntVector{1, 2, 5, 5}, IntVector{3, 3}, IntVector{2, 2},
                   IntVector{1, 0, 1, 1}, true, false, std::nullopt)
              .add(t({1, 4, 3, 2}), IntVector{1, 4, 5, 2}, IntVector{3, 2}, IntVector{1, 2},
                   IntVector{1, 1, 0, 1}, false, true, std::nullopt, true)
              .add(t({1, 2, 4}), IntVector{1, 2, 7}, IntVector{3}, IntVector{2}, IntVector{1, 1},
                   true, true, 2.5)
              .add(t({1, 2, 3, 2, 3}), IntVector{1, 2, 3, 4, 3}, IntVector{2, 2, 2},
                   IntVector{1, 2, 1}, IntVector{1, 0, 0, 0, 0, 1}, false, true, std::nullopt)
              .add(t({0, 2, 2, 2}), IntVector{0, 2, 4, 4}, IntVector{2, 2}, IntVector{2, 2},
                   IntVector{0, 0, 0, 0}, false, true, std::nullopt);
        },
};

const OpDef adaptive_avg_pool_op = {
    .schema =
        "adaptive_avg_pool(Tensor x, shape output_size, bool channels_last = False) -> Tensor",
    .brief = "The means of windows that divide the image into output_size parts.",
    .infer = [](const args::adaptive_avg_pool& a) -> Metas {
      return TensorMeta{a.x.dtype(), divided(a.x.shape(), a.output_size, a.channels_last)};
    },
    .vjp = [](const vjp::adaptive_avg_pool& v) -> Grads {
      return adaptive_avg_pool_grad(v.grad, v.x.dims(), v.channels_last);
    },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::adaptive_avg_pool a(c.args);
      return unfold_batch(adaptive_avg_pool(fold_batch(c, 0), a.output_size, a.channels_last),
                          c.size);
    },
    .shard = "nc... -> nc... ; c@channels_last, ... whole",
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy =
        "(lambda f, w: (lambda o: np.moveaxis(o, 1, -1) if channels_last else o)(np.moveaxis(np.array([f[(..., "
        "*[slice(max(a, 0), min(b, n)) for a, b, n, e in t])].sum(tuple(range(2, f.ndim))) / math.prod(b - a for "
        "a, b, n, e in t) for i in np.ndindex(*[len(l) for l in w]) for t in [[l[c] for l, c in zip(w, i)]]], "
        "f.dtype).reshape(*[len(l) for l in w], *f.shape[:2]), (-2, -1), (0, 1))))(np.moveaxis(x, -1, 1) if "
        "channels_last else x, [[(i * n // m, -(-(i + 1) * n // m), n, n) for i in range(m)] for n, m in "
        "zip((x.shape[1:-1] if channels_last else x.shape[2:]), output_size)])",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 5, 7}), IntVector{3, 2})
              .add(t({1, 2, 4, 6}), IntVector{1, 1})
              .add(t({1, 1, 2, 3}), IntVector{4, 5})
              .add(t({1, 2, 40}), IntVector{1})
              .add(t({1, 4, 3, 5, 2}), IntVector{2, 3, 2}, true)
              .add(t({0, 2, 4, 4}), IntVector{2, 2});
        },
};

const OpDef adaptive_avg_pool_grad_op = {
    .schema =
        "adaptive_avg_pool_grad(Tensor grad, shape x_shape, bool channels_last = False) -> Tensor",
    .brief =
        "Spreads each window's gradient evenly over its pixels: the reverse of adaptive_avg_pool.",
    .infer = [](const args::adaptive_avg_pool_grad& a) -> Metas {
      const Shape x(a.x_shape);
      check_same_images(x, a.grad.shape(), a.channels_last);
      return TensorMeta{a.grad.dtype(), x};
    },
    .vjp = [](const vjp::adaptive_avg_pool_grad& v) -> Grads {
      const Shape grad = v.call.args[0].as_tensor().shape();
      return adaptive_avg_pool(v.call.cotangents[0], image_axes(grad, v.channels_last).sizes(grad),
                               v.channels_last);
    },
    .saves = "grad:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::adaptive_avg_pool_grad a(c.args);
      return unfold_batch(adaptive_avg_pool_grad(fold_batch(c, 0), folded_shape(c.size, a.x_shape),
                                                 a.channels_last),
                          c.size);
    },
    .shard = "nc... -> nc... ; c@channels_last, ... whole",
    .localise = sharding::result_shape("x_shape"),
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy =
        "(lambda g, w, z: ([z.__setitem__(k, z[k] + (g[(..., *i)] / math.prod(b - a for a, b, n, e in "
        "t)).reshape(*g.shape[:2], *[1] * len(w))) for i in np.ndindex(*[len(l) for l in w]) for t in [[l[c] for "
        "l, c in zip(w, i)]] for k in [(..., *[slice(max(a, 0), max(min(b, n), 0)) for a, b, n, e in t])]], "
        "np.moveaxis(z, 1, -1) if channels_last else z)[1])(np.moveaxis(grad, -1, 1) if channels_last else grad, "
        "[[(i * n // m, -(-(i + 1) * n // m), n, n) for i in range(m)] for n, m in zip((x_shape[1:-1] if "
        "channels_last else x_shape[2:]), (grad.shape[1:-1] if channels_last else grad.shape[2:]))], "
        "np.zeros([x_shape[0], x_shape[-1], *x_shape[1:-1]] if channels_last else x_shape, grad.dtype))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 3, 2}), IntVector{2, 2, 5, 7})
              .add(t({1, 2, 1, 1}), IntVector{1, 2, 4, 6})
              .add(t({1, 1, 4, 5}), IntVector{1, 1, 2, 3})
              .add(t({1, 2, 3}), IntVector{1, 2, 7})
              .add(t({1, 2, 3, 2, 2}), IntVector{1, 4, 3, 5, 2}, true)
              .add(t({0, 2, 2, 2}), IntVector{0, 2, 4, 4});
        },
};

}  // namespace

OAR_FAMILY(pool, &max_pool_op, &adaptive_max_pool_op, &fractional_max_pool_op, &max_pool_scatter_op,
           &max_pool_gather_op, &avg_pool_op, &avg_pool_grad_op, &adaptive_avg_pool_op,
           &adaptive_avg_pool_grad_op)

}  // namespace oar
