// Activations that cut off a range: near zero, or beyond bounds.
#include "oar/ops/gen/shrink.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/elementwise_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/trigonometry.h"

namespace oar {
namespace {

const OpDef hardshrink_op = {
    .schema = "hardshrink(Tensor x, float threshold = 0.5) -> Tensor",
    .brief = "x where |x| > threshold, else 0.",
    .infer = infer::same_as_first,
    .decompose = [](const args::hardshrink& a) -> Made {
      return zero_where(less_equal(abs(a.x), literal(a.threshold)), a.x);
    },
    .scalar = "abs(x) <= threshold ? 0 : x",
    .vjp = [](const vjp::hardshrink& v) -> Grads { return shrink_grad(v.x, v.grad, v.threshold); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "np.where(np.abs(x) <= threshold, 0, x)",
    .samples = [] { return threshold_samples(0.2); },
    .python = "oar.nn.functional",
    .onnx = "Shrink",
};

const OpDef softshrink_op = {
    .schema = "softshrink(Tensor x, float threshold = 0.5) -> Tensor",
    .brief = "x moved towards 0 by the threshold, and 0 where it would cross 0.",
    .infer = [](const args::softshrink& a) -> Metas {
      user_check(a.threshold >= 0, ErrorKind::InvalidArgument,
                 "threshold is {}; it must not be negative.", a.threshold);
      return infer::like(a.x);
    },
    .decompose = [](const args::softshrink& a) -> Made {
      return a.x - clip(a.x, Scalar(-a.threshold), Scalar(a.threshold));
    },
    .scalar = "x - min(max(x, -threshold), threshold)",
    .vjp = [](const vjp::softshrink& v) -> Grads { return shrink_grad(v.x, v.grad, v.threshold); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "x - np.clip(x, -threshold, threshold)",
    .samples = [] { return threshold_samples(0.2); },
    .python = "oar.nn.functional",
};

const OpDef shrink_grad_op = {
    .schema = "shrink_grad(Tensor x, Tensor grad, float threshold) -> Tensor",
    .brief = "grad where |x| > threshold, else 0: the derivative of hardshrink and softshrink.",
    .infer = infer::same_as_first,
    .decompose = [](const args::shrink_grad& a) -> Made {
      return zero_where(less_equal(abs(a.x), literal(a.threshold)), a.grad);
    },
    .scalar = "abs(x) <= threshold ? 0 : grad",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "np.where(np.abs(x) <= threshold, 0, grad)",
    .samples = [] { return threshold_grad_samples(0.5); },
};

const OpDef tanhshrink_op = {
    .schema = "tanhshrink(Tensor x) -> Tensor",
    .brief = "x - tanh(x).",
    .infer = infer::same_as_first,
    .decompose = [](const args::tanhshrink& a) -> Made { return a.x - tanh(a.x); },
    .scalar = "x - tanh(x)",
    .vjp = [](const vjp::tanhshrink& v) -> Grads { return tanhshrink_grad(v.x, v.grad); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "x - np.tanh(x)",
    .samples = samples::unary,
    .python = "oar.nn.functional",
};

const OpDef tanhshrink_grad_op = {
    .schema = "tanhshrink_grad(Tensor x, Tensor grad) -> Tensor",
    .brief = "grad * tanh(x)²: the derivative of tanhshrink.",
    .infer = infer::same_as_first,
    .decompose = [](const args::tanhshrink_grad& a) -> Made { return a.grad * square(tanh(a.x)); },
    .scalar = "t = tanh(x); grad * (t * t)",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "grad * np.tanh(x) ** 2",
    .samples = samples::binary,
};

const OpDef hardtanh_op = {
    .schema = "hardtanh(Tensor x, float min = -1.0, float max = 1.0) -> Tensor",
    .brief = "x limited to [min, max].",
    .infer = [](const args::hardtanh& a) -> Metas {
      user_check(a.min <= a.max, ErrorKind::InvalidArgument,
                 "min is {} and max {}; min must not be larger.", a.min, a.max);
      return infer::like(a.x);
    },
    .decompose = [](const args::hardtanh& a) -> Made {
      return clip(a.x, Scalar(a.min), Scalar(a.max));
    },
    .scalar = "min(max(x, min), max)",
    .vjp = [](const vjp::hardtanh& v) -> Grads {
      return clip_grad(v.x, v.grad, Scalar(v.min), Scalar(v.max), false);
    },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "float",
    .numpy = "np.clip(x, min, max)",
    .samples = [] { return samples::unary().add(uniform_in(-3, 3, {9}), -2.0, 0.5); },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(shrink, &hardshrink_op, &softshrink_op, &shrink_grad_op, &tanhshrink_op,
           &tanhshrink_grad_op, &hardtanh_op)

}  // namespace oar
