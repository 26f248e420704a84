// Runs of regions: each has a runner of its own.
#pragma once

#include "oar/base/api.h"
#include "oar/ir/region.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/runtime/runner.h"

namespace OAR_API oar {

// While alive, nothing is on but the profiler: a region runs as it was captured, whatever is on around it.
class FreshLayers {
 public:
  FreshLayers() : outer_(t_layers) { t_layers = {outer_.on & kProfile, 0}; }
  ~FreshLayers() { t_layers = outer_; }
  FreshLayers(const FreshLayers&) = delete;
  FreshLayers& operator=(const FreshLayers&) = delete;

 private:
  const ThreadLayers outer_;
};

// The function of a region whose sizes are known.
Closure::Function prepared_run(const std::shared_ptr<const Runner>& runner);

// What a runtime without a compiler does with regions: it runs them, and does not differentiate them.
extern const ProgramMachine kRegionRuns;

}  // namespace oar
