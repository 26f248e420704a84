// Derivatives of elementwise ops that would take several passes in plain ops.
#include "oar/ops/gen/slopes.h"

#include <numbers>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/gen/activation.h"

namespace oar {
namespace {

constexpr Trait kSlope = Trait::Elementwise | Trait::Smooth;

const OpDef rsqrt_grad_op = {
    .schema = "rsqrt_grad(Tensor out, Tensor grad) -> Tensor",
    .brief = "-grad * out³ / 2: the derivative of rsqrt, whose result is out.",
    .infer = infer::same_as_first,
    .decompose = [](const args::rsqrt_grad& a) -> Made {
      return a.grad * conjugate(a.out * a.out * a.out) * -0.5;
    },
    .shard = "..., ... -> ...",
    .traits = kSlope,
    .dtypes = "float complex",
    .numpy = "-0.5 * grad * np.conj(out) ** 3",
    .samples = samples::binary,
};

const OpDef erf_grad_op = {
    .schema = "erf_grad(Tensor x, Tensor grad) -> Tensor",
    .brief = "grad * exp(-x²) * 2 / sqrt(pi): the derivative of erf.",
    .infer = infer::same_as_first,
    .decompose = [](const args::erf_grad& a) -> Made {
      return a.grad * exp(-(a.x * a.x)) * (2 * std::numbers::inv_sqrtpi);
    },
    .shard = "..., ... -> ...",
    .traits = kSlope,
    .dtypes = "float",
    .numpy = "grad * np.exp(-x * x) * 2 / np.sqrt(np.pi)",
    .samples = samples::binary,
};

const OpDef log_sigmoid_grad_op = {
    .schema = "log_sigmoid_grad(Tensor x, Tensor grad) -> Tensor",
    .brief = "grad * sigmoid(-x): the derivative of log_sigmoid.",
    .infer = infer::same_as_first,
    .decompose = [](const args::log_sigmoid_grad& a) -> Made { return a.grad * sigmoid(-a.x); },
    .shard = "..., ... -> ...",
    .traits = kSlope,
    .dtypes = "float",
    .numpy = "grad / (1 + np.exp(x))",
    .samples = samples::binary,
};

}  // namespace

OAR_FAMILY(slopes, &rsqrt_grad_op, &erf_grad_op, &log_sigmoid_grad_op)

}  // namespace oar
