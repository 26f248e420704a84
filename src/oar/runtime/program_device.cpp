#include "oar/runtime/program_device.h"

#include "oar/device/device.h"
#include "oar/ops/core/run.h"
#include "oar/ops/gen/transfer.h"

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
  for (Constant& c : program.constants) {
    // Folded from numbers on the CPU. The numbers themselves are read in every run: a learning rate changes.
    if (c.tensor.device().is_cpu() && !device.is_cpu() && c.tensor.rank() > 0 &&
        c.tensor.is_dense())
      c.tensor = copy_to_device(c.tensor, devices::to_string(device));
    at(c.value) = c.tensor.device();
  }
  for (const Instruction& call : program.body.instructions) {
    bool any = false, numbers = true;
    for_each_operand(call, [&](ValueId id) {
      any = true;
      numbers &= at(id).is_cpu();
    });
    // A number that is broadcast becomes a tensor of the device.
    const bool broadcast =
        call.op->has(Trait::View) && program.type_of(call.results[0]).shape.rank() > 0;
    Device own = any && numbers && !broadcast ? Device{} : device;
    if (const auto there = moved_to(*call.op, call.attributes.args())) own = *there;
    for (ValueId id : call.results) at(id) = own;
  }
}

}  // namespace oar
