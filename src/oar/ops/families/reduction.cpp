// Reductions over axes. `axis` None means all of them.
#include "oar/ops/gen/reduction.h"

#include <algorithm>
#include <cmath>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/families/reduce_rules.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/cumulative.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/floating_point.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

const OpDef sum_op = {
    .schema =
        "sum(Tensor x, int[]? axis = None, dtype? dtype = None, bool keepdim = False) -> "
        "Tensor",
    .brief = "The sum over axes. Integers and bools are summed as int64.",
    .infer = [](const args::sum& a) -> Metas {
      const DType natural = is_differentiable(a.x.dtype()) ? a.x.dtype() : DType::Int64;
      return reduced(a.x, a.axis, a.keepdim, a.dtype.value_or(natural));
    },
    .scalar = "sum_of(x)",
    .vjp = [](const vjp::sum& v) -> Grads {
      return narrowed(stretch(v.grad, v.x, v.axis), v.x.dtype());
    },
    .saves = "x:shape",
    .shard = "...a... -> ...... ; a@axis sum",
    .layout = {.images = "x", .axes = "axis"},
    .traits = Trait::Reduction | Trait::Linear,
    .amp = Amp::Full,
    .numpy =
        "np.sum(x.astype(dtype or ('int64' if x.dtype.kind in 'biu' else x.dtype)), "
        "axis=tuple(axis) if axis else None, keepdims=keepdim)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}))
              .add(t({2, 3, 5}), IntVector{1}, std::nullopt, true)
              .add(t({2, 3, 5}), IntVector{0, -1})
              .add(t({}))
              .add(t({0, 3}), IntVector{0})
              .add(t({2, 4}), IntVector{0}, DType::Float64)
              .add(t({2, 4}), IntVector{}, DType::Int64);
        },
    .python = "oar Tensor",
    .onnx = "ReduceSum",
};

const OpDef reduce_as_op = {
    .schema = "reduce_as(Tensor x, Tensor target) -> Tensor",
    .brief = "x summed over the axes that a tensor of the shape of `target` would be stretched by.",
    .decompose = [](const args::reduce_as& a) -> Made {
      const bool widens = !is_differentiable(a.x.dtype());  // as sum does
      return sum_to(widens ? cast(a.x, DType::Int64) : a.x, a.target.dims());
    },
    .plan =
        [](const PlanCall& c) {
          PlanTensor &x = c.plan.operands[0], &target = c.plan.operands[1];
          const size_t added = x.axes.size() - target.axes.size();
          for (size_t i = 0; i < x.axes.size(); ++i) {
            const int factor = c.plan.add(x.shape[i], Join::Sum);
            c.plan.put(x, i, factor);
            if (i < added) continue;
            c.plan.put(target, i - added, factor);
            c.plan.put(c.plan.results[0], i - added, factor);
          }
        },
    .numpy =
        "(lambda s: s.reshape(target.shape))(np.sum(x, axis=tuple(i for i in range(x.ndim) if i < x.ndim - "
        "target.ndim or target.shape[i - x.ndim + target.ndim] != x.shape[i]), dtype='int64' if x.dtype.kind in "
        "'biu' else x.dtype))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}), t({7}))
              .add(t({2, 3, 4}), t({3, 1}))
              .add(t({2, 3}), t({}))
              .add(t({2, 3}), t({2, 3}));
        },
    .python = "oar Tensor",
};

const OpDef product_of_op = {
    .schema = "product_of(shape sizes, dtype dtype) -> Tensor",
    .brief =
        "The product of sizes as a 0-d tensor: a count that is only known when the program "
        "runs.",
    .infer = [](const args::product_of& a) -> Metas { return TensorMeta{a.dtype, Shape{}}; },
    .scalar = "product(sizes)",
    .shard = "whole: one number of the sizes of the whole",
    .traits = Trait::NoGrad,
    .numpy = "np.array(np.prod(np.array(sizes, 'int64')), dtype)",
    .samples =
        [] {
          return Samples().add(IntVector{2, 3}, DType::Float32).add(IntVector{}, DType::Int64);
        },
};

// The kept axes first, the reduced ones as a single axis at the end.
struct Rows {
  Rows(const Tensor& x, std::optional<Ints> axis) {
    const auto axes = normalise_axes(axis, x.rank());
    Dim length = 1;
    for (int64_t i = 0; i < x.rank(); ++i) {
      if (std::find(axes.begin(), axes.end(), i) != axes.end()) {
        length = length * x.dim(i);
      } else {
        order.push_back(i);
        shape.push_back(x.dim(i));
      }
    }
    for (int64_t i : axes) order.push_back(i);
    shape.push_back(length);
    for (int64_t i : order) permuted.push_back(x.dim(i));
    inverse.resize(order.size());
    for (size_t i = 0; i < order.size(); ++i)
      inverse[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
  }
  Tensor gather(const Tensor& x) const { return reshape(transpose(x, order), shape); }
  Tensor spread(const Tensor& rows) const { return transpose(reshape(rows, permuted), inverse); }

  SmallVector<int64_t, 6> order, inverse;
  Shape shape, permuted;
};

const OpDef prod_op = {
    .schema =
        "prod(Tensor x, int[]? axis = None, bool keepdim = False, dtype? dtype = None) -> "
        "Tensor",
    .brief = "The product over axes. Integers keep their dtype and wrap; bools multiply as int64.",
    .infer = [](const args::prod& a) -> Metas {
      const DType natural = is_bool(a.x.dtype()) ? DType::Int64 : a.x.dtype();
      return reduced(a.x, a.axis, a.keepdim, a.dtype.value_or(natural));
    },
    .scalar = "product_of(x)",
    .vjp = [](const vjp::prod& v) -> Grads {
      const Rows rows(v.x, v.axis);
      const Tensor others = product_of_others(rows.gather(narrowed(v.x, v.grad.dtype())), -1);
      return narrowed(stretch(v.grad, v.x, v.axis) * conjugate(rows.spread(others)), v.x.dtype());
    },
    .saves = "x",
    .shard = "...a... -> ...... ; a@axis again",
    .traits = Trait::Reduction,
    .amp = Amp::Full,
    .numpy =
        "np.prod(x.astype(dtype or (x.dtype if x.dtype != np.bool_ else 'int64')), "
        "axis=tuple(axis) if axis else None, keepdims=keepdim, dtype=dtype or (x.dtype if "
        "x.dtype != np.bool_ else 'int64'))",
    .samples =
        [] {
          return reduction_samples(positive)
              .add(t({2, 3}), IntVector{1}, false, DType::Float64)
              .add(filled_with({2, 0, 3, 0, 0, 4}, {2, 3}), IntVector{1});
        },
    .python = "oar Tensor",
    .onnx = "ReduceProd",
};

const OpDef mean_op = {
    .schema = "mean(Tensor x, int[]? axis = None, bool keepdim = False) -> Tensor",
    .brief = "The mean over axes, in the dtype of x; of integers it is cut to an integer.",
    .infer = [](const args::mean& a) -> Metas {
      return reduced(a.x, a.axis, a.keepdim, a.x.dtype());
    },
    .scalar = "mean_of(x)",
    .vjp = [](const vjp::mean& v) -> Grads {
      const auto axes = normalise_axes(v.axis, v.x.rank());
      return stretch(v.grad / count_along(v.x, Ints(axes)), v.x, v.axis);
    },
    .saves = "x:shape",
    .shard = "...a... -> ...... ; a@axis mean",
    .layout = {.images = "x", .axes = "axis"},
    .traits = Trait::Reduction | Trait::Linear,
    .dtypes = "int float complex",
    .amp = Amp::Full,
    .numpy = "np.mean(x, axis=tuple(axis) if axis else None, keepdims=keepdim).astype(x.dtype)",
    .samples = [] { return reduction_samples(t).add(t({2, 6}), IntVector{}); },
    .python = "oar Tensor",
    .onnx = "ReduceMean",
};

Tensor without_nan(const Tensor& x) {
  return is_differentiable(x.dtype()) ? where(isnan(x), literal(0.0), x) : x;
}

const OpDef nansum_op = {
    .schema =
        "nansum(Tensor x, int[]? axis = None, dtype? dtype = None, bool keepdim = False) "
        "-> Tensor",
    .brief = "The sum over axes in which NaN counts as zero.",
    .infer = [](const args::nansum& a) -> Metas {
      const DType natural = is_differentiable(a.x.dtype()) ? a.x.dtype() : DType::Int64;
      return reduced(a.x, a.axis, a.keepdim, a.dtype.value_or(natural));
    },
    .decompose = [](const args::nansum& a) -> Made {
      return sum(without_nan(a.x), a.axis, a.dtype, a.keepdim);
    },
    .shard = "...a... -> ...... ; a@axis sum",
    .traits = Trait::Reduction,
    .dtypes = "int float complex",
    .amp = Amp::Full,
    .numpy =
        "np.nansum(x.astype('int64') if x.dtype.kind in 'iu' else x, axis=tuple(axis) if axis else None, keepdims=keepdim)",
    .samples =
        [] {
          const auto spec = filled_with({1, NAN, 3, NAN, NAN, 2}, {2, 3});
          return Samples()
              .add(spec)
              .add(spec, IntVector{0}, std::nullopt, true)
              .add(t({}))
              .add(t({0, 2}));
        },
    .python = "oar Tensor",
};

const OpDef nanmean_op = {
    .schema = "nanmean(Tensor x, int[]? axis = None, bool keepdim = False) -> Tensor",
    .brief = "The mean over axes of the elements that are not NaN.",
    .decompose = [](const args::nanmean& a) -> Made {
      const Tensor numbers = sum(logical_not(isnan(a.x)), a.axis, std::nullopt, a.keepdim);
      return sum(without_nan(a.x), a.axis, std::nullopt, a.keepdim) / cast(numbers, a.x.dtype());
    },
    .traits = Trait::FloatMath,
    .dtypes = "float",
    .numpy = "np.nanmean(x, axis=tuple(axis) if axis else None, keepdims=keepdim)",
    .samples =
        [] {
          const auto spec = filled_with({1, NAN, 3, NAN, 5, 2}, {2, 3});
          return Samples().add(spec).add(spec, IntVector{1}, true).add(t({}));
        },
    .python = "oar Tensor",
};

const OpDef all_op = {
    .schema = "all(Tensor x, int[]? axis = None, bool keepdim = False) -> Tensor",
    .brief = "Is every element along the axes true (not zero)?",
    .infer = [](const args::all& a) -> Metas {
      return reduced(a.x, a.axis, a.keepdim, DType::Bool);
    },
    .scalar = "least_of(x != 0)",
    .shard = "...a... -> ...... ; a@axis min",
    .traits = Trait::Reduction | Trait::NoGrad,
    .numpy = "np.all(x, axis=tuple(axis) if axis else None, keepdims=keepdim)",
    .samples = [] { return reduction_samples(t).add(bools({3, 2}), IntVector{0}); },
    .python = "oar Tensor",
};

const OpDef any_op = {
    .schema = "any(Tensor x, int[]? axis = None, bool keepdim = False) -> Tensor",
    .brief = "Is any element along the axes true (not zero)?",
    .infer = [](const args::any& a) -> Metas {
      return reduced(a.x, a.axis, a.keepdim, DType::Bool);
    },
    .scalar = "greatest_of(x != 0)",
    .shard = "...a... -> ...... ; a@axis max",
    .traits = Trait::Reduction | Trait::NoGrad,
    .numpy = "np.any(x, axis=tuple(axis) if axis else None, keepdims=keepdim)",
    .samples = [] { return reduction_samples(t).add(bools({3, 2}), IntVector{0}); },
    .python = "oar Tensor",
};

const OpDef count_nonzero_op = {
    .schema = "count_nonzero(Tensor x, int[]? axis = None, bool keepdim = False) -> Tensor",
    .brief = "How many elements along the axes are not zero, as int64.",
    .infer = [](const args::count_nonzero& a) -> Metas {
      return reduced(a.x, a.axis, a.keepdim, DType::Int64);
    },
    .decompose = [](const args::count_nonzero& a) -> Made {
      return sum(cast(a.x, DType::Bool), a.axis, std::nullopt, a.keepdim);
    },
    .shard = "...a... -> ...... ; a@axis sum",
    .traits = Trait::Reduction | Trait::NoGrad,
    .numpy = "np.sum(x != 0, axis=tuple(axis) if axis else None, keepdims=keepdim)",
    .samples = [] { return reduction_samples(t); },
    .python = "oar Tensor",
};

const OpDef logsumexp_op = {
    .schema = "logsumexp(Tensor x, int[]? axis = None, bool keepdim = False) -> Tensor",
    .brief = "log(sum(exp(x))) over axes, without overflow.",
    .infer = [](const args::logsumexp& a) -> Metas {
      return reduced(a.x, a.axis, a.keepdim, a.x.dtype());
    },
    .vjp = [](const vjp::logsumexp& v) -> Grads {
      const Tensor out = stretch(v.out, v.x, v.axis);
      // If all are minus infinity, so is the result, and the gradient is zero.
      const Tensor none = literal(-INFINITY);
      const Tensor share = exp(where(equal(v.x, none), none, v.x - out));
      return stretch(v.grad, v.x, v.axis) * share;
    },
    .saves = "x out",
    .shard = "...a... -> ...... ; a@axis again",
    .traits = Trait::Reduction | Trait::FloatMath,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "np.log(np.sum(np.exp(x), axis=tuple(axis) if axis else None, keepdims=keepdim))",
    .samples = [] { return reduction_samples(t); },
    .python = "oar Tensor",
    .onnx = "ReduceLogSumExp",
};

}  // namespace

OAR_FAMILY(reduction, &sum_op, &reduce_as_op, &product_of_op, &prod_op, &mean_op, &nansum_op,
           &nanmean_op, &all_op, &any_op, &count_nonzero_op, &logsumexp_op)

}  // namespace oar
