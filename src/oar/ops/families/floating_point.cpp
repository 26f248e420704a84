// Floating-point numbers: their sign, mantissa and exponent, neighbours, NaN and infinities.
#include "oar/ops/gen/floating_point.h"

#include <cmath>
#include <numbers>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/elementwise_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/creation.h"

namespace oar {
namespace {

TensorSpec special_values(DType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  return fixed_values({1, -infinity, std::numeric_limits<double>::quiet_NaN(), infinity, 0}, {5},
                      dtype);
}

Samples with_special_values() {
  return samples::unary()
      .add(special_values(DType::Float32))
      .add(special_values(DType::Float64))
      .add(special_values(DType::Float16))
      .add(special_values(DType::Complex64));
}

const OpDef isnan_op = {
    .schema = "isnan(Tensor x) -> Tensor",
    .brief = "Whether x is not a number; of a complex x, whether a part is not.",
    .infer = infer::bool_like_first,
    .scalar = "isnan(x)",
    .shard = "... -> ...",
    .traits = kQuestion,
    .numpy = "np.isnan(x)",
    .samples = with_special_values,
    .python = "oar Tensor",
    .onnx = "IsNaN",
};

const OpDef isinf_op = {
    .schema = "isinf(Tensor x) -> Tensor",
    .brief = "Whether x is infinite; of a complex x, whether a part is.",
    .infer = infer::bool_like_first,
    .scalar = "isinf(x)",
    .shard = "... -> ...",
    .traits = kQuestion,
    .numpy = "np.isinf(x)",
    .samples = with_special_values,
    .python = "oar Tensor",
    .onnx = "IsInf",
};

const OpDef isfinite_op = {
    .schema = "isfinite(Tensor x) -> Tensor",
    .brief = "Whether x is neither NaN nor infinite.",
    .infer = infer::bool_like_first,
    .scalar = "isfinite(x)",
    .shard = "... -> ...",
    .traits = kQuestion,
    .numpy = "np.isfinite(x)",
    .samples = with_special_values,
    .python = "oar Tensor",
};

TensorSpec odd_numbers(DType dtype) {
  return fixed_values({1, -INFINITY, NAN, INFINITY, 0, -2.5}, {6}, dtype);
}

Samples with_odd_numbers() {
  return samples::unary()
      .add(odd_numbers(DType::Float32))
      .add(odd_numbers(DType::Float64))
      .add(odd_numbers(DType::Float16));
}

const OpDef isposinf_op = {
    .schema = "isposinf(Tensor x) -> Tensor",
    .brief = "Whether x is plus infinity.",
    .infer = infer::bool_like_first,
    .scalar = "x == inf",
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
    .scalar = "x == -inf",
    .shard = "... -> ...",
    .traits = kQuestion,
    .dtypes = "bool int float",
    .numpy = "np.isneginf(x)",
    .samples = with_odd_numbers,
    .python = "oar Tensor",
};

const OpDef nan_to_num_op = {
    .schema =
        "nan_to_num(Tensor x, float nan = 0.0, float? posinf = None, float? neginf = None) -> Tensor",
    .brief =
        "x with numbers in the places of NaN and of the infinities; by default 0 and the dtype's largest and "
        "lowest number.",
    .infer = infer::same_as_first,
    .scalar =
        "isnan(x) ? nan : x == inf ? (given(posinf) ? posinf : largest) : x == -inf ? "
        "(given(neginf) ? neginf : -largest) : x",
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

const OpDef signbit_op = {
    .schema = "signbit(Tensor x) -> Tensor",
    .brief = "Whether x has a minus sign; -0.0 has one too.",
    .infer = infer::bool_like_first,
    .scalar = "signbit(x)",
    .shard = "... -> ...",
    .traits = kQuestion,
    .dtypes = "bool int float",
    .numpy = "np.signbit(x.astype('float64'))",
    .samples = with_odd_numbers,
    .python = "oar Tensor",
};

const OpDef copysign_op = {
    .schema = "copysign(Tensor x, Tensor y) -> Tensor",
    .brief = "The magnitude of x with the sign of y.",
    .infer = infer::same_as_first,
    .scalar = "copysign(x, y)",
    .vjp = [](const vjp::copysign& v) -> Grads {
      return {v.grad * sign(v.x) * copysign(literal(1.0), v.y), zeros_like(v.grad)};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::HasInplace | Trait::Arithmetic,
    .dtypes = "int float",
    .numpy = "np.copysign(x, y).astype(x.dtype)",
    .samples = [] { return samples::binary().add(positive({3}), uniform_in(-2, -1, {3})); },
    .python = "oar Tensor",
};

const OpDef frexp_op = {
    .schema = "frexp(Tensor x) -> (Tensor mantissa, Tensor exponent)",
    .brief = "x as mantissa * 2 ** exponent with a mantissa in [0.5, 1); both in the dtype of x.",
    .infer = [](const args::frexp& a) -> Metas { return {infer::like(a.x), infer::like(a.x)}; },
    .scalar = "mantissa(x), exponent(x)",
    .vjp = [](const vjp::frexp& v) -> Grads { return ldexp(v.grad_mantissa, -v.exponent); },
    .saves = "exponent",
    .shard = "... -> ..., ...",
    .traits = Trait::Elementwise,
    .dtypes = "float",
    .numpy = "(lambda m, e: (m, e.astype(x.dtype)))(*np.frexp(x))",
    .samples = samples::unary,
    .python = "oar Tensor",
};

const OpDef ldexp_op = {
    .schema = "ldexp(Tensor x, Tensor y) -> Tensor",
    .brief = "x * 2 ** y.",
    .infer = infer::same_as_first,
    .scalar = "ldexp(x, y)",
    .vjp = [](const vjp::ldexp& v) -> Grads {
      return {v.needs(0) ? ldexp(v.grad, v.y) : Tensor(),
              v.needs(1) ? v.grad * ldexp(v.x, v.y) * std::numbers::ln2 : Tensor()};
    },
    .saves = "x>y y",
    .shard = "..., ... -> ...",
    .traits = kPair | Trait::FloatMath | Trait::HasInplace,
    .dtypes = "float",
    .numpy = "x * np.exp2(y)",
    .samples = [] { return samples::binary().add(t({4}), ints(-3, 4, {4})); },
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

}  // namespace

OAR_FAMILY(floating_point, &isnan_op, &isinf_op, &isfinite_op, &isposinf_op, &isneginf_op,
           &nan_to_num_op, &signbit_op, &copysign_op, &frexp_op, &ldexp_op, &nextafter_op)

}  // namespace oar
