// src/oar/ops/logit.cpp: the inverse of sigmoid.
#include "oar/ops/gen/logit.h"

#include <limits>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/elementwise.h"

namespace oar {
namespace {

// x, kept eps away from 0 and 1 if there is an eps.
Tensor bounded(const Tensor& x, std::optional<double> eps) {
  return eps ? clip(x, *eps, 1 - *eps) : x;
}

const OpDef logit_op = {
    .schema = "logit(Tensor x, float? eps = None) -> Tensor",
    .brief =
        "log(x / (1 - x)), the inverse of sigmoid; with eps, x is first limited to [eps, 1 - eps].",
    .infer = [](const args::logit& a) -> Metas {
      user_check(
          !a.eps || (*a.eps >= 0 && *a.eps <= 0.5), ErrorKind::InvalidArgument,
          "eps is {}, which is not in [0, 0.5]\nhint: x is limited to [eps, 1 - eps]; 1e-6 is usual",
          a.eps.value_or(0));
      return {infer::like(a.x)};
    },
    .decompose = [](const args::logit& a) -> Made {
      const Tensor x = bounded(widened(a.x), a.eps);
      return narrowed(log(x / (1 - x)), a.x.dtype());
    },
    .vjp = [](const vjp::logit& v) -> Grads {
      const Tensor x = bounded(v.x, v.eps);
      const Tensor slope = v.grad / (x * (1 - x));
      if (v.eps) return clip_grad(v.x, slope, *v.eps, 1 - *v.eps);
      // Outside of [0, 1] the value is NaN, and so is its derivative.
      const Tensor inside =
          logical_and(greater_equal(v.x, literal(0)), less_equal(v.x, literal(1)));
      return where(inside, slope, literal(std::numeric_limits<double>::quiet_NaN()));
    },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::FloatMath | Trait::Smooth | Trait::HasInplace,
    .dtypes = "float",
    .numpy = "(lambda p: np.log(p / (1 - p)))(x if eps is None else np.clip(x, eps, 1 - eps))",
    .samples =
        [] {
          return Samples()
              .add(uniform_in(0.2, 0.8, {4, 7}))
              .add(uniform_in(0.2, 0.8, {}))
              .add(uniform_in(0.2, 0.8, {0, 3}), std::nullopt)
              .add(uniform_in(0.35, 0.65, {2, 3, 2}), 0.25)  // inside the limits
              .add(uniform_in(0.05, 0.15, {3}), 0.25);       // outside
        },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(logit, &logit_op)

}  // namespace oar
