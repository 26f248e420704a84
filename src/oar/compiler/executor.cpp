#include "oar/compiler/executor.h"

#include "oar/compiler/capture/regions.h"
#include "oar/compiler/capture/replay.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ops/core/dispatcher.h"

namespace oar {

void prepare_to_run(Program& program) {
  const FreshLayers
      fresh;      // decompositions are captured; what is on around the run is not for them
  tune(program);  // with known sizes there is more to fold
  expand_for_kernels(program);
}

std::vector<Tensor> Executor::run_on(std::vector<Tensor> inputs) const {
  uint32_t layers = t_layers.on;
  for (const Tensor& t : inputs)
    if (t.defined()) layers |= t->flags;
  constexpr uint32_t kInvolved = kWrapped | kDistributed | kFunctionalise | kCapture;
  if (layers & ~t_layers.off & kInvolved) return replay(program(), inputs);
  return Runner::run_on(std::move(inputs));
}

}  // namespace oar
