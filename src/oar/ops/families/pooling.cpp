// Pooling as users call it: one number for all axes, strides that default to the window, padding by
// name, channels first or last.
#include "oar/ops/gen/pooling.h"

#include <cmath>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/pooling_rules.h"
#include "oar/ops/gen/along.h"
#include "oar/ops/gen/binary.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/pool.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

template <class A>
Made largest(const A& a, size_t spatial) {
  const ResolvedWindows r(a, spatial);
  return max_pool(a.x, r.window, r.stride, r.padding, a.ceil_mode, r.axes.channels_last);
}

template <class A>
Tensor average(const A& a, size_t spatial) {
  user_check(!a.divisor_override || *a.divisor_override != 0, ErrorKind::InvalidArgument,
             "divisor_override must not be 0.");
  const ResolvedWindows r(a, spatial);
  Tensor mean = avg_pool(a.x, r.window, r.stride, r.padding, a.ceil_mode, a.exclusive, std::nullopt,
                         r.axes.channels_last);
  if (!a.divisor_override) return mean;
  // As in Paddle, windows at the edge are means of what they see, scaled like whole ones.
  double area = 1;
  for (int64_t n : r.window) area *= static_cast<double>(n);
  return mean * (area / *a.divisor_override);
}

// References for every number of axes.
constexpr const char* kMaxReference =
    "(lambda f, w: (lambda q, r: tuple((lambda o: np.moveaxis(o, 1, -1) if data_format[-1] == 'C' else "
    "o)(np.moveaxis(np.array(o, t).reshape(*[len(l) for l in w], *f.shape[:2]), (-2, -1), (0, 1))) for o, t "
    "in [(q, x.dtype), (r, 'int32')]))(*[list(o) for o in zip(*[(m, np.where(v == m.reshape(*m.shape, *[1] * "
    "len(w)), np.arange(math.prod(f.shape[2:])).reshape(f.shape[2:])[j], f.size).min(tuple(range(2, "
    "f.ndim)))) for i in np.ndindex(*[len(l) for l in w]) for j in [tuple(slice(max(l[c][0], 0), min(l[c][1], "
    "l[c][2])) for l, c in zip(w, i))] for v in [f[(..., *j)]] for m in [v.max(tuple(range(2, "
    "f.ndim)))]])]))(np.moveaxis(x, -1, 1) if data_format[-1] == 'C' else x, (lambda z: (lambda kk, ss: [[(i "
    "* s - a, i * s - a + k, m, m + b) for i in range((m + a + b - k + (s - 1 if ceil_mode else 0)) // s + "
    "1)] for m, (a, b), k, s in zip(z, [(0, 0)] * len(z) if padding_algorithm == 'VALID' else [(e // 2, e - e "
    "// 2) for m, k, s in zip(z, kk, ss) for e in [max((-(-m // s) - 1) * s + k - m, 0)]] if "
    "padding_algorithm == 'SAME' else list(zip(padding[::2], padding[1::2])) if len(padding) == 2 * len(z) "
    "else [(e, e) for e in (list(padding) * len(z))[:len(z)]], kk, ss)])((list(kernel_size) * "
    "len(z))[:len(z)], (list(stride or kernel_size) * len(z))[:len(z)]))((x.shape[1:-1] if data_format[-1] == "
    "'C' else x.shape[2:])))[0]";
constexpr const char* kAvgReference =
    "(lambda f, w: (lambda o: np.moveaxis(o, 1, -1) if data_format[-1] == 'C' else "
    "o)(np.moveaxis(np.array([f[(..., *[slice(max(a, 0), min(b, n)) for a, b, n, e in t])].sum(tuple(range(2, "
    "f.ndim))) / math.prod((min(b, n) - max(a, 0)) if exclusive else min(b, e) - a for a, b, n, e in t) for i "
    "in np.ndindex(*[len(l) for l in w]) for t in [[l[c] for l, c in zip(w, i)]]], f.dtype).reshape(*[len(l) "
    "for l in w], *f.shape[:2]), (-2, -1), (0, 1))))(np.moveaxis(x, -1, 1) if data_format[-1] == 'C' else x, "
    "(lambda z: (lambda kk, ss: [[(i * s - a, i * s - a + k, m, m + b) for i in range((m + a + b - k + (s - 1 "
    "if ceil_mode else 0)) // s + 1)] for m, (a, b), k, s in zip(z, [(0, 0)] * len(z) if padding_algorithm == "
    "'VALID' else [(e // 2, e - e // 2) for m, k, s in zip(z, kk, ss) for e in [max((-(-m // s) - 1) * s + k "
    "- m, 0)]] if padding_algorithm == 'SAME' else list(zip(padding[::2], padding[1::2])) if len(padding) == "
    "2 * len(z) else [(e, e) for e in (list(padding) * len(z))[:len(z)]], kk, ss)])((list(kernel_size) * "
    "len(z))[:len(z)], (list(stride or kernel_size) * len(z))[:len(z)]))((x.shape[1:-1] if data_format[-1] == "
    "'C' else x.shape[2:]))) * (1 if divisor_override is None else math.prod((list(kernel_size) * 3)[:x.ndim "
    "- 2]) / divisor_override)";
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
        "* s - a, i * s - a + k, m, m + b) for i in range((m + a + b - k + (s - 1 if ceil_mode else 0)) // s + "
        "1)] for m, (a, b), k, s in zip(z, [(0, 0)] * len(z) if padding_algorithm == 'VALID' else [(e // 2, e - e "
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

const OpDef lp_pool_op = {
    .schema =
        "lp_pool(Tensor x, float norm_type, int[] kernel_size, int[]? stride, int[] padding, bool ceil_mode, str data_format, str padding_algorithm = 'EXPLICIT') -> Tensor",
    .brief =
        "The root of the sum of each window's powers, (x ** p summed) ** (1 / p) with p = norm_type; the "
        "maximum for infinity.",
    .decompose = [](const args::lp_pool& a) -> Made {
      user_check(a.norm_type != 0, ErrorKind::InvalidArgument, "norm_type must not be 0.");
      if (std::isinf(a.norm_type)) return largest(a, spatial_of(a.x))[0];
      const ResolvedWindows r(a, spatial_of(a.x));
      const Tensor x = widened(a.x);
      const auto number = [&](double value) { return full({}, value, x.dtype()); };
      const Tensor sum = avg_pool(pow(x, number(a.norm_type)), r.window, r.stride, r.padding,
                                  a.ceil_mode, false, 1.0, r.axes.channels_last);
      // A window of zeros has no derivative; its subgradient is 0, not infinity times 0.
      const Tensor nothing = equal(sum, number(0));
      const Tensor root = pow(where(nothing, number(1), sum), number(1 / a.norm_type));
      return narrowed(where(nothing, number(0), root), a.x.dtype());
    },
    .dtypes = "float",
    .numpy =
        "((lambda f, w: (lambda o: np.moveaxis(o, 1, -1) if data_format[-1] == 'C' else "
        "o)(np.moveaxis(np.array([(f ** norm_type)[(..., *[slice(max(a, 0), min(b, n)) for a, b, n, e in "
        "t])].sum(tuple(range(2, f.ndim))) / 1 for i in np.ndindex(*[len(l) for l in w]) for t in [[l[c] for l, c "
        "in zip(w, i)]]], f.dtype).reshape(*[len(l) for l in w], *f.shape[:2]), (-2, -1), (0, "
        "1))))(np.moveaxis(x, -1, 1) if data_format[-1] == 'C' else x, (lambda z: (lambda kk, ss: [[(i * s - a, i "
        "* s - a + k, m, m + b) for i in range((m + a + b - k + (s - 1 if ceil_mode else 0)) // s + 1)] for m, "
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

// The image that was pooled, as far as it is known; output_size may be a little off the rule.
template <class A>
Shape unpooled_sizes(const A& a, const ImageAxes& axes) {
  const Numbers window = expand_ints(a.kernel_size, axes.spatial, "kernel_size");
  const Numbers stride = stride_of(a.stride, window);
  const Numbers padding = expand_ints(a.padding, axes.spatial, "padding");
  check_windows(Ints(window), axes.spatial, "kernel_size");
  check_windows(Ints(stride), axes.spatial, "stride");
  Shape sizes;
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
        "output_size {} is not possible: along spatial axis {} it must lie between {} and {}.",
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
        "Images that are zero but for the elements of x, which go where the mask of a max pooling says.",
    .decompose = [](const args::max_unpool& a) -> Made {
      const ImageAxes axes = axes_of(a.data_format, spatial_of(a.x));
      user_check(same(a.x.shape(), a.indices.shape()) && is_integral(a.indices.dtype()),
                 ErrorKind::InvalidArgument,
                 "indices ({}) must be integers and have the shape of x ({}): the mask that max "
                 "pooling gives with return_mask=True.",
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
        "== 'C' else [x, indices]), output_size or [(n - 1) * (stride or kernel_size)[0] + kernel_size[0] for n in (x.shape[1:-1] "
        "if data_format[-1] == 'C' else x.shape[2:])])",
    .samples =
        [] {
          const auto places = [](Shape shape, std::vector<double> values) {
            return TensorSpec{.shape = std::move(shape),
                              .fill = Fill::Values,
                              .dtype = DType::Int32,
                              .values = std::move(values),
                              .differentiable = false};
          };
          return Samples()
              .add(t({1, 1, 2, 2}), places({1, 1, 2, 2}, {0, 3, 9, 14}), IntVector{2}, std::nullopt,
                   IntVector{0}, std::nullopt, "NCHW")
              .add(t({1, 3, 2}), places({1, 3, 2}, {1, 0, 2, 3, 5, 4}), IntVector{2}, IntVector{2},
                   IntVector{0}, IntVector{7}, "NLC");
        },
};

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

}  // namespace

OAR_FAMILY(pooling, &max_pool1d_op, &max_pool2d_op, &max_pool3d_op, &max_pool_with_mask_op,
           &avg_pool1d_op, &avg_pool2d_op, &avg_pool3d_op, &lp_pool_op, &max_unpool_op)

}  // namespace oar
