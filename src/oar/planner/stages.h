// A placed step as a pipeline: where it may be cut, a cut into parts of even time, and what each part takes and keeps.
#pragma once

#include <cstdint>
#include <vector>

#include "oar/base/api.h"
#include "oar/planner/placements.h"
#include "oar/planner/simulate.h"

namespace OAR_API oar {
namespace planner {

// The least possible largest sum of `count` runs of consecutive weights, where every run has one or more. Returns the first index
// of each run.
std::vector<size_t> cut_evenly(const std::vector<double>& weights, size_t count);

struct StageOptions {
  int64_t stages = 1, interleave = 1, micro_batches = 1;
  bool recompute = false;  // keeps only what blocks begin with, and computes the rest again
  Group between;           // two devices of neighbouring stages
};

// What a step takes, by the place of its calls in the order of the forward phase.
struct StepProfile {
  std::vector<double> forward, backward, update, reduce,
      gather;                                   // seconds of a micro-batch, or of the step
  std::vector<double> states, gradients, kept;  // bytes
  std::vector<double> passes;                   // bytes that pass from this place to later ones
  std::vector<size_t> blocks;  // the first place of each: few bytes pass from one block to the next
  double transient = 0;        // the most that one call has at once
};

// The step on the devices of one stage, along the axes of its mesh: first the one along which replicas are, then the others.
struct PlacedStep {
  Step step;  // divided along all axes
  std::vector<AxisPlan> axes;
  std::vector<double> work;  // by call: seconds of one micro-batch, or of an update
  std::vector<Transfer> transfers;
  StepProfile profile;
};

PlacedStep placed(const Step& step, const Machine& machine, std::vector<AxisPlan> axes,
                  int64_t micro_batches);

PipelineRun pipeline_of(const PlacedStep& placed, const Machine& machine,
                        const StageOptions& options);

}  // namespace planner
}  // namespace oar
