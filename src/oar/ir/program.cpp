#include "oar/ir/program.h"

#include <algorithm>

namespace oar {

std::string ValueType::str() const { return format("{}{}", name_of(dtype), shape.str()); }

Instruction::Instruction(const Instruction& other)
    : op(other.op),
      operands(other.operands),
      attributes(other.attributes.clone()),
      results(other.results),
      location(other.location) {}

Instruction& Instruction::operator=(const Instruction& other) {
  if (this != &other) *this = Instruction(other);
  return *this;
}

ValueId Program::add_value(ValueType type, std::string name) {
  values.push_back({std::move(type), std::move(name)});
  return static_cast<ValueId>(values.size()) - 1;
}

std::string Program::label(ValueId id) const {
  if (id < 0 || static_cast<size_t>(id) >= values.size()) return "None";
  const std::string& name = values[static_cast<size_t>(id)].name;
  return name.empty() ? format("%{}", id) : "%" + name;
}

ValueId Program::find(std::string_view name) const {
  const auto it = std::find_if(values.begin(), values.end(),
                               [&](const ProgramValue& v) { return v.name == name; });
  return it == values.end() || name.empty() ? kNoValue : static_cast<ValueId>(it - values.begin());
}

bool has_symbolic_attributes(Args attributes) {
  for (const Value& v : attributes) {
    if (v.tag == OAR_TAG_INT && Dim::from_word(v.integer).is_symbolic()) return true;
    if (v.tag != OAR_TAG_INTS) continue;
    for (Dim d : v.as_dim_list())
      if (d.is_symbolic()) return true;
  }
  return false;
}

std::string to_string(const DimAssumption& assumption) {
  const char* relation = "==";
  switch (assumption.kind) {
    case DimAssumption::Equal:
      relation = "==";
      break;
    case DimAssumption::NotEqual:
      relation = "!=";
      break;
    case DimAssumption::Less:
      relation = "<";
      break;
    case DimAssumption::NotLess:
      relation = ">=";
      break;
  }
  return format("{} {} {}", assumption.left.str(), relation, assumption.right.str());
}

}  // namespace oar
