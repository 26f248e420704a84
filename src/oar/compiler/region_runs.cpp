#include "oar/compiler/region_runs.h"

#include "oar/compiler/capture/regions.h"
#include "oar/compiler/capture/replay.h"
#include "oar/compiler/executor.h"
#include "oar/runtime/region_runs.h"

namespace oar {
namespace {

std::shared_ptr<const Runner> make_executor(const Program& program) {
  return std::make_shared<const Executor>(program);
}

}  // namespace

void install_regions() {
  install_program_machine(
      {trace_closure, replay_region, region_vjp, region_jvp, make_executor, prepared_run});
}

}  // namespace oar
