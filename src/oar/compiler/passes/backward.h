// A function with its derivative as one program. The op in_backward marks where the derivative begins: what is computed
// from its results runs when cotangents arrive, everything else runs forwards.
#pragma once

#include <vector>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

bool is_marker(const Instruction& call);
// A call of in_backward.
Instruction marker(ValueId from, ValueId to);

// By value: does it belong to the derivative?
std::vector<bool> depends_on_backward(const Program& program);

struct KeptForBackward {
  std::vector<ValueId> values;  // that the function passes to its derivative, in order
  std::vector<bool> calls;      // by instruction: those that the derivative runs
};

// … for these outputs. Views and creation ops, which cost nothing, and the instructions of `again` are recomputed
// instead of saved. Outside tensors that no run writes need not be saved.
KeptForBackward kept_for_backward(const Program& program, const std::vector<bool>& late,
                                  const std::vector<ValueId>& outputs,
                                  const std::vector<bool>& again);

}  // namespace oar
