#include "oar/compiler/capture/recomputed.h"

#include <set>

#include "oar/compiler/capture/capture.h"
#include "oar/ir/region.h"

namespace oar {
namespace {

bool can_repeat(const Instruction& call) {
  return !draws_random(call) && !call.op->has(Trait::DataDependent) &&
         !writes_arguments(*call.op) && !call.results.empty();
}

void scan(RecomputedValues& values, const Program& program) {
  const std::vector<Instruction>& calls = program.body.instructions;
  for (; values.scanned < calls.size(); ++values.scanned)
    if (const Instruction& call = calls[values.scanned]; can_repeat(call))
      for (ValueId id : call.results) values.makers.emplace(id, values.scanned);
}

// The calls that lead to a value and have not been repeated, in order.
std::set<size_t> calls_to_repeat(const RecomputedValues& values, const Program& program,
                                 ValueId wanted) {
  std::set<size_t> calls;
  std::vector<ValueId> open = {wanted};
  while (!open.empty()) {
    const ValueId id = open.back();
    open.pop_back();
    const auto maker = values.makers.find(id);
    if (maker == values.makers.end() || values.again.contains(id)) continue;
    if (!calls.insert(maker->second).second) continue;
    for_each_operand(program.body.instructions[maker->second],
                     [&](ValueId operand) { open.push_back(operand); });
  }
  return calls;
}

}  // namespace

RecomputedBlock::RecomputedBlock(Capture& capture)
    : hook_(
          [values = std::make_shared<RecomputedValues>(
               RecomputedValues{.capture = capture.serial(),
                                .first = capture.so_far().body.instructions.size(),
                                .scanned = capture.so_far().body.instructions.size(),
                                .makers = {},
                                .again = {},
                                .marked = {}})](const Tensor& saved) -> UnpackHook {
            Capture* const now = Capture::current();
            if (!now || now->serial() != values->capture) return {};  // inside of a branch or loop
            scan(*values, now->so_far());
            const ValueId value = symbolic_payload(saved).value;
            if (!values->makers.contains(value)) return {};
            return [values, value] { return Capture::require().recomputed(*values, value); };
          },
          Kind::Symbolic) {}

void Capture::begin_recomputed() {
  if (blocks_++ == 0) block_ = std::make_unique<RecomputedBlock>(*this);
}

void Capture::end_recomputed() {
  internal_check(blocks_ > 0, "a recomputed block ends that has not begun");
  if (--blocks_ == 0) block_.reset();
}

// What the calls read from outside of the block passes through the mark of the backward half. So no pass takes a repeated
// call for the first one.
Tensor Capture::recomputed(RecomputedValues& values, ValueId wanted) {
  static const Op& mark = get_op("in_backward");
  const auto in_backward = [&](ValueId id) {
    if (const auto made = values.again.find(id); made != values.again.end())
      return make_tensor(made->second);
    auto [marked, fresh] = values.marked.try_emplace(id, kNoValue);
    if (fresh) {
      Frame frame;
      frame.push(Value());
      frame.set_tensor(0, make_tensor(id));
      marked->second = value_of(record(mark, frame.args())[0]);
    }
    return make_tensor(marked->second);
  };
  for (size_t index : calls_to_repeat(values, program_, wanted)) {
    const Instruction call = program_.body.instructions[index];  // recording appends to the list
    const Frame frame = with_operands(call.attributes.clone(), call,
                                      [&](size_t, ValueId id) { return in_backward(id); });
    const Outputs made = record(*call.op, frame.args());
    for (size_t i = 0; i < made.size(); ++i) values.again[call.results[i]] = value_of(made[i]);
  }
  return make_tensor(values.again.at(wanted));
}

}  // namespace oar
