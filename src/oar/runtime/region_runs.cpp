#include "oar/runtime/region_runs.h"

namespace oar {
namespace {

std::vector<Tensor> interpret(const Program& program, TensorList inputs) {
  const FreshLayers fresh;
  return Runner(program).interpret(inputs);
}

ClosurePtr no_vjp(const Program& program, const std::vector<bool>&, TensorList) {
  fail(ErrorKind::Unsupported, "the runtime has no derivative of {}.", program.name);
}
ClosurePtr no_jvp(const Program& program, const std::vector<bool>&) {
  return no_vjp(program, {}, {});
}

std::shared_ptr<const Runner> make_runner(const Program& program) {
  return std::make_shared<const Runner>(program);
}

ClosurePtr no_trace(const Closure::Function&, TensorList, const std::string& name) {
  fail(ErrorKind::Unsupported, "the runtime cannot capture {}.", name);
}

}  // namespace

// One instance serves all calls. Without one, each call is interpreted: sizes that are still open here change from call to
// call, and an instance would serve one of them.
Closure::Function prepared_run(const std::shared_ptr<const Runner>& runner) {
  const FreshLayers fresh;
  if (std::shared_ptr<const Instance> instance = runner->instance_at_known_sizes())
    return [runner, instance = std::move(instance)](TensorList inputs) {
      if (!instance->is_for(inputs)) {  // it was captured for another device
        const FreshLayers none;
        return runner->run(inputs);
      }
      const LayersOff off(kDispatchMask & ~uint32_t{kProfile});
      return instance->run({inputs.begin(), inputs.end()});
    };
  return [runner](TensorList inputs) {
    const FreshLayers none;
    return runner->interpret(inputs);
  };
}

const ProgramMachine kRegionRuns = {no_trace, interpret, no_vjp, no_jvp, make_runner, prepared_run};

}  // namespace oar
