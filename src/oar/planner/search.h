// Plans of a training step on many devices: how many of them hold replicas, share tensors and form a pipeline; what is cut of states;
// micro-batches and recomputation. Each is placed, simulated, and compared by its step time, as far as it fits into memory.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/planner/stages.h"

namespace OAR_API oar {
namespace planner {

// What a plan chooses. The device with the number ((stage * data) + replica) * tensor + k is the k-th of its tensor group.
struct PlanChoice {
  int64_t data = 1, tensor = 1, pipeline = 1, interleave = 1;
  int64_t micro_batches = 1;
  // What replicas cut of their states: 0 nothing, 1 moments and master copies, 3 parameters too; -1: whatever costs the least time.
  int zero = -1;
  bool recompute = false;

  int64_t devices() const { return data * tensor * pipeline; }
  std::string str()
      const;  // "data 8, tensor 4, pipeline 2 x 2, 16 micro-batches, ZeRO 1, recompute"
};

struct Plan {
  std::string name;  // of one that was told; empty: found
  PlanChoice choice;
  std::shared_ptr<const PlacedStep> placed;
  PipelineRun run;
  Simulation simulation;
  double memory = 0;  // of the device that needs the most
  bool fits = true;

  double seconds() const { return simulation.seconds; }
  // Seconds per step and device that messages take beside computation.
  double transfer_seconds() const;
};

struct ToldPlan {
  std::string name;
  PlanChoice choice;
};

struct SearchRequest {
  int64_t devices = 1;
  std::vector<int64_t>
      mesh;           // sizes of its axes, outermost first; empty: any that has so many devices
  double memory = 0;  // bytes of a device; 0: the machine's
  std::map<ValueId, Layout> fixed;  // along the tensor axis
  std::vector<ToldPlan> told;
  size_t alternatives = 3;
  std::function<void(int64_t done, int64_t total)> progress;
};

struct SearchResult {
  Plan best;  // of all that fit; if none does: the one that needs the least memory
  std::vector<Plan> alternatives;  // the next best, each with other sizes
  std::vector<Plan> told;
  int64_t tried = 0;
};

// One plan, placed and simulated.
Plan evaluate(const Step& step, const Machine& machine, const PlanChoice& choice, double memory,
              const std::map<ValueId, Layout>& fixed = {});

SearchResult search(const Step& step, const Machine& machine, const SearchRequest& request);

}  // namespace planner
}  // namespace oar
