// Constant folding: runs calls on constants alone now. Not if the result would be much larger
// than its operands: a program should not grow by what is quickly computed.
#include <algorithm>
#include <optional>

#include "oar/compiler/passes/edit.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/region.h"
#include "oar/ops/core/run.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/transfer.h"

namespace oar {
namespace {

constexpr int64_t kSmall = 64 << 10;  // bytes that a result may always have

int64_t bytes_of(const ValueType& type) {
  return byte_count(type.shape.numel().value(), type.dtype);
}

bool can_fold(const Program& program, const Instruction& instruction,
              const std::vector<const Tensor*>& constants) {
  if (!is_pure(instruction) || is_update(*instruction.op)) return false;
  if (has_regions(instruction)) return false;  // a loop may take long, or never end
  if (instruction.op->has(Trait::DataDependent)) return false;
  if (has_symbolic_attributes(*instruction.op, instruction.attributes.args())) return false;
  bool constant = true;
  int64_t read = 0;
  for_each_operand(instruction, [&](ValueId id) {
    const Tensor* t = constants[static_cast<size_t>(id)];
    constant &= t != nullptr && t->is_dense() && t->device().is_cpu();
    if (constant) read += bytes_of(program.type_of(id));
  });
  if (!constant) return false;
  int64_t made = 0;
  for (ValueId id : instruction.results) {
    if (!program.type_of(id).shape.is_known()) return false;
    made += bytes_of(program.type_of(id));
  }
  return made <= std::max(kSmall, read);
}

// None if the call fails: it may never be reached, and the run will raise the error.
std::optional<Outputs> run_now(const Instruction& instruction,
                               const std::vector<const Tensor*>& constants) try {
  const Frame frame =
      with_operands(instruction.attributes.clone(), instruction,
                    [&](size_t, ValueId id) { return *constants[static_cast<size_t>(id)]; });
  const LayersOff off(kDispatchMask);
  return run_op(*instruction.op, frame.args());
} catch (const Error& error) {
  if (error.kind() == ErrorKind::Interrupted) throw;
  return std::nullopt;
}

}  // namespace

bool fold_constants(Program& program, PassContext&) {
  std::vector<const Tensor*> constants = constant_tensors(program);
  std::vector<Tensor> made;  // folded results may be folded again
  made.reserve(program.values.size());
  const auto fold = [&](const Instruction& instruction) {
    if (!can_fold(program, instruction, constants)) return false;
    const std::optional<Outputs> outputs = run_now(instruction, constants);
    if (!outputs) return false;
    for (size_t i = 0; i < outputs->size(); ++i) {
      // A view would share its memory, and equal constants are found by their bytes.
      const Tensor& output = (*outputs)[i];
      made.push_back(output.is_contiguous() ? output : assign(output));
      // A number that is broadcast for tensors of another device is a tensor there.
      const Device device = program.type_of(instruction.results[i]).device;
      if (made.back().device() != device)
        made.back() = copy_to_device(made.back(), devices::to_string(device));
      constants[static_cast<size_t>(instruction.results[i])] = &made.back();
    }
    return true;
  };
  std::vector<Instruction> rest;
  std::vector<Constant> fresh;
  for (Instruction& instruction : program.body.instructions) {
    if (!fold(instruction)) {
      rest.push_back(std::move(instruction));
      continue;
    }
    for (ValueId id : instruction.results)
      fresh.push_back({id, *constants[static_cast<size_t>(id)]});
  }
  program.body.instructions = std::move(rest);
  for (Constant& c : fresh) program.constants.push_back(std::move(c));
  return !fresh.empty();
}

}  // namespace oar
