// Adaptive pooling as users call it: as many windows as the result has elements.
#include "oar/ops/gen/adaptive_pooling.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/pooling_rules.h"
#include "oar/ops/gen/pool.h"

namespace oar {
namespace {

// -1 keeps the size of the image.
Shape output_of(const Tensor& x, Ints output_size, const ImageAxes& axes) {
  check_rank(x, axes.spatial);
  const Numbers sizes = expand_ints(output_size, axes.spatial, "output_size");
  Shape shape;
  for (size_t i = 0; i < axes.spatial; ++i)
    shape.push_back(sizes[i] == -1 ? axes.size(x.dims(), i) : Dim(sizes[i]));
  return shape;
}

// References for every number of axes.
constexpr const char* kAdaptiveAvgReference =
    "(lambda f, w: (lambda o: np.moveaxis(o, 1, -1) if data_format[-1] == 'C' else "
    "o)(np.moveaxis(np.array([f[(..., *[slice(max(a, 0), min(b, n)) for a, b, n, e in t])].sum(tuple(range(2, "
    "f.ndim))) / math.prod(b - a for a, b, n, e in t) for i in np.ndindex(*[len(l) for l in w]) for t in "
    "[[l[c] for l, c in zip(w, i)]]], f.dtype).reshape(*[len(l) for l in w], *f.shape[:2]), (-2, -1), (0, "
    "1))))(np.moveaxis(x, -1, 1) if data_format[-1] == 'C' else x, [[(i * n // m, -(-(i + 1) * n // m), n, n) "
    "for i in range(m)] for n, m in zip((x.shape[1:-1] if data_format[-1] == 'C' else x.shape[2:]), [n if m "
    "== -1 else m for n, m in zip((x.shape[1:-1] if data_format[-1] == 'C' else x.shape[2:]), "
    "(list(output_size) * 3)[:x.ndim - 2])])])";
constexpr const char* kAdaptiveMaxReference =
    "(lambda f, w: (lambda q, r: tuple((np.moveaxis(np.array(o, t).reshape(*[len(l) for l in w], "
    "*f.shape[:2]), (-2, -1), (0, 1))) for o, t in [(q, x.dtype), (r, 'int32')]))(*[list(o) for o in "
    "zip(*[(m, np.where(v == m.reshape(*m.shape, *[1] * len(w)), "
    "np.arange(math.prod(f.shape[2:])).reshape(f.shape[2:])[j], f.size).min(tuple(range(2, f.ndim)))) for i "
    "in np.ndindex(*[len(l) for l in w]) for j in [tuple(slice(max(l[c][0], 0), min(l[c][1], l[c][2])) for l, "
    "c in zip(w, i))] for v in [f[(..., *j)]] for m in [v.max(tuple(range(2, f.ndim)))]])]))(x, [[(i * n // "
    "m, -(-(i + 1) * n // m), n, n) for i in range(m)] for n, m in zip(x.shape[2:], [n if m == -1 else m for "
    "n, m in zip(x.shape[2:], (list(output_size) * 3)[:x.ndim - 2])])])[0]";

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

OAR_FAMILY(adaptive_pooling, &adaptive_avg_pool1d_op, &adaptive_avg_pool2d_op,
           &adaptive_avg_pool3d_op, &adaptive_max_pool1d_op, &adaptive_max_pool2d_op,
           &adaptive_max_pool3d_op, &adaptive_max_pool_with_mask_op)

}  // namespace oar
