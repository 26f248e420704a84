// Elementwise questions and logic: comparison, predicates, logical and bitwise ops, and `where`.
#include "oar/ops/gen/compare.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/masks.h"

namespace oar {
namespace {

constexpr Trait kQuestion = Trait::Elementwise | Trait::NoGrad;
constexpr Trait kComparison = kQuestion | Trait::Promote;

// Few different values, so that some are equal.
TensorSpec few(Shape shape) {
  return {.shape = std::move(shape), .fill = Fill::Integers, .low = 0, .high = 3};
}
Samples comparing() {
  return Samples()
      .add(few({4, 7}), few({4, 7}))
      .add(t({2, 1, 5}), t({3, 1}))
      .add(few({5}), few({}))
      .add(t({}), t({}))
      .add(t({0, 3}), t({3}));
}
Samples bits() {
  return Samples()
      .add(ints(-9, 9, {4, 7}), ints(-9, 9, {4, 7}))
      .add(ints(0, 200, {2, 1, 5}, DType::UInt8), ints(0, 200, {3, 1}, DType::UInt8))
      .add(bools({5}), bools({5}))
      .add(ints(-9, 9, {}, DType::Int32), ints(-9, 9, {}, DType::Int32))
      .add(ints(0, 9, {0, 3}), ints(0, 9, {3}));
}
TensorSpec odd_numbers(DType dtype) {
  const double infinity = std::numeric_limits<double>::infinity();
  return {.shape = {5},
          .fill = Fill::Values,
          .dtype = dtype,
          .values = {1, -infinity, std::numeric_limits<double>::quiet_NaN(), infinity, 0},
          .differentiable = false};
}
Samples predicates() {
  return samples::unary()
      .add(odd_numbers(DType::Float32))
      .add(odd_numbers(DType::Float64))
      .add(odd_numbers(DType::Float16))
      .add(odd_numbers(DType::Complex64));
}

const OpDef equal_op = {
    .schema = "equal(Tensor x, Tensor y) -> Tensor",
    .brief = "x == y, as bools.",
    .infer = infer::bool_like_first,
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .numpy = "x == y",
    .samples = comparing,
    .python = "oar Tensor",
    .onnx = "Equal",
};

const OpDef not_equal_op = {
    .schema = "not_equal(Tensor x, Tensor y) -> Tensor",
    .brief = "x != y, as bools.",
    .infer = infer::bool_like_first,
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .numpy = "x != y",
    .samples = comparing,
    .python = "oar Tensor",
};

const OpDef less_than_op = {
    .schema = "less_than(Tensor x, Tensor y) -> Tensor",
    .brief = "x < y, as bools.",
    .infer = infer::bool_like_first,
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .dtypes = "bool int float",
    .numpy = "x < y",
    .samples = comparing,
    .python = "oar Tensor",
    .onnx = "Less",
};

const OpDef less_equal_op = {
    .schema = "less_equal(Tensor x, Tensor y) -> Tensor",
    .brief = "x <= y, as bools.",
    .infer = infer::bool_like_first,
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .dtypes = "bool int float",
    .numpy = "x <= y",
    .samples = comparing,
    .python = "oar Tensor",
    .onnx = "LessOrEqual",
};

const OpDef greater_than_op = {
    .schema = "greater_than(Tensor x, Tensor y) -> Tensor",
    .brief = "x > y, as bools.",
    .infer = infer::bool_like_first,
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .dtypes = "bool int float",
    .numpy = "x > y",
    .samples = comparing,
    .python = "oar Tensor",
    .onnx = "Greater",
};

const OpDef greater_equal_op = {
    .schema = "greater_equal(Tensor x, Tensor y) -> Tensor",
    .brief = "x >= y, as bools.",
    .infer = infer::bool_like_first,
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .dtypes = "bool int float",
    .numpy = "x >= y",
    .samples = comparing,
    .python = "oar Tensor",
    .onnx = "GreaterOrEqual",
};

const OpDef isnan_op = {
    .schema = "isnan(Tensor x) -> Tensor",
    .brief = "Whether x is not a number; of a complex x, whether a part is not.",
    .infer = infer::bool_like_first,
    .shard = "... -> ...",
    .traits = kQuestion,
    .numpy = "np.isnan(x)",
    .samples = predicates,
    .python = "oar Tensor",
    .onnx = "IsNaN",
};

const OpDef isinf_op = {
    .schema = "isinf(Tensor x) -> Tensor",
    .brief = "Whether x is infinite; of a complex x, whether a part is.",
    .infer = infer::bool_like_first,
    .shard = "... -> ...",
    .traits = kQuestion,
    .numpy = "np.isinf(x)",
    .samples = predicates,
    .python = "oar Tensor",
    .onnx = "IsInf",
};

const OpDef isfinite_op = {
    .schema = "isfinite(Tensor x) -> Tensor",
    .brief = "Whether x is neither NaN nor infinite.",
    .infer = infer::bool_like_first,
    .shard = "... -> ...",
    .traits = kQuestion,
    .numpy = "np.isfinite(x)",
    .samples = predicates,
    .python = "oar Tensor",
};

const OpDef logical_not_op = {
    .schema = "logical_not(Tensor x) -> Tensor",
    .brief = "Whether x is 0 or false.",
    .infer = infer::bool_like_first,
    .shard = "... -> ...",
    .traits = kQuestion | Trait::HasInplace,
    .numpy = "np.logical_not(x)",
    .samples = [] { return samples::unary().add(bools({7})).add(few({7})); },
    .python = "oar Tensor",
    .onnx = "Not",
};

const OpDef logical_and_op = {
    .schema = "logical_and(Tensor x, Tensor y) -> Tensor",
    .brief = "Whether both are other than 0.",
    .infer = infer::bool_like_first,
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .numpy = "np.logical_and(x, y)",
    .samples = [] { return comparing().add(bools({7}), bools({7})); },
    .python = "oar Tensor",
    .onnx = "And",
};

const OpDef logical_or_op = {
    .schema = "logical_or(Tensor x, Tensor y) -> Tensor",
    .brief = "Whether one of them is other than 0.",
    .infer = infer::bool_like_first,
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .numpy = "np.logical_or(x, y)",
    .samples = [] { return comparing().add(bools({7}), bools({7})); },
    .python = "oar Tensor",
    .onnx = "Or",
};

const OpDef logical_xor_op = {
    .schema = "logical_xor(Tensor x, Tensor y) -> Tensor",
    .brief = "Whether exactly one of them is other than 0.",
    .infer = infer::bool_like_first,
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .numpy = "np.logical_xor(x, y)",
    .samples = [] { return comparing().add(bools({7}), bools({7})); },
    .python = "oar Tensor",
    .onnx = "Xor",
};

const OpDef bitwise_not_op = {
    .schema = "bitwise_not(Tensor x) -> Tensor",
    .brief = "Every bit of x turned over; of a bool, the other one.",
    .infer = infer::same_as_first,
    .shard = "... -> ...",
    .traits = kQuestion | Trait::HasInplace,
    .dtypes = "bool int",
    .numpy = "np.bitwise_not(x)",
    .samples =
        [] {
          return Samples()
              .add(ints(-9, 9, {4, 7}))
              .add(ints(0, 200, {3}, DType::UInt8))
              .add(bools({5}))
              .add(ints(-9, 9, {}, DType::Int32))
              .add(ints(0, 9, {0, 3}));
        },
    .python = "oar Tensor",
    .onnx = "BitwiseNot",
};

const OpDef bitwise_and_op = {
    .schema = "bitwise_and(Tensor x, Tensor y) -> Tensor",
    .brief = "The bits that x and y have in common.",
    .infer = infer::same_as_first,
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .dtypes = "bool int",
    .numpy = "np.bitwise_and(x, y)",
    .samples = bits,
    .python = "oar Tensor",
    .onnx = "BitwiseAnd",
};

const OpDef bitwise_or_op = {
    .schema = "bitwise_or(Tensor x, Tensor y) -> Tensor",
    .brief = "The bits of x and y together.",
    .infer = infer::same_as_first,
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .dtypes = "bool int",
    .numpy = "np.bitwise_or(x, y)",
    .samples = bits,
    .python = "oar Tensor",
    .onnx = "BitwiseOr",
};

const OpDef bitwise_xor_op = {
    .schema = "bitwise_xor(Tensor x, Tensor y) -> Tensor",
    .brief = "The bits in which x and y differ.",
    .infer = infer::same_as_first,
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .dtypes = "bool int",
    .numpy = "np.bitwise_xor(x, y)",
    .samples = bits,
    .python = "oar Tensor",
    .onnx = "BitwiseXor",
};

const OpDef where_op = {
    .schema = "where(Tensor condition, Tensor x, Tensor y) -> Tensor",
    .brief = "x where the condition holds, else y.",
    .infer = [](const args::where& a) -> Metas {
      user_check(
          is_bool(a.condition.dtype()), ErrorKind::InvalidType,
          "condition has dtype {}; it must be bool.\nhint: Compare it, for example condition != 0.",
          name_of(a.condition.dtype()));
      return infer::like(a.x);
    },
    .vjp = [](const vjp::where& v) -> Grads {
      return {Tensor(), v.needs(1) ? zero_unless(v.condition, v.grad) : Tensor(),
              v.needs(2) ? zero_where(v.condition, v.grad) : Tensor()};
    },
    .saves = "condition",
    .shard = "..., ..., ... -> ...",
    .traits = Trait::Elementwise | Trait::Promote,
    .promotes = "x y",
    .numpy = "np.where(condition, x, y)",
    .samples =
        [] {
          return Samples()
              .add(bools({4, 7}), t({4, 7}), t({4, 7}))
              .add(bools({2, 1, 5}), t({3, 1}), t({}))
              .add(bools({}), t({3}), t({3}))
              .add(bools({5}), t({}), t({5}))
              .add(bools({}), t({}), t({}))
              .add(bools({0, 3}), t({3}), t({0, 3}));
        },
    .python = "oar Tensor",
    .onnx = "Where",
};

}  // namespace

OAR_FAMILY(compare, &equal_op, &not_equal_op, &less_than_op, &less_equal_op, &greater_than_op,
           &greater_equal_op, &isnan_op, &isinf_op, &isfinite_op, &logical_not_op, &logical_and_op,
           &logical_or_op, &logical_xor_op, &bitwise_not_op, &bitwise_and_op, &bitwise_or_op,
           &bitwise_xor_op, &where_op)

}  // namespace oar
