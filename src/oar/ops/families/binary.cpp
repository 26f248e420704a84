// Elementwise arithmetic of two operands. They arrive with one shape and one dtype; ops/prepare.cpp
// has seen to that. Comparison and logic are in compare.cpp.
#include "oar/ops/gen/binary.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/creation.h"

namespace oar {
namespace {

constexpr Trait kArithmetic = Trait::Elementwise | Trait::Promote;

// Divisors of both signs, none of them 0 in any dtype.
Samples dividing() {
  return Samples()
      .add(t({4, 7}), positive({4, 7}))
      .add(t({2, 1, 5}), uniform_in(-2.5, -0.5, {3, 1}))
      .add(t({3}), positive({}))
      .add(t({}), positive({}))
      .add(t({0, 3}), positive({3}));
}

const OpDef add_op = {
    .schema = "add(Tensor x, Tensor y) -> Tensor",
    .brief = "x + y.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::add& v) -> Grads { return {v.grad, v.grad}; },
    .shard = "..., ... -> ...",
    .traits = kArithmetic | Trait::Linear | Trait::HasInplace,
    .numpy = "x + y",
    .samples = samples::binary,
    .python = "oar Tensor",
    .onnx = "Add",
};

const OpDef subtract_op = {
    .schema = "subtract(Tensor x, Tensor y) -> Tensor",
    .brief = "x - y.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::subtract& v) -> Grads {
      return {v.grad, v.needs(1) ? -v.grad : Tensor()};
    },
    .shard = "..., ... -> ...",
    .traits = kArithmetic | Trait::Linear | Trait::HasInplace,
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
    .vjp = [](const vjp::multiply& v) -> Grads {
      return {v.needs(0) ? v.grad * conjugate(v.y) : Tensor(),
              v.needs(1) ? v.grad * conjugate(v.x) : Tensor()};
    },
    .saves = "x>y y>x",
    .shard = "..., ... -> ...",
    .linear_in = "x y",
    .traits = kArithmetic | Trait::Smooth | Trait::HasInplace,
    .numpy = "x * y",
    .samples = samples::binary,
    .python = "oar Tensor",
    .onnx = "Mul",
};

const OpDef divide_op = {
    .schema = "divide(Tensor x, Tensor y) -> Tensor",
    .brief = "x / y; integers become floats first.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::divide& v) -> Grads {
      const Tensor gx = v.grad / conjugate(v.y);
      return {gx, v.needs(1) ? -gx * conjugate(v.out) : Tensor()};
    },
    .saves = "y out",
    .shard = "..., ... -> ...",
    .linear_in = "x",
    .traits = kArithmetic | Trait::FloatMath | Trait::Smooth | Trait::HasInplace,
    .numpy = "x / y",
    .samples = dividing,
    .python = "oar Tensor",
    .onnx = "Div",
};

const OpDef floor_divide_op = {
    .schema = "floor_divide(Tensor x, Tensor y) -> Tensor",
    .brief = "The largest integer that is not above x / y. Integers cannot be divided by 0.",
    .infer = infer::same_as_first,
    .shard = "..., ... -> ...",
    .traits = kArithmetic | Trait::NoGrad | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "np.floor_divide(x, y)",
    .samples = dividing,
    .python = "oar Tensor",
};

const OpDef remainder_op = {
    .schema = "remainder(Tensor x, Tensor y) -> Tensor",
    .brief = "x - y * floor(x / y): what floor_divide leaves, with the sign of y.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::remainder& v) -> Grads {
      return {v.grad, v.needs(1) ? -v.grad * floor_divide(v.x, v.y) : Tensor()};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kArithmetic | Trait::HasInplace,
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
    .shard = "..., ... -> ...",
    .traits = kArithmetic | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "np.remainder(x, y)",
    .samples = dividing,
    .python = "oar Tensor",
};

const OpDef floor_mod_op = {
    .schema = "floor_mod(Tensor x, Tensor y) -> Tensor",
    .brief = "Another name of remainder.",
    .decompose = [](const args::floor_mod& a) -> Made { return remainder(a.x, a.y); },
    .shard = "..., ... -> ...",
    .traits = kArithmetic | Trait::HasInplace,
    .dtypes = "int float",
    .numpy = "np.remainder(x, y)",
    .samples = dividing,
    .python = "oar Tensor",
};

// Where x is 0 and y is not negative the power is 0 or 1 around y, and the gradient of y is 0. The power
// is computed again: a result that is kept could not be written in place.
Tensor pow_y_grad(const Tensor& x, const Tensor& y, const Tensor& grad) {
  Tensor zero = equal(x, literal(0));
  if (!is_complex(y.dtype())) zero = logical_and(zero, greater_equal(y, literal(0)));
  const Tensor logarithm = log(where(zero, literal(1), x));
  return zero_where(zero, grad * conjugate(pow(x, y) * logarithm));
}

TensorSpec constant(double value) {
  return {.shape = {}, .fill = Fill::Values, .values = {value}, .differentiable = false};
}

const OpDef pow_op = {
    .schema = "pow(Tensor x, Tensor y) -> Tensor",
    .brief = "x to the power of y. Of integers the fraction that a negative y gives is cut off.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::pow& v) -> Grads {
      return {v.needs(0) ? pow_grad(v.x, v.y, v.grad) : Tensor(),
              v.needs(1) ? pow_y_grad(v.x, v.y, v.grad) : Tensor()};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kArithmetic | Trait::Smooth | Trait::HasInplace,
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
    .shard = "..., ..., ... -> ...",
    .traits = Trait::Elementwise | Trait::Smooth,
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

// The gradient goes to the operand that was taken, and in halves to two that are equal. Where one is
// NaN neither gets any.
Grads extreme_grads(const VjpCall& call, const Tensor& x, const Tensor& y, const Tensor& grad,
                    Tensor (*wins)(const Tensor&, const Tensor&)) {
  const Tensor tied = zero_unless(equal(x, y), grad * 0.5);
  return {call.needs(0) ? where(wins(x, y), grad, tied) : Tensor(),
          call.needs(1) ? where(wins(y, x), grad, tied) : Tensor()};
}

const OpDef maximum_op = {
    .schema = "maximum(Tensor x, Tensor y) -> Tensor",
    .brief = "The larger of x and y; NaN where either is.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::maximum& v) -> Grads {
      return extreme_grads(v.call, v.x, v.y, v.grad, greater_than);
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kArithmetic,
    .dtypes = "bool int float",
    .numpy = "np.maximum(x, y)",
    .samples = samples::binary,
    .python = "oar Tensor",
    .onnx = "Max",
};

const OpDef minimum_op = {
    .schema = "minimum(Tensor x, Tensor y) -> Tensor",
    .brief = "The smaller of x and y; NaN where either is.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::minimum& v) -> Grads {
      return extreme_grads(v.call, v.x, v.y, v.grad, less_than);
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kArithmetic,
    .dtypes = "bool int float",
    .numpy = "np.minimum(x, y)",
    .samples = samples::binary,
    .python = "oar Tensor",
    .onnx = "Min",
};

// Where both are equal the gradient goes to x, as in Paddle.
const OpDef fmax_op = {
    .schema = "fmax(Tensor x, Tensor y) -> Tensor",
    .brief = "The larger of x and y; where one is NaN, the other.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::fmax& v) -> Grads {
      const Tensor first = logical_or(greater_equal(v.x, v.y), isnan(v.y));
      return {v.needs(0) ? zero_unless(first, v.grad) : Tensor(),
              v.needs(1) ? zero_where(first, v.grad) : Tensor()};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kArithmetic,
    .dtypes = "bool int float",
    .numpy = "np.fmax(x, y)",
    .samples = samples::binary,
    .python = "oar Tensor",
};

const OpDef fmin_op = {
    .schema = "fmin(Tensor x, Tensor y) -> Tensor",
    .brief = "The smaller of x and y; where one is NaN, the other.",
    .infer = infer::same_as_first,
    .vjp = [](const vjp::fmin& v) -> Grads {
      const Tensor first = logical_or(less_equal(v.x, v.y), isnan(v.y));
      return {v.needs(0) ? zero_unless(first, v.grad) : Tensor(),
              v.needs(1) ? zero_where(first, v.grad) : Tensor()};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kArithmetic,
    .dtypes = "bool int float",
    .numpy = "np.fmin(x, y)",
    .samples = samples::binary,
    .python = "oar Tensor",
};

const OpDef lerp_op = {
    .schema = "lerp(Tensor x, Tensor y, Tensor weight) -> Tensor",
    .brief = "x + weight * (y - x): from x at weight 0 to y at weight 1.",
    .infer = infer::same_as_first,
    .decompose = [](const args::lerp& a) -> Made { return a.x + a.weight * (a.y - a.x); },
    .vjp = [](const vjp::lerp& v) -> Grads {
      const Tensor to_y = v.needs(0) || v.needs(1) ? v.grad * conjugate(v.weight) : Tensor();
      return {v.needs(0) ? v.grad - to_y : Tensor(), v.needs(1) ? to_y : Tensor(),
              v.needs(2) ? v.grad * conjugate(v.y - v.x) : Tensor()};
    },
    .saves = "x y weight",
    .shard = "..., ..., ... -> ...",
    .traits = kArithmetic | Trait::Smooth | Trait::HasInplace,
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

}  // namespace

OAR_FAMILY(binary, &add_op, &subtract_op, &multiply_op, &divide_op, &floor_divide_op, &remainder_op,
           &mod_op, &floor_mod_op, &pow_op, &pow_grad_op, &maximum_op, &minimum_op, &fmax_op,
           &fmin_op, &lerp_op)

}  // namespace oar
