// src/oar/ops/vecdot.cpp: the dot product along an axis.
#include "oar/ops/gen/vecdot.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/reduce_rules.h"
#include "oar/ops/gen/reduction.h"

namespace oar {
namespace {

const OpDef vecdot_op = {
    .schema = "vecdot(Tensor x, Tensor y, int axis = -1) -> Tensor",
    .brief = "The sum of x * y along an axis.",
    .infer = [](const args::vecdot& a) -> Metas {
      return reduced(a.x, IntVector{a.axis}, false, a.x.dtype());
    },
    .decompose = [](const args::vecdot& a) -> Made {
      return narrowed(sum(widened(a.x) * widened(a.y), IntVector{a.axis}), a.x.dtype());
    },
    .vjp = [](const vjp::vecdot& v) -> Grads {
      const Tensor grad = stretch(v.grad, v.x, IntVector{v.axis});
      return {grad * v.y, grad * v.x};
    },
    .saves = "x y",
    .shard = "...a..., ...a... -> ...... ; a@axis sum",
    .linear_in = "x y",
    .traits = Trait::Reduction | Trait::Broadcast | Trait::Promote | Trait::Smooth,
    .dtypes = "float",
    .numpy = "np.sum(x * y, axis=axis)",
    .samples =
        [] {
          return Samples()
              .add(t({4}), t({4}))
              .add(t({2, 3}), t({2, 3}), 0)
              .add(t({2, 3, 4}), t({3, 1}), -2)  // broadcast
              .add(t({2, 1, 3}), t({4, 1}), 1)
              .add(t({0, 3}), t({0, 3}), 0)
              .add(t({3, 0}), t({3, 0}), 0);
        },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(vecdot, &vecdot_op)

}  // namespace oar
