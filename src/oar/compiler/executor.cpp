#include "oar/compiler/executor.h"

#include "oar/autograd/node.h"
#include "oar/compiler/capture/regions.h"
#include "oar/compiler/capture/replay.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ops/core/run.h"

namespace oar {

void prepare_to_run(Program& program) {
  const FreshLayers fresh;  // decompositions are captured, without the layers that are on outside
  tune(program);            // with known sizes there is more to fold
  expand_for_kernels(program);
}

std::vector<Tensor> Executor::run_on(std::vector<Tensor> inputs) const {
  if (must_replay(inputs)) return replay(program(), inputs);
  return Runner::run_on(std::move(inputs));
}

std::string shown_name(const Tensor& t) {
  const History* h = maybe_history(t);
  return h && !h->name.empty() ? h->name : t.describe();
}

std::string Executor::shared_memory(TensorList inputs) const {
  for (const State& s : program().states) {
    if (s.written == kNoValue) continue;
    for (size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i].is_dense() && inputs[i]->storage == s.tensor->storage &&
          shares_elements(inputs[i], s.tensor))
        return format("argument {} shares memory with {}, which the function {} writes",
                      program().label(program().inputs[i]), shown_name(s.tensor), program().name);
  }
  return {};
}

void Executor::check_apart(TensorList inputs) const {
  const std::string shared = shared_memory(inputs);
  user_check(shared.empty(), ErrorKind::Unsupported,
             "{}.\nhint: Pass a copy, x.clone(), or call the function itself.", shared);
}

}  // namespace oar
