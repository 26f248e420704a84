// Regions are programs, so the passes run in them too. A switch with a constant index is replaced by the
// calls of its branch; unused results of a switch, and operands that no region reads, are removed.
#include <algorithm>

#include "oar/compiler/passes/context.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/region.h"

namespace oar {
namespace {

// Is it a choice among programs, by the operand `index`?
bool is_switch(const Instruction& call) {
  const int i = call.op->schema().index_of("branches");
  return i >= 0 && call.op->schema().parameters[static_cast<size_t>(i)].type == ArgType::Program;
}

bool run_passes_inside(Instruction& call, const PassOptions& options) {
  // Once: the passes on the outer program come here in every round.
  const bool all = options.off.empty();
  return replace_regions(call, [&](const Region& region) -> ClosurePtr {
    if (region.is_optimised()) return {};
    Program copy = region.program();
    if (!optimise_region(copy)) {
      if (all) region.mark_optimised();
      return {};
    }
    copy.gather_symbols();
    auto made = make_intrusive<const Region>(std::move(copy));
    if (all) made->mark_optimised();
    return made;
  });
}

// By input: does a region of the call read it?
std::vector<bool> reads_of(const Instruction& call) {
  std::vector<bool> read;
  for_each_program(call.attributes.args(), [&](const Closure& c) {
    const Program& inner = program_of(c);
    const std::vector<int> uses = count_uses(inner);
    read.resize(inner.inputs.size(), false);
    for (size_t i = 0; i < inner.inputs.size(); ++i)
      if (uses[static_cast<size_t>(inner.inputs[i])] > 0) read[i] = true;
  });
  return read;
}

template <class T>
void keep(T& list, size_t from, const std::vector<bool>& kept) {
  T shorter;
  for (size_t i = 0; i < list.size(); ++i)
    if (i < from || i - from >= kept.size() || kept[i - from]) shorter.push_back(list[i]);
  list = std::move(shorter);
}

// Captured tensors are the last tensor parameter of the call, and the last inputs of its regions.
bool drop_unread_operands(Instruction& call) {
  const int captured = call.op->schema().index_of("captured");
  if (captured < 0) return false;
  auto& ids = call.operands[static_cast<size_t>(captured)].ids;
  const std::vector<bool> read = reads_of(call);
  const size_t from = read.size() - ids.size();
  const std::vector<bool> kept(read.begin() + static_cast<std::ptrdiff_t>(from), read.end());
  if (std::all_of(kept.begin(), kept.end(), [](bool k) { return k; })) return false;
  keep(ids, 0, kept);
  return replace_regions(call, [&](const Region& region) -> ClosurePtr {
    Program copy = region.program();
    keep(copy.inputs, from, kept);
    copy.renumber();
    return make_intrusive<const Region>(std::move(copy));
  });
}

// Does a run learn an open size from the result, which other calls may have as an attribute?
bool tells_size(const Program& program, const Instruction& call, ValueId result) {
  std::vector<Dim> known;
  for_each_operand(call, [&](ValueId id) {
    for (Dim d : program.type_of(id).shape)
      for (Dim symbol : d.symbols()) known.push_back(symbol);
  });
  for (Dim d : program.type_of(result).shape)
    for (Dim symbol : d.symbols())
      if (std::find(known.begin(), known.end(), symbol) == known.end()) return true;
  return false;
}

bool drop_unread_results(const Program& program, Instruction& call, const Uses& uses) {
  if (!is_switch(call) || call.results.empty()) return false;
  std::vector<bool> kept;
  const size_t made = as_programs(attribute(call, "branches"))[0]->outputs().size();
  for (size_t i = 0; i < call.results.size(); ++i)  // the trace follows the branches' results
    kept.push_back(i >= made || uses.count(call.results[i]) > 0 ||
                   tells_size(program, call, call.results[i]));
  if (std::all_of(kept.begin(), kept.end(), [](bool k) { return k; })) return false;
  if (std::none_of(kept.begin(), kept.end(), [](bool k) { return k; })) return false;  // dead
  keep(call.results, 0, kept);
  return replace_regions(call, [&](const Region& region) -> ClosurePtr {
    Program copy = region.program();
    keep(copy.outputs, 0, kept);
    return make_intrusive<const Region>(std::move(copy));
  });
}

// The branch of a constant index; null if a run decides.
const Program* known_branch(const Program& program, const Instruction& call, PassContext& context) {
  if (!is_switch(call) || is_set(call, "trace")) return nullptr;
  if (operand(call, "random") != kNoValue) return nullptr;  // an explicit position in the stream
  const Tensor* index = context.constant(operand(call, "index"));
  if (!index || !index->is_dense() || !index->device().is_cpu()) return nullptr;
  const ClosureList branches = as_programs(attribute(call, "branches"));
  const auto last = static_cast<int64_t>(branches.size()) - 1;
  const int64_t chosen = index->item_int();
  const Program& branch =
      program_of(*branches[static_cast<size_t>(chosen < 0 || chosen > last ? last : chosen)]);
  // If the branches differ in size, readers of the results use open sizes.
  for (size_t i = 0; i < call.results.size(); ++i)
    if (!(program.type_of(call.results[i]) == branch.type_of(branch.outputs[i]))) return nullptr;
  return &branch;
}

// Replaces the call by the calls of its region.
void inline_region(Program& program, const Instruction& call, const Program& inner,
                   std::vector<Instruction>& into, std::vector<Constant>& constants,
                   std::vector<std::pair<ValueId, ValueId>>& same) {
  std::vector<ValueId> ids(inner.values.size(), kNoValue);
  const auto at = [&](ValueId id) -> ValueId& { return ids[static_cast<size_t>(id)]; };
  const auto define = [&](ValueId id) {
    at(id) = program.add_value(inner.type_of(id));
    return at(id);
  };
  const auto& captured = operands_named(call, "captured");
  for (size_t i = 0; i < inner.inputs.size(); ++i) at(inner.inputs[i]) = captured[i];
  for (const Constant& c : inner.constants) constants.push_back({define(c.value), c.tensor});
  for (const Instruction& part : inner.body.instructions) {
    Instruction copy = part;
    for (Operand& o : copy.operands)
      for (ValueId& id : o.ids)
        if (id != kNoValue) id = at(id);
    for (ValueId& id : copy.results) id = define(id);
    into.push_back(std::move(copy));
  }
  // An input that the branch returns, or a value that it returns twice, becomes a separate tensor each time.
  std::vector<bool> taken(inner.values.size(), true);
  for (const Instruction& part : inner.body.instructions)
    for (ValueId id : part.results) taken[static_cast<size_t>(id)] = false;
  for (size_t i = 0; i < inner.outputs.size(); ++i) {
    const ValueId id = inner.outputs[i];
    if (!taken[static_cast<size_t>(id)]) {
      taken[static_cast<size_t>(id)] = true;
      same.emplace_back(call.results[i], at(id));
      continue;
    }
    into.push_back(NewCall(get_op("assign"), call.results[i]).operand("x", at(id)).take());
  }
}

bool inline_known_branches(Program& program, PassContext& context) {
  std::vector<Instruction> calls;
  std::vector<Constant> fresh;
  std::vector<std::pair<ValueId, ValueId>> same;
  bool any = false;
  for (const Instruction& call : program.body.instructions) {
    const Program* branch = known_branch(program, call, context);
    any |= branch != nullptr;
    if (branch)
      inline_region(program, call, *branch, calls, fresh, same);
    else
      calls.push_back(call);
  }
  if (!any) return false;
  for (Constant& c : fresh) program.constants.push_back(std::move(c));
  Aliases aliases(program);
  for (const auto& [from, to] : same) aliases.set(from, aliases(to));
  for (Instruction& call : calls) aliases.apply(call);
  program.body.instructions = std::move(calls);
  aliases.apply_to_results(program);
  return true;
}

}  // namespace

bool simplify_regions(Program& program, PassContext& context) {
  bool changed = false, any = false;
  for (const Instruction& call : program.body.instructions) any |= has_regions(call);
  if (!any) return false;
  for (Instruction& call : program.body.instructions) {
    if (!has_regions(call)) continue;
    changed |= drop_unread_results(program, call, context.uses());
    changed |= run_passes_inside(call, context.options);
    changed |= drop_unread_operands(call);
  }
  changed |= inline_known_branches(program, context);
  return changed;
}

}  // namespace oar
