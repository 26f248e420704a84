// A discrete-event simulation of a step on many devices: every device computes its passes in the order of its schedule, each pass
// waits for the messages that it needs, and messages share the link of their sender.
//
// Devices that share one tensor run in lockstep; such a group is one *worker* here, whose times contain its collectives.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "oar/base/api.h"

namespace OAR_API oar {
namespace planner {

// One part of the pipeline, on one device of each replica. With interleaving a device has several: parts 0, stages, 2 * stages, …
struct PipelinePart {
  double forward = 0, backward = 0;  // seconds of one micro-batch
  double send = 0;                   // … of its result to the next part, and of the gradient back
  double sent = 0;                   // … and its bytes
  double activations = 0;  // bytes that one micro-batch keeps from its forward to its backward pass
};

struct PipelineStage {
  double gather = 0;  // seconds that parameters are gathered before the first pass
  double reduce = 0;  // … that the replicas sum gradients after the last one
  double hidden =
      0;  // the part of `reduce` that runs beside the last backward passes, if these are long enough
  double update = 0;  // … of the optimiser
  double memory = 0;  // bytes that are always there: states, gradients
};

struct PipelineRun {
  std::vector<PipelinePart> parts;  // stages * interleave, in the order of the model
  std::vector<PipelineStage> stages;
  int64_t micro_batches = 1;
  int64_t replicas = 1;            // pipelines that run beside each other and share their gradients
  int64_t group = 1;               // devices of a worker
  std::map<int64_t, double> slow;  // devices that take longer, by what factor
};

struct Span {
  enum Kind : uint8_t { Gather, Forward, Backward, Reduce, Update } kind = Forward;
  int64_t stage = 0, part = 0, micro_batch = 0;
  double start = 0, end = 0;
};

struct Simulation {
  double seconds = 0;  // of the step
  double bubble = 0;   // the part of all passes' time in which the average device waits for others
  int64_t devices = 0, events = 0;
  std::vector<double> busy;         // by stage: seconds of the first replica's device
  std::vector<double> peak_memory;  // by stage, bytes
  std::vector<Span> spans;          // of the first replica
  std::vector<std::vector<std::pair<double, double>>> memory;  // by stage: bytes from a time on
};

// The passes of a stage in their order. One forward, one backward, after as many forward passes as the pipeline is deep; with several
// parts on a device, micro-batches take them in turns.
struct Pass {
  bool backward = false;
  int64_t part = 0;  // of this device: 0 to interleave - 1
  int64_t micro_batch = 0;
};
std::vector<Pass> passes_of(int64_t stage, int64_t stages, int64_t interleave,
                            int64_t micro_batches);

Simulation simulate(const PipelineRun& run);

}  // namespace planner
}  // namespace oar
