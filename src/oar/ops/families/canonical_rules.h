// Canonical rules that many records share. Each says when the result of a call is a value that the program already has.
#pragma once

#include <cmath>

#include "oar/ops/core/canonical.h"

namespace oar::canonical {

// x with its own type: a reshape to its shape, a cast to its dtype.
inline void same_type(const CanonicalCall& c) {
  const GraphValue x = c.operand("x");
  if (c.same_type(x, c.result())) c.replace_by(x);
}

// f(f(x)) is x.
inline void involution(const CanonicalCall& c) {
  const GraphValue x = c.operand("x");
  if (c.op_of(x) == &c.op()) c.replace_by(c.operands_of(x, "x")[0]);
}

// f(f(x)) is f(x).
inline void idempotent(const CanonicalCall& c) {
  const GraphValue x = c.operand("x");
  if (c.op_of(x) == &c.op()) c.replace_by(x);
}

// f(x, neutral) is x, in the operand "y" or in either. The sign of a zero counts.
inline void drop_neutral(const CanonicalCall& c, double neutral, bool either) {
  const auto is_neutral = [&](GraphValue value) {
    const std::optional<double> number = c.number(value);
    return number == neutral && std::signbit(*number) == std::signbit(neutral);
  };
  const GraphValue x = c.operand("x"), y = c.operand("y");
  if (is_neutral(y) && c.same_type(x, c.result())) return c.replace_by(x);
  if (either && is_neutral(x) && c.same_type(y, c.result())) c.replace_by(y);
}

}  // namespace oar::canonical
