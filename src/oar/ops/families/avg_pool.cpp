// Means of windows of images with one to three spatial axes. Windows slide, or divide the image into equal
// parts. The primitives take their arguments as plain numbers; avg_pool1d and similar ops resolve the forms that
// users write.
#include "oar/ops/gen/avg_pool.h"

#include <cmath>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/cost_rules.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/pool_rules.h"
#include "oar/ops/families/window.h"
#include "oar/ops/families/window_batch.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/max_pool.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

const OpDef avg_pool_op = {
    .schema =
        "avg_pool(Tensor x, int[] kernel_size, int[] stride, shape padding, bool ceil_mode = False, bool exclusive = True, float? divisor = None, bool channels_last = False) -> Tensor",
    .brief =
        "The mean of each window, or its sum over a divisor; padding, [before, after] of each spatial "
        "axis, counts unless it is exclusive.",
    .infer = [](const args::avg_pool& a) -> Metas {
      return TensorMeta{a.x.dtype(), pooled(a.x.shape(), a)};
    },
    .cost =
        [](const CostCall& c) {
          return window_cost(c.results[0], args::avg_pool(c.args).kernel_size);
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
    .shard = "nc... -> nc... ; c@channels_last, ... whole # windows reach across a cut",
    .layout = {.images = "x"},
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy =
        "(lambda f, w: (lambda o: np.moveaxis(o, 1, -1) if channels_last else o)(np.moveaxis(np.array([f[(..., "
        "*[slice(max(a, 0), max(min(b, n), 0)) for a, b, n, e in t])].sum(tuple(range(2, f.ndim))) / (divisor or "
        "max(math.prod((min(b, n) - max(a, 0)) if exclusive else min(b, e) - a for a, b, n, e in t), 1)) for i in "
        "np.ndindex(*[len(l) for l in w]) for t in [[l[c] for l, c in zip(w, i)]]], f.dtype).reshape(*[len(l) for "
        "l in w], *f.shape[:2]), (-2, -1), (0, 1))))(np.moveaxis(x, -1, 1) if channels_last else x, [[(i * s - a, "
        "i * s - a + k, n, n + b) for i in range(max((n + a + b - k + (s - 1 if ceil_mode else 0)) // s + 1, 1))] for n, "
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
    .cost =
        [](const CostCall& c) {
          const args::avg_pool_grad a(c.args);
          return window_cost(a.grad, a.kernel_size);
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
    .shard = "nc... -> nc... ; c@channels_last, ... whole # windows reach across a cut",
    .localise = sharding::result_shape("x_shape"),
    .layout = {.images = "grad", .sizes = "x_shape"},
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy =
        "(lambda g, w, z: ([z.__setitem__(k, z[k] + (g[(..., *i)] / (divisor or max(math.prod((min(b, n) - max(a, 0)) "
        "if exclusive else min(b, e) - a for a, b, n, e in t), 1))).reshape(*g.shape[:2], *[1] * len(w))) for i in "
        "np.ndindex(*[len(l) for l in w]) for t in [[l[c] for l, c in zip(w, i)]] for k in [(..., *[slice(max(a, "
        "0), max(min(b, n), 0)) for a, b, n, e in t])]], np.moveaxis(z, 1, -1) if channels_last else "
        "z)[1])(np.moveaxis(grad, -1, 1) if channels_last else grad, [[(i * s - a, i * s - a + k, n, n + b) for i "
        "in range(max((n + a + b - k + (s - 1 if ceil_mode else 0)) // s + 1, 1))] for n, a, b, k, s in "
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
              .add(t({1, 2, 1, 1}), IntVector{1, 2, 5, 6}, IntVector{7, 7}, IntVector{7, 7},
                   IntVector{0, 0, 0, 0}, false, true, std::nullopt)
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
    .shard =
        "nc... -> nc... ; c@channels_last, ... whole # where windows begin depends on the whole size",
    .layout = {.images = "x"},
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy =
        "(lambda f, w: (lambda o: np.moveaxis(o, 1, -1) if channels_last else o)(np.moveaxis(np.array([f[(..., "
        "*[slice(max(a, 0), max(min(b, n), 0)) for a, b, n, e in t])].sum(tuple(range(2, f.ndim))) / math.prod(b - a for "
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
    .shard =
        "nc... -> nc... ; c@channels_last, ... whole # where windows begin depends on the whole size",
    .localise = sharding::result_shape("x_shape"),
    .layout = {.images = "grad", .sizes = "x_shape"},
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

const OpDef lp_pool_op = {
    .schema =
        "lp_pool(Tensor x, float norm_type, int[] kernel_size, int[]? stride, int[] padding, bool ceil_mode, str data_format, str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief =
        "The root of the sum of each window's powers, (x ** p summed) ** (1 / p) with p = norm_type; the "
        "maximum for infinity.",
    .decompose = [](const args::lp_pool& a) -> Made {
      user_check(a.norm_type != 0, ErrorKind::InvalidArgument, "norm_type must not be 0.");
      const ResolvedWindows r(a, spatial_of(a.x));
      if (std::isinf(a.norm_type))
        return std::get<0>(
            max_pool(a.x, r.window, r.stride, r.padding, a.ceil_mode, r.axes.channels_last));
      const Tensor x = widened(a.x);
      const auto number = [&](double value) { return full({}, value, x.dtype()); };
      const Tensor sum = avg_pool(pow(x, number(a.norm_type)), r.window, r.stride, r.padding,
                                  a.ceil_mode, false, 1.0, r.axes.channels_last);
      // A window of zeros has no derivative; its subgradient is 0, not infinity times 0.
      const Tensor nothing = equal(sum, number(0));
      const Tensor root = pow(where(nothing, number(1), sum), number(1 / a.norm_type));
      const Tensor of_nothing = number(a.norm_type > 0 ? 0.0 : HUGE_VAL);
      return narrowed(where(nothing, of_nothing, root), a.x.dtype());
    },
    .dtypes = "float",
    .numpy =
        "((lambda f, w: (lambda o: np.moveaxis(o, 1, -1) if data_format[-1] == 'C' else "
        "o)(np.moveaxis(np.array([(f ** norm_type)[(..., *[slice(max(a, 0), max(min(b, n), 0)) for a, b, n, e in "
        "t])].sum(tuple(range(2, f.ndim))) / 1 for i in np.ndindex(*[len(l) for l in w]) for t in [[l[c] for l, c "
        "in zip(w, i)]]], f.dtype).reshape(*[len(l) for l in w], *f.shape[:2]), (-2, -1), (0, "
        "1))))(np.moveaxis(x, -1, 1) if data_format[-1] == 'C' else x, (lambda z: (lambda kk, ss: [[(i * s - a, i "
        "* s - a + k, m, m + b) for i in range(max((m + a + b - k + (s - 1 if ceil_mode else 0)) // s + 1, 1))] for m, "
        "(a, b), k, s in zip(z, [(0, 0)] * len(z) if padding_algorithm == 'VALID' else [(e // 2, e - e // 2) for "
        "m, k, s in zip(z, kk, ss) for e in [max((-(-m // s) - 1) * s + k - m, 0)]] if padding_algorithm == "
        "'SAME' else list(zip(padding[::2], padding[1::2])) if len(padding) == 2 * len(z) else [(e, e) for e in "
        "(list(padding) * len(z))[:len(z)]], kk, ss)])((list(kernel_size) * len(z))[:len(z)], (list(stride or "
        "kernel_size) * len(z))[:len(z)]))((x.shape[1:-1] if data_format[-1] == 'C' else x.shape[2:])))) ** (1 / "
        "norm_type)",
    .samples =
        [] {
          return Samples()
              .add(positive({1, 2, 4, 6}), 2.0, IntVector{2}, std::nullopt, IntVector{0}, false,
                   "NCHW")
              .add(positive({1, 2, 7}), 3.0, IntVector{3}, IntVector{2}, IntVector{1}, true, "NCL")
              .add(positive({1, 5, 4, 2}), 1.5, IntVector{2, 3}, IntVector{1}, IntVector{0}, false,
                   "NHWC");
        },
    .onnx = "LpPool",
};

template <class A>
Tensor average(const A& a, size_t spatial) {
  user_check(!a.divisor_override || *a.divisor_override != 0, ErrorKind::InvalidArgument,
             "divisor_override must not be 0.");
  const ResolvedWindows r(a, spatial);
  Tensor mean = avg_pool(a.x, r.window, r.stride, r.padding, a.ceil_mode, a.exclusive, std::nullopt,
                         r.axes.channels_last);
  if (!a.divisor_override) return mean;
  // As in Paddle, windows at the edge are means of the elements inside, scaled like whole ones.
  double area = 1;
  for (int64_t n : r.window) area *= static_cast<double>(n);
  return mean * (area / *a.divisor_override);
}

constexpr const char* kAvgReference =
    "(lambda f, w: (lambda o: np.moveaxis(o, 1, -1) if data_format[-1] == 'C' else "
    "o)(np.moveaxis(np.array([f[(..., *[slice(max(a, 0), max(min(b, n), 0)) for a, b, n, e in t])].sum(tuple(range(2, "
    "f.ndim))) / max(math.prod((min(b, n) - max(a, 0)) if exclusive else min(b, e) - a for a, b, n, e in t), 1) for i "
    "in np.ndindex(*[len(l) for l in w]) for t in [[l[c] for l, c in zip(w, i)]]], f.dtype).reshape(*[len(l) "
    "for l in w], *f.shape[:2]), (-2, -1), (0, 1))))(np.moveaxis(x, -1, 1) if data_format[-1] == 'C' else x, "
    "(lambda z: (lambda kk, ss: [[(i * s - a, i * s - a + k, m, m + b) for i in range(max((m + a + b - k + (s - 1 "
    "if ceil_mode else 0)) // s + 1, 1))] for m, (a, b), k, s in zip(z, [(0, 0)] * len(z) if padding_algorithm == "
    "'VALID' else [(e // 2, e - e // 2) for m, k, s in zip(z, kk, ss) for e in [max((-(-m // s) - 1) * s + k "
    "- m, 0)]] if padding_algorithm == 'SAME' else list(zip(padding[::2], padding[1::2])) if len(padding) == "
    "2 * len(z) else [(e, e) for e in (list(padding) * len(z))[:len(z)]], kk, ss)])((list(kernel_size) * "
    "len(z))[:len(z)], (list(stride or kernel_size) * len(z))[:len(z)]))((x.shape[1:-1] if data_format[-1] == "
    "'C' else x.shape[2:]))) * (1 if divisor_override is None else math.prod((list(kernel_size) * 3)[:x.ndim "
    "- 2]) / divisor_override)";

const OpDef avg_pool1d_op = {
    .schema =
        "avg_pool1d(Tensor x, int[] kernel_size, int[]? stride = None, int[] padding = 0, bool ceil_mode = False, bool exclusive = True, float? divisor_override = None, str data_format = 'NCL', str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief = "The mean of each window of sequences; padding counts only if exclusive is False.",
    .decompose = [](const args::avg_pool1d& a) -> Made { return average(a, 1); },
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy = kAvgReference,
    .samples =
        [] {
          return Samples()
              .add(t({1, 2, 8}), IntVector{2})
              .add(t({1, 2, 7}), IntVector{3}, IntVector{2}, IntVector{1}, true, false)
              .add(t({2, 9, 3}), IntVector{2}, IntVector{2}, IntVector{0}, false, true, 3.0, "NLC")
              .add(t({1, 2, 7}), IntVector{2}, IntVector{1}, IntVector{0}, false, true,
                   std::nullopt, "NCL", "VALID");
        },
    .onnx = "AveragePool",
};

const OpDef avg_pool2d_op = {
    .schema =
        "avg_pool2d(Tensor x, int[] kernel_size, int[]? stride = None, int[] padding = 0, bool ceil_mode = False, bool exclusive = True, float? divisor_override = None, str data_format = 'NCHW', str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief = "The mean of each window of images; padding counts only if exclusive is False.",
    .decompose = [](const args::avg_pool2d& a) -> Made { return average(a, 2); },
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy = kAvgReference,
    .samples =
        [] {
          return Samples()
              .add(t({1, 2, 4, 6}), IntVector{2})
              .add(t({1, 2, 5, 5}), IntVector{3}, IntVector{2}, IntVector{1}, true, false)
              .add(t({1, 5, 4, 2}), IntVector{2}, IntVector{2}, IntVector{0}, false, true, 3.0,
                   "NHWC")
              .add(t({1, 2, 5, 5}), IntVector{2}, IntVector{1}, IntVector{0}, false, true,
                   std::nullopt, "NCHW", "VALID");
        },
    .onnx = "AveragePool",
};

const OpDef avg_pool3d_op = {
    .schema =
        "avg_pool3d(Tensor x, int[] kernel_size, int[]? stride = None, int[] padding = 0, bool ceil_mode = False, bool exclusive = True, float? divisor_override = None, str data_format = 'NCDHW', str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief = "The mean of each window of volumes; padding counts only if exclusive is False.",
    .decompose = [](const args::avg_pool3d& a) -> Made { return average(a, 3); },
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy = kAvgReference,
    .samples =
        [] {
          return Samples()
              .add(t({1, 2, 4, 2, 4}), IntVector{2})
              .add(t({1, 1, 3, 3, 5}), IntVector{3}, IntVector{2}, IntVector{1}, true, false)
              .add(t({1, 4, 2, 3, 2}), IntVector{2}, IntVector{2}, IntVector{0}, false, true, 3.0,
                   "NDHWC")
              .add(t({1, 1, 3, 3, 5}), IntVector{2}, IntVector{1}, IntVector{0}, false, true,
                   std::nullopt, "NCDHW", "VALID");
        },
    .onnx = "AveragePool",
};

// References for every number of axes.
constexpr const char* kAdaptiveAvgReference =
    "(lambda f, w: (lambda o: np.moveaxis(o, 1, -1) if data_format[-1] == 'C' else "
    "o)(np.moveaxis(np.array([f[(..., *[slice(max(a, 0), max(min(b, n), 0)) for a, b, n, e in t])].sum(tuple(range(2, "
    "f.ndim))) / math.prod(b - a for a, b, n, e in t) for i in np.ndindex(*[len(l) for l in w]) for t in "
    "[[l[c] for l, c in zip(w, i)]]], f.dtype).reshape(*[len(l) for l in w], *f.shape[:2]), (-2, -1), (0, "
    "1))))(np.moveaxis(x, -1, 1) if data_format[-1] == 'C' else x, [[(i * n // m, -(-(i + 1) * n // m), n, n) "
    "for i in range(m)] for n, m in zip((x.shape[1:-1] if data_format[-1] == 'C' else x.shape[2:]), [n if m "
    "== -1 else m for n, m in zip((x.shape[1:-1] if data_format[-1] == 'C' else x.shape[2:]), "
    "(list(output_size) * 3)[:x.ndim - 2])])])";

const OpDef adaptive_avg_pool1d_op = {
    .schema = "adaptive_avg_pool1d(Tensor x, int[] output_size, str data_format = 'NCL') -> Tensor",
    .brief = "The means of windows that divide sequences into output_size parts; -1 keeps a size.",
    .decompose = [](const args::adaptive_avg_pool1d& a) -> Made {
      const ImageAxes axes = axes_of(a.data_format, 1);
      return adaptive_avg_pool(a.x, output_of(a.x, a.output_size, axes), axes.channels_last);
    },
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy = kAdaptiveAvgReference,
    .samples =
        [] {
          return Samples()
              .add(t({1, 2, 8}), IntVector{2})
              .add(t({1, 2, 7}), IntVector{-1})
              .add(t({2, 9, 3}), IntVector{3}, "NLC");
        },
};

const OpDef adaptive_avg_pool2d_op = {
    .schema =
        "adaptive_avg_pool2d(Tensor x, int[] output_size, str data_format = 'NCHW') -> Tensor",
    .brief = "The means of windows that divide images into output_size parts; -1 keeps a size.",
    .decompose = [](const args::adaptive_avg_pool2d& a) -> Made {
      const ImageAxes axes = axes_of(a.data_format, 2);
      return adaptive_avg_pool(a.x, output_of(a.x, a.output_size, axes), axes.channels_last);
    },
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy = kAdaptiveAvgReference,
    .samples =
        [] {
          return Samples()
              .add(t({1, 2, 4, 6}), IntVector{2})
              .add(t({1, 2, 5, 5}), IntVector{3, -1})
              .add(t({1, 5, 4, 2}), IntVector{2, 3}, "NHWC");
        },
};

const OpDef adaptive_avg_pool3d_op = {
    .schema =
        "adaptive_avg_pool3d(Tensor x, int[] output_size, str data_format = 'NCDHW') -> Tensor",
    .brief = "The means of windows that divide volumes into output_size parts; -1 keeps a size.",
    .decompose = [](const args::adaptive_avg_pool3d& a) -> Made {
      const ImageAxes axes = axes_of(a.data_format, 3);
      return adaptive_avg_pool(a.x, output_of(a.x, a.output_size, axes), axes.channels_last);
    },
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy = kAdaptiveAvgReference,
    .samples =
        [] {
          return Samples()
              .add(t({1, 2, 4, 2, 4}), IntVector{2})
              .add(t({1, 1, 3, 3, 5}), IntVector{3, -1, 2})
              .add(t({1, 4, 2, 3, 2}), IntVector{2, 1, 3}, "NDHWC");
        },
};

}  // namespace

OAR_FAMILY(avg_pool, &avg_pool_op, &avg_pool_grad_op, &adaptive_avg_pool_op,
           &adaptive_avg_pool_grad_op, &lp_pool_op, &avg_pool1d_op, &avg_pool2d_op, &avg_pool3d_op,
           &adaptive_avg_pool1d_op, &adaptive_avg_pool2d_op, &adaptive_avg_pool3d_op)

}  // namespace oar
