// Dead code: calls whose results nobody reads, and constants that nobody needs. Random ops stay, since
// the numbers behind them would be others without them; so do states, which belong to the user.
#include "oar/compiler/passes/edit.h"
#include "oar/compiler/passes/pass.h"

namespace oar {

bool remove_dead(Program& program) {
  std::vector<bool> needed(program.values.size(), false);
  const auto need = [&](ValueId id) { needed[static_cast<size_t>(id)] = true; };
  for (ValueId id : program.outputs) need(id);
  for (const State& s : program.states)
    if (s.written != kNoValue) need(s.written);
  std::vector<Instruction>& instructions = program.body.instructions;
  std::vector<bool> keep(instructions.size(), false);
  for (size_t i = instructions.size(); i-- > 0;) {
    const Instruction& instruction = instructions[i];
    bool wanted = !is_pure(instruction);
    for (ValueId id : instruction.results) wanted |= needed[static_cast<size_t>(id)];
    if (!wanted) continue;
    keep[i] = true;
    for_each_operand(instruction, need);
  }
  size_t next = 0;
  const size_t before = instructions.size() + program.constants.size();
  std::erase_if(instructions, [&](const Instruction&) { return !keep[next++]; });
  std::erase_if(program.constants,
                [&](const Constant& c) { return !needed[static_cast<size_t>(c.value)]; });
  return instructions.size() + program.constants.size() != before;
}

}  // namespace oar
