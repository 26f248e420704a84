// Powers and roots of elements.
#include "oar/ops/gen/powers.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/elementwise_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/cumulative.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/flip.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

// Where x is 0 and y is not negative the power is 0 or 1 around y, and the gradient of y is 0. The power
// is recomputed: a saved result could not be written in place.
Tensor pow_y_grad(const Tensor& x, const Tensor& y, const Tensor& grad) {
  Tensor zero = equal(x, literal(0));
  if (!is_complex(y.dtype())) zero = logical_and(zero, greater_equal(y, literal(0)));
  const Tensor logarithm = log(where(zero, literal(1), x));
  return zero_where(zero, grad * conjugate(pow(x, y) * logarithm));
}

TensorSpec constant(double value) { return fixed_values({value}, {}); }

const OpDef pow_op = {
    .schema = "pow(Tensor x, Tensor y) -> Tensor",
    .brief = "x to the power of y. For integers a fraction, from a negative y, is truncated.",
    .infer = infer::same_as_first,
    .scalar = "pow(x, y)",
    .vjp = [](const vjp::pow& v) -> Grads {
      return {v.needs(0) ? pow_grad(v.x, v.y, v.grad) : Tensor(),
              v.needs(1) ? pow_y_grad(v.x, v.y, v.grad) : Tensor()};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::HasInplace | Trait::MayFail | Trait::Arithmetic,
    .dtypes = "int float complex",
    .amp = Amp::Full,
    .numpy = "np.power(x, y)",
    .samples =
        [] {
          return Samples()
              .add(positive({4, 7}), uniform_in(0.5, 1.5, {4, 7}))
              .add(positive({2, 1, 5}), uniform_in(0.5, 1.5, {3, 1}))
              .add(t({3}), constant(2))
              .add(t({2, 2}), constant(3))
              .add(t({}), constant(1))
              .add(t({2}), constant(0))
              .add(t({0, 3}), positive({3}));
        },
    .python = "oar Tensor",
    .onnx = "Pow",
};

// With x and y both 0 the exponent y - 1 becomes 0, so that the product with y is 0 and not NaN.
const OpDef pow_grad_op = {
    .schema = "pow_grad(Tensor x, Tensor y, Tensor grad) -> Tensor",
    .brief = "grad * y * x ** (y - 1), and 0 where x and y are: the derivative of pow by x.",
    .infer = infer::same_as_first,
    .decompose = [](const args::pow_grad& a) -> Made {
      const Tensor both_zero = logical_and(equal(a.x, literal(0)), equal(a.y, literal(0)));
      const Tensor exponent = where(both_zero, literal(0), a.y - 1);
      return a.grad * conjugate(a.y * pow(a.x, exponent));
    },
    .scalar = "grad * (y * pow(x, x == 0 && y == 0 ? 0 : y - 1))",
    .shard = "..., ..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy = "grad * np.conj(y * np.power(x, y - 1))",
    .samples =
        [] {
          return Samples()
              .add(positive({4, 7}), uniform_in(0.5, 1.5, {4, 7}), t({4, 7}))
              .add(t({3}), constant(2), t({3}))
              .add(positive({}), positive({}), t({}))
              .add(t({0, 3}), positive({3}), t({0, 3}));
        },
};

const OpDef square_op = {
    .schema = "square(Tensor x) -> Tensor",
    .brief = "x * x.",
    .infer = infer::same_as_first,
    .decompose = [](const args::square& a) -> Made { return a.x * a.x; },
    .scalar = "x * x",
    .vjp = [](const vjp::square& v) -> Grads { return v.grad * conjugate(v.x) * 2; },
    .saves = "x",
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
    .dtypes = "int float complex",
    .amp = Amp::Full,
    .numpy = "x * x",
    .samples = samples::unary,
    .python = "oar Tensor",
};

const OpDef sqrt_op = {
    .schema = "sqrt(Tensor x) -> Tensor",
    .brief = "The square root of x.",
    .infer = infer::same_as_first,
    .scalar = "sqrt(x)",
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
    .scalar = "1 / sqrt(x)",
    .vjp = [](const vjp::rsqrt& v) -> Grads { return rsqrt_grad(v.out, v.grad); },
    .saves = "out",
    .shard = "... -> ...",
    .traits = kMath | Trait::HasInplace,
    .amp = Amp::Full,
    .numpy = "1 / np.sqrt(x)",
    .samples = samples::unary_positive,
    .python = "oar Tensor",
};

const OpDef rsqrt_grad_op = {
    .schema = "rsqrt_grad(Tensor out, Tensor grad) -> Tensor",
    .brief = "-grad * out³ / 2: the derivative of rsqrt, whose result is out.",
    .infer = infer::same_as_first,
    .decompose = [](const args::rsqrt_grad& a) -> Made {
      return a.grad * conjugate(a.out * a.out * a.out) * -0.5;
    },
    .scalar = "grad * (out * out * out) * -0.5",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy = "-0.5 * grad * np.conj(out) ** 3",
    .samples = samples::binary,
};

const OpDef reciprocal_op = {
    .schema = "reciprocal(Tensor x) -> Tensor",
    .brief = "1 / x.",
    .infer = infer::same_as_first,
    .decompose = [](const args::reciprocal& a) -> Made { return 1 / a.x; },
    .scalar = "1 / x",
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

const OpDef vander_op = {
    .schema = "vander(Tensor x, int? n = None, bool increasing = False) -> Tensor",
    .brief =
        "The powers of a vector's elements from n - 1 down to 0 (or, increasing, up) as columns; n is by default "
        "the vector's length.",
    .decompose = [](const args::vander& a) -> Made {
      user_check(a.x.rank() == 1, ErrorKind::InvalidArgument, "x of shape {} must have one axis.",
                 to_string(a.x.dims()));
      user_check(!a.n || *a.n >= 0, ErrorKind::InvalidArgument, "n is {}; it must not be negative.",
                 a.n.value_or(0));
      // 0, 1, 2, …: n of them, by default as many as x has elements.
      const Tensor up =
          a.n ? range(Scalar(int64_t{0}), Scalar(*a.n), Scalar(int64_t{1}), DType::Int64)
              : cumsum_along(ones_like(a.x, DType::Int64), 0, /*exclusive=*/true);
      const Tensor powers = a.increasing ? up : flip(up, {0});
      return pow(unsqueeze(a.x, {1}), cast(powers, a.x.dtype()));
    },
    .dtypes = "int float complex",
    .numpy = "np.vander(x, n, increasing).astype(x.dtype)",
    .samples =
        [] { return Samples().add(t({4})).add(t({3}), 5, true).add(t({3}), 0).add(t({0}), 2); },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(powers, &pow_op, &pow_grad_op, &square_op, &sqrt_op, &rsqrt_op, &rsqrt_grad_op,
           &reciprocal_op, &vander_op)

}  // namespace oar
