#include "oar/compiler/region_runs.h"

#include "oar/compiler/capture/regions.h"
#include "oar/compiler/capture/replay.h"
#include "oar/compiler/executor.h"

namespace oar {
namespace {

std::shared_ptr<const void> make_executor(const Program& program) {
  return std::make_shared<const Executor>(program);
}

Closure::Function prepared(const std::shared_ptr<const void>& executor) {
  return prepared_run(std::static_pointer_cast<const Executor>(executor));
}

}  // namespace

void install_regions() {
  Closure::install_tracer(trace_closure);
  Region::install_machine({replay_region, region_vjp, region_jvp, make_executor, prepared});
}

}  // namespace oar
