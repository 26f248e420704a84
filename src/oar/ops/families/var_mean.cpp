// src/oar/ops/var_mean.cpp: variance and mean together.
#include "oar/ops/gen/var_mean.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/reduce_rules.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/statistics.h"

namespace oar {
namespace {

const OpDef var_mean_op = {
    .schema =
        "var_mean(Tensor x, int[]? axis = None, bool unbiased = True, bool keepdim = False) -> "
        "(Tensor variance, Tensor average)",
    .brief = "The variance and the mean over axes.",
    .infer = [](const args::var_mean& a) -> Metas {
      const Metas one = reduced(a.x, a.axis, a.keepdim, a.x.dtype());
      return {one[0], one[0]};
    },
    .decompose = [](const args::var_mean& a) -> Made {
      return {var(a.x, a.axis, a.unbiased, a.keepdim), mean(a.x, a.axis, a.keepdim)};
    },
    .shard = "...a... -> ......, ...... ; a@axis whole",
    .traits = Trait::FloatMath | Trait::Reduction | Trait::Smooth,
    .dtypes = "float",
    .numpy =
        "(np.var(x, axis=tuple(axis) if axis else None, ddof=int(unbiased), keepdims=keepdim), "
        "np.mean(x, axis=tuple(axis) if axis else None, keepdims=keepdim))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}))
              .add(t({2, 3, 4}), IntVector{0, -1}, true, true)
              .add(t({2, 3}), IntVector{1}, false, false)
              .add(t({3, 2}), std::nullopt, false, true)
              .add(t({0, 3}), IntVector{1});
        },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(var_mean, &var_mean_op)

}  // namespace oar
