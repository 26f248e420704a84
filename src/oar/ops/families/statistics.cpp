// Variance, norms, the logarithm of a sum of exponentials.
#include "oar/ops/gen/statistics.h"

#include <cmath>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/families/reduce_rules.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/extremes.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

// What the squares are divided by: n - 1 where the estimate is to be unbiased.
Tensor degrees_of_freedom(const Tensor& x, std::optional<Ints> axis, bool unbiased) {
  const auto axes = normalise_axes(axis, x.rank());
  const Tensor count = count_along(x, Ints(axes));
  return unbiased ? maximum(count - 1, literal(0)) : count;
}

constexpr const char* kVariance =
    "(lambda n: (np.sum(np.abs(x - np.mean(x, axis=tuple(axis) if axis else None, "
    "keepdims=True)) ** 2, axis=tuple(axis) if axis else None, keepdims=keepdim) / "
    "np.float64(max(n - unbiased, 0))))"
    "(int(np.prod([x.shape[i] for i in axis])) if axis else x.size)";

Samples variance_samples() {
  return Samples()
      .add(t({4, 7}))
      .add(t({2, 3, 5}), IntVector{1}, true, true)
      .add(t({2, 3, 5}), IntVector{0, -1}, false)
      .add(t({}), std::nullopt, false)
      .add(t({3, 0, 2}), IntVector{0});
}

const OpDef var_op = {
    .schema =
        "var(Tensor x, int[]? axis = None, bool unbiased = True, bool keepdim = False) -> "
        "Tensor",
    .brief =
        "The variance over axes: the squares of the distances from the mean, divided by n - "
        "1, or by n where unbiased is off.",
    .infer = [](const args::var& a) -> Metas {
      return reduced(a.x, a.axis, a.keepdim, a.x.dtype());
    },
    .decompose = [](const args::var& a) -> Made {
      const Tensor x = widened(a.x);
      const Tensor distance = x - mean(x, a.axis, true);
      const Tensor squares = sum(square(distance), a.axis, std::nullopt, a.keepdim);
      return narrowed(squares / degrees_of_freedom(x, a.axis, a.unbiased), a.x.dtype());
    },
    .vjp = [](const vjp::var& v) -> Grads {
      const Tensor scale = 2.0 * v.grad / degrees_of_freedom(v.x, v.axis, v.unbiased);
      return stretch(scale, v.x, v.axis) * (v.x - mean(v.x, v.axis, true));
    },
    .saves = "x",
    .shard = "...a... -> ...... ; a@axis whole",
    .traits = Trait::Reduction | Trait::FloatMath | Trait::Smooth,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = kVariance,
    .samples = variance_samples,
    .python = "oar Tensor",
};

const OpDef std_op = {
    .schema =
        "std(Tensor x, int[]? axis = None, bool unbiased = True, bool keepdim = False) -> "
        "Tensor",
    .brief = "The standard deviation over axes: the square root of the variance.",
    .decompose = [](const args::std_& a) -> Made {
      return sqrt(var(a.x, a.axis, a.unbiased, a.keepdim));
    },
    .traits = Trait::FloatMath,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "np.sqrt((lambda n: (np.sum((x - np.mean(x, axis=tuple(axis) if axis else None, "
        "keepdims=True)) ** 2, axis=tuple(axis) if axis else None, keepdims=keepdim) / "
        "np.float64(max(n - unbiased, 0))))(int(np.prod([x.shape[i] for i in axis])) if axis "
        "else x.size))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}))
              .add(t({2, 3, 5}), IntVector{1}, true, true)
              .add(t({2, 3, 5}), IntVector{0, -1}, false)
              .add(t({3, 0, 2}), IntVector{0});
        },
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
      // Where all are minus infinity, so is the result, and their share is none.
      const Tensor none = literal(-INFINITY);
      const Tensor share = exp(where(equal(v.x, none), none, v.x - out));
      return stretch(v.grad, v.x, v.axis) * share;
    },
    .saves = "x out",
    .shard = "...a... -> ...... ; a@axis again",
    .traits = Trait::Reduction | Trait::FloatMath | Trait::Smooth,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "np.log(np.sum(np.exp(x), axis=tuple(axis) if axis else None, keepdims=keepdim))",
    .samples = [] { return reduction_samples(t); },
    .python = "oar Tensor",
    .onnx = "ReduceLogSumExp",
};

const OpDef root_sum_square_op = {
    .schema = "root_sum_square(Tensor x, int[]? axis = None, bool keepdim = False) -> Tensor",
    .brief = "The Euclidean norm over axes. Its gradient at zero is zero.",
    .infer = [](const args::root_sum_square& a) -> Metas {
      return reduced(a.x, a.axis, a.keepdim, real_type_of(a.x.dtype()));
    },
    .decompose = [](const args::root_sum_square& a) -> Made {
      const Tensor x = is_complex(a.x.dtype()) ? abs(a.x) : widened(a.x);
      const Tensor norm = sqrt(sum(square(x), a.axis, std::nullopt, a.keepdim));
      return narrowed(norm, real_type_of(a.x.dtype()));
    },
    .vjp = [](const vjp::root_sum_square& v) -> Grads {
      const Tensor zero = equal(v.out, literal(0));
      const Tensor scale = zero_where(zero, v.grad / where(zero, literal(1), v.out));
      return stretch(scale, v.x, v.axis) * v.x;
    },
    .saves = "x out",
    .plan =
        [](const PlanCall& c) {
          const args::root_sum_square a(c.args);
          sharding::reduced(c.plan, a.axis, Join::Again);
        },
    .traits = Trait::Reduction,
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "np.sqrt(np.sum(np.abs(x) ** 2, axis=tuple(axis) if axis else None, "
        "keepdims=keepdim))",
    .samples = [] { return reduction_samples(t); },
};

const OpDef p_norm_op = {
    .schema =
        "p_norm(Tensor x, float porder = 2.0, int[]? axis = None, bool keepdim = False) -> "
        "Tensor",
    .brief =
        "sum(|x|^p)^(1/p) over axes: p = 0 counts, infinity takes the largest, minus "
        "infinity the smallest magnitude.",
    .decompose = [](const args::p_norm& a) -> Made {
      const double p = a.porder;
      if (p == 2) return root_sum_square(a.x, a.axis, a.keepdim);
      const DType dtype = real_type_of(a.x.dtype());
      if (p == 0) return cast(count_nonzero(a.x, a.axis, a.keepdim), dtype);
      const Tensor size = abs(a.x);
      if (std::isinf(p)) return p > 0 ? max(size, a.axis, a.keepdim) : min(size, a.axis, a.keepdim);
      if (p == 1) return sum(size, a.axis, std::nullopt, a.keepdim);
      const Tensor powers = pow(widened(size), literal(p));
      return narrowed(pow(sum(powers, a.axis, std::nullopt, a.keepdim), literal(1 / p)), dtype);
    },
    .plan =
        [](const PlanCall& c) {
          const args::p_norm a(c.args);
          sharding::reduced(c.plan, a.axis, a.porder == 0 ? Join::Sum : Join::Again);
        },
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda s, ax: np.sum(s != 0, axis=ax, keepdims=keepdim).astype(s.dtype) if porder "
        "== 0 else np.max(s, axis=ax, keepdims=keepdim) if porder == np.inf else np.min(s, "
        "axis=ax, keepdims=keepdim) if porder == -np.inf else np.sum(s ** porder, axis=ax, "
        "keepdims=keepdim) ** (1 / porder))(np.abs(x), tuple(axis) if axis else None)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}))
              .add(t({2, 3, 2}), 1.0, IntVector{1}, true)
              .add(distinct({3, 4}), INFINITY, IntVector{-1})
              .add(distinct({3, 4}), -INFINITY)
              .add(positive({3, 4}), 3.0, IntVector{0})
              .add(positive({2, 2}), 0.0)
              .add(positive({}), 2.5)
              .add(t({2, 0}), 2.0, IntVector{1});
        },
};

}  // namespace

OAR_FAMILY(statistics, &var_op, &std_op, &logsumexp_op, &root_sum_square_op, &p_norm_op)

}  // namespace oar
