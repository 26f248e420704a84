// Selecting with a condition inside rules.
#pragma once

#include "oar/ops/core/operators.h"
#include "oar/ops/gen/masking.h"

namespace oar {

// `value` where the condition holds, else 0. A product with the mask would pass NaN and infinity.
inline Tensor zero_unless(const Tensor& condition, const Tensor& value) {
  return where(condition, value, literal(0));
}
inline Tensor zero_where(const Tensor& condition, const Tensor& value) {
  return where(condition, literal(0), value);
}

}  // namespace oar
