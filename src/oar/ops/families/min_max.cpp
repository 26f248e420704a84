// The larger and the smaller: of two tensors, of a tensor and its bounds, along axes; and where they are.
#include "oar/ops/gen/min_max.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/elementwise_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/families/reduce_rules.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/floating_point.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/reduction.h"

namespace oar {
namespace {

// The gradient goes to the selected operand, and in halves to two equal ones. Where one is
// NaN neither gets any.
Grads extreme_grads(const VjpCall& call, const Tensor& x, const Tensor& y, const Tensor& grad,
                    Tensor (*wins)(const Tensor&, const Tensor&)) {
  const Tensor tied = zero_unless(equal(x, y), grad * 0.5);
  return {call.needs(0) ? where(wins(x, y), grad, tied) : Tensor(),
          call.needs(1) ? where(wins(y, x), grad, tied) : Tensor()};
}

const OpDef maximum_op = {
    .schema = "maximum(Tensor x, Tensor y) -> Tensor",
    .brief = "The larger of x and y; NaN where either is.",
    .infer = infer::same_as_first,
    .scalar = "max(x, y)",
    .vjp = [](const vjp::maximum& v) -> Grads {
      return extreme_grads(v.call, v.x, v.y, v.grad, greater_than);
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kPair,
    .dtypes = "bool int float",
    .numpy = "np.maximum(x, y)",
    .samples = samples::binary,
    .python = "oar Tensor",
    .onnx = "Max",
};

const OpDef minimum_op = {
    .schema = "minimum(Tensor x, Tensor y) -> Tensor",
    .brief = "The smaller of x and y; NaN where either is.",
    .infer = infer::same_as_first,
    .scalar = "min(x, y)",
    .vjp = [](const vjp::minimum& v) -> Grads {
      return extreme_grads(v.call, v.x, v.y, v.grad, less_than);
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kPair,
    .dtypes = "bool int float",
    .numpy = "np.minimum(x, y)",
    .samples = samples::binary,
    .python = "oar Tensor",
    .onnx = "Min",
};

// Where both are equal the gradient goes to x, as in Paddle.
const OpDef fmax_op = {
    .schema = "fmax(Tensor x, Tensor y) -> Tensor",
    .brief = "The larger of x and y; where one is NaN, the other.",
    .infer = infer::same_as_first,
    .scalar = "fmax(x, y)",
    .vjp = [](const vjp::fmax& v) -> Grads {
      const Tensor first = logical_or(greater_equal(v.x, v.y), isnan(v.y));
      return {v.needs(0) ? zero_unless(first, v.grad) : Tensor(),
              v.needs(1) ? zero_where(first, v.grad) : Tensor()};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kPair,
    .dtypes = "bool int float",
    .numpy = "np.fmax(x, y)",
    .samples = samples::binary,
    .python = "oar Tensor",
};

const OpDef fmin_op = {
    .schema = "fmin(Tensor x, Tensor y) -> Tensor",
    .brief = "The smaller of x and y; where one is NaN, the other.",
    .infer = infer::same_as_first,
    .scalar = "fmin(x, y)",
    .vjp = [](const vjp::fmin& v) -> Grads {
      const Tensor first = logical_or(less_equal(v.x, v.y), isnan(v.y));
      return {v.needs(0) ? zero_unless(first, v.grad) : Tensor(),
              v.needs(1) ? zero_where(first, v.grad) : Tensor()};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kPair,
    .dtypes = "bool int float",
    .numpy = "np.fmin(x, y)",
    .samples = samples::binary,
    .python = "oar Tensor",
};

Metas infer_clip(const Tensor& x, const std::optional<Scalar>& min,
                 const std::optional<Scalar>& max) {
  for (const auto& bound : {min, max})
    user_check(!bound || bound->kind() != Scalar::Complex, ErrorKind::InvalidType,
               "min and max must be real numbers.");
  user_check(!min || !max || min->to_double() <= max->to_double(), ErrorKind::InvalidArgument,
             "min is {} and max is {}; min must not be above max.\nhint: Exchange them.",
             min->to_double(), max->to_double());
  return infer::like(x);
}

// As in Paddle, an element on a bound passes its gradient.
const OpDef clip_op = {
    .schema = "clip(Tensor x, Scalar? min = None, Scalar? max = None) -> Tensor",
    .brief = "x limited to [min, max]; None leaves a side open. NaN stays NaN.",
    .infer = [](const args::clip& a) { return infer_clip(a.x, a.min, a.max); },
    .scalar = "low = given(min) ? max(x, min) : x; given(max) ? min(low, max) : low",
    .vjp = [](const vjp::clip& v) -> Grads { return clip_grad(v.x, v.grad, v.min, v.max); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "np.clip(x, min, max).astype(x.dtype) if min is not None or max is not None else x",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}), -1, 1)
              .add(t({2, 3, 5}), 0.0)
              .add(t({}), std::nullopt, 0.0)
              .add(t({0, 3}), 0, 2)
              .add(t({3}));
        },
    .python = "oar Tensor",
    .onnx = "Clip",
};

TensorSpec on_bounds() { return fixed_values({-2, -1, 0, 1, 2}, {5}); }

const OpDef clip_grad_op = {
    .schema =
        "clip_grad(Tensor x, Tensor grad, Scalar? min = None, Scalar? max = None, bool bounds = "
        "True) -> Tensor",
    .brief =
        "grad where min <= x <= max (without bounds: min < x < max), else 0: the derivative of clip.",
    .infer = [](const args::clip_grad& a) { return infer_clip(a.x, a.min, a.max); },
    .decompose = [](const args::clip_grad& a) -> Made {
      const auto number = [](const Scalar& s) {
        return s.kind() <= Scalar::Int ? Tensor::scalar(s.to_int(), DType::Int64, true)
                                       : literal(s.to_double());
      };
      Tensor out = a.grad;
      const auto above = a.bounds ? greater_equal : greater_than;
      const auto below = a.bounds ? less_equal : less_than;
      if (a.min) out = zero_unless(above(a.x, number(*a.min)), out);
      if (a.max) out = zero_unless(below(a.x, number(*a.max)), out);
      return a.min || a.max ? out : assign(out);
    },
    .scalar =
        "above = !given(min) || (bounds ? x >= min : x > min); below = !given(max) || "
        "(bounds ? x <= max : x < max); above && below ? grad : 0",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy =
        "grad * ((True if min is None else x >= min if bounds else x > min) & "
        "(True if max is None else x <= max if bounds else x < max))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}), t({4, 7}), -1, 1)
              .add(t({3}), t({3}), 0.0)
              .add(t({}), t({}), std::nullopt, 0.0)
              .add(t({0, 3}), t({0, 3}))
              .add(t({3}), t({3}))
              .add(on_bounds(), t({5}), -1, 1)
              .add(on_bounds(), t({5}), -1, 1, false);
        },
};

void check_not_empty(const Tensor& x, Ints axes, const Shape& result) {
  if (result.numel() == Dim(0)) return;
  for (int64_t axis : axes)
    user_check(!(x.dim(axis) == Dim(0)), ErrorKind::InvalidArgument,
               "x of shape {} has no elements along axis {}, so it has no maximum or minimum there."
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
    .scalar = "greatest_of(x)",
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
    .scalar = "least_of(x)",
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
    .shard =
        "...a... -> ...... ; a@axis whole # which piece has the largest depends on all of them",
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
    .shard =
        "...a... -> ...... ; a@axis whole # which piece has the smallest depends on all of them",
    .traits = Trait::Reduction | Trait::NoGrad,
    .dtypes = "bool int float",
    .numpy = "np.argmin(x, axis=axis, keepdims=keepdim).astype(dtype)",
    .samples = place_samples,
    .python = "oar Tensor",
    .onnx = "ArgMin",
};

}  // namespace

OAR_FAMILY(min_max, &maximum_op, &minimum_op, &fmax_op, &fmin_op, &clip_op, &clip_grad_op, &max_op,
           &min_op, &amax_op, &amin_op, &argmax_op, &argmin_op)

}  // namespace oar
