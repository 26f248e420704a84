// What records of random ops share.
#pragma once

#include "oar/ops/core/op_def.h"
#include "oar/ops/sharding/rules.h"

namespace oar {

inline void check_shape(Dims shape) {
  for (Dim d : shape)
    user_check(d.is_symbolic() || d.word() >= 0, ErrorKind::InvalidArgument,
               "the shape {} has a negative size.", to_string(shape));
}

inline Metas random_floats(Dims shape, std::optional<DType> dtype) {
  check_shape(shape);
  const DType type = dtype.value_or(default_dtype());
  user_check(is_floating(type), ErrorKind::InvalidType,
             "dtype is {}; random numbers of this kind are floats.", name_of(type));
  return TensorMeta{type, Shape(shape)};
}

// A localise rule: `_part` gets the place of the piece in the whole: where it begins along each axis of
// the result, and the sizes of the whole. `shape`, if the op has it, becomes the piece's own.
void random_piece(const PieceCall& piece);

inline constexpr Trait kRandom = Trait::Random | Trait::NoGrad;

}  // namespace oar
