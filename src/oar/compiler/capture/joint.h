// A function and its derivative as one program, and that program cut into the two halves that the tape
// needs: what runs forwards, and what runs when cotangents arrive.
#pragma once

#include <optional>

#include "oar/base/api.h"
#include "oar/compiler/capture/capture.h"
#include "oar/compiler/capture/presence.h"

namespace OAR_API oar {

struct JointProgram {
  // Inputs: the function's, then the cotangents. Outputs: the function's, then the gradients, then the flags that tell which of them there are.
  Program program;
  size_t inputs = 0, outputs = 0;  // of the function, gradients outside included
  size_t results = 0;              // outputs without those
  std::vector<size_t> cotangents;  // per cotangent: the output that it belongs to
  std::vector<size_t> of_inputs;   // inputs that have a gradient, in order
  std::vector<Tensor> of_states;   // then the tensors outside that have one
  std::vector<Presence> presence;  // of each of these gradients
  size_t flags = 0;
  // A function that calls backward() itself: after its inputs come the gradients that it reads,
  // behind its outputs those that it leaves behind.
  std::vector<OutsideGradient> gradients;
  // What was found outside and must still be so: content that was looked at, and who asked for its
  // gradient.
  std::vector<ContentRead> reads;
  std::vector<std::pair<Tensor, bool>> asked;
  PayloadCount kept;  // symbolic tensors that somebody still holds
  bool differentiable() const { return !cotangents.empty(); }
};

// Does somebody want to see the gradient that arrives at this leaf?
bool has_leaf_hooks(const Tensor& leaf);

// Gradients for the inputs whose spec asks for one, and for every tensor outside that asks for one
// and takes part.
JointProgram capture_joint(const CapturedFunction& function, const std::vector<InputSpec>& inputs,
                           const std::string& name = "main");

struct Halves {
  // Inputs: the function's. Outputs: the function's, then what the backward half reads.
  Program forward;
  // Inputs: what it reads, then the cotangents. Outputs: the gradients, then the flags.
  Program backward;
};

// Whatever does not need a cotangent runs forwards. What both halves can make from the function's
// inputs and states by views alone is not handed over but made again. So is what the pass `recompute` chooses.
Halves cut(const JointProgram& joint);

// The halves are not differentiated again: to them a value through which no gradient flows is the value itself.
void remove_stops(Program& program);

// The function alone, for those who differentiate it once more: where it cuts the tape off (detach, no_grad), its program
// says so. None where it does not, and the halves say as much.
std::optional<Program> function_with_stops(const JointProgram& joint);

}  // namespace oar
