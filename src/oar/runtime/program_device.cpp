#include "oar/runtime/program_device.h"

#include "oar/device/device.h"
#include "oar/ops/core/registry.h"

namespace oar {

Device device_of(const Program& program) {
  for (const ProgramValue& value : program.values)
    if (!value.type.device.is_cpu()) return value.type.device;
  return {};
}

void place_on(Program& program, TensorList inputs, Device device) {
  const auto at = [&](ValueId id) -> Device& {
    return program.values[static_cast<size_t>(id)].type.device;
  };
  for (size_t i = 0; i < inputs.size(); ++i) at(program.inputs[i]) = inputs[i].device();
  for (const State& s : program.states) at(s.value) = s.tensor.device();
  for (const Constant& c : program.constants) at(c.value) = c.tensor.device();
  for (const Instruction& call : program.body.instructions) {
    bool any = false, numbers = true;
    for_each_operand(call, [&](ValueId id) {
      any = true;
      numbers &= at(id).is_cpu();
    });
    // A number that is stretched becomes a tensor beside the others.
    const bool stretched =
        call.op->has(Trait::View) && program.type_of(call.results[0]).shape.rank() > 0;
    Device own = any && numbers && !stretched ? Device{} : device;
    // An op that moves tensors says where to.
    if (const int moves = call.op->schema().index_of("device");
        moves >= 0 && call.op->is_built_in())
      own = devices::parse(call.attributes[static_cast<size_t>(moves)].as_string());
    for (ValueId id : call.results) at(id) = own;
  }
}

}  // namespace oar
