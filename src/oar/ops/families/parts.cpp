// Elementwise ops of one operand: its sign, its fraction, its exponent, angles, what is infinite.
#include "oar/ops/gen/parts.h"

#include <cmath>
#include <numbers>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/trigonometry.h"

namespace oar {
namespace {

constexpr Trait kMath = Trait::Elementwise | Trait::FloatMath | Trait::Smooth;
constexpr Trait kQuestion = Trait::Elementwise | Trait::NoGrad;

TensorSpec odd_numbers(DType dtype) {
  return {.shape = {6},
          .fill = Fill::Values,
          .dtype = dtype,
          .values = {1, -INFINITY, NAN, INFINITY, 0, -2.5},
          .differentiable = false};
}
Samples with_odd_numbers() {
  return samples::unary()
      .add(odd_numbers(DType::Float32))
      .add(odd_numbers(DType::Float64))
      .add(odd_numbers(DType::Float16));
}

const OpDef frac_op = {
    .schema = "frac(Tensor x) -> Tensor",
    .brief = "x without its integer part: x - trunc(x).",
    .decompose = [](const args::frac& a) -> Made {
      return is_integral(a.x.dtype()) ? zeros_like(a.x) : a.x - trunc(a.x);
    },
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "x - np.trunc(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
};

const OpDef sgn_op = {
    .schema = "sgn(Tensor x) -> Tensor",
    .brief = "sign(x); of a complex x the number of modulus 1 in its direction, and 0 for 0.",
    .decompose = [](const args::sgn& a) -> Made {
      if (!is_complex(a.x.dtype())) return sign(a.x);
      const Tensor size = abs(a.x), zero = equal(size, literal(0));
      return a.x / cast(where(zero, literal(1), size), a.x.dtype());
    },
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "int float complex",
    .numpy = "np.sign(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
};

const OpDef signbit_op = {
    .schema = "signbit(Tensor x) -> Tensor",
    .brief = "Whether x has a minus sign; -0.0 has one too.",
    .infer = infer::bool_like_first,
    .shard = "... -> ...",
    .traits = kQuestion,
    .dtypes = "bool int float",
    .numpy = "np.signbit(x.astype('float64'))",
    .samples = with_odd_numbers,
    .python = "oar Tensor",
};

const OpDef isposinf_op = {
    .schema = "isposinf(Tensor x) -> Tensor",
    .brief = "Whether x is plus infinity.",
    .infer = infer::bool_like_first,
    .shard = "... -> ...",
    .traits = kQuestion,
    .dtypes = "bool int float",
    .numpy = "np.isposinf(x)",
    .samples = with_odd_numbers,
    .python = "oar Tensor",
};

const OpDef isneginf_op = {
    .schema = "isneginf(Tensor x) -> Tensor",
    .brief = "Whether x is minus infinity.",
    .infer = infer::bool_like_first,
    .shard = "... -> ...",
    .traits = kQuestion,
    .dtypes = "bool int float",
    .numpy = "np.isneginf(x)",
    .samples = with_odd_numbers,
    .python = "oar Tensor",
};

const OpDef isreal_op = {
    .schema = "isreal(Tensor x) -> Tensor",
    .brief = "Whether the imaginary part of x is 0; it is of every real x.",
    .decompose = [](const args::isreal& a) -> Made {
      if (!is_complex(a.x.dtype())) return ones_like(a.x, DType::Bool);
      return equal(imag(a.x), literal(0));
    },
    .shard = "... -> ...",
    .traits = kQuestion,
    .numpy = "np.isreal(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
};

const OpDef nan_to_num_op = {
    .schema =
        "nan_to_num(Tensor x, float nan = 0.0, float? posinf = None, float? neginf = None) -> Tensor",
    .brief =
        "x with numbers in the places of NaN and of the infinities; by default 0 and the dtype's largest and "
        "lowest number.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::nan_to_num& v) -> Grads { return zero_unless(isfinite(v.x), v.grad); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "np.nan_to_num(x, nan=nan, posinf=posinf, neginf=neginf)",
    .samples =
        [] {
          return samples::unary()
              .add(odd_numbers(DType::Float32))
              .add(odd_numbers(DType::Float32), 2.0)
              .add(odd_numbers(DType::Float16), 1.0, 3.0, -4.0)
              .add(t({3}), 1.0, 3.0);
        },
    .python = "oar Tensor",
};

const OpDef frexp_op = {
    .schema = "frexp(Tensor x) -> (Tensor mantissa, Tensor exponent)",
    .brief = "x as mantissa * 2 ** exponent with a mantissa in [0.5, 1); both in the dtype of x.",
    .infer = [](const args::frexp& a) -> Metas { return {infer::like(a.x), infer::like(a.x)}; },
    .vjp = [](const vjp::frexp& v) -> Grads { return ldexp(v.grad_mantissa, -v.exponent); },
    .saves = "exponent",
    .shard = "... -> ..., ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "(lambda m, e: (m, e.astype(x.dtype)))(*np.frexp(x))",
    .samples = samples::unary,
    .python = "oar Tensor",
};

const OpDef rad2deg_op = {
    .schema = "rad2deg(Tensor x) -> Tensor",
    .brief = "An angle in degrees: x * 180 / pi.",
    .decompose = [](const args::rad2deg& a) -> Made { return a.x * (180 / std::numbers::pi); },
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
    .shard = "... -> ...",
    .traits = kMath,
    .dtypes = "float",
    .numpy = "np.deg2rad(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
};

const OpDef stanh_op = {
    .schema = "stanh(Tensor x, float scale_a = 0.67, float scale_b = 1.7159) -> Tensor",
    .brief = "scale_b * tanh(scale_a * x).",
    .decompose = [](const args::stanh& a) -> Made { return tanh(a.x * a.scale_a) * a.scale_b; },
    .shard = "... -> ...",
    .traits = kMath,
    .dtypes = "float",
    .numpy = "x.dtype.type(scale_b) * np.tanh(x.dtype.type(scale_a) * x)",
    .samples = [] { return samples::unary().add(t({3}), 0.5, 2.0); },
    .python = "oar Tensor",
};

const OpDef asinh_op = {
    .schema = "asinh(Tensor x) -> Tensor",
    .brief = "The number whose hyperbolic sine is x.",
    .infer = infer::same_as_first,
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

}  // namespace

OAR_FAMILY(parts, &frac_op, &sgn_op, &signbit_op, &isposinf_op, &isneginf_op, &isreal_op,
           &nan_to_num_op, &frexp_op, &rad2deg_op, &deg2rad_op, &stanh_op, &asinh_op, &acosh_op,
           &atanh_op)

}  // namespace oar
