// Common subexpressions: merges equal calls on the same values.
#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "oar/compiler/passes/context.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/print.h"
#include "oar/ir/region.h"

namespace oar {
namespace {

std::string key_of(const Instruction& instruction) {
  std::string key = instruction.op->name();
  for (const Operand& operand : instruction.operands) {
    key += '|';
    for (ValueId id : operand.ids) key += format("{},", id);
  }
  return key + attributes_text(instruction);
}

// Bytes: what folding may make of a number. Larger constants are seldom equal and slow to compare.
constexpr size_t kSmallConstant = 64 << 10;

// Merges equal small constants: every literal of the captured code is a separate constant.
void merge_constants(Program& program, Aliases& aliases) {
  std::unordered_multimap<std::string_view, ValueId> seen;
  for (const Constant& c : program.constants) {
    const auto bytes = static_cast<size_t>(byte_count(c.tensor->numel, c.tensor.dtype()));
    if (!c.tensor.is_dense() || !c.tensor.device().is_cpu() || !c.tensor.is_contiguous() ||
        bytes > kSmallConstant)
      continue;
    const std::string_view content(static_cast<const char*>(c.tensor->data), bytes);
    const auto [first, last] = seen.equal_range(content);
    const auto equal = std::find_if(first, last, [&](const auto& other) {
      return program.type_of(other.second) == program.type_of(c.value);
    });
    if (equal != last)
      aliases.set(c.value, equal->second);
    else
      seen.emplace(content, c.value);
  }
}

}  // namespace

bool merge_common(Program& program, PassContext& context) {
  Aliases aliases(program);
  merge_constants(program, aliases);
  const Uses& uses = context.uses();
  std::unordered_map<std::string, const Instruction*> seen;
  std::vector<Instruction>& instructions = program.body.instructions;
  std::vector<bool> merged(instructions.size(), false);
  for (size_t i = 0; i < instructions.size(); ++i) {
    Instruction& instruction = instructions[i];
    aliases.apply(instruction);
    if (!is_pure(instruction) || has_regions(instruction)) continue;
    const auto [it, fresh] = seen.emplace(key_of(instruction), &instruction);
    if (fresh) continue;
    // Two results of the program stay two tensors: the caller may write one of them.
    const auto is_given = [&](ValueId id) { return uses.is_returned(id); };
    if (std::any_of(instruction.results.begin(), instruction.results.end(), is_given)) continue;
    merged[i] = true;
    for (size_t k = 0; k < instruction.results.size(); ++k)
      aliases.set(instruction.results[k], it->second->results[k]);
  }
  aliases.apply_to_results(program);
  size_t next = 0;
  std::erase_if(instructions, [&](const Instruction&) { return merged[next++]; });
  std::erase_if(program.constants, [&](const Constant& c) { return aliases(c.value) != c.value; });
  return aliases.any();
}

}  // namespace oar
