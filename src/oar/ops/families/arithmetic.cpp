// Arithmetic of elements. The operands of a call have one shape and one dtype: ops/core/prepare.cpp ensures
// that. Powers, logarithms, rounding, minima and comparison are in other files.
#include "oar/ops/gen/arithmetic.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/canonical_rules.h"
#include "oar/ops/families/elementwise_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/masking.h"

namespace oar {
namespace {

const OpDef add_op = {
    .schema = "add(Tensor x, Tensor y) -> Tensor",
    .brief = "x + y.",
    .infer = infer::same_as_first,
    .scalar = "x + y",
    .vjp = [](const vjp::add& v) -> Grads { return {v.grad, v.grad}; },
    .shard = "..., ... -> ...",
    // x + -0 is x for every float; x + 0 is not, since -0 + 0 is 0.
    .canonical = [](const CanonicalCall& c) { canonical::drop_neutral(c, -0.0, true); },
    .epilogue = {.role = EpilogueRole::Sum},
    .traits = kPair | Trait::Linear | Trait::HasInplace | Trait::Arithmetic,
    .numpy = "x + y",
    .samples = samples::binary,
    .python = "oar Tensor",
    .onnx = "Add",
};

const OpDef subtract_op = {
    .schema = "subtract(Tensor x, Tensor y) -> Tensor",
    .brief = "x - y.",
    .infer = infer::same_as_first,
    .scalar = "x - y",
    .vjp = [](const vjp::subtract& v) -> Grads {
      return {v.grad, v.needs(1) ? -v.grad : Tensor()};
    },
    .shard = "..., ... -> ...",
    // x - 0 is x for every float; x - -0 is not, since -0 - -0 is 0.
    .canonical = [](const CanonicalCall& c) { canonical::drop_neutral(c, 0, false); },
    .traits = kPair | Trait::Linear | Trait::HasInplace | Trait::Arithmetic,
    .dtypes = "int float complex",
    .numpy = "x - y",
    .samples = samples::binary,
    .python = "oar Tensor",
    .onnx = "Sub",
};

const OpDef multiply_op = {
    .schema = "multiply(Tensor x, Tensor y) -> Tensor",
    .brief = "x * y, element by element.",
    .infer = infer::same_as_first,
    .scalar = "x * y",
    .vjp = [](const vjp::multiply& v) -> Grads {
      return {v.needs(0) ? v.grad * conjugate(v.y) : Tensor(),
              v.needs(1) ? v.grad * conjugate(v.x) : Tensor()};
    },
    .saves = "x>y y>x",
    .shard = "..., ... -> ...",
    .linear_in = "x y",
    .canonical = [](const CanonicalCall& c) { canonical::drop_neutral(c, 1, true); },
    .epilogue = {.role = EpilogueRole::Product},
    .traits = kPair | Trait::HasInplace | Trait::Arithmetic,
    .numpy = "x * y",
    .samples = samples::binary,
    .python = "oar Tensor",
    .onnx = "Mul",
};

// Divisors of both signs, none of them 0 in any dtype.
Samples dividing() {
  return Samples()
      .add(t({4, 7}), positive({4, 7}))
      .add(t({2, 1, 5}), uniform_in(-2.5, -0.5, {3, 1}))
      .add(t({3}), positive({}))
      .add(t({}), positive({}))
      .add(t({0, 3}), positive({3}));
}

const OpDef divide_op = {
    .schema = "divide(Tensor x, Tensor y) -> Tensor",
    .brief = "x / y; integers become floats first.",
    .infer = infer::same_as_first,
    .scalar = "x / y",
    .vjp = [](const vjp::divide& v) -> Grads {
      const Tensor gx = v.grad / conjugate(v.y);
      return {gx, v.needs(1) ? -gx * conjugate(v.out) : Tensor()};
    },
    .saves = "y out",
    .shard = "..., ... -> ...",
    .linear_in = "x",
    .canonical = [](const CanonicalCall& c) { canonical::drop_neutral(c, 1, false); },
    .traits = kPair | Trait::FloatMath | Trait::HasInplace | Trait::Arithmetic,
    .numpy = "x / y",
    .samples = dividing,
    .python = "oar Tensor",
    .onnx = "Div",
};

const OpDef floor_divide_op = {
    .schema = "floor_divide(Tensor x, Tensor y) -> Tensor",
    .brief = "The largest integer that is not above x / y. Integers cannot be divided by 0.",
    .infer = infer::same_as_first,
    .scalar = "x // y",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::NoGrad | Trait::HasInplace | Trait::MayFail,
    .dtypes = "int float",
    .numpy = "np.floor_divide(x, y)",
    .samples = dividing,
    .python = "oar Tensor",
};

const OpDef remainder_op = {
    .schema = "remainder(Tensor x, Tensor y) -> Tensor",
    .brief = "x - y * floor(x / y): the remainder of floor_divide, with the sign of y.",
    .infer = infer::same_as_first,
    .scalar = "x % y",
    .vjp = [](const vjp::remainder& v) -> Grads {
      return {v.grad, v.needs(1) ? -v.grad * floor_divide(v.x, v.y) : Tensor()};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::HasInplace | Trait::MayFail | Trait::Arithmetic,
    .dtypes = "int float",
    .numpy = "np.remainder(x, y)",
    .samples = dividing,
    .python = "oar Tensor",
    .onnx = "Mod",
};

const OpDef mod_op = {
    .schema = "mod(Tensor x, Tensor y) -> Tensor",
    .brief = "Another name of remainder.",
    .decompose = [](const args::mod& a) -> Made { return remainder(a.x, a.y); },
    .scalar = "x % y",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::HasInplace | Trait::Arithmetic,
    .dtypes = "int float",
    .numpy = "np.remainder(x, y)",
    .samples = dividing,
    .python = "oar Tensor",
};

const OpDef floor_mod_op = {
    .schema = "floor_mod(Tensor x, Tensor y) -> Tensor",
    .brief = "Another name of remainder.",
    .decompose = [](const args::floor_mod& a) -> Made { return remainder(a.x, a.y); },
    .scalar = "x % y",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::HasInplace | Trait::Arithmetic,
    .dtypes = "int float",
    .numpy = "np.remainder(x, y)",
    .samples = dividing,
    .python = "oar Tensor",
};

const OpDef neg_op = {
    .schema = "neg(Tensor x) -> Tensor",
    .brief = "-x.",
    .infer = infer::same_as_first,
    .scalar = "-x",
    .vjp = [](const vjp::neg& v) -> Grads { return -v.grad; },
    .shard = "... -> ...",
    .canonical = canonical::involution,
    .traits = Trait::Elementwise | Trait::Linear | Trait::HasInplace,
    .dtypes = "int float complex",
    .numpy = "-x",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Neg",
};

// The modulus of a complex x grows fastest along x / |x|; at 0 the gradient is 0, as in Paddle.
const OpDef abs_op = {
    .schema = "abs(Tensor x) -> Tensor",
    .brief = "The absolute value; of a complex x the modulus, as a real tensor.",
    .infer = infer::real_like_first,
    .scalar = "abs(x)",
    .vjp = [](const vjp::abs& v) -> Grads {
      if (!is_complex(v.x.dtype())) return v.grad * sign(v.x);
      const Tensor modulus = abs(v.x);
      return v.grad * (v.x / where(equal(modulus, literal(0)), literal(1), modulus));
    },
    .saves = "x",
    .shard = "... -> ...",
    .canonical = canonical::idempotent,
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
    .scalar = "sign(x)",
    .vjp = [](const vjp::sign& v) -> Grads { return zeros_like(v.grad); },
    .shard = "... -> ...",
    .canonical = canonical::idempotent,
    .traits = Trait::Elementwise,
    .dtypes = "int float",
    .numpy = "np.sign(x)",
    .samples = samples::unary,
    .python = "oar Tensor",
    .onnx = "Sign",
};

const OpDef sgn_op = {
    .schema = "sgn(Tensor x) -> Tensor",
    .brief = "sign(x); of a complex x the number of modulus 1 in its direction, and 0 for 0.",
    .decompose = [](const args::sgn& a) -> Made {
      if (!is_complex(a.x.dtype())) return sign(a.x);
      const Tensor size = abs(a.x), zero = equal(size, literal(0));
      return a.x / cast(where(zero, literal(1), size), a.x.dtype());
    },
    .scalar = "sign(x)",
    .shard = "... -> ...",
    .traits = Trait::Elementwise,
    .dtypes = "float complex",
    .numpy = "np.sign(x)",
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
    .scalar = "bias_after_scale ? x * scale + bias : (x + bias) * scale",
    .vjp = [](const vjp::scale& v) -> Grads { return scale(v.grad, conjugate(v.scale_)); },
    .shard = "... -> ...",
    .traits = Trait::Elementwise | Trait::HasInplace,
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

const OpDef lerp_op = {
    .schema = "lerp(Tensor x, Tensor y, Tensor weight) -> Tensor",
    .brief = "x + weight * (y - x): from x at weight 0 to y at weight 1.",
    .infer = infer::same_as_first,
    .decompose = [](const args::lerp& a) -> Made { return a.x + a.weight * (a.y - a.x); },
    .scalar = "x + weight * (y - x)",
    .vjp = [](const vjp::lerp& v) -> Grads {
      const Tensor to_y = v.needs(0) || v.needs(1) ? v.grad * conjugate(v.weight) : Tensor();
      return {v.needs(0) ? v.grad - to_y : Tensor(), v.needs(1) ? to_y : Tensor(),
              v.needs(2) ? v.grad * conjugate(v.y - v.x) : Tensor()};
    },
    .saves = "x y weight",
    .shard = "..., ..., ... -> ...",
    .traits = kPair | Trait::HasInplace,
    .dtypes = "float complex",
    .numpy = "x + weight * (y - x)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}), t({4, 7}), t({4, 7}))
              .add(t({2, 1, 5}), t({3, 1}), t({}))
              .add(t({}), t({}), t({}))
              .add(t({0, 3}), t({3}), t({}));
        },
    .python = "oar Tensor",
};

const OpDef add_n_op = {
    .schema = "add_n(Tensor[] inputs) -> Tensor",
    .brief = "The sum of tensors of one shape.",
    .decompose = [](const args::add_n& a) -> Made {
      user_check(!a.inputs.empty(), ErrorKind::InvalidArgument, "inputs is empty.");
      Tensor total = a.inputs[0];
      for (size_t i = 1; i < a.inputs.size(); ++i) {
        user_check(same(a.inputs[i].shape(), total.shape()), ErrorKind::InvalidArgument,
                   "inputs have the shapes {} and {}; they must be equal.", to_string(total.dims()),
                   to_string(a.inputs[i].dims()));
        total = total + a.inputs[i];
      }
      return a.inputs.size() == 1 ? assign(total) : total;
    },
    .numpy = "sum(inputs[1:], inputs[0])",
    .samples =
        [] {
          return Samples()
              .add(Specs{t({2, 3}), t({2, 3}), t({2, 3})})
              .add(Specs{t({4})})
              .add(Specs{t({}), t({})});
        },
};

const OpDef hypot_op = {
    .schema = "hypot(Tensor x, Tensor y) -> Tensor",
    .brief = "sqrt(x * x + y * y), without overflow.",
    .infer = infer::same_as_first,
    .scalar = "hypot(x, y)",
    .vjp = [](const vjp::hypot& v) -> Grads {
      const Tensor zero = equal(v.out, literal(0));
      const Tensor scale = zero_where(zero, v.grad / where(zero, literal(1), v.out));
      return {v.needs(0) ? scale * v.x : Tensor(), v.needs(1) ? scale * v.y : Tensor()};
    },
    .saves = "x y out",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::FloatMath | Trait::HasInplace | Trait::Arithmetic,
    .dtypes = "float",
    .numpy = "np.hypot(x, y)",
    .samples = samples::binary,
    .python = "oar Tensor",
};

Samples pairs_of_ints(int64_t low, int64_t high) {
  return Samples()
      .add(ints(low, high, {4, 7}), ints(low, high, {4, 7}))
      .add(ints(0, 60, {2, 1, 5}, DType::UInt8), ints(1, 60, {3, 1}, DType::UInt8))
      .add(ints(low, high, {3}, DType::Int32), ints(low, high, {}, DType::Int32))
      .add(ints(low, high, {}, DType::Int16), ints(low, high, {}, DType::Int16))
      .add(ints(0, 9, {0, 3}), ints(0, 9, {3}));
}

const OpDef gcd_op = {
    .schema = "gcd(Tensor x, Tensor y) -> Tensor",
    .brief = "The greatest common divisor of integers; that of 0 and 0 is 0.",
    .infer = infer::same_as_first,
    .scalar = "gcd(x, y)",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::NoGrad | Trait::HasInplace,
    .dtypes = "int",
    .numpy = "np.gcd(x, y)",
    .samples = [] { return pairs_of_ints(-30, 30); },
    .python = "oar Tensor",
};

const OpDef lcm_op = {
    .schema = "lcm(Tensor x, Tensor y) -> Tensor",
    .brief = "The least common multiple of integers; it is 0 if one of them is.",
    .infer = infer::same_as_first,
    .scalar = "g = gcd(x, y); g == 0 ? g : abs(x // g * y)",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::NoGrad | Trait::HasInplace,
    .dtypes = "int",
    .numpy = "np.lcm(x, y)",
    .samples = [] { return pairs_of_ints(-30, 30); },
    .python = "oar Tensor",
};

const OpDef heaviside_op = {
    .schema = "heaviside(Tensor x, Tensor y) -> Tensor",
    .brief = "0 where x is negative, 1 where it is positive, y where it is 0.",
    .infer = infer::same_as_first,
    .scalar = "isnan(x) ? x : x == 0 ? y : x > 0",
    .vjp = [](const vjp::heaviside& v) -> Grads {
      return {zeros_like(v.grad), zero_unless(equal(v.x, literal(0)), v.grad)};
    },
    .saves = "x",
    .shard = "..., ... -> ...",
    .traits = kPair,
    .dtypes = "int float",
    .numpy = "np.where(np.isnan(x), x, np.where(x == 0, y, x > 0)).astype(np.result_type(x, y))",
    .samples = [] { return samples::binary().add(fixed_values({-1, 0, 2}, {3}), t({3})); },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(arithmetic, &add_op, &subtract_op, &multiply_op, &divide_op, &floor_divide_op,
           &remainder_op, &mod_op, &floor_mod_op, &neg_op, &abs_op, &sign_op, &sgn_op, &scale_op,
           &lerp_op, &add_n_op, &hypot_op, &gcd_op, &lcm_op, &heaviside_op)

}  // namespace oar
