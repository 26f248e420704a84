// The CPU's kernel of the op `fused`: generated code.
#include <memory>

#include "oar/compiler/fusion/code.h"
#include "oar/compiler/fusion/nest.h"
#include "oar/device/added_kernels.h"
#include "oar/device/device.h"
#include "oar/ops/core/launch_queue.h"
#include "oar/ops/gen/copy.h"
#include "oar/runtime/region_runs.h"

namespace oar::fusion {
namespace {

constexpr int kOperands = 0, kBody = 1;

const Region& body_of(const KernelCall& call) { return region_of(as_program(call.arg(kBody))); }

struct Plan {
  std::shared_ptr<const FusedLoop> loop;
  std::optional<Nest> nest;
  Code code = nullptr;  // none: the calls run one by one
};

const char* accepts(const oar_kernel_call* raw) {
  const auto& call = *static_cast<const KernelCall*>(raw);
  if (!loop_of(body_of(call))) return "its calls are not one loop";
  return can_compile() ? nullptr : "there is no code generator";
}

std::unique_ptr<Plan> prepare(const KernelCall& call) {
  auto plan = std::make_unique<Plan>();
  plan->loop = loop_of(body_of(call));
  plan->nest = Nest::of(*plan->loop, call.arg(kOperands).as_tensors());
  if (plan->nest) plan->code = code_of(plan->nest->kernel);
  return plan;
}

void run_calls(KernelCall& call) {
  const FreshLayers fresh;
  const LaunchNow now;
  const std::vector<Tensor> made = body_of(call)(call.arg(kOperands).as_tensors());
  for (size_t i = 0; i < made.size(); ++i)
    copy_into(Tensor::share(static_cast<TensorImpl*>(call.outputs[i])), made[i]);
}

void run(KernelCall& call) {
  const Plan& plan = call.plan_as<Plan>();
  if (!plan.code) return run_calls(call);
  const TensorList operands = call.arg(kOperands).as_tensors();
  Nest::Ports ports;
  for (const Source& source : plan.loop->sources)
    ports.push_back(static_cast<char*>(operands[source.input]->data));
  for (int32_t i = 0; i < call.output_count; ++i)
    ports.push_back(static_cast<char*>(call.out(i).data));
  plan.nest->run(plan.code, std::move(ports));
}

}  // namespace

void install_kernel() {
  devices::add_kernel({.op = "fused",
                       .name = "cpu:generated",
                       .accepts = accepts,
                       .run = kernel_entry<run>,
                       .prepare = prepare_entry<prepare>,
                       .destroy_plan = destroy_entry<Plan>});
}

}  // namespace oar::fusion
