// Elementwise arithmetic of two operands beyond the four rules.
#include "oar/ops/gen/arithmetic.h"

#include <numbers>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/trigonometry.h"

namespace oar {
namespace {

constexpr Trait kPair = Trait::Elementwise | Trait::Promote;

Samples pairs_of_ints(int64_t low, int64_t high) {
  return Samples()
      .add(ints(low, high, {4, 7}), ints(low, high, {4, 7}))
      .add(ints(0, 60, {2, 1, 5}, DType::UInt8), ints(1, 60, {3, 1}, DType::UInt8))
      .add(ints(low, high, {3}, DType::Int32), ints(low, high, {}, DType::Int32))
      .add(ints(low, high, {}, DType::Int16), ints(low, high, {}, DType::Int16))
      .add(ints(0, 9, {0, 3}), ints(0, 9, {3}));
}

const OpDef hypot_op = {
    .schema = "hypot(Tensor x, Tensor y) -> Tensor",
    .brief = "sqrt(x * x + y * y), without overflow.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::hypot& v) -> Grads {
      const Tensor zero = equal(v.out, literal(0));
      const Tensor scale = zero_where(zero, v.grad / where(zero, literal(1), v.out));
      return {v.needs(0) ? scale * v.x : Tensor(), v.needs(1) ? scale * v.y : Tensor()};
    },
    .saves = "x y out",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::FloatMath | Trait::Smooth | Trait::HasInplace,
    .dtypes = "float",
    .numpy = "np.hypot(x, y)",
    .samples = samples::binary,
    .python = "oar Tensor",
};

const OpDef logaddexp_op = {
    .schema = "logaddexp(Tensor x, Tensor y) -> Tensor",
    .brief = "log(exp(x) + exp(y)), without overflow.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::logaddexp& v) -> Grads {
      const Tensor gx = logaddexp_grad(v.x, v.y, v.grad);
      return {gx, v.needs(1) ? v.grad - gx : Tensor()};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::FloatMath | Trait::Smooth,
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
    // Only equal infinities have no difference; a mask of all equals would stop second derivatives.
    .decompose = [](const args::logaddexp_grad& a) -> Made {
      const Tensor undefined = logical_and(equal(a.x, a.y), isinf(a.x));
      return a.grad * sigmoid(zero_where(undefined, a.x - a.y));
    },
    .shard = "..., ..., ... -> ...",
    .traits = Trait::Elementwise | Trait::Smooth,
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

const OpDef copysign_op = {
    .schema = "copysign(Tensor x, Tensor y) -> Tensor",
    .brief = "The magnitude of x with the sign of y.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::copysign& v) -> Grads {
      return {v.grad * sign(v.x) * copysign(literal(1.0), v.y), zeros_like(v.grad)};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "np.copysign(x, y).astype(x.dtype)",
    .samples = [] { return samples::binary().add(positive({3}), uniform_in(-2, -1, {3})); },
    .python = "oar Tensor",
};

const OpDef nextafter_op = {
    .schema = "nextafter(Tensor x, Tensor y) -> Tensor",
    .brief = "The next number of the dtype after x in the direction of y.",
    .infer = infer::same_as_first,
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::NoGrad,
    .dtypes = "float",
    .numpy = "np.nextafter(x, y)",
    .samples = samples::binary,
    .python = "oar Tensor",
};

const OpDef ldexp_op = {
    .schema = "ldexp(Tensor x, Tensor y) -> Tensor",
    .brief = "x * 2 ** y.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::ldexp& v) -> Grads {
      return {v.needs(0) ? ldexp(v.grad, v.y) : Tensor(),
              v.needs(1) ? v.grad * ldexp(v.x, v.y) * std::numbers::ln2 : Tensor()};
    },
    .saves = "x>y y",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::FloatMath | Trait::Smooth | Trait::HasInplace,
    .dtypes = "float",
    .numpy = "x * np.exp2(y)",
    .samples = [] { return samples::binary().add(t({4}), ints(-3, 4, {4})); },
    .python = "oar Tensor",
};

const OpDef heaviside_op = {
    .schema = "heaviside(Tensor x, Tensor y) -> Tensor",
    .brief = "0 where x is negative, 1 where it is positive, y where it is 0.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::heaviside& v) -> Grads {
      return {zeros_like(v.grad), zero_unless(equal(v.x, literal(0)), v.grad)};
    },
    .saves = "x",
    .shard = "..., ... -> ...",
    .traits = kPair,
    .dtypes = "int float",
    .numpy = "np.where(np.isnan(x), x, np.where(x == 0, y, x > 0)).astype(x.dtype)",
    .samples =
        [] {
          return samples::binary().add(TensorSpec{.shape = {3},
                                                  .fill = Fill::Values,
                                                  .values = {-1, 0, 2},
                                                  .differentiable = false},
                                       t({3}));
        },
    .python = "oar Tensor",
};

const OpDef gcd_op = {
    .schema = "gcd(Tensor x, Tensor y) -> Tensor",
    .brief = "The greatest common divisor of integers; that of 0 and 0 is 0.",
    .infer = infer::same_as_first,
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::NoGrad | Trait::HasInplace,
    .dtypes = "int",
    .numpy = "np.gcd(x, y)",
    .samples = [] { return pairs_of_ints(-30, 30); },
    .python = "oar Tensor",
};

const OpDef lcm_op = {
    .schema = "lcm(Tensor x, Tensor y) -> Tensor",
    .brief = "The least common multiple of integers; it is 0 where one of them is.",
    .infer = infer::same_as_first,
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::NoGrad | Trait::HasInplace,
    .dtypes = "int",
    .numpy = "np.lcm(x, y)",
    .samples = [] { return pairs_of_ints(-30, 30); },
    .python = "oar Tensor",
};

const OpDef bitwise_left_shift_op = {
    .schema = "bitwise_left_shift(Tensor x, Tensor y, bool is_arithmetic = True) -> Tensor",
    .brief =
        "The bits of x moved up by y places; 0 where y is negative or as large as the dtype is wide.",
    .infer = infer::same_as_first,
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::NoGrad | Trait::HasInplace,
    .dtypes = "int",
    .numpy = "np.left_shift(x, y)",
    .samples =
        [] {
          return Samples()
              .add(ints(-90, 90, {4, 7}), ints(0, 9, {4, 7}))
              .add(ints(0, 9, {2, 1}, DType::UInt8), ints(0, 5, {3}, DType::UInt8), false)
              .add(ints(-9, 9, {}, DType::Int32), ints(0, 9, {}, DType::Int32))
              .add(ints(0, 9, {0, 3}), ints(0, 9, {3}));
        },
};

const OpDef bitwise_right_shift_op = {
    .schema = "bitwise_right_shift(Tensor x, Tensor y, bool is_arithmetic = True) -> Tensor",
    .brief =
        "The bits of x moved down by y places; from above come copies of the sign, or zeros where it is not "
        "arithmetic.",
    .infer = infer::same_as_first,
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::NoGrad | Trait::HasInplace,
    .dtypes = "int",
    .numpy =
        "np.right_shift(x, y) if is_arithmetic else np.right_shift(x.view(x.dtype.str.replace('i', 'u')), "
        "y.view(x.dtype.str.replace('i', 'u'))).view(x.dtype)",
    .samples =
        [] {
          return Samples()
              .add(ints(-90, 90, {4, 7}), ints(0, 9, {4, 7}))
              .add(ints(0, 90, {2, 1}, DType::UInt8), ints(0, 5, {3}, DType::UInt8), false)
              .add(ints(-90, 90, {5}), ints(0, 9, {5}), false)
              .add(ints(-9, 9, {}, DType::Int32), ints(0, 9, {}, DType::Int32))
              .add(ints(0, 9, {0, 3}), ints(0, 9, {3}));
        },
};

const OpDef polar_op = {
    .schema = "polar(Tensor abs, Tensor angle) -> Tensor",
    .brief = "The complex numbers with these magnitudes and angles.",
    .decompose = [](const args::polar& a) -> Made {
      return complex(a.abs * cos(a.angle), a.abs * sin(a.angle));
    },
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::FloatMath | Trait::Smooth,
    .dtypes = "float",
    .numpy =
        "(abs * np.cos(angle) + 1j * abs * np.sin(angle)).astype('complex128' if abs.dtype == 'float64' else "
        "'complex64')",
    .samples =
        [] {
          const auto of = [](const TensorSpec& spec) { return of_dtype(spec, DType::Float64); };
          return Samples()
              .add(of(t({4, 7})), of(t({4, 7})))
              .add(of(t({2, 1})), of(t({3})))
              .add(of(t({})), of(t({})))
              .add(of(t({0, 3})), of(t({3})));
        },
    .python = "oar Tensor",
};

// Numbers that distances can be taken of exactly enough.
Tensor comparable(const Tensor& x) { return is_complex(x.dtype()) ? x : cast(x, DType::Float64); }

const OpDef isclose_op = {
    .schema =
        "isclose(Tensor x, Tensor y, float rtol = 1e-05, float atol = 1e-08, bool equal_nan = False) -> Tensor",
    .brief = "Whether |x - y| <= atol + rtol * |y|. Infinities are close to themselves only.",
    .decompose = [](const args::isclose& a) -> Made {
      const Tensor x = comparable(a.x), y = comparable(a.y);
      const Tensor near = less_equal(abs(x - y), abs(y) * a.rtol + a.atol);
      const Tensor close = logical_or(logical_and(near, isfinite(y)), equal(a.x, a.y));
      if (!a.equal_nan) return close;
      return logical_or(close, logical_and(isnan(a.x), isnan(a.y)));
    },
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::NoGrad,
    .numpy = "np.isclose(x, y, rtol, atol, equal_nan)",
    .samples =
        [] {
          const TensorSpec odd = {.shape = {4},
                                  .fill = Fill::Values,
                                  .dtype = DType::Float32,
                                  .values = {1, INFINITY, NAN, -INFINITY},
                                  .differentiable = false};
          return samples::binary()
              .add(ints(0, 3, {6}), ints(0, 3, {6}))
              .add(positive({8}), positive({8}), 0.3, 0.1)
              .add(odd, odd)
              .add(odd, odd, 1e-3, 1e-3, true);
        },
    .python = "oar Tensor",
};

const OpDef allclose_op = {
    .schema =
        "allclose(Tensor x, Tensor y, float rtol = 1e-05, float atol = 1e-08, bool equal_nan = False) -> Tensor",
    .brief = "Whether all elements of x are close to those of y, as isclose says; a 0-d bool.",
    .decompose = [](const args::allclose& a) -> Made {
      return all(isclose(a.x, a.y, a.rtol, a.atol, a.equal_nan));
    },
    .traits = Trait::Broadcast | Trait::Promote | Trait::NoGrad,
    .numpy = "np.array(np.allclose(x, y, rtol, atol, equal_nan))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3}), t({2, 3}))
              .add(positive({3}), positive({3}), 2.0)
              .add(ints(2, 3, {4}), ints(2, 3, {}), 1e-5, 1e-8, true)
              .add(t({0}), t({0}));
        },
    .python = "oar Tensor",
};

const OpDef equal_all_op = {
    .schema = "equal_all(Tensor x, Tensor y) -> Tensor",
    .brief = "Whether x and y have one shape and equal elements; a 0-d bool.",
    .decompose = [](const args::equal_all& a) -> Made {
      if (a.x.rank() != a.y.rank() || !same(a.x.shape(), a.y.shape()))
        return full({}, Scalar(false), DType::Bool);
      return all(equal(a.x, a.y));
    },
    .traits = Trait::Promote | Trait::NoGrad,
    .numpy = "np.array(np.array_equal(x, y))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3}), t({2, 3}))
              .add(t({2, 3}), t({3}))
              .add(ints(2, 3, {4}), ints(2, 3, {4}))
              .add(t({0}), t({0}));
        },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(arithmetic, &hypot_op, &logaddexp_op, &logaddexp_grad_op, &copysign_op, &nextafter_op,
           &ldexp_op, &heaviside_op, &gcd_op, &lcm_op, &bitwise_left_shift_op,
           &bitwise_right_shift_op, &polar_op, &isclose_op, &allclose_op, &equal_all_op)

}  // namespace oar
