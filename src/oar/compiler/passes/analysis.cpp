#include "oar/compiler/passes/analysis.h"

#include <numeric>

#include "oar/ops/core/work.h"

namespace oar {

Uses::Uses(const Program& program)
    : counts_(count_uses(program)),
      readers_(program.values.size()),
      returned_(given_back(program)) {
  const std::vector<Instruction>& calls = program.body.instructions;
  for (size_t i = 0; i < calls.size(); ++i)
    for_each_operand(calls[i], [&](ValueId id) { readers_[static_cast<size_t>(id)].push_back(i); });
}

std::optional<size_t> Uses::only_reader(ValueId id) const {
  const std::span<const size_t> all = readers(id);
  return count(id) == 1 && all.size() == 1 ? std::optional(all[0]) : std::nullopt;
}

Lives::Lives(const Program& program)
    : begin_(program.values.size(), kBefore), end_(program.values.size(), kBefore) {
  const std::vector<Instruction>& calls = program.body.instructions;
  for (size_t i = 0; i < calls.size(); ++i) {
    const int at = static_cast<int>(i);
    for_each_operand(calls[i], [&](ValueId id) { end_[static_cast<size_t>(id)] = at; });
    for (ValueId id : calls[i].results)
      begin_[static_cast<size_t>(id)] = end_[static_cast<size_t>(id)] = at;
  }
  const int last = static_cast<int>(calls.size());
  for (ValueId id : program.outputs) end_[static_cast<size_t>(id)] = last;
  for (const State& s : program.states)
    if (s.written != kNoValue) end_[static_cast<size_t>(s.written)] = last;
}

SharedMemory::SharedMemory(const Program& program) : owner_(program.values.size()) {
  std::iota(owner_.begin(), owner_.end(), 0);
  for (const Instruction& call : program.body.instructions)
    if (call.op->has(Trait::View))
      owner_[static_cast<size_t>(call.results[0])] = owner(operand(call, 0));
}

Frame meta_arguments(const Program& program, const Instruction& call) {
  return with_operands(call.attributes.clone(), call, [&](size_t, ValueId id) {
    const ValueType& type = program.type_of(id);
    return Tensor::meta(type.shape, type.dtype, type.device);
  });
}

double time_of(const Program& program, const Instruction& call) {
  const auto sized = [&](ValueId id) {
    Shape shape;
    for (Dim d : program.type_of(id).shape) shape.push_back(d.hint());
    return Tensor::meta(shape, program.type_of(id).dtype);
  };
  const Frame frame =
      with_operands(replace_dims(*call.op, call.attributes.args(), [](Dim d) { return d.hint(); }),
                    call, [&](size_t, ValueId id) { return sized(id); });
  std::vector<Tensor> results;
  for (ValueId id : call.results) results.push_back(sized(id));
  return guessed_time(*call.op, frame.args(), results);
}

}  // namespace oar
