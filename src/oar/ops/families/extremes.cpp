// The largest and smallest elements along axes, and where they stand.
#include "oar/ops/gen/extremes.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/reduce_rules.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/reduction.h"

namespace oar {
namespace {

void check_not_empty(const Tensor& x, Ints axes, const Shape& result) {
  if (result.numel() == Dim(0)) return;
  for (int64_t axis : axes)
    user_check(!(x.dim(axis) == Dim(0)), ErrorKind::InvalidArgument,
               "x of shape {} has no elements along axis {}, so there is no extreme among them."
               "\nhint: Check for a size of 0 first.",
               to_string(x.dims()), axis);
}

Metas infer_extreme(const Tensor& x, std::optional<Ints> axis, bool keepdim) {
  Metas metas = reduced(x, axis, keepdim, x.dtype());
  check_not_empty(x, Ints(normalise_axes(axis, x.rank())), metas[0].shape);
  return metas;
}

// Elements that tie share the gradient evenly: of all subgradients the one that does not depend on
// their order and does not grow with their number.
template <class Vjp>
Tensor shared_gradient(const Vjp& v) {
  const auto axes = normalise_axes(v.axis, v.x.rank());
  const Tensor ties = cast(equal(v.x, stretch(v.out, v.x, v.axis)), v.grad.dtype());
  const Tensor count = sum(ties, IntArgs(axes), std::nullopt, true);
  return ties * (stretch(v.grad, v.x, v.axis) / count);
}

const OpDef max_op = {
    .schema = "max(Tensor x, int[]? axis = None, bool keepdim = False) -> Tensor",
    .brief =
        "The largest element along axes; NaN if one of them is. Ties share the gradient evenly.",
    .infer = [](const args::max& a) { return infer_extreme(a.x, a.axis, a.keepdim); },
    .vjp = [](const vjp::max& v) -> Grads { return shared_gradient(v); },
    .saves = "x out",
    .shard = "...a... -> ...... ; a@axis max",
    .traits = Trait::Reduction,
    .dtypes = "bool int float",
    .numpy = "np.max(x, axis=tuple(axis) if axis else None, keepdims=keepdim)",
    .samples = [] { return reduction_samples(distinct); },
    .python = "oar Tensor",
    .onnx = "ReduceMax",
};

const OpDef min_op = {
    .schema = "min(Tensor x, int[]? axis = None, bool keepdim = False) -> Tensor",
    .brief =
        "The smallest element along axes; NaN if one of them is. Ties share the gradient "
        "evenly.",
    .infer = [](const args::min& a) { return infer_extreme(a.x, a.axis, a.keepdim); },
    .vjp = [](const vjp::min& v) -> Grads { return shared_gradient(v); },
    .saves = "x out",
    .shard = "...a... -> ...... ; a@axis min",
    .traits = Trait::Reduction,
    .dtypes = "bool int float",
    .numpy = "np.min(x, axis=tuple(axis) if axis else None, keepdims=keepdim)",
    .samples = [] { return reduction_samples(distinct); },
    .python = "oar Tensor",
    .onnx = "ReduceMin",
};

const OpDef amax_op = {
    .schema = "amax(Tensor x, int[]? axis = None, bool keepdim = False) -> Tensor",
    .brief = "The largest element along axes: max under its other name.",
    .decompose = [](const args::amax& a) -> Made { return max(a.x, a.axis, a.keepdim); },
    .dtypes = "bool int float",
    .numpy = "np.max(x, axis=tuple(axis) if axis else None, keepdims=keepdim)",
    .samples = [] { return reduction_samples(distinct); },
    .python = "oar Tensor",
};

const OpDef amin_op = {
    .schema = "amin(Tensor x, int[]? axis = None, bool keepdim = False) -> Tensor",
    .brief = "The smallest element along axes: min under its other name.",
    .decompose = [](const args::amin& a) -> Made { return min(a.x, a.axis, a.keepdim); },
    .dtypes = "bool int float",
    .numpy = "np.min(x, axis=tuple(axis) if axis else None, keepdims=keepdim)",
    .samples = [] { return reduction_samples(distinct); },
    .python = "oar Tensor",
};

Metas infer_place(const Tensor& x, std::optional<int64_t> axis, bool keepdim, DType dtype) {
  user_check(dtype == DType::Int64 || dtype == DType::Int32, ErrorKind::InvalidType,
             "dtype is {}; a position is int64 or int32.", name_of(dtype));
  std::optional<Ints> axes;
  if (axis) axes = Ints(&*axis, 1);
  Metas metas = reduced(x, axes, keepdim, dtype);
  check_not_empty(x, Ints(normalise_axes(axes, x.rank())), metas[0].shape);
  return metas;
}

Samples place_samples() {
  return Samples()
      .add(distinct({4, 7}))
      .add(distinct({2, 3, 5}), 1, true)
      .add(distinct({2, 3, 5}), -1)
      .add(distinct({3, 4}), 0, false, DType::Int32)
      .add(distinct({2, 3}), std::nullopt, true)
      .add(distinct({}))
      .add(distinct({0, 3}), 1);
}

const OpDef argmax_op = {
    .schema =
        "argmax(Tensor x, int? axis = None, bool keepdim = False, dtype dtype = int64) -> "
        "Tensor",
    .brief =
        "The index of the largest element: the first of equals, NaN counts as the largest. Without an "
        "axis it is the index in the flattened tensor.",
    .infer = [](const args::argmax& a) { return infer_place(a.x, a.axis, a.keepdim, a.dtype); },
    .shard = "...a... -> ...... ; a@axis whole",
    .traits = Trait::Reduction | Trait::NoGrad,
    .dtypes = "bool int float",
    .numpy = "np.argmax(x, axis=axis, keepdims=keepdim).astype(dtype)",
    .samples = place_samples,
    .python = "oar Tensor",
    .onnx = "ArgMax",
};

const OpDef argmin_op = {
    .schema =
        "argmin(Tensor x, int? axis = None, bool keepdim = False, dtype dtype = int64) -> "
        "Tensor",
    .brief =
        "The index of the smallest element: the first of equals, NaN counts as the smallest. Without an "
        "axis it is the index in the flattened tensor.",
    .infer = [](const args::argmin& a) { return infer_place(a.x, a.axis, a.keepdim, a.dtype); },
    .shard = "...a... -> ...... ; a@axis whole",
    .traits = Trait::Reduction | Trait::NoGrad,
    .dtypes = "bool int float",
    .numpy = "np.argmin(x, axis=axis, keepdims=keepdim).astype(dtype)",
    .samples = place_samples,
    .python = "oar Tensor",
    .onnx = "ArgMin",
};

}  // namespace

OAR_FAMILY(extremes, &max_op, &min_op, &amax_op, &amin_op, &argmax_op, &argmin_op)

}  // namespace oar
