#include "oar/compiler/passes/backward.h"

#include <algorithm>

#include "oar/compiler/passes/edit.h"
#include "oar/ir/region.h"

namespace oar {
namespace {

bool reads_tensors(const Instruction& call) {
  bool reads = false;
  for_each_operand(call, [&](ValueId) { reads = true; });
  return reads;
}

}  // namespace

bool is_marker(const Instruction& call) { return call.op->has(Trait::BackwardMark); }

Instruction marker(ValueId from, ValueId to) {
  static const Op& op = get_op("in_backward");
  return NewCall(op, to).operand("x", from).take();
}

std::vector<bool> depends_on_backward(const Program& program) {
  std::vector<bool> late(program.values.size(), false);
  for (const Instruction& call : program.body.instructions) {
    bool depends = is_marker(call);
    for_each_operand(call, [&](ValueId id) { depends |= late[static_cast<size_t>(id)]; });
    for (ValueId id : call.results) late[static_cast<size_t>(id)] = depends;
  }
  return late;
}

KeptForBackward kept_for_backward(const Program& program, const std::vector<bool>& late,
                                  const std::vector<ValueId>& outputs,
                                  const std::vector<bool>& again) {
  KeptForBackward kept;
  const std::vector<Instruction>& calls = program.body.instructions;
  kept.calls.assign(calls.size(), false);
  std::vector<bool> wanted(program.values.size(), false);
  const auto want = [&](ValueId id) { wanted[static_cast<size_t>(id)] = true; };
  std::for_each(outputs.begin(), outputs.end(), want);
  for (size_t i = calls.size(); i-- > 0;) {
    const Instruction& call = calls[i];
    const bool read = std::any_of(call.results.begin(), call.results.end(),
                                  [&](ValueId id) { return wanted[static_cast<size_t>(id)]; });
    if (!read) continue;
    kept.calls[i] =
        late[static_cast<size_t>(call.results[0])] ||
        (!draws_random(call) && (again[i] || call.op->has(Trait::View) || !reads_tensors(call)));
    if (!kept.calls[i]) continue;
    for_each_operand(call, want);
    for (ValueId id : call.results) wanted[static_cast<size_t>(id)] = false;
  }
  std::vector<bool> outside(program.values.size(), false);
  for (const State& s : program.states)
    if (s.written == kNoValue) outside[static_cast<size_t>(s.value)] = true;
  for (const Constant& c : program.constants) outside[static_cast<size_t>(c.value)] = true;
  for (size_t i = 0; i < wanted.size(); ++i)
    if (wanted[i] && !outside[i] && !late[i]) kept.values.push_back(static_cast<ValueId>(i));
  return kept;
}

}  // namespace oar
