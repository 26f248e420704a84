#include "oar/ir/program.h"

#include <algorithm>

#include "oar/ir/bind.h"
#include "oar/ir/region.h"

namespace oar {

std::string ValueType::str() const {
  const std::string text = format("{}{}", name_of(dtype), shape.str());
  return placement ? text + " " + placement->str() : text;
}

Instruction::Instruction(const Instruction& other)
    : op(other.op),
      operands(other.operands),
      attributes(other.attributes.clone()),
      results(other.results),
      location(other.location),
      layer(other.layer),
      called(other.called) {}

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

void Program::renumber() {
  std::vector<ProgramValue> ordered;
  std::vector<ValueId> fresh(values.size(), kNoValue);
  const auto define = [&](ValueId& id) {
    fresh[static_cast<size_t>(id)] = static_cast<ValueId>(ordered.size());
    ordered.push_back(std::move(values[static_cast<size_t>(id)]));
    id = fresh[static_cast<size_t>(id)];
  };
  const auto follow = [&](ValueId& id) {
    if (id != kNoValue) id = fresh[static_cast<size_t>(id)];
  };
  for (ValueId& id : inputs) define(id);
  for (State& s : states) define(s.value);
  for (Constant& c : constants) define(c.value);
  for (Instruction& instruction : body.instructions) {
    for (Operand& operand : instruction.operands)
      for (ValueId& id : operand.ids) follow(id);
    for (ValueId& id : instruction.results) define(id);
  }
  for (ValueId& id : outputs) follow(id);
  for (State& s : states) follow(s.written);
  values = std::move(ordered);
}

namespace {

// Every dimension of the program: of types, attributes and assumptions.
template <class F>
void replace_program_dims(Program& program, F&& replaced) {
  for (ProgramValue& v : program.values)
    for (Dim& d : v.type.shape) d = replaced(d);
  for (Instruction& instruction : program.body.instructions)
    if (has_symbolic_attributes(*instruction.op, instruction.attributes.args()))
      instruction.attributes =
          replace_dims(*instruction.op, instruction.attributes.args(), replaced);
  for (DimAssumption& a : program.assumptions) {
    a.left = replaced(a.left);
    a.right = replaced(a.right);
  }
}

template <class F>
void for_each_dim(const Program& program, F&& body) {
  for (const ProgramValue& v : program.values)
    for (Dim d : v.type.shape) body(d);
  for (const Instruction& instruction : program.body.instructions)
    for_each_size(*instruction.op, instruction.attributes.args(), body);
  for (const DimAssumption& a : program.assumptions) {
    body(a.left);
    body(a.right);
  }
}

}  // namespace

void Program::gather_symbols() {
  symbols.clear();
  for_each_dim(*this, [&](Dim d) {
    if (d.is_known()) return;
    for (Dim symbol : d.symbols())
      if (std::find(symbols.begin(), symbols.end(), symbol) == symbols.end())
        symbols.push_back(symbol);
  });
}

void Program::collect_symbols() {
  gather_symbols();
  std::vector<std::string> names;
  std::vector<std::pair<Dim, Dim>> renamed;
  for (Dim& symbol : symbols) {
    std::string name = symbol.str();
    for (int i = 2; std::find(names.begin(), names.end(), name) != names.end(); ++i)
      name = format("{}_{}", symbol.str(), i);
    if (name != symbol.str()) {
      const Dim other = Dim::symbol(name, symbol.hint(), least_value_of(symbol));
      renamed.emplace_back(std::exchange(symbol, other), other);
    }
    names.push_back(std::move(name));
  }
  if (!renamed.empty()) replace_program_dims(*this, [&](Dim d) { return d.substitute(renamed); });
  std::sort(symbols.begin(), symbols.end(), [](Dim a, Dim b) { return a.str() < b.str(); });
}

Program specialised(const Program& program, const std::function<Dim(Dim)>& size_of_dim) {
  Program copy = program;
  copy.symbols.clear();
  copy.assumptions.clear();
  replace_program_dims(copy, size_of_dim);
  return copy;
}

Program with_sizes(const Program& program, const std::function<Dim(Dim)>& size_of_dim) {
  Program copy = program;
  replace_program_dims(copy, size_of_dim);
  std::erase_if(copy.assumptions,
                [](const DimAssumption& a) { return a.left.is_known() && a.right.is_known(); });
  copy.gather_symbols();
  return copy;
}

bool writes_arguments(const Op& op) {
  const std::vector<Parameter>& parameters = op.schema().parameters;
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Parameter& p) { return p.written; });
}

bool is_update(const Op& op) {
  const std::vector<Result>& results = op.schema().results;
  return writes_arguments(op) && !op.inplace_of() && op.has(Trait::NoGrad) && op.def().infer &&
         std::all_of(results.begin(), results.end(), [](const Result& r) { return r.written; });
}

Outputs written_arguments(const Op& op, Args args) {
  Outputs written;
  for (size_t i = 0; i < args.size(); ++i)
    if (op.schema().parameters[i].written)
      for_each_tensor(args.subspan(i, 1), [&](const Tensor& t) { written.push_back(t); });
  return written;
}

void for_each_size(const Op& op, Args attributes, const std::function<void(Dim)>& body) {
  for (size_t i = 0; i < attributes.size(); ++i) {
    const Value& v = attributes[i];
    if (can_be_size(op.schema().parameters[i], v)) body(Dim::from_word(v.integer));
    if (v.tag == OAR_TAG_INTS)
      for (Dim d : v.as_dim_list()) body(d);
    for_each_program(Args(&v, 1), [&](const Closure& c) {
      for (Dim symbol : program_of(c).symbols) body(symbol);
    });
  }
}

bool has_symbolic_attributes(const Op& op, Args attributes) {
  bool open = false;
  for_each_size(op, attributes, [&](Dim d) { open |= d.is_symbolic(); });
  return open;
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
