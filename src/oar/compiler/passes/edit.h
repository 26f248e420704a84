// What passes share: where a value comes from, who reads it, and replacing one by another.
#pragma once

#include <vector>

#include "oar/ir/program.h"

namespace oar {

// Values that turned out to be other values.
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
  // What the program gives back and writes.
  void apply_to_results(Program& program) const;

 private:
  std::vector<ValueId> to_;
  bool any_ = false;
};

// Who makes a value: an instruction, or nobody (an input, a state, a constant).
class Makers {
 public:
  explicit Makers(const Program& program);
  const Instruction* operator()(ValueId id) const { return by_value_[static_cast<size_t>(id)]; }

 private:
  std::vector<const Instruction*> by_value_;
};

// How often each value is read, by instructions and as a result of the program.
std::vector<int> count_uses(const Program& program);
// By value: does the program give it back?
std::vector<bool> given_back(const Program& program);
// By value: the constant's tensor, or none.
std::vector<const Tensor*> constant_tensors(const Program& program);

// May a second call be spared, or a call be left out? Not where it takes random numbers.
bool is_pure(const Instruction& call);

// An attribute of the instruction, by the name of the parameter.
const Value& attribute(const Instruction& instruction, std::string_view name);
// The value in the place of the single tensor parameter.
inline ValueId operand(const Instruction& instruction, size_t parameter) {
  return instruction.operands[parameter].ids[0];
}

}  // namespace oar
