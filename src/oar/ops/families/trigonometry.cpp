// Angles and their hyperbolic counterparts.
#include "oar/ops/gen/trigonometry.h"

#include <numbers>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/elementwise_rules.h"
#include "oar/ops/gen/powers.h"

namespace oar {
namespace {

const OpDef sin_op = {
    .schema = "sin(Tensor x) -> Tensor",
    .brief = "The sine of x.",
    .infer = infer::same_as_first,
    .scalar = "sin(x)",
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
    .scalar = "cos(x)",
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
    .scalar = "tan(x)",
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
    .scalar = "asin(x)",
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
    .scalar = "acos(x)",
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
    .scalar = "atan(x)",
    .vjp = [](const vjp::atan& v) -> Grads { return v.grad / conjugate(1 + v.x * v.x); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .numpy = "np.arctan(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Atan",
};

const OpDef atan2_op = {
    .schema = "atan2(Tensor x, Tensor y) -> Tensor",
    .brief =
        "The angle of the point (y, x) seen from the origin: atan(x / y) in the right quadrant.",
    .infer = infer::same_as_first,
    .scalar = "atan2(x, y)",
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

const OpDef sinh_op = {
    .schema = "sinh(Tensor x) -> Tensor",
    .brief = "The hyperbolic sine of x.",
    .infer = infer::same_as_first,
    .scalar = "sinh(x)",
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
    .scalar = "cosh(x)",
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
    .scalar = "tanh(x)",
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
    .scalar = "grad * (1 - out * out)",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy = "grad * np.conj(1 - out * out)",
    .samples = samples::binary,
};

const OpDef asinh_op = {
    .schema = "asinh(Tensor x) -> Tensor",
    .brief = "The number whose hyperbolic sine is x.",
    .infer = infer::same_as_first,
    .scalar = "asinh(x)",
    .vjp = [](const vjp::asinh& v) -> Grads { return v.grad * conjugate(rsqrt(1 + v.x * v.x)); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy = "np.arcsinh(x)",
    .samples = [] { return samples::unary_in(-0.6, 0.6); },
    .python = "oar Tensor",
    .onnx = "Asinh",
};

const OpDef acosh_op = {
    .schema = "acosh(Tensor x) -> Tensor",
    .brief = "The positive number whose hyperbolic cosine is x; NaN below 1.",
    .infer = infer::same_as_first,
    // Two roots, since of a complex x their product has another branch than the root of the product.
    .scalar = "acosh(x)",
    .vjp = [](const vjp::acosh& v) -> Grads {
      return v.grad * conjugate(rsqrt(v.x - 1) * rsqrt(v.x + 1));
    },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy = "np.arccosh(x)",
    .samples = [] { return samples::unary_in(1.5, 4); },
    .python = "oar Tensor",
    .onnx = "Acosh",
};

const OpDef atanh_op = {
    .schema = "atanh(Tensor x) -> Tensor",
    .brief = "The number whose hyperbolic tangent is x; infinite at -1 and 1, NaN beyond.",
    .infer = infer::same_as_first,
    .scalar = "atanh(x)",
    .vjp = [](const vjp::atanh& v) -> Grads { return v.grad / conjugate(1 - v.x * v.x); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy = "np.arctanh(x)",
    .samples = [] { return samples::unary_in(-0.45, 0.45); },
    .python = "oar Tensor",
    .onnx = "Atanh",
};

const OpDef rad2deg_op = {
    .schema = "rad2deg(Tensor x) -> Tensor",
    .brief = "An angle in degrees: x * 180 / pi.",
    .decompose = [](const args::rad2deg& a) -> Made { return a.x * (180 / std::numbers::pi); },
    .scalar = "x * (180 / pi)",
    .shard = "... -> ...",
    .traits = kMath,
    .dtypes = "float",
    .numpy = "np.rad2deg(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
};

const OpDef deg2rad_op = {
    .schema = "deg2rad(Tensor x) -> Tensor",
    .brief = "An angle of degrees in radians: x * pi / 180.",
    .decompose = [](const args::deg2rad& a) -> Made { return a.x * (std::numbers::pi / 180); },
    .scalar = "x * (pi / 180)",
    .shard = "... -> ...",
    .traits = kMath,
    .dtypes = "float",
    .numpy = "np.deg2rad(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(trigonometry, &sin_op, &cos_op, &tan_op, &asin_op, &acos_op, &atan_op, &atan2_op,
           &sinh_op, &cosh_op, &tanh_op, &tanh_grad_op, &asinh_op, &acosh_op, &atanh_op,
           &rad2deg_op, &deg2rad_op)

}  // namespace oar
