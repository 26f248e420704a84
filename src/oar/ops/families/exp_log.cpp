// Exponentials and logarithms of elements.
#include "oar/ops/gen/exp_log.h"

#include <numbers>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/elementwise_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/floating_point.h"
#include "oar/ops/gen/logic.h"

namespace oar {
namespace {

const OpDef exp_op = {
    .schema = "exp(Tensor x) -> Tensor",
    .brief = "e to the power of x.",
    .infer = infer::same_as_first,
    .scalar = "exp(x)",
    .vjp = [](const vjp::exp& v) -> Grads { return v.grad * conjugate(v.out); },
    .saves = "out",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .amp = Amp::Full,
    .numpy = "np.exp(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Exp",
};

const OpDef expm1_op = {
    .schema = "expm1(Tensor x) -> Tensor",
    .brief = "exp(x) - 1, exact for small x.",
    .infer = infer::same_as_first,
    .scalar = "expm1(x)",
    .vjp = [](const vjp::expm1& v) -> Grads { return v.grad * conjugate(v.out + 1); },
    .saves = "out",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .amp = Amp::Full,
    .numpy = "np.expm1(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
};

const OpDef log_op = {
    .schema = "log(Tensor x) -> Tensor",
    .brief = "The natural logarithm of x.",
    .infer = infer::same_as_first,
    .scalar = "log(x)",
    .vjp = [](const vjp::log& v) -> Grads { return v.grad / conjugate(v.x); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .amp = Amp::Full,
    .numpy = "np.log(x)",
    .samples = samples::unary_positive,
    .python = "oar Tensor",
    .onnx = "Log",
};

const OpDef log2_op = {
    .schema = "log2(Tensor x) -> Tensor",
    .brief = "The logarithm of x to base 2.",
    .infer = infer::same_as_first,
    .decompose = [](const args::log2& a) -> Made { return log(a.x) * std::numbers::log2e; },
    .scalar = "log2(x)",
    .vjp = [](const vjp::log2& v) -> Grads {
      return v.grad / conjugate(v.x) * std::numbers::log2e;
    },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .amp = Amp::Full,
    .numpy = "np.log2(x)",
    .samples = samples::unary_positive,
    .python = "oar Tensor",
};

const OpDef log10_op = {
    .schema = "log10(Tensor x) -> Tensor",
    .brief = "The logarithm of x to base 10.",
    .infer = infer::same_as_first,
    .decompose = [](const args::log10& a) -> Made { return log(a.x) * std::numbers::log10e; },
    .scalar = "log10(x)",
    .vjp = [](const vjp::log10& v) -> Grads {
      return v.grad / conjugate(v.x) * std::numbers::log10e;
    },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .amp = Amp::Full,
    .numpy = "np.log10(x)",
    .samples = samples::unary_positive,
    .python = "oar Tensor",
};

const OpDef log1p_op = {
    .schema = "log1p(Tensor x) -> Tensor",
    .brief = "log(1 + x), exact for small x.",
    .infer = infer::same_as_first,
    .scalar = "log1p(x)",
    .vjp = [](const vjp::log1p& v) -> Grads { return v.grad / conjugate(v.x + 1); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .amp = Amp::Full,
    .numpy = "np.log1p(x)",
    .samples = [] { return samples::unary_positive().add(uniform_in(-0.3, 0.3, {5})); },
    .python = "oar Tensor",
};

const OpDef logaddexp_op = {
    .schema = "logaddexp(Tensor x, Tensor y) -> Tensor",
    .brief = "log(exp(x) + exp(y)), without overflow.",
    .infer = infer::same_as_first,
    .scalar = "x == y ? x + log(2) : max(x, y) + log1p(exp(-abs(x - y)))",
    .vjp = [](const vjp::logaddexp& v) -> Grads {
      const Tensor gx = logaddexp_grad(v.x, v.y, v.grad);
      return {gx, v.needs(1) ? v.grad - gx : Tensor()};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::FloatMath,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "np.logaddexp(x, y)",
    .samples = samples::binary,
    .python = "oar Tensor",
};

const OpDef logaddexp_grad_op = {
    .schema = "logaddexp_grad(Tensor x, Tensor y, Tensor grad) -> Tensor",
    .brief = "grad / (1 + exp(y - x)), half of it where x is y: the derivative of logaddexp by x.",
    .infer = infer::same_as_first,
    // Only the difference of equal infinities is undefined; a mask of all equal elements would cut second derivatives.
    .decompose = [](const args::logaddexp_grad& a) -> Made {
      const Tensor undefined = logical_and(equal(a.x, a.y), isinf(a.x));
      return a.grad * sigmoid(zero_where(undefined, a.x - a.y));
    },
    .scalar = "grad / (1 + exp(x == y ? 0 : y - x))",
    .shard = "..., ..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "grad * sp.expit(x - y)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}), t({4, 7}), t({4, 7}))
              .add(t({}), t({}), t({}))
              .add(t({0, 3}), t({0, 3}), t({0, 3}));
        },
};

}  // namespace

OAR_FAMILY(exp_log, &exp_op, &expm1_op, &log_op, &log2_op, &log10_op, &log1p_op, &logaddexp_op,
           &logaddexp_grad_op)

}  // namespace oar
