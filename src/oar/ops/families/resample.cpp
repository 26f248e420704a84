// Images at another size: along each axis a result is a weighted sum of a few neighbours.
#include "oar/ops/gen/resample.h"

#include <algorithm>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

void check_mode(std::string_view mode, std::initializer_list<std::string_view> modes) {
  user_check(std::find(modes.begin(), modes.end(), mode) != modes.end(), ErrorKind::InvalidArgument,
             "mode is '{}'; it can be linear, cubic or area.", mode);
}

// The shape with the sizes from `axis` on replaced.
Shape resized(const Tensor& x, int64_t axis, Dims size,
              std::optional<std::span<const double>> scale, const char* argument) {
  const auto first = static_cast<size_t>(normalise_axis(axis, x.rank()));
  user_check(!size.empty() && first + size.size() <= static_cast<size_t>(x.rank()),
             ErrorKind::InvalidArgument,
             "{} {} has {} sizes, from axis {} of a tensor of shape {}.", argument, to_string(size),
             size.size(), axis, to_string(x.dims()));
  user_check(!scale || scale->size() == size.size(), ErrorKind::InvalidArgument,
             "scale has {} numbers for {} axes.", scale ? scale->size() : 0, size.size());
  for (double s : scale.value_or(std::span<const double>()))
    user_check(s > 0, ErrorKind::InvalidArgument, "scale must be positive, not {}.", s);
  Shape shape = x.shape();
  for (size_t i = 0; i < size.size(); ++i) {
    user_check(size[i].is_symbolic() || size[i].word() > 0, ErrorKind::InvalidArgument,
               "{} {} must be positive.", argument, to_string(size));
    user_check(!(x.dims()[first + i] == Dim(0)), ErrorKind::InvalidArgument,
               "axis {} of x, which has shape {}, has no elements to resample to {}.", first + i,
               to_string(x.dims()), size[i].str());
    shape[first + i] = size[i];
  }
  return shape;
}

Dims sizes_from(const Tensor& x, int64_t axis, size_t count) {
  return x.dims().subspan(static_cast<size_t>(normalise_axis(axis, x.rank())), count);
}

// The matrix of each axis in NumPy, applied one after the other to FROM. IN and OUT are an axis's
// sizes before and after a resampling; the gradient contracts with its results (axis 0).
#define OAR_RESAMPLE_NUMPY(FROM, IN, OUT, CONTRACTED)                                                 \
  "__import__('functools').reduce(lambda y, k: np.moveaxis(np.tensordot(y, (lambda n, o: (lambda r: " \
  "np.array([sum(np.eye(n)[min(max(i, 0), n - 1)] * w for i, w in {'nearest': lambda j: "             \
  "[(int(np.float32(r) * np.float32(j)), 1)], 'linear': lambda j: (lambda s: [(int(s), 1 - s + "      \
  "int(s)), (int(s) + 1, s - int(s))])(max(r * (j + .5) - .5, 0) if align_mode == 0 and not "         \
  "align_corners else r * j), 'cubic': lambda j: (lambda s: [(math.floor(s) + d, (lambda a: "         \
  "(1.25 * a - 2.25) * a * a + 1 if a <= 1 else ((-.75 * a + 3.75) * a - 6) * a + 3)(abs(s - "        \
  "math.floor(s) - d))) for d in (-1, 0, 1, 2)])(r * j if align_corners else r * (j + .5) - "         \
  ".5), 'area': lambda j: [(i, 1 / (-(-(j + 1) * n // o) - j * n // o)) for i in range(j * n // "     \
  "o, -(-(j + 1) * n // o))]}[mode](j)) for j in range(o)]))(0 if o == 1 and (mode "                  \
  "!= 'linear' or len(size) == 2 or align_corners) else (n - 1) / (o - 1) if align_corners else 1 / " \
  "scale[k] if scale else n / o))(" IN ", " OUT "), ([axis % y.ndim + k], [" CONTRACTED               \
  "])), -1, axis % y.ndim + k), range(len(size)), " FROM ")"

void axes_beside_resized(const PlanCall& c) {
  const int64_t first = normalise_axis(c.args[1].as_int(), c.plan.operands[0].shape.rank());
  SmallVector<int64_t, 6> resized;
  for (int64_t i = 0; i < c.args[2].count; ++i) resized.push_back(first + i);
  sharding::keep_axes(c.plan, Ints(resized.data(), resized.size()));
}

const OpDef resample_op = {
    .schema =
        "resample(Tensor x, int axis, shape size, float[]? scale = None, str mode = 'linear', bool align_corners = "
        "False, int align_mode = 0) -> Tensor",
    .brief =
        "The axes from `axis` on at other sizes: mode linear (between two neighbours), cubic (of four) or area "
        "(means). Places map by the ratio of the sizes or by 1 / scale.",
    .infer = [](const args::resample& a) -> Metas {
      check_mode(a.mode, {"linear", "cubic", "area"});
      return TensorMeta{a.x.dtype(), resized(a.x, a.axis, a.size, a.scale, "size")};
    },
    .vjp = [](const vjp::resample& v) -> Grads {
      return resample_grad(v.grad, v.axis, sizes_from(v.x, v.axis, v.size.size()), v.scale, v.mode,
                           v.align_corners, v.align_mode);
    },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::resample a(c.args);
      return resample(a.x, behind_batch(a.axis, a.x.rank() - 1), a.size, a.scale, a.mode,
                      a.align_corners, a.align_mode);
    },
    .plan = axes_beside_resized,
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy =
        OAR_RESAMPLE_NUMPY("x", "x.shape[axis % x.ndim + k]", "size[k]", "1") ".astype(x.dtype)",
    .samples =
        [] {
          return Samples()
              .add(t({1, 5, 4, 2}), 1, IntVector{3, 6}, std::vector<double>{0.7, 1.5})
              .add(t({1, 2, 3}), -1, IntVector{7}, std::nullopt, "linear")
              .add(t({2, 2, 4, 3}), 2, IntVector{3, 5}, std::nullopt, "linear", true)
              .add(t({1, 3, 4, 2}), 1, IntVector{5, 2}, std::nullopt, "linear", false, 1)
              .add(t({1, 1, 2, 3, 2}), 2, IntVector{3, 2, 4}, std::vector<double>{1.5, 0.7, 2.0},
                   "linear")
              .add(t({1, 2, 4, 5}), 2, IntVector{7, 3}, std::nullopt, "cubic")
              .add(t({1, 3, 5, 2}), 1, IntVector{6, 9}, std::nullopt, "cubic", true)
              .add(t({2, 5, 7}), 1, IntVector{3, 9}, std::nullopt, "area")
              .add(t({1, 2, 3, 3}), 2, IntVector{1, 1}, std::nullopt, "linear")
              .add(t({1, 1, 3, 4, 3}), 2, IntVector{1, 2, 1}, std::nullopt, "linear")
              .add(t({0, 2, 3}), 2, IntVector{4});
        },
};

const OpDef resample_nearest_op = {
    .schema = "resample_nearest(Tensor x, int axis, shape size, float[]? scale = None) -> Tensor",
    .brief =
        "The axes from `axis` on at other sizes: element i of an axis is element floor(i * ratio), by the ratio of "
        "the sizes or 1 / scale.",
    .infer = [](const args::resample_nearest& a) -> Metas {
      return TensorMeta{a.x.dtype(), resized(a.x, a.axis, a.size, a.scale, "size")};
    },
    .vjp = [](const vjp::resample_nearest& v) -> Grads {
      return resample_grad(v.grad, v.axis, sizes_from(v.x, v.axis, v.size.size()), v.scale,
                           "nearest");
    },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::resample_nearest a(c.args);
      return resample_nearest(a.x, behind_batch(a.axis, a.x.rank() - 1), a.size, a.scale);
    },
    .plan = axes_beside_resized,
    .traits = Trait::Linear,
    .numpy =
        "x[tuple(np.arange(n).reshape([-1] + [1] * (x.ndim - 1 - d)) if d not in range(axis % x.ndim, axis % x.ndim + "
        "len(size)) else (lambda k: np.minimum(np.float32(0 if size[k] == 1 else 1 / scale[k] if scale else n / "
        "size[k]) * np.arange(size[k], dtype='float32'), n - 1).astype('int64').reshape([-1] + [1] * (x.ndim - 1 - "
        "d)))(d - axis % x.ndim) for d, n in enumerate(x.shape))]",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 3, 4}), 2, IntVector{6, 5})
              .add(t({1, 5, 4, 2}), 1, IntVector{3, 6}, std::vector<double>{0.7, 1.5})
              .add(t({2, 3, 2, 4}), -3, IntVector{6, 1, 4})
              .add(t({3}), 0, IntVector{7})
              .add(t({0, 2, 3}), 2, IntVector{4});
        },
};

const OpDef resample_grad_op = {
    .schema =
        "resample_grad(Tensor grad, int axis, shape size, float[]? scale = None, str mode = 'nearest', bool "
        "align_corners = False, int align_mode = 0) -> Tensor",
    .brief =
        "The transpose of resample: each element is added, with its weights, to the elements it came from; `size` "
        "are the sizes there.",
    .infer = [](const args::resample_grad& a) -> Metas {
      check_mode(a.mode, {"nearest", "linear", "cubic", "area"});
      return TensorMeta{a.grad.dtype(), resized(a.grad, a.axis, a.size, a.scale, "size")};
    },
    .vjp = [](const vjp::resample_grad& v) -> Grads {
      const Tensor& grad = v.call.args[0].as_tensor();
      if (v.mode == "nearest")
        return resample_nearest(v.call.cotangents[0], v.axis,
                                sizes_from(grad, v.axis, v.size.size()), v.scale);
      return resample(v.call.cotangents[0], v.axis, sizes_from(grad, v.axis, v.size.size()),
                      v.scale, v.mode, v.align_corners, v.align_mode);
    },
    .saves = "grad:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::resample_grad a(c.args);
      return resample_grad(a.grad, behind_batch(a.axis, a.grad.rank() - 1), a.size, a.scale, a.mode,
                           a.align_corners, a.align_mode);
    },
    .plan = axes_beside_resized,
    .traits = Trait::Linear,
    .dtypes = "float complex",
    .numpy = OAR_RESAMPLE_NUMPY("grad", "size[k]", "grad.shape[axis % grad.ndim + k]",
                                "0") ".astype(grad.dtype)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 2, 6, 5}), 2, IntVector{3, 4})
              .add(t({1, 3, 6, 2}), 1, IntVector{5, 4}, std::vector<double>{0.7, 1.5}, "linear")
              .add(t({1, 2, 7, 3}), 2, IntVector{4, 5}, std::nullopt, "cubic")
              .add(t({1, 7, 8}), -1, IntVector{3}, std::nullopt, "linear", true)
              .add(t({2, 3, 4}), 1, IntVector{5, 7}, std::nullopt, "area")
              .add(t({0, 2, 4}), 2, IntVector{3});
        },
};

}  // namespace

OAR_FAMILY(resample, &resample_op, &resample_nearest_op, &resample_grad_op)

}  // namespace oar
