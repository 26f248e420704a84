#include "oar/compiler/passes/edit.h"

#include <numeric>

#include "oar/ir/region.h"

namespace oar {

Aliases::Aliases(const Program& program) : to_(program.values.size()) {
  std::iota(to_.begin(), to_.end(), 0);
}

void Aliases::apply(Instruction& instruction) const {
  for (Operand& operand : instruction.operands)
    for (ValueId& id : operand.ids) id = (*this)(id);
}

void Aliases::apply_to_results(Program& program) const {
  for (ValueId& id : program.outputs) id = (*this)(id);
  for (State& s : program.states) s.written = (*this)(s.written);
}

Makers::Makers(const Program& program) : by_value_(program.values.size(), nullptr) {
  for (const Instruction& instruction : program.body.instructions)
    for (ValueId id : instruction.results) by_value_[static_cast<size_t>(id)] = &instruction;
}

std::vector<int> count_uses(const Program& program) {
  std::vector<int> uses(program.values.size(), 0);
  const auto use = [&](ValueId id) { ++uses[static_cast<size_t>(id)]; };
  for (const Instruction& instruction : program.body.instructions)
    for_each_operand(instruction, use);
  for (ValueId id : program.outputs) use(id);
  for (const State& s : program.states)
    if (s.written != kNoValue) use(s.written);
  return uses;
}

std::vector<bool> given_back(const Program& program) {
  std::vector<bool> given(program.values.size(), false);
  for (ValueId id : program.outputs) given[static_cast<size_t>(id)] = true;
  return given;
}

std::vector<const Tensor*> constant_tensors(const Program& program) {
  std::vector<const Tensor*> tensors(program.values.size(), nullptr);
  for (const Constant& c : program.constants) tensors[static_cast<size_t>(c.value)] = &c.tensor;
  return tensors;
}

bool is_pure(const Instruction& call) { return !draws_random(call); }

const Value& attribute(const Instruction& instruction, std::string_view name) {
  const int i = instruction.op->schema().index_of(name);
  internal_check(i >= 0, "{} has no attribute {}", instruction.op->name(), name);
  return instruction.attributes[static_cast<size_t>(i)];
}

}  // namespace oar
