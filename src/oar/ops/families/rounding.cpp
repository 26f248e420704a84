// Elements rounded to integers, and the remainder of rounding.
#include "oar/ops/gen/rounding.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/canonical_rules.h"
#include "oar/ops/gen/creation.h"

namespace oar {
namespace {

const OpDef floor_op = {
    .schema = "floor(Tensor x) -> Tensor",
    .brief = "The largest integer that is not above x. Its gradient is 0.",
    .infer = infer::same_as_first,
    .scalar = "floor(x)",
    .vjp = [](const vjp::floor& v) -> Grads { return zeros_like(v.grad); },
    .shard = "... -> ...",
    .canonical = canonical::idempotent,
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "np.floor(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Floor",
};

const OpDef ceil_op = {
    .schema = "ceil(Tensor x) -> Tensor",
    .brief = "The smallest integer that is not below x. Its gradient is 0.",
    .infer = infer::same_as_first,
    .scalar = "ceil(x)",
    .vjp = [](const vjp::ceil& v) -> Grads { return zeros_like(v.grad); },
    .shard = "... -> ...",
    .canonical = canonical::idempotent,
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "np.ceil(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Ceil",
};

const OpDef round_op = {
    .schema = "round(Tensor x, int decimals = 0) -> Tensor",
    .brief = "x rounded to so many decimals, halves to even. Its gradient is 0.",
    .infer = infer::same_as_first,
    .scalar =
        "p = pow(10.0, abs(decimals)); s = x * p; decimals == 0 ? round(x) : "
        "decimals < 0 ? round(x / p) * p : isfinite(s) ? round(s) / p : x",
    .vjp = [](const vjp::round& v) -> Grads { return zeros_like(v.grad); },
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "np.round(x, decimals)",
    .samples =
        [] {
          return samples::unary()
              .add(fixed_values({-0.5, 0.5, 1.5, -2.5}, {4}))
              .add(t({5}), 2)
              .add(uniform_in(-40, 40, {5}), -1);
        },
    .python = "oar Tensor",
};

const OpDef trunc_op = {
    .schema = "trunc(Tensor input) -> Tensor",
    .brief = "The integer part: x without its fraction. Its gradient is 0.",
    .infer = infer::same_as_first,
    .scalar = "trunc(input)",
    .vjp = [](const vjp::trunc& v) -> Grads { return zeros_like(v.grad); },
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "np.trunc(input)",
    .samples = samples::unary,
    .python = "oar Tensor",
};

const OpDef frac_op = {
    .schema = "frac(Tensor x) -> Tensor",
    .brief = "x without its integer part: x - trunc(x).",
    .decompose = [](const args::frac& a) -> Made {
      return is_integral(a.x.dtype()) ? zeros_like(a.x) : a.x - trunc(a.x);
    },
    .scalar = "x - trunc(x)",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "x - np.trunc(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(rounding, &floor_op, &ceil_op, &round_op, &trunc_op, &frac_op)

}  // namespace oar
