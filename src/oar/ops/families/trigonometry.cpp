// Elementwise ops on angles, and their hyperbolic counterparts.
#include "oar/ops/gen/trigonometry.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"

namespace oar {
namespace {

constexpr Trait kMath = Trait::Elementwise | Trait::FloatMath | Trait::Smooth;

const OpDef sin_op = {
    .schema = "sin(Tensor x) -> Tensor",
    .brief = "The sine of x.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::sin& v) -> Grads { return v.grad * conjugate(cos(v.x)); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .numpy = "np.sin(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Sin",
};

const OpDef cos_op = {
    .schema = "cos(Tensor x) -> Tensor",
    .brief = "The cosine of x.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::cos& v) -> Grads { return -v.grad * conjugate(sin(v.x)); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .numpy = "np.cos(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Cos",
};

const OpDef tan_op = {
    .schema = "tan(Tensor x) -> Tensor",
    .brief = "The tangent of x.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::tan& v) -> Grads {
      const Tensor tangent = tan(v.x);
      return v.grad * conjugate(1 + tangent * tangent);
    },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .amp = Amp::Full,
    .numpy = "np.tan(x)",
    .samples = [] { return samples::unary_in(-1, 1); },
    .python = "oar Tensor",
    .onnx = "Tan",
};

const OpDef asin_op = {
    .schema = "asin(Tensor x) -> Tensor",
    .brief = "The angle whose sine is x.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::asin& v) -> Grads { return v.grad * conjugate(rsqrt(1 - v.x * v.x)); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .amp = Amp::Full,
    .numpy = "np.arcsin(x)",
    .samples = [] { return samples::unary_in(-0.45, 0.45); },
    .python = "oar Tensor",
    .onnx = "Asin",
};

const OpDef acos_op = {
    .schema = "acos(Tensor x) -> Tensor",
    .brief = "The angle whose cosine is x.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::acos& v) -> Grads { return -v.grad * conjugate(rsqrt(1 - v.x * v.x)); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .amp = Amp::Full,
    .numpy = "np.arccos(x)",
    .samples = [] { return samples::unary_in(-0.45, 0.45); },
    .python = "oar Tensor",
    .onnx = "Acos",
};

const OpDef atan_op = {
    .schema = "atan(Tensor x) -> Tensor",
    .brief = "The angle whose tangent is x.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::atan& v) -> Grads { return v.grad / conjugate(1 + v.x * v.x); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .numpy = "np.arctan(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Atan",
};

const OpDef sinh_op = {
    .schema = "sinh(Tensor x) -> Tensor",
    .brief = "The hyperbolic sine of x.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::sinh& v) -> Grads { return v.grad * conjugate(cosh(v.x)); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .amp = Amp::Full,
    .numpy = "np.sinh(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Sinh",
};

const OpDef cosh_op = {
    .schema = "cosh(Tensor x) -> Tensor",
    .brief = "The hyperbolic cosine of x.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::cosh& v) -> Grads { return v.grad * conjugate(sinh(v.x)); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .amp = Amp::Full,
    .numpy = "np.cosh(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Cosh",
};

const OpDef tanh_op = {
    .schema = "tanh(Tensor x) -> Tensor",
    .brief = "The hyperbolic tangent of x.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::tanh& v) -> Grads { return tanh_grad(v.out, v.grad); },
    .saves = "out",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .numpy = "np.tanh(x)",
    .samples = samples::unary,
    .python = "oar Tensor oar.nn.functional",
    .onnx = "Tanh",
};

const OpDef tanh_grad_op = {
    .schema = "tanh_grad(Tensor out, Tensor grad) -> Tensor",
    .brief = "grad * (1 - out * out): the derivative of tanh.",
    .infer = infer::same_as_first,
    .decompose = [](const args::tanh_grad& a) -> Made {
      return a.grad * conjugate(1 - a.out * a.out);
    },
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy = "grad * np.conj(1 - out * out)",
    .samples = samples::binary,
};

const OpDef atan2_op = {
    .schema = "atan2(Tensor x, Tensor y) -> Tensor",
    .brief =
        "The angle of the point (y, x) seen from the origin: atan(x / y) in the right quadrant.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::atan2& v) -> Grads {
      const Tensor g = v.grad / (v.x * v.x + v.y * v.y);
      return {v.needs(0) ? g * v.y : Tensor(), v.needs(1) ? -g * v.x : Tensor()};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kMath | Trait::Promote,
    .dtypes = "float",
    .numpy = "np.arctan2(x, y)",
    .samples = samples::binary,
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(trigonometry, &sin_op, &cos_op, &tan_op, &asin_op, &acos_op, &atan_op, &sinh_op,
           &cosh_op, &tanh_op, &tanh_grad_op, &atan2_op)

}  // namespace oar
