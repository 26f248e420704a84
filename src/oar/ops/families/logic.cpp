// Logical and bitwise ops.
#include "oar/ops/gen/logic.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/canonical_rules.h"
#include "oar/ops/families/elementwise_rules.h"

namespace oar {
namespace {

const OpDef logical_not_op = {
    .schema = "logical_not(Tensor x) -> Tensor",
    .brief = "Whether x is 0 or false.",
    .infer = infer::bool_like_first,
    .scalar = "!x",
    .shard = "... -> ...",
    .canonical = canonical::involution,
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
    .scalar = "x && y",
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
    .scalar = "x || y",
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
    .scalar = "!x != !y",
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
    .scalar = "~x",
    .shard = "... -> ...",
    .canonical = canonical::involution,
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

Samples bits() {
  return Samples()
      .add(ints(-9, 9, {4, 7}), ints(-9, 9, {4, 7}))
      .add(ints(0, 200, {2, 1, 5}, DType::UInt8), ints(0, 200, {3, 1}, DType::UInt8))
      .add(bools({5}), bools({5}))
      .add(ints(-9, 9, {}, DType::Int32), ints(-9, 9, {}, DType::Int32))
      .add(ints(0, 9, {0, 3}), ints(0, 9, {3}));
}

const OpDef bitwise_and_op = {
    .schema = "bitwise_and(Tensor x, Tensor y) -> Tensor",
    .brief = "The bits that x and y have in common.",
    .infer = infer::same_as_first,
    .scalar = "x & y",
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
    .scalar = "x | y",
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
    .scalar = "x ^ y",
    .shard = "..., ... -> ...",
    .traits = kComparison | Trait::HasInplace,
    .dtypes = "bool int",
    .numpy = "np.bitwise_xor(x, y)",
    .samples = bits,
    .python = "oar Tensor",
    .onnx = "BitwiseXor",
};

const OpDef bitwise_left_shift_op = {
    .schema = "bitwise_left_shift(Tensor x, Tensor y, bool is_arithmetic = True) -> Tensor",
    .brief =
        "The bits of x shifted up by y; 0 where y is negative or at least the width of the dtype.",
    .infer = infer::same_as_first,
    .scalar = "x << y",
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
        "The bits of x shifted down by y; filled with copies of the sign, or zeros if it is not "
        "arithmetic.",
    .infer = infer::same_as_first,
    .scalar = "is_arithmetic ? x >> y : shift_right_bits(x, y)",
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

}  // namespace

OAR_FAMILY(logic, &logical_not_op, &logical_and_op, &logical_or_op, &logical_xor_op,
           &bitwise_not_op, &bitwise_and_op, &bitwise_or_op, &bitwise_xor_op,
           &bitwise_left_shift_op, &bitwise_right_shift_op)

}  // namespace oar
