// Comparison of elements and of whole tensors.
#include "oar/ops/gen/compare.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/elementwise_rules.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/floating_point.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/reduction.h"

namespace oar {
namespace {

const OpDef equal_op = {
    .schema = "equal(Tensor x, Tensor y) -> Tensor",
    .brief = "x == y, as bools.",
    .infer = infer::bool_like_first,
    .scalar = "x == y",
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .numpy = "x == y",
    .samples = comparing,
    .python = "oar Tensor",
    .onnx = "Equal",
};

const OpDef not_equal_op = {
    .schema = "not_equal(Tensor x, Tensor y) -> Tensor",
    .brief = "x != y, as bools.",
    .infer = infer::bool_like_first,
    .scalar = "x != y",
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .numpy = "x != y",
    .samples = comparing,
    .python = "oar Tensor",
};

const OpDef less_than_op = {
    .schema = "less_than(Tensor x, Tensor y) -> Tensor",
    .brief = "x < y, as bools.",
    .infer = infer::bool_like_first,
    .scalar = "x < y",
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .dtypes = "bool int float",
    .numpy = "x < y",
    .samples = comparing,
    .python = "oar Tensor",
    .onnx = "Less",
};

const OpDef less_equal_op = {
    .schema = "less_equal(Tensor x, Tensor y) -> Tensor",
    .brief = "x <= y, as bools.",
    .infer = infer::bool_like_first,
    .scalar = "x <= y",
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .dtypes = "bool int float",
    .numpy = "x <= y",
    .samples = comparing,
    .python = "oar Tensor",
    .onnx = "LessOrEqual",
};

const OpDef greater_than_op = {
    .schema = "greater_than(Tensor x, Tensor y) -> Tensor",
    .brief = "x > y, as bools.",
    .infer = infer::bool_like_first,
    .scalar = "x > y",
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .dtypes = "bool int float",
    .numpy = "x > y",
    .samples = comparing,
    .python = "oar Tensor",
    .onnx = "Greater",
};

const OpDef greater_equal_op = {
    .schema = "greater_equal(Tensor x, Tensor y) -> Tensor",
    .brief = "x >= y, as bools.",
    .infer = infer::bool_like_first,
    .scalar = "x >= y",
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .dtypes = "bool int float",
    .numpy = "x >= y",
    .samples = comparing,
    .python = "oar Tensor",
    .onnx = "GreaterOrEqual",
};

// x in a dtype in which distances are exact enough.
Tensor comparable(const Tensor& x) { return is_complex(x.dtype()) ? x : cast(x, DType::Float64); }

const OpDef isclose_op = {
    .schema =
        "isclose(Tensor x, Tensor y, float rtol = 1e-05, float atol = 1e-08, bool equal_nan = False) -> Tensor",
    .brief = "Whether |x - y| <= atol + rtol * |y|. Infinities are close to themselves only.",
    .decompose = [](const args::isclose& a) -> Made {
      const Tensor x = comparable(a.x), y = comparable(a.y);
      const Tensor near = less_equal(abs(x - y), abs(y) * a.rtol + a.atol);
      const Tensor close = logical_or(logical_and(near, isfinite(y)), equal(a.x, a.y));
      if (!a.equal_nan) return close;
      return logical_or(close, logical_and(isnan(a.x), isnan(a.y)));
    },
    .scalar =
        "x == y || isfinite(y) && abs(1.0 * x - y) <= atol + rtol * abs(1.0 * y) || "
        "equal_nan && isnan(x) && isnan(y)",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::NoGrad,
    .numpy = "np.isclose(x, y, rtol, atol, equal_nan)",
    .samples =
        [] {
          const TensorSpec odd = fixed_values({1, INFINITY, NAN, -INFINITY}, {4}, DType::Float32);
          return samples::binary()
              .add(ints(0, 3, {6}), ints(0, 3, {6}))
              .add(positive({8}), positive({8}), 0.3, 0.1)
              .add(odd, odd)
              .add(odd, odd, 1e-3, 1e-3, true);
        },
    .python = "oar Tensor",
};

const OpDef allclose_op = {
    .schema =
        "allclose(Tensor x, Tensor y, float rtol = 1e-05, float atol = 1e-08, bool equal_nan = False) -> Tensor",
    .brief = "Whether all elements of x are close to those of y, as isclose says; a 0-d bool.",
    .decompose = [](const args::allclose& a) -> Made {
      return all(isclose(a.x, a.y, a.rtol, a.atol, a.equal_nan));
    },
    .traits = Trait::Broadcast | Trait::Promote | Trait::NoGrad,
    .numpy = "np.array(np.allclose(x, y, rtol, atol, equal_nan))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3}), t({2, 3}))
              .add(positive({3}), positive({3}), 2.0)
              .add(ints(2, 3, {4}), ints(2, 3, {}), 1e-5, 1e-8, true)
              .add(t({0}), t({0}));
        },
    .python = "oar Tensor",
};

const OpDef equal_all_op = {
    .schema = "equal_all(Tensor x, Tensor y) -> Tensor",
    .brief = "Whether x and y have one shape and equal elements; a 0-d bool.",
    .decompose = [](const args::equal_all& a) -> Made {
      if (a.x.rank() != a.y.rank() || !same(a.x.shape(), a.y.shape()))
        return full({}, Scalar(false), DType::Bool);
      return all(equal(a.x, a.y));
    },
    .traits = Trait::Promote | Trait::NoGrad,
    .numpy = "np.array(np.array_equal(x, y))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3}), t({2, 3}))
              .add(t({2, 3}), t({3}))
              .add(ints(2, 3, {4}), ints(2, 3, {4}))
              .add(t({0}), t({0}));
        },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(compare, &equal_op, &not_equal_op, &less_than_op, &less_equal_op, &greater_than_op,
           &greater_equal_op, &isclose_op, &allclose_op, &equal_all_op)

}  // namespace oar
