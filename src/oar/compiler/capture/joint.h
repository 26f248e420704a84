// A function and its derivative as one program, and that program cut into the two halves that the tape
// needs: one runs forwards, the other when cotangents arrive.
#pragma once

#include <optional>

#include "oar/base/api.h"
#include "oar/compiler/capture/capture.h"
#include "oar/compiler/capture/presence.h"

namespace OAR_API oar {

struct JointProgram {
  // Inputs: the function's, then the cotangents. Outputs: the function's, then the gradients, then the flags that say which of them exist.
  Program program;
  size_t inputs = 0, outputs = 0;  // of the function, including outside gradients
  size_t results = 0;              // outputs without those
  std::vector<size_t> cotangents;  // per cotangent: the output that it belongs to
  // Per pair of cotangents: do the steps that the tape would have recorded for both have one in common?
  std::vector<std::vector<bool>> common_steps;
  std::vector<size_t> of_inputs;   // inputs that have a gradient, in order
  std::vector<Tensor> of_states;   // then the outside tensors that have one
  std::vector<Presence> presence;  // of each of these gradients
  size_t flags = 0;
  // A function that calls backward() itself: after its inputs come the gradients that it reads,
  // after its outputs those that it leaves.
  std::vector<OutsideGradient> gradients;
  // Outside facts that must still hold: content that was read, and which tensors required a
  // gradient.
  std::vector<ContentRead> reads;
  std::vector<std::pair<Tensor, bool>> asked;
  PayloadCount kept;  // symbolic tensors that are still alive
  bool differentiable() const { return !cotangents.empty(); }
};

// Does the leaf have hooks for its gradient?
bool has_leaf_hooks(const Tensor& leaf);

// Gradients for the inputs whose spec requires one, and for every outside tensor that requires one
// and is used.
JointProgram capture_joint(const CapturedFunction& function, const std::vector<InputSpec>& inputs,
                           const std::string& name = "main");

struct Halves {
  // Inputs: the function's. Outputs: the function's, then what the backward half reads.
  Program forward;
  // Inputs: what it reads, then the cotangents. Outputs: the gradients, then the flags.
  Program backward;
};

// Whatever does not need a cotangent runs forwards. What both halves can compute from the function's
// inputs and states by views alone is not passed on but recomputed, as is what the pass `recompute` chooses.
Halves cut(const JointProgram& joint);

// The halves are not differentiated again, so for them a stop of gradients is the identity.
void remove_stops(Program& program);

// The function alone, for higher derivatives, with its cuts of the tape (detach, no_grad) as calls. None if it has no
// cuts: then the halves are enough.
std::optional<Program> function_with_stops(const JointProgram& joint);

}  // namespace oar
