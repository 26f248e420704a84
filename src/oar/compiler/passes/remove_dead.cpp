// Dead code: calls whose results nothing reads, and unused constants. Random ops stay, because
// later numbers would change without them; so do states, which belong to the user, and
// calls of which only the sizes of the results are used.
#include <unordered_set>

#include "oar/compiler/passes/edit.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/region.h"

namespace oar {
namespace {

void add_symbols(Dims dims, std::unordered_set<int64_t>& to) {
  for (Dim d : dims)
    if (d.is_symbolic())
      for (Dim symbol : d.symbols()) to.insert(symbol.word());
}

// The open sizes that the call's attributes name.
void add_named(const Instruction& call, std::unordered_set<int64_t>& to) {
  for_each_size(*call.op, call.attributes.args(), [&](Dim d) { add_symbols({{d}}, to); });
}

// Does a run learn one of these sizes from the call's results?
bool tells_any(const Program& program, const Instruction& call,
               const std::unordered_set<int64_t>& sizes) {
  std::unordered_set<int64_t> told, known;
  for (ValueId id : call.results) add_symbols(program.type_of(id).shape, told);
  if (told.empty()) return false;
  add_named(call, known);
  for_each_operand(call, [&](ValueId id) { add_symbols(program.type_of(id).shape, known); });
  for (int64_t symbol : told)
    if (sizes.contains(symbol) && !known.contains(symbol)) return true;
  return false;
}

}  // namespace

bool remove_dead(Program& program) {
  std::vector<bool> needed(program.values.size(), false);
  const auto need = [&](ValueId id) { needed[static_cast<size_t>(id)] = true; };
  for (ValueId id : program.outputs) need(id);
  for (const State& s : program.states)
    if (s.written != kNoValue) need(s.written);
  std::vector<Instruction>& instructions = program.body.instructions;
  std::vector<bool> keep(instructions.size(), false);
  std::unordered_set<int64_t> named;  // sizes in the attributes of later calls
  for (size_t i = instructions.size(); i-- > 0;) {
    const Instruction& instruction = instructions[i];
    bool wanted = !is_pure(instruction);
    for (ValueId id : instruction.results) wanted |= needed[static_cast<size_t>(id)];
    if (!wanted && !tells_any(program, instruction, named)) continue;
    keep[i] = true;
    add_named(instruction, named);
    for_each_operand(instruction, need);
  }
  size_t next = 0;
  const size_t before = instructions.size() + program.constants.size();
  std::erase_if(instructions, [&](const Instruction&) { return !keep[next++]; });
  std::erase_if(program.constants,
                [&](const Constant& c) { return !needed[static_cast<size_t>(c.value)]; });
  return instructions.size() + program.constants.size() != before;
}

bool remove_dead(Program& program, PassContext&) { return remove_dead(program); }

}  // namespace oar
