#include "oar/ir/bind.h"

#include <algorithm>

namespace oar {

bool is_symbol(Dim d) {
  if (d.is_known()) return false;
  const std::vector<Dim> symbols = d.symbols();
  return symbols.size() == 1 && symbols[0] == d;
}

namespace {

// Is the symbol at least `bound` by its definition, whatever its hint says?
bool is_at_least(Dim symbol, int64_t bound) {
  const DimAssumptions undecided;
  return !known_less(symbol, Dim(bound)) && undecided.learnt().empty();
}

bool holds(const DimAssumption& a, SymbolValues& values) {
  const Dim left = values.evaluate(a.left), right = values.evaluate(a.right);
  switch (a.kind) {
    case DimAssumption::Equal:
      return same(left, right);
    case DimAssumption::NotEqual:
      return !same(left, right);
    case DimAssumption::Less:
      return known_less(left, right);
    case DimAssumption::NotLess:
      return !known_less(left, right);
  }
  return true;
}

}  // namespace

int64_t least_value_of(Dim symbol) {
  int64_t low = 0, high = 1;
  while (high < (int64_t{1} << 40) && is_at_least(symbol, high)) {
    low = high;
    high *= 2;
  }
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    (is_at_least(symbol, middle) ? low : high) = middle;
  }
  return low;
}

bool SymbolValues::has(Dim symbol) const {
  return std::any_of(bound_.begin(), bound_.end(),
                     [&](const auto& pair) { return pair.first == symbol; });
}

bool SymbolValues::covers(Dim d) const {
  if (d.is_known()) return true;
  const std::vector<Dim> symbols = d.symbols();
  return std::all_of(symbols.begin(), symbols.end(), [&](Dim s) { return has(s); });
}

Dim SymbolValues::evaluate(Dim d) {
  if (d.is_known()) return d;
  if (auto it = known_.find(d.word()); it != known_.end()) return it->second;
  const Dim value = d.substitute(bound_);
  known_.emplace(d.word(), value);
  return value;
}

InputBinder::InputBinder(const Program& program) {
  std::vector<Dim> from_inputs;
  for (ValueId id : program.inputs)
    for (Dim d : program.type_of(id).shape)
      for (Dim s : d.symbols()) from_inputs.push_back(s);
  for (Dim s : from_inputs)
    if (const int64_t bound = least_value_of(s); bound > 0) at_least_.emplace_back(s, bound);
  std::vector<Dim> known = from_inputs;
  for (const Instruction& instruction : program.body.instructions) {
    bool unknown = false;
    for (ValueId id : instruction.results)
      for (Dim d : program.type_of(id).shape)
        for (Dim s : d.symbols())
          if (std::find(known.begin(), known.end(), s) == known.end()) {
            known.push_back(s);
            unknown = true;
          }
    unknown_results_.push_back(unknown);
  }
}

void InputBinder::bind_input(const Program& program, size_t i, const Tensor& t,
                             SymbolValues& values) const {
  const ValueId id = program.inputs[i];
  const ValueType& type = program.type_of(id);
  const auto fits = [&] {
    return t.defined() && t.dtype() == type.dtype && t.rank() == type.shape.rank();
  };
  const std::string name = fits() ? std::string() : program.label(id).substr(1);
  user_check(t.defined(), ErrorKind::InvalidType, "input {} ({}) of the program {} is None.", i,
             name, program.name);
  user_check(t.dtype() == type.dtype, ErrorKind::InvalidType,
             "input '{}' of the program {} is {} but got {}.\nhint: Cast it with "
             "x.astype('{}').",
             name, program.name, type.str(), t.describe(), name_of(type.dtype));
  user_check(t.rank() == type.shape.rank(), ErrorKind::InvalidArgument,
             "input '{}' of the program {} is {} but got {}: the ranks differ.", name, program.name,
             type.str(), t.describe());
  user_check(
      !t->scales, ErrorKind::Unsupported,
      "input '{}' of the program {} got a tensor with scales, which programs do not accept as "
      "inputs.\nhint: Cast it to a float first, x.astype('float32').",
      program.label(id).substr(1), program.name);
  for (size_t axis = 0; axis < type.shape.size(); ++axis)
    if (is_symbol(type.shape[axis]) && !values.has(type.shape[axis]))
      values.set(type.shape[axis], t.dims()[axis]);
}

SymbolValues InputBinder::bind(const Program& program, TensorList inputs) const {
  user_check(inputs.size() == program.inputs.size(), ErrorKind::InvalidArgument,
             "the program {} takes {} inputs but got {}.", program.name, program.inputs.size(),
             inputs.size());
  SymbolValues values;
  for (size_t i = 0; i < inputs.size(); ++i) bind_input(program, i, inputs[i], values);
  // A second pass: a symbol may get its value from a later input.
  for (size_t i = 0; i < inputs.size(); ++i) {
    const ValueType& type = program.type_of(program.inputs[i]);
    for (size_t axis = 0; axis < type.shape.size(); ++axis) {
      const Dim wanted = type.shape[axis], given = inputs[i].dims()[axis];
      user_check(values.covers(wanted), ErrorKind::InvalidArgument,
                 "the size {} of input '{}' does not determine its symbols.\nhint: Capture "
                 "with an input that has the symbol itself as a size.",
                 wanted.str(), program.label(program.inputs[i]).substr(1));
      user_check(same(values.evaluate(wanted), given), ErrorKind::InvalidArgument,
                 "input '{}' of the program {} is {} but got {}: axis {} should be {}, not "
                 "{}.",
                 program.label(program.inputs[i]).substr(1), program.name, type.str(),
                 inputs[i].describe(), axis, values.evaluate(wanted).str(), given.str());
    }
  }
  for (const auto& [symbol, bound] : at_least_)
    user_check(!known_less(values.evaluate(symbol), Dim(bound)), ErrorKind::InvalidArgument,
               "the program {} was captured for {} >= {}; {} is {} here.\nhint: Capture the "
               "function for this size too.",
               program.name, symbol.str(), bound, symbol.str(), values.evaluate(symbol).str());
  check_assumptions(program, values, nullptr);
  return values;
}

// Those that could not be checked `before`.
void InputBinder::check_assumptions(const Program& program, SymbolValues& values,
                                    const SymbolValues* before) const {
  for (const DimAssumption& a : program.assumptions) {
    if (!values.covers(a.left) || !values.covers(a.right)) continue;
    if (before && before->covers(a.left) && before->covers(a.right)) continue;
    user_check(holds(a, values), ErrorKind::InvalidArgument,
               "the program {} was captured for sizes with {}; here this is {} and {}.\nhint: "
               "Capture the function for these sizes too, with inputs of such sizes as hints.",
               program.name, to_string(a), values.evaluate(a.left).str(),
               values.evaluate(a.right).str());
  }
}

void InputBinder::bind_results(const Program& program, size_t instruction, TensorList results,
                               SymbolValues& values) const {
  const std::vector<ValueId>& ids = program.body.instructions[instruction].results;
  const SymbolValues before = values;
  for (size_t i = 0; i < ids.size(); ++i) {
    const Shape& shape = program.type_of(ids[i]).shape;
    // What a text claims about a size that depends on data can only be checked here.
    const bool fits = results[i].rank() == shape.rank();
    user_check(fits, ErrorKind::InvalidArgument, "{} of type {} is {} at run time.",
               program.label(ids[i]), program.type_of(ids[i]).str(), results[i].describe());
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const Dim d = shape[axis], given = results[i].dims()[axis];
      if (is_symbol(d) && !values.has(d))
        values.set(d, given);
      else
        user_check(same(values.evaluate(d), given), ErrorKind::InvalidArgument,
                   "{} of type {} is {} at run time.", program.label(ids[i]),
                   program.type_of(ids[i]).str(), results[i].describe());
    }
  }
  check_assumptions(program, values, &before);
}

}  // namespace oar
