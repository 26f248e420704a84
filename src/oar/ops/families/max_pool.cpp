// The largest elements of windows of images with one to three spatial axes. Windows slide, divide the image
// into equal parts, or into parts of random sizes. The primitives take their arguments as plain numbers;
// max_pool1d and similar ops resolve the forms that users write.
#include "oar/ops/gen/max_pool.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/cost_rules.h"
#include "oar/ops/families/pool_rules.h"
#include "oar/ops/families/window.h"
#include "oar/ops/families/window_batch.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

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
    .cost =
        [](const CostCall& c) {
          return window_cost(c.results[0], args::max_pool(c.args).kernel_size);
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
    .shard = "nc... -> nc..., nc... ; c@channels_last, ... whole # windows reach across a cut",
    .layout = {.images = "x"},
    .dtypes = "int float",
    .numpy =
        "(lambda f, w: (lambda q, r: tuple((lambda o: np.moveaxis(o, 1, -1) if channels_last else "
        "o)(np.moveaxis(np.array(o, t).reshape(*[len(l) for l in w], *f.shape[:2]), (-2, -1), (0, 1))) for o, t "
        "in [(q, x.dtype), (r, 'int32')]))(*[list(o) for o in zip(*[(m, np.where(v == m.reshape(*m.shape, *[1] * "
        "len(w)), np.arange(math.prod(f.shape[2:])).reshape(f.shape[2:])[j], f.size).min(tuple(range(2, "
        "f.ndim)))) for i in np.ndindex(*[len(l) for l in w]) for j in [tuple(slice(max(l[c][0], 0), min(l[c][1], "
        "l[c][2])) for l, c in zip(w, i))] for v in [f[(..., *j)]] for m in [v.max(tuple(range(2, "
        "f.ndim)))]])]))(np.moveaxis(x, -1, 1) if channels_last else x, [[(i * s - a, i * s - a + k, n, n + b) "
        "for i in range(max((n + a + b - k + (s - 1 if ceil_mode else 0)) // s + 1, 1))] for n, a, b, k, s in "
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
    .shard =
        "nc... -> nc..., nc... ; c@channels_last, ... whole # where windows begin depends on the whole size",
    .layout = {.images = "x"},
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
    .shard = "nc...,  -> nc..., nc... ; ... whole # where windows begin depends on the whole size",
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

void check_mask(const Tensor& values, const Tensor& mask, bool channels_last) {
  const size_t channel = image_axes(values.shape(), channels_last).channel();
  user_check(mask.dtype() == DType::Int32 && mask.rank() == values.rank() &&
                 same(mask.dim(0), values.dim(0)) &&
                 same(mask.dims()[channel], values.dims()[channel]),
             ErrorKind::InvalidArgument,
             "mask ({}) must be the int32 mask of a pooling of the same images ({}).",
             mask.describe(), values.describe());
}

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
    .shard =
        "nc..., nc... -> nc... ; c@channels_last, ... whole # places are numbered over the whole image",
    .localise = sharding::result_shape("x_shape"),
    .layout = {.images = "grad mask", .sizes = "x_shape"},
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
    .shard =
        "nc..., nc... -> nc... ; c@channels_last, ... whole # places are numbered over the whole image",
    .layout = {.images = "x mask"},
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

template <class A>
Made largest(const A& a, size_t spatial) {
  const ResolvedWindows r(a, spatial);
  return max_pool(a.x, r.window, r.stride, r.padding, a.ceil_mode, r.axes.channels_last);
}

const OpDef max_pool_with_mask_op = {
    .schema =
        "max_pool_with_mask(Tensor x, int[] kernel_size, int[]? stride, int[] padding, bool ceil_mode, str data_format, str padding_algorithm = 'EXPLICIT') -> (Tensor out, Tensor mask)",
    .brief =
        "The largest element of each window and its place in the image: the number of elements before it.",
    .decompose = [](const args::max_pool_with_mask& a) -> Made {
      return largest(a, spatial_of(a.x));
    },
    .dtypes = "int float",
    .numpy =
        "(lambda f, w: (lambda q, r: tuple((lambda o: np.moveaxis(o, 1, -1) if data_format[-1] == 'C' else "
        "o)(np.moveaxis(np.array(o, t).reshape(*[len(l) for l in w], *f.shape[:2]), (-2, -1), (0, 1))) for o, t "
        "in [(q, x.dtype), (r, 'int32')]))(*[list(o) for o in zip(*[(m, np.where(v == m.reshape(*m.shape, *[1] * "
        "len(w)), np.arange(math.prod(f.shape[2:])).reshape(f.shape[2:])[j], f.size).min(tuple(range(2, "
        "f.ndim)))) for i in np.ndindex(*[len(l) for l in w]) for j in [tuple(slice(max(l[c][0], 0), min(l[c][1], "
        "l[c][2])) for l, c in zip(w, i))] for v in [f[(..., *j)]] for m in [v.max(tuple(range(2, "
        "f.ndim)))]])]))(np.moveaxis(x, -1, 1) if data_format[-1] == 'C' else x, (lambda z: (lambda kk, ss: [[(i "
        "* s - a, i * s - a + k, m, m + b) for i in range(max((m + a + b - k + (s - 1 if ceil_mode else 0)) // s + "
        "1, 1))] for m, (a, b), k, s in zip(z, [(0, 0)] * len(z) if padding_algorithm == 'VALID' else [(e // 2, e - e "
        "// 2) for m, k, s in zip(z, kk, ss) for e in [max((-(-m // s) - 1) * s + k - m, 0)]] if "
        "padding_algorithm == 'SAME' else list(zip(padding[::2], padding[1::2])) if len(padding) == 2 * len(z) "
        "else [(e, e) for e in (list(padding) * len(z))[:len(z)]], kk, ss)])((list(kernel_size) * "
        "len(z))[:len(z)], (list(stride or kernel_size) * len(z))[:len(z)]))((x.shape[1:-1] if data_format[-1] == "
        "'C' else x.shape[2:])))",
    .samples =
        [] {
          return Samples()
              .add(distinct({1, 2, 4, 6}), IntVector{2}, std::nullopt, IntVector{0}, false, "NCHW")
              .add(distinct({2, 6, 3}), IntVector{3}, IntVector{2}, IntVector{1}, false, "NLC");
        },
};

const OpDef adaptive_max_pool_with_mask_op = {
    .schema =
        "adaptive_max_pool_with_mask(Tensor x, int[] output_size) -> (Tensor out, Tensor mask)",
    .brief =
        "The largest elements of windows that divide the image into output_size parts, and their places.",
    .decompose = [](const args::adaptive_max_pool_with_mask& a) -> Made {
      return adaptive_max_pool(a.x, output_of(a.x, a.output_size, {spatial_of(a.x), false}));
    },
    .dtypes = "int float",
    .numpy =
        "(lambda f, w: (lambda q, r: tuple((np.moveaxis(np.array(o, t).reshape(*[len(l) for l in w], "
        "*f.shape[:2]), (-2, -1), (0, 1))) for o, t in [(q, x.dtype), (r, 'int32')]))(*[list(o) for o in "
        "zip(*[(m, np.where(v == m.reshape(*m.shape, *[1] * len(w)), "
        "np.arange(math.prod(f.shape[2:])).reshape(f.shape[2:])[j], f.size).min(tuple(range(2, f.ndim)))) for i "
        "in np.ndindex(*[len(l) for l in w]) for j in [tuple(slice(max(l[c][0], 0), min(l[c][1], l[c][2])) for l, "
        "c in zip(w, i))] for v in [f[(..., *j)]] for m in [v.max(tuple(range(2, f.ndim)))]])]))(x, [[(i * n // "
        "m, -(-(i + 1) * n // m), n, n) for i in range(m)] for n, m in zip(x.shape[2:], [n if m == -1 else m for "
        "n, m in zip(x.shape[2:], (list(output_size) * 3)[:x.ndim - 2])])])",
    .samples =
        [] {
          return Samples()
              .add(distinct({1, 2, 4, 6}), IntVector{3})
              .add(distinct({2, 1, 5}), IntVector{-1});
        },
};

// The size of the image that was pooled, as far as it is known; output_size may differ a little from the rule.
template <class A>
Shape unpooled_sizes(const A& a, const ImageAxes& axes) {
  const Numbers window = expand_ints(a.kernel_size, axes.spatial, "kernel_size");
  const Numbers stride = stride_of(a.stride, window);
  const Numbers padding = expand_ints(a.padding, axes.spatial, "padding");
  check_windows(Ints(window), axes.spatial, "kernel_size");
  check_windows(Ints(stride), axes.spatial, "stride");
  Shape both_sides, sizes;
  for (const int64_t p : padding) both_sides.push_back(Dim(p)), both_sides.push_back(Dim(p));
  check_padding(both_sides, axes.spatial);
  for (size_t i = 0; i < axes.spatial; ++i)
    sizes.push_back((axes.size(a.x.dims(), i) - Dim(1)) * Dim(stride[i]) + Dim(window[i]) -
                    Dim(2) * Dim(padding[i]));
  if (!a.output_size) return sizes;
  Dims given = *a.output_size;
  if (given.size() == axes.spatial + 2) given = given.subspan(2);
  user_check(given.size() == axes.spatial, ErrorKind::InvalidArgument,
             "output_size {} must have {} numbers.", to_string(*a.output_size), axes.spatial);
  for (size_t i = 0; i < axes.spatial; ++i) {
    const Dim off = given[i] - sizes[i];
    user_check(
        off.is_symbolic() || (off.word() > -stride[i] && off.word() < stride[i]),
        ErrorKind::InvalidArgument,
        "output_size {} is not possible: along spatial axis {} it must be between {} and {}.",
        to_string(given), i, (sizes[i] - Dim(stride[i] - 1)).str(),
        (sizes[i] + Dim(stride[i] - 1)).str());
  }
  return Shape(given);
}

// The channels of images that have them last, moved after the batch, and back.
Tensor channels_first(const Tensor& x, const ImageAxes& axes) {
  if (!axes.channels_last) return x;
  IntVector order{0, static_cast<int64_t>(axes.channel())};
  for (int64_t i = 1; i <= static_cast<int64_t>(axes.spatial); ++i) order.push_back(i);
  return transpose(x, order);
}

Tensor as_given(const Tensor& x, const ImageAxes& axes) {
  if (!axes.channels_last) return x;
  IntVector order{0};
  for (int64_t i = 2; i < x.rank(); ++i) order.push_back(i);
  order.push_back(1);
  return transpose(x, order);
}

const OpDef max_unpool_op = {
    .schema =
        "max_unpool(Tensor x, Tensor indices, int[] kernel_size, int[]? stride, int[] padding, shape? output_size, str data_format) -> Tensor",
    .brief =
        "Images that are zero except for the elements of x, at the positions in the mask of a max pooling.",
    .decompose = [](const args::max_unpool& a) -> Made {
      const ImageAxes axes = axes_of(a.data_format, spatial_of(a.x));
      user_check(same(a.x.shape(), a.indices.shape()) && is_integral(a.indices.dtype()),
                 ErrorKind::InvalidArgument,
                 "indices ({}) must be integers and have the shape of x ({}): the mask that max "
                 "pooling returns with return_mask=True.",
                 a.indices.describe(), a.x.describe());
      const Shape sizes = unpooled_sizes(a, axes);
      const Tensor values = channels_first(a.x, axes), places = channels_first(a.indices, axes);
      const Dim n = values.dim(0), c = values.dim(1);
      const Dim count = Shape(values.dims().subspan(2)).numel();
      const Tensor planes =
          put_along_axis(zeros({n, c, sizes.numel()}, a.x.dtype()),
                         reshape(cast(places, DType::Int64), {n, c, count}),
                         reshape(values, {n, c, count}), 2, "assign", true, false);
      return as_given(reshape(planes, ImageAxes{axes.spatial, false}.image(n, c, sizes)), axes);
    },
    .dtypes = "int float",
    .numpy =
        "(lambda f, m, s: (lambda z: (np.put_along_axis(z, m.reshape(*f.shape[:2], -1), f.reshape(*f.shape[:2], -1), 2), "
        "(lambda o: np.moveaxis(o, 1, -1) if data_format[-1] == 'C' else o)(z.reshape(*f.shape[:2], *s)))[1])(np.zeros(("
        "*f.shape[:2], math.prod(s)), x.dtype)))(*([np.moveaxis(x, -1, 1), np.moveaxis(indices, -1, 1)] if data_format[-1] "
        "== 'C' else [x, indices]), output_size or [(n - 1) * (stride or kernel_size)[0] + kernel_size[0] - 2 * padding[0] for n in (x.shape[1:-1] "
        "if data_format[-1] == 'C' else x.shape[2:])])",
    .samples =
        [] {
          const auto places = [](const Shape& shape, const std::vector<double>& values) {
            return fixed_values(values, shape, DType::Int32);
          };
          return Samples()
              .add(t({1, 1, 2, 2}), places({1, 1, 2, 2}, {0, 3, 9, 14}), IntVector{2}, std::nullopt,
                   IntVector{0}, std::nullopt, "NCHW")
              .add(t({1, 3, 2}), places({1, 3, 2}, {1, 0, 2, 3, 5, 4}), IntVector{2}, IntVector{2},
                   IntVector{0}, IntVector{7}, "NLC");
        },
};

// References for every number of axes.
constexpr const char* kMaxReference =
    "(lambda f, w: (lambda q, r: tuple((lambda o: np.moveaxis(o, 1, -1) if data_format[-1] == 'C' else "
    "o)(np.moveaxis(np.array(o, t).reshape(*[len(l) for l in w], *f.shape[:2]), (-2, -1), (0, 1))) for o, t "
    "in [(q, x.dtype), (r, 'int32')]))(*[list(o) for o in zip(*[(m, np.where(v == m.reshape(*m.shape, *[1] * "
    "len(w)), np.arange(math.prod(f.shape[2:])).reshape(f.shape[2:])[j], f.size).min(tuple(range(2, "
    "f.ndim)))) for i in np.ndindex(*[len(l) for l in w]) for j in [tuple(slice(max(l[c][0], 0), min(l[c][1], "
    "l[c][2])) for l, c in zip(w, i))] for v in [f[(..., *j)]] for m in [v.max(tuple(range(2, "
    "f.ndim)))]])]))(np.moveaxis(x, -1, 1) if data_format[-1] == 'C' else x, (lambda z: (lambda kk, ss: [[(i "
    "* s - a, i * s - a + k, m, m + b) for i in range(max((m + a + b - k + (s - 1 if ceil_mode else 0)) // s + "
    "1, 1))] for m, (a, b), k, s in zip(z, [(0, 0)] * len(z) if padding_algorithm == 'VALID' else [(e // 2, e - e "
    "// 2) for m, k, s in zip(z, kk, ss) for e in [max((-(-m // s) - 1) * s + k - m, 0)]] if "
    "padding_algorithm == 'SAME' else list(zip(padding[::2], padding[1::2])) if len(padding) == 2 * len(z) "
    "else [(e, e) for e in (list(padding) * len(z))[:len(z)]], kk, ss)])((list(kernel_size) * "
    "len(z))[:len(z)], (list(stride or kernel_size) * len(z))[:len(z)]))((x.shape[1:-1] if data_format[-1] == "
    "'C' else x.shape[2:])))[0]";

const OpDef max_pool1d_op = {
    .schema =
        "max_pool1d(Tensor x, int[] kernel_size, int[]? stride = None, int[] padding = 0, bool ceil_mode = False, str data_format = 'NCL', str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief = "The largest element of each window of sequences.",
    .decompose = [](const args::max_pool1d& a) -> Made { return largest(a, 1)[0]; },
    .dtypes = "int float",
    .numpy = kMaxReference,
    .samples =
        [] {
          return Samples()
              .add(distinct({1, 2, 8}), IntVector{2})
              .add(distinct({1, 2, 7}), IntVector{3}, IntVector{2}, IntVector{1}, true)
              .add(distinct({2, 9, 3}), IntVector{2}, IntVector{2}, IntVector{0}, false, "NLC")
              .add(distinct({1, 2, 7}), IntVector{2}, IntVector{1}, IntVector{0}, false, "NCL",
                   "SAME");
        },
    .onnx = "MaxPool",
};

const OpDef max_pool2d_op = {
    .schema =
        "max_pool2d(Tensor x, int[] kernel_size, int[]? stride = None, int[] padding = 0, bool ceil_mode = False, str data_format = 'NCHW', str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief = "The largest element of each window of images.",
    .decompose = [](const args::max_pool2d& a) -> Made { return largest(a, 2)[0]; },
    .dtypes = "int float",
    .numpy = kMaxReference,
    .samples =
        [] {
          return Samples()
              .add(distinct({1, 2, 4, 6}), IntVector{2})
              .add(distinct({1, 2, 5, 5}), IntVector{3}, IntVector{2}, IntVector{1}, true)
              .add(distinct({1, 5, 4, 2}), IntVector{2}, IntVector{2}, IntVector{0}, false, "NHWC")
              .add(distinct({1, 2, 5, 5}), IntVector{2}, IntVector{1}, IntVector{0}, false, "NCHW",
                   "SAME");
        },
    .onnx = "MaxPool",
};

const OpDef max_pool3d_op = {
    .schema =
        "max_pool3d(Tensor x, int[] kernel_size, int[]? stride = None, int[] padding = 0, bool ceil_mode = False, str data_format = 'NCDHW', str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief = "The largest element of each window of volumes.",
    .decompose = [](const args::max_pool3d& a) -> Made { return largest(a, 3)[0]; },
    .dtypes = "int float",
    .numpy = kMaxReference,
    .samples =
        [] {
          return Samples()
              .add(distinct({1, 2, 4, 2, 4}), IntVector{2})
              .add(distinct({1, 1, 3, 3, 5}), IntVector{3}, IntVector{2}, IntVector{1}, true)
              .add(distinct({1, 4, 2, 3, 2}), IntVector{2}, IntVector{2}, IntVector{0}, false,
                   "NDHWC")
              .add(distinct({1, 1, 3, 3, 5}), IntVector{2}, IntVector{1}, IntVector{0}, false,
                   "NCDHW", "SAME");
        },
    .onnx = "MaxPool",
};

constexpr const char* kAdaptiveMaxReference =
    "(lambda f, w: (lambda q, r: tuple((np.moveaxis(np.array(o, t).reshape(*[len(l) for l in w], "
    "*f.shape[:2]), (-2, -1), (0, 1))) for o, t in [(q, x.dtype), (r, 'int32')]))(*[list(o) for o in "
    "zip(*[(m, np.where(v == m.reshape(*m.shape, *[1] * len(w)), "
    "np.arange(math.prod(f.shape[2:])).reshape(f.shape[2:])[j], f.size).min(tuple(range(2, f.ndim)))) for i "
    "in np.ndindex(*[len(l) for l in w]) for j in [tuple(slice(max(l[c][0], 0), min(l[c][1], l[c][2])) for l, "
    "c in zip(w, i))] for v in [f[(..., *j)]] for m in [v.max(tuple(range(2, f.ndim)))]])]))(x, [[(i * n // "
    "m, -(-(i + 1) * n // m), n, n) for i in range(m)] for n, m in zip(x.shape[2:], [n if m == -1 else m for "
    "n, m in zip(x.shape[2:], (list(output_size) * 3)[:x.ndim - 2])])])[0]";

const OpDef adaptive_max_pool1d_op = {
    .schema = "adaptive_max_pool1d(Tensor x, int[] output_size) -> Tensor",
    .brief =
        "The largest elements of windows that divide sequences into output_size parts; -1 keeps a size.",
    .decompose = [](const args::adaptive_max_pool1d& a) -> Made {
      return std::get<0>(adaptive_max_pool(a.x, output_of(a.x, a.output_size, {1, false})));
    },
    .dtypes = "int float",
    .numpy = kAdaptiveMaxReference,
    .samples =
        [] {
          return Samples()
              .add(distinct({1, 2, 8}), IntVector{2})
              .add(distinct({1, 2, 7}), IntVector{-1});
        },
};

const OpDef adaptive_max_pool2d_op = {
    .schema = "adaptive_max_pool2d(Tensor x, int[] output_size) -> Tensor",
    .brief =
        "The largest elements of windows that divide images into output_size parts; -1 keeps a size.",
    .decompose = [](const args::adaptive_max_pool2d& a) -> Made {
      return std::get<0>(adaptive_max_pool(a.x, output_of(a.x, a.output_size, {2, false})));
    },
    .dtypes = "int float",
    .numpy = kAdaptiveMaxReference,
    .samples =
        [] {
          return Samples()
              .add(distinct({1, 2, 4, 6}), IntVector{2})
              .add(distinct({1, 2, 5, 5}), IntVector{3, -1});
        },
};

const OpDef adaptive_max_pool3d_op = {
    .schema = "adaptive_max_pool3d(Tensor x, int[] output_size) -> Tensor",
    .brief =
        "The largest elements of windows that divide volumes into output_size parts; -1 keeps a size.",
    .decompose = [](const args::adaptive_max_pool3d& a) -> Made {
      return std::get<0>(adaptive_max_pool(a.x, output_of(a.x, a.output_size, {3, false})));
    },
    .dtypes = "int float",
    .numpy = kAdaptiveMaxReference,
    .samples =
        [] {
          return Samples()
              .add(distinct({1, 2, 4, 2, 4}), IntVector{2})
              .add(distinct({1, 1, 3, 3, 5}), IntVector{3, -1, 2});
        },
};

}  // namespace

OAR_FAMILY(max_pool, &max_pool_op, &adaptive_max_pool_op, &fractional_max_pool_op,
           &max_pool_scatter_op, &max_pool_gather_op, &max_pool_with_mask_op,
           &adaptive_max_pool_with_mask_op, &max_unpool_op, &max_pool1d_op, &max_pool2d_op,
           &max_pool3d_op, &adaptive_max_pool1d_op, &adaptive_max_pool2d_op,
           &adaptive_max_pool3d_op)

}  // namespace oar
