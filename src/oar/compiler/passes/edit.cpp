#include "oar/compiler/passes/edit.h"

#include <cstdint>
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

Makers::Makers(const Program& program)
    : program_(program), by_value_(program.values.size(), SIZE_MAX) {
  const std::vector<Instruction>& instructions = program.body.instructions;
  for (size_t i = 0; i < instructions.size(); ++i)
    for (ValueId id : instructions[i].results) by_value_[static_cast<size_t>(id)] = i;
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

// All processes must make a call that exchanges: one of them may need its result even if this one does not.
bool is_pure(const Instruction& call) { return !draws_random(call) && !exchanges(call); }

namespace {
size_t index_of(const Instruction& call, std::string_view name) {
  const int i = call.op->schema().index_of(name);
  internal_check(i >= 0, "{} has no parameter {}", call.op->name(), name);
  return static_cast<size_t>(i);
}
}  // namespace

bool has_parameter(const Instruction& instruction, std::string_view name) {
  return instruction.op->schema().index_of(name) >= 0;
}

const Value& attribute(const Instruction& instruction, std::string_view name) {
  return instruction.attributes[index_of(instruction, name)];
}

void set_attribute(Instruction& instruction, std::string_view name, const Value& value) {
  instruction.attributes.set(index_of(instruction, name), value);
}

bool is_set(const Instruction& instruction, std::string_view name) {
  return has_parameter(instruction, name) && attribute(instruction, name).tag == OAR_TAG_BOOL &&
         attribute(instruction, name).as_bool();
}

ValueId operand(const Instruction& instruction, std::string_view name) {
  return operand(instruction, index_of(instruction, name));
}

void set_operand(Instruction& instruction, std::string_view name, ValueId value) {
  instruction.operands[index_of(instruction, name)].ids[0] = value;
}

const SmallVector<ValueId, 2>& operands_named(const Instruction& instruction,
                                              std::string_view name) {
  return instruction.operands[index_of(instruction, name)].ids;
}

ValueId result_named(const Instruction& instruction, std::string_view name) {
  const std::vector<Result>& results = instruction.op->schema().results;
  for (size_t i = 0; i < results.size() && i < instruction.results.size(); ++i)
    if (results[i].name == name) return instruction.results[i];
  return kNoValue;
}

int64_t channel_axis(const Program& program, const Instruction& call) {
  const auto rank = static_cast<int64_t>(program.type_of(call.results[0]).shape.size());
  if (has_parameter(call, "channels_last")) return is_set(call, "channels_last") ? rank - 1 : 1;
  const int64_t axis = attribute(call, "channel_axis").as_int();
  return axis < 0 ? axis + rank : axis;
}

NewCall::NewCall(const Op& op, ValueId result) {
  call_.op = &op;
  call_.results = {result};
  const std::vector<Parameter>& parameters = op.schema().parameters;
  call_.attributes = op.schema().defaults().clone();
  for (const Parameter& p : parameters) {
    Operand& place = call_.operands.emplace_back();
    if (!p.is_tensor()) continue;
    place.kind = p.list ? Operand::List : Operand::One;
    if (!p.list) place.ids.push_back(kNoValue);
  }
}

NewCall::NewCall(const Op& op, const Instruction& replaced) : NewCall(op, kNoValue) {
  call_.results = replaced.results;
  call_.location = replaced.location;
  call_.layer = replaced.layer;
  call_.called = replaced.called;
}

NewCall& NewCall::operand(std::string_view name, ValueId value) {
  set_operand(call_, name, value);
  return *this;
}

NewCall& NewCall::attribute(std::string_view name, const Value& value) {
  set_attribute(call_, name, value);
  return *this;
}

NewCall& NewCall::result(ValueId value) {
  call_.results = {value};
  return *this;
}

}  // namespace oar
