// Elementwise ops of one operand: signs, powers, exponentials, logarithms, rounding. Activations,
// angles, predicates and complex parts have files of their own.
#include "oar/ops/gen/elementwise.h"

#include <numbers>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/slopes.h"

namespace oar {
namespace {

constexpr Trait kMath = Trait::Elementwise | Trait::FloatMath | Trait::Smooth;

const OpDef neg_op = {
    .schema = "neg(Tensor x) -> Tensor",
    .brief = "-x.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::neg& v) -> Grads { return -v.grad; },
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::Linear | Trait::HasInplace,
    .dtypes = "int float complex",
    .numpy = "-x",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Neg",
};

// A complex x moves its own modulus most along x / |x|; at 0 the gradient is 0, as Paddle has it.
const OpDef abs_op = {
    .schema = "abs(Tensor x) -> Tensor",
    .brief = "The absolute value; of a complex x the modulus, as a real tensor.",
    .infer = infer::real_like_first,
    .vjp = [](const vjp::abs& v) -> Grads {
      if (!is_complex(v.x.dtype())) return v.grad * sign(v.x);
      const Tensor modulus = abs(v.x);
      return v.grad * (v.x / where(equal(modulus, literal(0)), literal(1), modulus));
    },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "int float complex",
    .numpy = "np.abs(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Abs",
};

const OpDef sign_op = {
    .schema = "sign(Tensor x) -> Tensor",
    .brief = "-1, 0 or 1 as x is negative, zero or positive; NaN stays NaN.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::sign& v) -> Grads { return zeros_like(v.grad); },
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "int float",
    .numpy = "np.sign(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Sign",
};

const OpDef square_op = {
    .schema = "square(Tensor x) -> Tensor",
    .brief = "x * x.",
    .infer = infer::same_as_first,
    .decompose = [](const args::square& a) -> Made { return a.x * a.x; },
    .vjp = [](const vjp::square& v) -> Grads { return v.grad * conjugate(v.x) * 2; },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::Smooth | Trait::HasInplace,
    .dtypes = "int float complex",
    .amp = Amp::Full,
    .numpy = "x * x",
    .samples = samples::unary,
    .python = "oar Tensor",
};

const OpDef reciprocal_op = {
    .schema = "reciprocal(Tensor x) -> Tensor",
    .brief = "1 / x.",
    .infer = infer::same_as_first,
    .decompose = [](const args::reciprocal& a) -> Made { return 1 / a.x; },
    .vjp = [](const vjp::reciprocal& v) -> Grads { return -v.grad * conjugate(v.out * v.out); },
    .saves = "out",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .amp = Amp::Full,
    .numpy = "1.0 / x",
    .samples = samples::unary_positive,
    .python = "oar Tensor",
    .onnx = "Reciprocal",
};

const OpDef sqrt_op = {
    .schema = "sqrt(Tensor x) -> Tensor",
    .brief = "The square root of x.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::sqrt& v) -> Grads { return v.grad / conjugate(v.out) * 0.5; },
    .saves = "out",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .numpy = "np.sqrt(x)",
    .samples = samples::unary_positive,
    .python = "oar Tensor",
    .onnx = "Sqrt",
};

const OpDef rsqrt_op = {
    .schema = "rsqrt(Tensor x) -> Tensor",
    .brief = "1 / sqrt(x).",
    .infer = infer::same_as_first,
    .decompose = [](const args::rsqrt& a) -> Made { return 1 / sqrt(a.x); },
    .vjp = [](const vjp::rsqrt& v) -> Grads { return rsqrt_grad(v.out, v.grad); },
    .saves = "out",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .amp = Amp::Full,
    .numpy = "1 / np.sqrt(x)",
    .samples = samples::unary_positive,
    .python = "oar Tensor",
};

const OpDef exp_op = {
    .schema = "exp(Tensor x) -> Tensor",
    .brief = "e to the power of x.",
    .infer = infer::same_as_first,
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
    .vjp = [](const vjp::log1p& v) -> Grads { return v.grad / conjugate(v.x + 1); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .amp = Amp::Full,
    .numpy = "np.log1p(x)",
    .samples = [] { return samples::unary_positive().add(uniform_in(-0.3, 0.3, {5})); },
    .python = "oar Tensor",
};

const OpDef erf_op = {
    .schema = "erf(Tensor x) -> Tensor",
    .brief = "The error function: 2 / sqrt(pi) times the integral of exp(-t*t) from 0 to x.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::erf& v) -> Grads { return erf_grad(v.x, v.grad); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .dtypes = "float",
    .numpy = "sp.erf(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Erf",
};

const OpDef floor_op = {
    .schema = "floor(Tensor x) -> Tensor",
    .brief = "The largest integer that is not above x. Its gradient is 0.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::floor& v) -> Grads { return zeros_like(v.grad); },
    .shard = "... -> ...",
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
    .vjp = [](const vjp::ceil& v) -> Grads { return zeros_like(v.grad); },
    .shard = "... -> ...",
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
    .vjp = [](const vjp::round& v) -> Grads { return zeros_like(v.grad); },
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "np.round(x, decimals)",
    .samples =
        [] {
          return samples::unary()
              .add(TensorSpec{.shape = {4},
                              .fill = Fill::Values,
                              .values = {-0.5, 0.5, 1.5, -2.5},
                              .differentiable = false})
              .add(t({5}), 2)
              .add(uniform_in(-40, 40, {5}), -1);
        },
    .python = "oar Tensor",
};

const OpDef trunc_op = {
    .schema = "trunc(Tensor input) -> Tensor",
    .brief = "The integer part: x without its fraction. Its gradient is 0.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::trunc& v) -> Grads { return zeros_like(v.grad); },
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "np.trunc(input)",
    .samples = samples::unary,
    .python = "oar Tensor",
};

Scalar conjugate(const Scalar& s) {
  return s.kind() == Scalar::Complex ? Scalar(std::conj(s.to_complex())) : s;
}

const OpDef scale_op = {
    .schema =
        "scale(Tensor x, Scalar scale = 1.0, Scalar bias = 0.0, bool bias_after_scale = True) -> Tensor",
    .brief = "x * scale + bias, or (x + bias) * scale, in x's dtype; integers lose the fraction.",
    .infer = [](const args::scale& a) -> Metas {
      const bool complex = a.scale_.kind() == Scalar::Complex || a.bias.kind() == Scalar::Complex;
      user_check(
          !complex || is_complex(a.x.dtype()), ErrorKind::InvalidType,
          "scale or bias is a complex number, but x has dtype {}.\nhint: Cast x to complex64.",
          name_of(a.x.dtype()));
      return infer::like(a.x);
    },
    .vjp = [](const vjp::scale& v) -> Grads { return scale(v.grad, conjugate(v.scale_)); },
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::Smooth | Trait::HasInplace,
    .dtypes = "int float complex",
    .numpy = "(x * scale + bias if bias_after_scale else (x + bias) * scale).astype(x.dtype)",
    .samples =
        [] {
          return samples::unary()
              .add(t({3, 2}), 2.0)
              .add(t({3}), 2.0, 3.0)
              .add(t({3}), 2.0, 1.0, false)
              .add(t({4}), 0.5, -0.25);
        },
    .python = "oar Tensor",
};

Metas infer_clip(const Tensor& x, const std::optional<Scalar>& min,
                 const std::optional<Scalar>& max) {
  for (const auto& bound : {min, max})
    user_check(!bound || bound->kind() != Scalar::Complex, ErrorKind::InvalidType,
               "min and max must be real numbers.");
  user_check(!min || !max || min->to_double() <= max->to_double(), ErrorKind::InvalidArgument,
             "min is {} and max is {}; min must not be above max.\nhint: Exchange them.",
             min->to_double(), max->to_double());
  return infer::like(x);
}

// As Paddle has it, an element on a bound passes its gradient.
const OpDef clip_op = {
    .schema = "clip(Tensor x, Scalar? min = None, Scalar? max = None) -> Tensor",
    .brief = "x limited to [min, max]; None leaves a side open. NaN stays NaN.",
    .infer = [](const args::clip& a) { return infer_clip(a.x, a.min, a.max); },
    .vjp = [](const vjp::clip& v) -> Grads { return clip_grad(v.x, v.grad, v.min, v.max); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "np.clip(x, min, max).astype(x.dtype) if min is not None or max is not None else x",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}), -1, 1)
              .add(t({2, 3, 5}), 0.0)
              .add(t({}), std::nullopt, 0.0)
              .add(t({0, 3}), 0, 2)
              .add(t({3}));
        },
    .python = "oar Tensor",
    .onnx = "Clip",
};

TensorSpec on_bounds() {
  return {.shape = {5}, .fill = Fill::Values, .values = {-2, -1, 0, 1, 2}, .differentiable = false};
}

const OpDef clip_grad_op = {
    .schema =
        "clip_grad(Tensor x, Tensor grad, Scalar? min = None, Scalar? max = None, bool bounds = "
        "True) -> Tensor",
    .brief =
        "grad where min <= x <= max (without bounds: min < x < max), else 0: the derivative of clip.",
    .infer = [](const args::clip_grad& a) { return infer_clip(a.x, a.min, a.max); },
    .decompose = [](const args::clip_grad& a) -> Made {
      const auto number = [](const Scalar& s) {
        return s.kind() <= Scalar::Int ? Tensor::scalar(s.to_int(), DType::Int64, true)
                                       : literal(s.to_double());
      };
      Tensor out = a.grad;
      const auto above = a.bounds ? greater_equal : greater_than;
      const auto below = a.bounds ? less_equal : less_than;
      if (a.min) out = zero_unless(above(a.x, number(*a.min)), out);
      if (a.max) out = zero_unless(below(a.x, number(*a.max)), out);
      return a.min || a.max ? out : assign(out);
    },
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy =
        "grad * ((True if min is None else x >= min if bounds else x > min) & "
        "(True if max is None else x <= max if bounds else x < max))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}), t({4, 7}), -1, 1)
              .add(t({3}), t({3}), 0.0)
              .add(t({}), t({}), std::nullopt, 0.0)
              .add(t({0, 3}), t({0, 3}))
              .add(t({3}), t({3}))
              .add(on_bounds(), t({5}), -1, 1)
              .add(on_bounds(), t({5}), -1, 1, false);
        },
};

}  // namespace

OAR_FAMILY(elementwise, &neg_op, &abs_op, &sign_op, &square_op, &reciprocal_op, &sqrt_op, &rsqrt_op,
           &exp_op, &expm1_op, &log_op, &log2_op, &log10_op, &log1p_op, &erf_op, &floor_op,
           &ceil_op, &round_op, &trunc_op, &scale_op, &clip_op, &clip_grad_op)

}  // namespace oar
