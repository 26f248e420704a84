#include "oar/compiler/region_runs.h"

#include "oar/compiler/capture/regions.h"
#include "oar/compiler/capture/replay.h"
#include "oar/compiler/executor.h"

namespace oar {
namespace {

std::shared_ptr<const void> make_executor(const Program& program) {
  return std::make_shared<const Executor>(program);
}

// The sizes are known, so one instance serves all calls. Without one, each call is interpreted: sizes that
// are still open here change from call to call, and an instance would serve one of them.
Closure::Function prepared(const std::shared_ptr<const void>& made) {
  auto executor = std::static_pointer_cast<const Executor>(made);
  const FreshLayers fresh;
  if (std::shared_ptr<const Instance> instance = executor->instance_at_known_sizes())
    return [executor, instance = std::move(instance)](TensorList inputs) {
      if (!instance->is_for(inputs)) {  // it was captured for another device
        const FreshLayers none;
        return executor->run(inputs);
      }
      const LayersOff off(kDispatchMask & ~uint32_t{kProfile});
      return instance->run({inputs.begin(), inputs.end()});
    };
  return [executor = std::move(executor)](TensorList inputs) {
    const FreshLayers none;
    return executor->interpret(inputs);
  };
}

}  // namespace

void install_regions() {
  Closure::install_tracer(trace_closure);
  Region::install_machine({replay_region, region_vjp, region_jvp, make_executor, prepared});
}

}  // namespace oar
