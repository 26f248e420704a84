// What passes share: where a value comes from, what reads it, and replacing one by another.
#pragma once

#include <vector>

#include "oar/base/api.h"
#include "oar/ir/program.h"

namespace OAR_API oar {

// Values that are replaced by others.
class Aliases {
 public:
  explicit Aliases(const Program& program);
  void set(ValueId from, ValueId to) {
    to_[static_cast<size_t>(from)] = to;
    any_ = true;
  }
  ValueId operator()(ValueId id) const {
    return id == kNoValue ? id : to_[static_cast<size_t>(id)];
  }
  bool any() const { return any_; }
  void apply(Instruction& instruction) const;
  // What the program returns and writes.
  void apply_to_results(Program& program) const;

 private:
  std::vector<ValueId> to_;
  bool any_ = false;
};

// The instruction that computes a value; null for an input, a state or a constant.
class Makers {
 public:
  explicit Makers(const Program& program);
  // Values that were added since have no maker yet.
  const Instruction* operator()(ValueId id) const {
    const auto i = static_cast<size_t>(id);
    const bool made = i < by_value_.size() && by_value_[i] < program_.body.instructions.size();
    return made ? &program_.body.instructions[by_value_[i]] : nullptr;
  }

 private:
  const Program& program_;
  // By number: a pass that changes nothing may still have moved the instructions in memory.
  std::vector<size_t> by_value_;
};

// How often each value is read, by instructions and as a result of the program.
std::vector<int> count_uses(const Program& program);
// By value: does the program return it?
std::vector<bool> given_back(const Program& program);
// By value: the constant's tensor, or none.
std::vector<const Tensor*> constant_tensors(const Program& program);

// May a call be merged with an equal one, or be removed? Not if it draws random numbers.
bool is_pure(const Instruction& call);

bool has_parameter(const Instruction& instruction, std::string_view name);
// An attribute of the instruction, by the name of the parameter.
const Value& attribute(const Instruction& instruction, std::string_view name);
void set_attribute(Instruction& instruction, std::string_view name, const Value& value);
// Is it a bool attribute, and true?
bool is_set(const Instruction& instruction, std::string_view name);
// The value of a single tensor parameter.
inline ValueId operand(const Instruction& instruction, size_t parameter) {
  return instruction.operands[parameter].ids[0];
}
ValueId operand(const Instruction& instruction, std::string_view name);
void set_operand(Instruction& instruction, std::string_view name, ValueId value);
// The values of a tensor parameter: a list, or one.
const SmallVector<ValueId, 2>& operands_named(const Instruction& instruction,
                                              std::string_view name);
// The result of this name in the schema; kNoValue if there is none.
ValueId result_named(const Instruction& instruction, std::string_view name);

// The axis of channels in the first result of a call with the attribute `channels_last` or `channel_axis`.
int64_t channel_axis(const Program& program, const Instruction& call);

// A new call that replaces another one, whose results, location and user's name it takes over. What is not set has its
// default, and an optional tensor is missing.
class NewCall {
 public:
  NewCall(const Op& op, const Instruction& replaced);
  // … without a call to replace: an auxiliary view or copy.
  NewCall(const Op& op, ValueId result);

  NewCall& operand(std::string_view name, ValueId value);
  NewCall& attribute(std::string_view name, const Value& value);
  NewCall& result(ValueId value);
  Instruction take() { return std::move(call_); }

 private:
  Instruction call_;
};

}  // namespace oar
