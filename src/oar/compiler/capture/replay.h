// Running a program's instructions as calls through the dispatcher.
#pragma once

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

// The program's calls on these inputs, through every layer: inside a capture they are recorded,
// under vmap batched, and the tape sees them. States are read from and written back to their
// tensors.
std::vector<Tensor> replay(const Program& program, TensorList inputs);

// … on inputs of other shapes than the program declares, as far as its calls take them.
std::vector<Tensor> replay_on_other_shapes(const Program& program, TensorList inputs);

// … of a region on tensors of its own types: its sizes are those of the outer program.
std::vector<Tensor> replay_region(const Program& program, TensorList inputs);

// Must a program on these inputs be replayed? Yes if a layer takes part that acts on single calls: a capture, a transform,
// distribution.
bool must_replay(TensorList inputs);

// The program and the derivatives of one of its outputs, which must have one element, with respect
// to `wanted` inputs and states (by their values). Outputs: those of the program, then the
// gradients.
Program differentiate(const Program& program, const std::vector<ValueId>& wanted,
                      size_t output = 0);

}  // namespace oar
