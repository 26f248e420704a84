// Smooth activations and their piecewise linear approximations. Each has a fused kernel and a fused derivative
// `…_grad`, whose decomposition makes it differentiable again.
#include "oar/ops/gen/activation.h"

#include <limits>
#include <numbers>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/elementwise_rules.h"
#include "oar/ops/families/layer_dtypes.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/complex.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/special.h"
#include "oar/ops/gen/trigonometry.h"

namespace oar {
namespace {

// Complex numbers overflow on the way in 1 / (1 + exp(-x)) left of 0.
#define OAR_NUMPY_SIGMOID                                                     \
  "np.where(np.real(x) < 0, np.exp(1.0 * x) / (1 + np.exp(1.0 * x)), 1 / (1 " \
  "+ np.exp(-1.0 * x)))"

const OpDef sigmoid_op = {
    .schema = "sigmoid(Tensor x) -> Tensor",
    .brief = "1 / (1 + exp(-x)).",
    .infer = infer::same_as_first,
    .decompose = [](const args::sigmoid& a) -> Made { return 1 / (1 + exp(-a.x)); },
    .scalar = "1 / (1 + exp(-x))",
    .vjp = [](const vjp::sigmoid& v) -> Grads { return sigmoid_grad(v.out, v.grad); },
    .saves = "out",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::FloatMath | Trait::HasInplace,
    .numpy = OAR_NUMPY_SIGMOID,
    .samples = samples::unary,
    .python = "Tensor oar.nn.functional",
    .onnx = "Sigmoid",
};

const OpDef sigmoid_grad_op = {
    .schema = "sigmoid_grad(Tensor out, Tensor grad) -> Tensor",
    .brief = "grad * out * (1 - out): the derivative of sigmoid.",
    .infer = infer::same_as_first,
    .decompose = [](const args::sigmoid_grad& a) -> Made {
      return a.grad * conjugate(1 - a.out) * conjugate(a.out);
    },
    .scalar = "grad * (1 - out) * out",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy = "grad * np.conj(out * (1 - out))",
    .samples = samples::binary,
};

// What decides between the pieces of a function: x, or the real part of a complex x.
Tensor deciding(const Tensor& x) { return is_complex(x.dtype()) ? real(x) : x; }

const OpDef log_sigmoid_op = {
    .schema = "log_sigmoid(Tensor x) -> Tensor",
    .brief = "log(sigmoid(x)), without overflow.",
    .infer = infer::same_as_first,
    .decompose = [](const args::log_sigmoid& a) -> Made {
      if (!is_complex(a.x.dtype())) return minimum(a.x, literal(0)) - log1p(exp(-abs(a.x)));
      const Tensor small = less_than(real(a.x), literal(0));
      return zero_unless(small, a.x) - log1p(exp(where(small, a.x, -a.x)));
    },
    .scalar = "min(x, 0) - log1p(exp(-abs(x)))",
    .vjp = [](const vjp::log_sigmoid& v) -> Grads { return log_sigmoid_grad(v.x, v.grad); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy =
        "-np.logaddexp(0, -x) if np.isrealobj(x) else np.where(x.real < 0, x - np.log1p(np.exp(x)), "
        "-np.log1p(np.exp(-x)))",
    .samples = samples::unary,
    .python = "oar.nn.functional",
};

const OpDef log_sigmoid_grad_op = {
    .schema = "log_sigmoid_grad(Tensor x, Tensor grad) -> Tensor",
    .brief = "grad * sigmoid(-x): the derivative of log_sigmoid.",
    .infer = infer::same_as_first,
    .decompose = [](const args::log_sigmoid_grad& a) -> Made {
      return a.grad * conjugate(sigmoid(-a.x));
    },
    .scalar = "grad / (1 + exp(x))",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy = "grad / np.conj(1 + np.exp(x))",
    .samples = samples::binary,
};

// x, clamped eps away from 0 and 1 if there is an eps.
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
    .scalar = "p = given(eps) ? min(max(x, eps), 1 - eps) : x; log(p / (1 - p))",
    .vjp = [](const vjp::logit& v) -> Grads {
      const Tensor x = bounded(v.x, v.eps);
      const Tensor slope = v.grad / (x * (1 - x));
      if (v.eps) return clip_grad(v.x, slope, *v.eps, 1 - *v.eps);
      // Outside [0, 1] the value and its derivative are NaN.
      const Tensor inside =
          logical_and(greater_equal(v.x, literal(0)), less_equal(v.x, literal(1)));
      return where(inside, slope, literal(std::numeric_limits<double>::quiet_NaN()));
    },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::FloatMath | Trait::HasInplace,
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

const OpDef hardsigmoid_op = {
    .schema = "hardsigmoid(Tensor x, float slope = 0.1666667, float offset = 0.5) -> Tensor",
    .brief = "min(max(slope * x + offset, 0), 1).",
    .infer = infer::same_as_first,
    .decompose = [](const args::hardsigmoid& a) -> Made {
      return clip(scale(a.x, Scalar(a.slope), Scalar(a.offset)), Scalar(0), Scalar(1));
    },
    .scalar = "min(max(x * slope + offset, 0), 1)",
    .vjp = [](const vjp::hardsigmoid& v) -> Grads {
      return hardsigmoid_grad(v.out, v.grad, v.slope);
    },
    .saves = "out",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "np.clip(slope * x + offset, 0, 1)",
    .samples = [] { return samples::unary().add(uniform_in(-6, 6, {9})).add(t({5}), 0.3, 0.1); },
    .python = "oar.nn.functional",
    .onnx = "HardSigmoid",
};

const OpDef hardsigmoid_grad_op = {
    .schema = "hardsigmoid_grad(Tensor out, Tensor grad, float slope) -> Tensor",
    .brief = "slope * grad where 0 < out < 1, else 0: the derivative of hardsigmoid by its result.",
    .infer = infer::same_as_first,
    .decompose = [](const args::hardsigmoid_grad& a) -> Made {
      return clip_grad(a.out, a.grad * a.slope, Scalar(0), Scalar(1), false);
    },
    .scalar = "out > 0 && out < 1 ? grad * slope : 0",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "np.where((out > 0) & (out < 1), slope * grad, 0)",
    .samples =
        [] {
          return Samples()
              .add(uniform_in(-1, 2, {9}), t({9}), 0.1666667)
              .add(t({4, 7}), t({4, 7}), 0.3)
              .add(t({}), t({}), 0.3)
              .add(t({0, 3}), t({0, 3}), 0.3);
        },
};

const OpDef silu_op = {
    .schema = "silu(Tensor x) -> Tensor",
    .brief = "x * sigmoid(x).",
    .infer = infer::same_as_first,
    .decompose = [](const args::silu& a) -> Made { return a.x * sigmoid(a.x); },
    .scalar = "x / (1 + exp(-x))",
    .vjp = [](const vjp::silu& v) -> Grads { return silu_grad(v.x, v.grad); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy = "x * " OAR_NUMPY_SIGMOID,
    .samples = samples::unary,
    .python = "oar.nn.functional",
};

const OpDef silu_grad_op = {
    .schema = "silu_grad(Tensor x, Tensor grad) -> Tensor",
    .brief = "The derivative of silu at x, times grad.",
    .infer = infer::same_as_first,
    .decompose = [](const args::silu_grad& a) -> Made {
      const Tensor s = sigmoid(a.x);
      return a.grad * conjugate(s * (1 + a.x * (1 - s)));
    },
    .scalar = "s = 1 / (1 + exp(-x)); grad * (s * (1 + x * (1 - s)))",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy = "(lambda s: grad * np.conj(s * (1 + x * (1 - s))))(" OAR_NUMPY_SIGMOID ")",
    .samples = samples::binary,
};

const OpDef swish_op = {
    .schema = "swish(Tensor x) -> Tensor",
    .brief = "x * sigmoid(x): silu under its other name.",
    .infer = infer::same_as_first,
    .decompose = [](const args::swish& a) -> Made { return silu(a.x); },
    .scalar = "x / (1 + exp(-x))",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy = "x * " OAR_NUMPY_SIGMOID,
    .samples = samples::unary,
    .python = "oar.nn.functional",
};

const OpDef hardswish_op = {
    .schema = "hardswish(Tensor x) -> Tensor",
    .brief = "x * min(max(x + 3, 0), 6) / 6; the real part decides for complex numbers.",
    .infer = infer::same_as_first,
    .decompose = [](const args::hardswish& a) -> Made {
      if (!is_complex(a.x.dtype())) return a.x * clip(a.x + 3, Scalar(0), Scalar(6)) / 6;
      const Tensor part = real(a.x);
      const Tensor factor = zero_where(less_than(part, literal(-3)), a.x + 3);
      return where(greater_equal(part, literal(3)), a.x, a.x * factor / 6);
    },
    .scalar = "x * min(max(x + 3, 0), 6) / 6",
    .vjp = [](const vjp::hardswish& v) -> Grads { return hardswish_grad(v.x, v.grad); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy =
        "x * np.clip(x + 3, 0, 6) / 6 if np.isrealobj(x) else np.where(x.real >= 3, x, x * np.where(x.real < -3, 0, "
        "x + 3) / 6)",
    .samples = [] { return samples::unary().add(uniform_in(-6, 6, {9})); },
    .python = "oar.nn.functional",
    .onnx = "HardSwish",
};

const OpDef hardswish_grad_op = {
    .schema = "hardswish_grad(Tensor x, Tensor grad) -> Tensor",
    .brief =
        "0 up to -3, grad from 3 on, grad * (2 * x + 3) / 6 between: the derivative of hardswish.",
    .infer = infer::same_as_first,
    .decompose = [](const args::hardswish_grad& a) -> Made {
      const Tensor between = a.grad * (conjugate(2 * a.x + 3) / 6), part = deciding(a.x);
      return where(greater_equal(part, literal(3)), a.grad,
                   zero_where(less_equal(part, literal(-3)), between));
    },
    .scalar = "x >= 3 ? grad : x <= -3 ? 0 : grad * ((2 * x + 3) / 6)",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy =
        "grad * np.where(np.real(x) >= 3, 1, np.where(np.real(x) <= -3, 0, np.conj(2 * x + 3) / 6))",
    .samples = [] { return samples::binary().add(uniform_in(-6, 6, {9}), t({9})); },
};

constexpr double kTanhScale = std::numbers::inv_sqrtpi * std::numbers::sqrt2;  // sqrt(2 / pi)

constexpr double kTanhCubic = 0.044715;

// Beyond it the slope of the form with a tanh is 0 or 1 in every dtype, and squares may overflow.
constexpr double kTanhFar = 22;

const OpDef gelu_op = {
    .schema = "gelu(Tensor x, bool approximate = False) -> Tensor",
    .brief = "x times the normal distribution function of x, exactly or by tanh.",
    .infer = infer::same_as_first,
    .decompose = [](const args::gelu& a) -> Made {
      const Tensor half = a.x * 0.5;
      if (!a.approximate) return half * (1 + erf(a.x * (std::numbers::sqrt2 / 2)));
      return half * (1 + tanh((a.x + a.x * a.x * a.x * kTanhCubic) * kTanhScale));
    },
    .scalar =
        "0.5 * x * (1 + (approximate ? tanh(sqrt(2 / pi) * (x + 0.044715 * x * x * x)) : "
        "erf(x / sqrt(2))))",
    .vjp = [](const vjp::gelu& v) -> Grads { return gelu_grad(v.x, v.grad, v.approximate); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy =
        "0.5 * x * (1 + (np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)) if approximate "
        "else sp.erf(x / np.sqrt(2))))",
    .samples = [] { return samples::unary().add(t({4, 7}), true).add(t({}), true); },
    .python = "oar.nn.functional",
    .onnx = "Gelu",
};

const OpDef gelu_grad_op = {
    .schema = "gelu_grad(Tensor x, Tensor grad, bool approximate = False) -> Tensor",
    .brief = "The derivative of gelu at x, times grad.",
    .infer = infer::same_as_first,
    .decompose = [](const args::gelu_grad& a) -> Made {
      if (!a.approximate) {
        const Tensor square = a.x * a.x;
        const Tensor distribution = 0.5 * (1 + erf(a.x * (std::numbers::sqrt2 / 2)));
        const Tensor density = exp(square * -0.5) * (kTanhScale / 2);
        return a.grad * (distribution + a.x * density);
      }
      const Tensor x = clip(a.x, Scalar(-kTanhFar), Scalar(kTanhFar)), square = x * x;
      const Tensor t = tanh(x * (1 + square * kTanhCubic) * kTanhScale);
      const Tensor slope = (1 + square * (3 * kTanhCubic)) * kTanhScale;
      return a.grad * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * slope);
    },
    .scalar =
        "v = min(max(x, -22), 22); t = tanh(sqrt(2 / pi) * (v + 0.044715 * v * v * v)); slope = "
        "sqrt(2 / pi) * (1 + 0.134145 * v * v); grad * (approximate ? 0.5 * (1 + t) + 0.5 * v * (1 - t * t) * "
        "slope : 0.5 * (1 + erf(x / sqrt(2))) + x * exp(-0.5 * x * x) / sqrt(2 * pi))",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy =
        "(lambda v, t: grad * (0.5 * (1 + t) + 0.5 * v * (1 - t * t) * np.sqrt(2 / np.pi) * "
        "(1 + 3 * 0.044715 * v**2)))(np.clip(x, -22, 22), np.tanh(np.sqrt(2 / np.pi) * "
        "(np.clip(x, -22, 22) + 0.044715 * np.clip(x, -22, 22)**3))) if approximate else "
        "grad * (0.5 * (1 + sp.erf(x / np.sqrt(2))) + x * np.exp(-x * x / 2) / np.sqrt(2 * np.pi))",
    .samples = [] { return samples::binary().add(t({4, 7}), t({4, 7}), true); },
};

const OpDef mish_op = {
    .schema = "mish(Tensor x) -> Tensor",
    .brief = "x * tanh(softplus(x)).",
    .infer = infer::same_as_first,
    .decompose = [](const args::mish& a) -> Made { return a.x * tanh(softplus(a.x)); },
    .scalar = "x * tanh(max(x, 0) + log1p(exp(-abs(x))))",
    .vjp = [](const vjp::mish& v) -> Grads { return mish_grad(v.x, v.grad); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "x * np.tanh(np.logaddexp(0, x))",
    .samples = samples::unary,
    .python = "oar.nn.functional",
    .onnx = "Mish",
};

const OpDef mish_grad_op = {
    .schema = "mish_grad(Tensor x, Tensor grad) -> Tensor",
    .brief = "The derivative of mish at x, times grad.",
    .infer = infer::same_as_first,
    .decompose = [](const args::mish_grad& a) -> Made {
      const Tensor t = tanh(softplus(a.x));
      return a.grad * (t + a.x * (1 - t * t) * sigmoid(a.x));
    },
    .scalar =
        "t = tanh(max(x, 0) + log1p(exp(-abs(x)))); "
        "x > 40 ? grad : x < -760 ? 0 * grad : grad * (t + x * (1 - t * t) / (1 + exp(-x)))",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy =
        "(lambda t: grad * (t + x * (1 - t * t) / (1 + np.exp(-x))))(np.tanh(np.logaddexp(0, x)))",
    .samples = samples::binary,
};

const OpDef softplus_op = {
    .schema = "softplus(Tensor x, float beta = 1, float threshold = 20) -> Tensor",
    .brief =
        "log(1 + exp(beta * x)) / beta; x itself if beta * x, or its real part, is above the threshold.",
    .infer = [](const args::softplus& a) -> Metas {
      user_check(a.beta != 0, ErrorKind::InvalidArgument, "beta is 0, and softplus divides by it.");
      return infer::like(a.x);
    },
    .decompose = [](const args::softplus& a) -> Made {
      const Tensor scaled = a.x * a.beta;
      return where(greater_than(deciding(scaled), literal(a.threshold)), a.x,
                   log1p(exp(scaled)) / a.beta);
    },
    .scalar = "x * beta > threshold ? x : log1p(exp(x * beta)) / beta",
    .vjp = [](const vjp::softplus& v) -> Grads {
      return softplus_grad(v.x, v.grad, v.beta, v.threshold);
    },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "np.where(np.real(beta * x) > threshold, x, (np.logaddexp(0, beta * x) if np.isrealobj(x) else "
        "np.log1p(np.exp(beta * x))) / beta)",
    .samples = [] { return samples::unary().add(t({4, 7}), 2.5, 1.0).add(t({3}), -1.5, 2.0); },
    .python = "oar.nn.functional",
    .onnx = "Softplus",
};

const OpDef softplus_grad_op = {
    .schema =
        "softplus_grad(Tensor x, Tensor grad, float beta = 1, float threshold = 20) -> Tensor",
    .brief = "grad * sigmoid(beta * x), or grad above the threshold: the derivative of softplus.",
    .infer = infer::same_as_first,
    .decompose = [](const args::softplus_grad& a) -> Made {
      const Tensor scaled = a.x * a.beta;
      return where(greater_than(deciding(scaled), literal(a.threshold)), a.grad,
                   a.grad * conjugate(sigmoid(scaled)));
    },
    .scalar = "x * beta > threshold ? grad : grad / (1 + exp(-x * beta))",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy = "np.where(np.real(beta * x) > threshold, grad, grad / np.conj(1 + np.exp(-beta * x)))",
    .samples = [] { return samples::binary().add(t({4, 7}), t({4, 7}), 2.5, 1.0); },
};

const OpDef softsign_op = {
    .schema = "softsign(Tensor x) -> Tensor",
    .brief = "x / (1 + |x|).",
    .infer = infer::same_as_first,
    .decompose = [](const args::softsign& a) -> Made { return a.x / (1 + abs(a.x)); },
    .scalar = "x / (1 + abs(x))",
    .vjp = [](const vjp::softsign& v) -> Grads { return softsign_grad(v.x, v.grad); },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy = "x / (1 + np.abs(x))",
    .samples = samples::unary,
    .python = "oar.nn.functional",
    .onnx = "Softsign",
};

const OpDef softsign_grad_op = {
    .schema = "softsign_grad(Tensor x, Tensor grad) -> Tensor",
    .brief = "grad / (1 + |x|)²: the derivative of softsign.",
    .infer = infer::same_as_first,
    .decompose = [](const args::softsign_grad& a) -> Made {
      const Tensor below = 1 + abs(a.x);
      if (!is_complex(a.x.dtype())) return a.grad / square(below);
      // The length of x does not depend on its direction.
      const Tensor along = real(a.grad * conjugate(a.x)) / square(below);
      return a.grad / below - sgn(a.x) * along;
    },
    .scalar = "d = 1 + abs(x); grad / (d * d)",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy =
        "grad / (1 + np.abs(x)) ** 2 if np.isrealobj(x) else grad / (1 + np.abs(x)) - x / np.maximum(np.abs(x), "
        "1e-300) * (grad * np.conj(x)).real / (1 + np.abs(x)) ** 2",
    .samples = samples::binary,
};

const OpDef stanh_op = {
    .schema = "stanh(Tensor x, float scale_a = 0.67, float scale_b = 1.7159) -> Tensor",
    .brief = "scale_b * tanh(scale_a * x).",
    .decompose = [](const args::stanh& a) -> Made { return tanh(a.x * a.scale_a) * a.scale_b; },
    .scalar = "tanh(x * scale_a) * scale_b",
    .shard = "... -> ...",
    .traits = kMath,
    .dtypes = "float complex",
    .numpy = "x.dtype.type(scale_b) * np.tanh(x.dtype.type(scale_a) * x)",
    .samples = [] { return samples::unary().add(t({3}), 0.5, 2.0); },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(activation, &sigmoid_op, &sigmoid_grad_op, &log_sigmoid_op, &log_sigmoid_grad_op,
           &logit_op, &hardsigmoid_op, &hardsigmoid_grad_op, &silu_op, &silu_grad_op, &swish_op,
           &hardswish_op, &hardswish_grad_op, &gelu_op, &gelu_grad_op, &mish_op, &mish_grad_op,
           &softplus_op, &softplus_grad_op, &softsign_op, &softsign_grad_op, &stanh_op)

}  // namespace oar
