#include "oar/ir/parse.h"

#include <charconv>
#include <cmath>

#include "oar/base/string_util.h"
#include "oar/ir/region.h"
#include "oar/ir/text_reader.h"
#include "oar/ir/upgrade.h"
#include "oar/ir/verify.h"
#include "oar/ops/core/deployed.h"
#include "oar/ops/gen/creation.h"
#include "oar/tensor/byte_count.h"

namespace oar {
namespace {

// The most bytes of zeros for a state: the text may come from anyone.
constexpr int64_t kLargestState = int64_t{256} << 20;

// Nesting of regions: recursion must end, and passes take twice as long for each level.
constexpr int kDeepestRegion = 10;

using Symbols = std::unordered_map<std::string, Dim>;

class ProgramParser {
 public:
  // `depth`: how many programs enclose this one.
  ProgramParser(TextReader& in, Symbols& symbols, const ParseOptions& options, int depth = 0)
      : in_(in), symbols_(symbols), options_(options), depth_(depth) {}

  Program run() {
    header();
    in_.expect("{");
    while (!in_.accept("}")) statement();
    for (const std::string& label : outputs_) program_.outputs.push_back(defined(label));
    if (depth_ == 0)
      program_.collect_symbols();
    else
      program_.gather_symbols();
    return std::move(program_);
  }

 private:
  void header();
  void sizes();
  void statement();
  void assumption();
  void constant();
  void write();
  void instruction();
  void argument(Instruction& made, size_t parameter);
  void operand(Operand& place, const Parameter& p);
  void attribute(Instruction& made, size_t i);
  ClosurePtr region();
  void scalar(Frame& attributes, size_t i);
  std::pair<ValueId, std::string> typed_value();
  ValueType type();
  Placement placement(int rank);
  ValueId define(const std::string& label, ValueType type);
  ValueId defined(const std::string& label);
  const Op& op_called(const std::string& name, std::vector<const Upgrade*>& upgrades);
  void add_arguments(Instruction& made, const std::vector<const Upgrade*>& upgrades,
                     std::vector<bool>& given);
  Tensor constant_tensor(const std::string& name, const ValueType& type);
  Tensor state_tensor(const std::string& name, const ValueType& type);
  double real(std::string_view unit = {});
  std::complex<double> complex_number();
  bool truth();

  template <class F>
  void list(std::string_view open, std::string_view close, F&& item) {
    in_.expect(open);
    if (in_.accept(close)) return;
    do item();
    while (in_.accept(","));
    in_.expect(close);
  }

  TextReader& in_;
  Symbols& symbols_;  // those of a region belong to the outer program
  const ParseOptions& options_;
  const int depth_;
  Program program_;
  std::unordered_map<std::string, ValueId> ids_;
  std::vector<std::string> outputs_;
};

// ---- values and types --------------------------------------------------------------------------

std::string without_quote(const std::string& label) {
  return label.starts_with('"') ? label.substr(1) : label;
}

ValueId ProgramParser::define(const std::string& label, ValueType type) {
  if (ids_.contains(label)) in_.fail_here(format("%{} is defined twice", label));
  const bool numbered = std::isdigit(static_cast<unsigned char>(label[0])) != 0;
  const ValueId id = program_.add_value(std::move(type), numbered ? "" : without_quote(label));
  ids_.emplace(label, id);
  return id;
}

ValueId ProgramParser::defined(const std::string& label) {
  const auto it = ids_.find(label);
  if (it == ids_.end()) in_.fail_here(format("%{} is used before it is defined", label));
  return it->second;
}

ValueType ProgramParser::type() {
  ValueType type;
  const std::string name = in_.name();
  const std::optional<DType> dtype = dtype_from_name(name);
  if (!dtype) in_.fail_here(format("'{}' is not a dtype", name));
  type.dtype = *dtype;
  list("[", "]", [&] { type.shape.push_back(in_.dim(symbols_)); });
  for (Dim d : type.shape)
    if (d.is_known() && d.word() < 0) in_.fail_here(format("the size {} is negative", d.word()));
  if (in_.at_word("on"))
    type.placement = std::make_shared<const Placement>(placement(type.shape.rank()));
  return type;
}

Placement ProgramParser::placement(int rank) {
  in_.expect("on");
  Placement made;
  made.mesh = in_.name();
  list("(", ")", [&] {
    MeshAxisPlacement& a = made.axes.emplace_back();
    a.mesh_axis = in_.name();
    in_.expect(":");
    if (in_.accept("replicate")) return;
    if (in_.accept("shard")) {
      a.kind = MeshAxisPlacement::Shard;
      const int64_t axis = in_.integer();
      a.axis = axis < 0 || axis >= rank ? -1 : static_cast<int32_t>(axis);
      return;
    }
    in_.expect("partial");
    a.kind = MeshAxisPlacement::Partial;
    const std::string how = in_.name();
    if (const std::optional<PartialBy> by = partial_named(how)) return void(a.by = *by);
    in_.fail_here(
        format("partial results are joined by sum, max, min, mean or prod, not by '{}'", how));
  });
  if (const std::string wrong = made.problem(rank); !wrong.empty()) in_.fail_here(wrong);
  return made;
}

std::pair<ValueId, std::string> ProgramParser::typed_value() {
  const std::string label = in_.label();
  in_.expect(":");
  return {define(label, type()), label};
}

double ProgramParser::real(std::string_view unit) {
  std::string word = in_.number_word();
  if (!word.ends_with(unit)) in_.fail_here(format("'{}' does not end in {}", word, unit));
  word.resize(word.size() - unit.size());
  double value = 0;
  const auto [after, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc::result_out_of_range) in_.fail_here(format("{} is too large", word));
  if (error != std::errc{} || after != word.data() + word.size())
    in_.fail_here(format("'{}' is not a number", word));
  return value;
}

// (1.0, 2.0j)
std::complex<double> ProgramParser::complex_number() {
  in_.expect("(");
  const double re = real();
  in_.expect(",");
  const double im = real("j");
  in_.expect(")");
  return {re, im};
}

bool ProgramParser::truth() {
  if (in_.accept("True")) return true;
  in_.expect("False");
  return false;
}

// ---- header ------------------------------------------------------------------------------------

// B ~ 4 >= 1: a size that runs determine, its value at capture, and its lower bound.
void ProgramParser::sizes() {
  const std::string name = in_.name();
  in_.expect("~");
  const int64_t hint = in_.integer();
  const int64_t least = in_.accept(">=") ? in_.integer() : 0;
  if (!symbols_.emplace(name, Dim::symbol(name, hint, least)).second)
    in_.fail_here(format("the size {} is declared twice", name));
}

void ProgramParser::header() {
  in_.expect("program");
  program_.name = in_.any_name();
  if (depth_ == 0 && in_.peek() == '<') list("<", ">", [&] { sizes(); });
  list("(", ")", [&] {
    const bool state = in_.accept("state");
    const auto [id, label] = typed_value();
    if (!state) return program_.inputs.push_back(id);
    if (depth_ > 0) in_.fail_here(format("the region {} has a state, %{}", program_.name, label));
    if (!program_.type_of(id).shape.is_known())
      in_.fail_here(format("the state %{} has an open size", label));
    program_.states.push_back(
        {id, state_tensor(without_quote(label), program_.type_of(id)), kNoValue});
  });
  in_.expect("->");
  list("(", ")", [&] {
    outputs_.push_back(in_.label());
    if (in_.accept(":")) type();
  });
}

Tensor ProgramParser::state_tensor(const std::string& name, const ValueType& type) {
  if (options_.tensor) return options_.tensor(name, type);
  if (bytes_of(type.shape, type.dtype).value() > kLargestState)
    in_.fail_here(
        format("the state %{} of type {} is too large to be created here", name, type.str()));
  return zeros(type.shape, type.dtype);
}

// ---- body --------------------------------------------------------------------------------------

void ProgramParser::statement() {
  if (in_.accept("assume"))
    assumption();
  else if (in_.accept("const"))
    constant();
  else if (in_.accept("write"))
    write();
  else
    instruction();
}

void ProgramParser::assumption() {
  const Dim left = in_.dim(symbols_);
  DimAssumption::Kind kind;
  if (in_.accept("=="))
    kind = DimAssumption::Equal;
  else if (in_.accept("!="))
    kind = DimAssumption::NotEqual;
  else if (in_.accept(">="))
    kind = DimAssumption::NotLess;
  else if (in_.accept("<"))
    kind = DimAssumption::Less;
  else
    in_.expected("one of ==, !=, <, >=");
  program_.assumptions.push_back({kind, left, in_.dim(symbols_)});
}

void ProgramParser::constant() {
  const auto [id, label] = typed_value();
  program_.constants.push_back({id, constant_tensor(without_quote(label), program_.type_of(id))});
}

// One number for one element, a list for several, in row-major order.
Tensor ProgramParser::constant_tensor(const std::string& name, const ValueType& type) {
  if (!type.shape.is_known()) in_.fail_here(format("the constant %{} has an open size", name));
  if (!in_.accept("=")) {
    if (options_.tensor) return options_.tensor(name, type);
    in_.fail_here(format("the values of %{} are not given", name));
  }
  std::vector<std::complex<double>> numbers;
  std::vector<int64_t> integers;
  const bool exact =
      !is_floating(type.dtype) && !is_complex(type.dtype) && type.dtype != DType::Float4E2M1FN;
  const auto item = [&] {
    if (exact)
      integers.push_back(in_.number());
    else
      numbers.push_back(is_complex(type.dtype) ? complex_number() : real());
  };
  if (in_.peek() == '[')
    list("[", "]", item);
  else
    item();
  bytes_of(type.shape, type.dtype);  // rejects what cannot be addressed
  const int64_t wanted = type.shape.numel().value();
  const auto given = static_cast<int64_t>(exact ? integers.size() : numbers.size());
  if (given != wanted) in_.fail_here(format("{} values are given for {}", given, type.str()));
  return exact ? Tensor::from_vector(integers, type.shape, type.dtype)
               : Tensor::from_vector(numbers, type.shape, type.dtype);
}

void ProgramParser::write() {
  const std::string label = in_.label();
  const ValueId target = defined(label);
  in_.expect("=");
  for (State& s : program_.states)
    if (s.value == target) {
      if (s.written != kNoValue) in_.fail_here(format("%{} is written twice", label));
      s.written = defined(in_.label());
      return;
    }
  in_.fail_here(format("%{} is not a state", label));
}

const Op& ProgramParser::op_called(const std::string& name, std::vector<const Upgrade*>& upgrades) {
  const Op* op = Registry::get().find(name);
  if (!op)
    in_.fail_here(format(
        "there is no op '{}'{}", name,
        kDeployed ? " in this library. See OAR_DEPLOY_WITH for families that are left out" : ""));
  const int64_t version = in_.accept("@") ? in_.integer() : 1, present = op->schema().version;
  if (version < present) upgrades = upgrades_of(name, version, present);
  if (version + static_cast<int64_t>(upgrades.size()) != present)
    in_.fail_here(format("{} is at version {}, not {}{}", name, present, version,
                         version > present ? ": a newer Oar wrote the program" : ""));
  return *op;
}

// What an older text cannot say: arguments that make the call do what it did then.
void ProgramParser::add_arguments(Instruction& made, const std::vector<const Upgrade*>& upgrades,
                                  std::vector<bool>& given) {
  for (size_t step = 0; step < upgrades.size(); ++step)
    for (const auto& [name, text] : upgrades[step]->added) {
      const int index = made.op->schema().index_of(renamed_by(upgrades, step + 1, name));
      if (index < 0 || given[static_cast<size_t>(index)]) continue;
      given[static_cast<size_t>(index)] = true;
      const TextReader after = in_;
      in_ = TextReader(text);
      argument(made, static_cast<size_t>(index));
      in_ = after;
    }
}

void ProgramParser::instruction() {
  std::vector<std::string> labels;
  do labels.push_back(in_.label());
  while (in_.accept(","));
  in_.expect("=");
  Instruction made;
  std::vector<const Upgrade*> upgrades;
  made.op = &op_called(in_.name(), upgrades);
  const std::vector<Parameter>& parameters = made.op->schema().parameters;
  for (const Parameter& p : parameters) {
    made.attributes.push(Value());
    made.operands.emplace_back().kind = !p.is_tensor() ? Operand::Attribute
                                        : p.list       ? Operand::List
                                                       : Operand::One;
  }
  size_t next = 0;  // tensors are in the schema's order
  std::vector<bool> given(parameters.size(), false);
  list("(", ")", [&] {
    size_t i = 0;
    if (in_.peek() == '%' || in_.peek() == '[' || in_.at_word("None")) {
      while (next < parameters.size() && !parameters[next].is_tensor()) ++next;
      i = next++;
      if (i >= parameters.size()) in_.fail_here(format("{} takes fewer tensors", made.op->name()));
    } else {
      const std::string name = renamed_by(upgrades, 0, in_.name());
      in_.expect("=");
      const int index = made.op->schema().index_of(name);
      if (index < 0) in_.fail_here(format("{} has no argument '{}'", made.op->name(), name));
      i = static_cast<size_t>(index);
    }
    if (given[i]) in_.fail_here(format("the argument {} is given twice", parameters[i].name));
    given[i] = true;
    argument(made, i);
  });
  add_arguments(made, upgrades, given);
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (given[i]) continue;
    if (!parameters[i].has_default && !parameters[i].optional)
      in_.fail_here(
          format("the argument {} of {} is missing", parameters[i].name, made.op->name()));
    if (parameters[i].is_tensor() && !parameters[i].list)
      made.operands[i].ids.push_back(kNoValue);
    else if (!parameters[i].is_tensor())
      made.attributes.set(i, made.op->schema().defaults()[i]);
  }
  in_.expect(":");
  size_t k = 0;
  do {
    if (k == labels.size()) in_.fail_here("there are more types than results");
    made.results.push_back(define(labels[k++], type()));
  } while (in_.accept(","));
  if (k != labels.size()) in_.fail_here("there are fewer types than results");
  made.location = in_.comment();
  program_.body.instructions.push_back(std::move(made));
}

void ProgramParser::argument(Instruction& made, size_t i) {
  const Parameter& p = made.op->schema().parameters[i];
  if (p.is_tensor())
    operand(made.operands[i], p);
  else
    attribute(made, i);
}

void ProgramParser::operand(Operand& place, const Parameter& p) {
  const auto one = [&] {
    place.ids.push_back(in_.accept("None") ? kNoValue : defined(in_.label()));
  };
  if (p.list)
    list("[", "]", one);
  else
    one();
}

void ProgramParser::scalar(Frame& attributes, size_t i) {
  if (in_.at_word("True") || in_.at_word("False")) return attributes.set(i, Value(truth()));
  if (in_.peek() == '(') {
    const Scalar value(complex_number());
    return attributes.set(i, Value(value));
  }
  TextReader ahead = in_;
  const std::string word = ahead.number_word();
  if (word.find_first_of(".einf") == std::string::npos) {
    const Scalar value(in_.number());
    return attributes.set(i, Value(value));
  }
  const Scalar value(real());
  attributes.set(i, Value(value));
}

ClosurePtr ProgramParser::region() {
  if (depth_ == kDeepestRegion) in_.fail_here("the regions are nested too deeply");
  return make_intrusive<const Region>(ProgramParser(in_, symbols_, options_, depth_ + 1).run());
}

void ProgramParser::attribute(Instruction& made, size_t i) {
  const Parameter& p = made.op->schema().parameters[i];
  if (in_.accept("None")) return;
  Frame& to = made.attributes;
  if (p.type == ArgType::Program) {
    std::vector<ClosurePtr> regions;
    if (!p.list) {
      regions.push_back(region());
      return to.set(i, program_value(regions[0]));
    }
    list("[", "]", [&] { regions.push_back(region()); });
    return to.set(i, program_value(ClosureList(regions)));
  }
  if (p.list || p.type == ArgType::Shape) {
    if (p.type == ArgType::Float) {
      std::vector<double> values;
      list("[", "]", [&] { values.push_back(real()); });
      return to.set(i, Value(std::span<const double>(values)));
    }
    std::vector<Dim> words;
    list("[", "]", [&] { words.push_back(in_.dim(symbols_)); });
    return to.set(i, Value(Dims(words)));
  }
  switch (p.type) {
    case ArgType::Bool:
      return to.set(i, Value(truth()));
    case ArgType::Int:
      return to.set(i, Value(in_.dim(symbols_).word()));
    case ArgType::Float:
      return to.set(i, Value(real()));
    case ArgType::Scalar:
      return scalar(to, i);
    case ArgType::String: {
      const std::string text = in_.string();
      return to.set(i, Value(std::string_view(text)));
    }
    case ArgType::DType: {
      const std::string name = in_.name();
      const std::optional<DType> dtype = dtype_from_name(name);
      if (!dtype) in_.fail_here(format("'{}' is not a dtype", name));
      return to.set(i, Value(*dtype));
    }
    default:
      in_.expected("an attribute");
  }
}

}  // namespace

Program parse_program(std::string_view text, const ParseOptions& options) {
  TextReader reader(text);
  Symbols symbols;
  Program program = ProgramParser(reader, symbols, options).run();
  if (!reader.at_end()) reader.expected("the end");
  check_verified(program, ErrorKind::InvalidArgument, "the program " + program.name);
  return program;
}

}  // namespace oar
