#include "oar/runtime/start.h"

#include "oar/backend/cpu/cpu.h"
#include "oar/base/flags.h"
#include "oar/runtime/region_runs.h"
#include "oar/tensor/allocator.h"

namespace oar {
namespace {

void apply_memory_limit() { cpu_allocator::set_limit(int64_t{flag<int>("memory_limit_mb")} << 20); }

}  // namespace

void start_runtime() {
  apply_memory_limit();
  on_flag_change("memory_limit_mb", apply_memory_limit);
  cpu::register_device();
  install_program_machine(kRegionRuns);
}

}  // namespace oar
