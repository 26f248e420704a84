#include "oar/ir/verify.h"

#include <algorithm>

#include "oar/base/string_util.h"
#include "oar/ir/print.h"
#include "oar/ir/region.h"
#include "oar/ops/core/run.h"

namespace oar {
namespace {

bool tag_fits(const Parameter& p, const Value& v) {
  if (v.is_none()) return p.optional;
  if (p.list) {
    if (p.type == ArgType::Program) return v.tag == kProgramsTag;
    if (p.type == ArgType::Float) return v.tag == OAR_TAG_DOUBLES;
    return v.tag == OAR_TAG_INTS;
  }
  switch (p.type) {
    case ArgType::Tensor:
      return false;
    case ArgType::Bool:
      return v.tag == OAR_TAG_BOOL;
    case ArgType::Int:
      return v.tag == OAR_TAG_INT;
    case ArgType::Float:
      return v.tag == OAR_TAG_DOUBLE;
    case ArgType::Scalar:
      return v.tag == OAR_TAG_BOOL || v.tag == OAR_TAG_INT || v.tag == OAR_TAG_DOUBLE ||
             v.tag == OAR_TAG_COMPLEX;
    case ArgType::String:
      return v.tag == OAR_TAG_STRING;
    case ArgType::DType:
      return v.tag == OAR_TAG_DTYPE;
    case ArgType::Shape:
      return v.tag == OAR_TAG_INTS;
    case ArgType::Program:
      return v.tag == kProgramTag;
  }
  return false;
}

std::string listed(Args args) {
  std::vector<std::string> operands;
  for_each_tensor(args, [&](const Tensor& t) { operands.push_back(t.describe()); });
  return join(operands, " and ");
}

class Verifier {
 public:
  explicit Verifier(const Program& program)
      : program_(program), defined_(program.values.size(), false) {}
  // A region; `sizes` are the symbols of the outer program.
  Verifier(const Program& region, std::vector<Dim> sizes) : Verifier(region) {
    sizes_ = std::move(sizes);
    is_region_ = true;
  }

  // A region without its outer program: every size that it names counts as known.
  void know_all_sizes() {
    is_region_ = true;
    for (const ProgramValue& v : program_.values) learn_sizes(v.type.shape);
    for (const Instruction& call : program_.body.instructions)
      if (call.op && call.attributes.size() == call.op->schema().parameters.size())
        for_each_size(*call.op, call.attributes.args(), [&](Dim d) { learn_sizes(Shape{d}); });
  }
  // The instructions that problems are about.
  const std::vector<const Instruction*>& wrong() const { return wrong_; }

  std::vector<std::string> run() {
    for (ValueId id : program_.inputs) {
      define(id, "input");
      if (exists(id)) learn_sizes(program_.type_of(id).shape);
    }
    for (const State& s : program_.states) check_outside(s.value, s.tensor, "state");
    for (const Constant& c : program_.constants) check_outside(c.value, c.tensor, "constant");
    for (const Instruction& instruction : program_.body.instructions) {
      const size_t before = problems_.size();
      check(instruction);
      if (problems_.size() > before) wrong_.push_back(&instruction);
    }
    for (ValueId id : program_.outputs) use(id, "the outputs");
    for (const State& s : program_.states) check_written(s);
    check_symbols();
    return std::move(problems_);
  }

 private:
  template <class... A>
  void problem(fmt::format_string<A...> text, A&&... args) {
    problems_.push_back(oar::format(text, std::forward<A>(args)...));
  }
  bool exists(ValueId id) const {
    return id >= 0 && static_cast<size_t>(id) < program_.values.size();
  }
  void define(ValueId id, std::string_view where) {
    if (!exists(id)) return problem("{}: value {} does not exist", where, id);
    if (defined_[static_cast<size_t>(id)])
      problem("{}: {} is defined twice", where, program_.label(id));
    defined_[static_cast<size_t>(id)] = true;
    const ValueType& type = program_.type_of(id);
    if (!type.placement) return;
    if (const std::string wrong = type.placement->problem(type.shape.rank()); !wrong.empty())
      problem("{}: {} is placed {}: {}", where, program_.label(id), type.placement->str(), wrong);
  }
  bool use(ValueId id, std::string_view where) {
    if (!exists(id)) {
      problem("{}: value {} does not exist", where, id);
      return false;
    }
    if (!defined_[static_cast<size_t>(id)]) {
      problem("{}: {} is used before it is defined", where, program_.label(id));
      return false;
    }
    return true;
  }

  // Symbols whose values a run knows by now.
  void learn_sizes(const Shape& shape) {
    for (Dim d : shape)
      for (Dim s : d.symbols())
        if (!knows(s)) sizes_.push_back(s);
  }
  bool knows(Dim symbol) const {
    return std::find(sizes_.begin(), sizes_.end(), symbol) != sizes_.end();
  }
  void check_sizes(Dims dims, const std::string& where);
  void check_sizes(const Op& op, Args attributes, const std::string& where);

  void check_outside(ValueId id, const Tensor& t, std::string_view what);
  void check_written(const State& state);
  void check_symbols();
  void check(const Instruction& instruction);
  bool check_operands(const Instruction& instruction, const std::string& where);
  bool check_regions(const Instruction& instruction, const std::string& where);
  bool check_operand(const Instruction& instruction, size_t i, const std::string& where);
  void check_types(const Instruction& instruction, const std::string& where);
  Frame meta_arguments(const Instruction& instruction) const;
  bool is_assumed(const DimAssumption& a) const;

  const Program& program_;
  std::vector<bool> defined_;
  std::vector<Dim> sizes_;
  bool is_region_ = false;
  std::vector<std::string> problems_;
  std::vector<const Instruction*> wrong_;
};

void Verifier::check_outside(ValueId id, const Tensor& t, std::string_view what) {
  define(id, what);
  if (!exists(id)) return;
  if (!t.defined()) return problem("{} {} has no tensor", what, program_.label(id));
  const ValueType& type = program_.type_of(id);
  if (t.dtype() != type.dtype || !(t.shape() == type.shape))
    problem("{} {} is {} but its tensor is {}", what, program_.label(id), type.str(), t.describe());
}

void Verifier::check_written(const State& state) {
  if (state.written == kNoValue || !exists(state.value)) return;
  const std::string where = "write " + program_.label(state.value);
  if (!use(state.written, where)) return;
  if (!(program_.type_of(state.written) == program_.type_of(state.value)))
    problem("{}: {} does not fit {}", where, program_.type_of(state.written).str(),
            program_.type_of(state.value).str());
}

// When the outer program of a region is complete, all sizes have different names.
void Verifier::check_symbols() {
  if (is_region_) return;
  std::vector<std::string> names;
  for (Dim symbol : program_.symbols) {
    if (std::find(names.begin(), names.end(), symbol.str()) != names.end())
      problem("two sizes are called {}", symbol.str());
    names.push_back(symbol.str());
  }
}

void Verifier::check_sizes(Dims dims, const std::string& where) {
  for (Dim d : dims)
    for (Dim s : d.symbols())
      if (!knows(s)) problem("{}: no input determines the size {}", where, s.str());
}

void Verifier::check_sizes(const Op& op, Args attributes, const std::string& where) {
  for (size_t i = 0; i < attributes.size(); ++i) {
    const Value& v = attributes[i];
    if (v.tag == OAR_TAG_INTS) check_sizes(v.as_dim_list(), where);
    if (!can_be_size(op.schema().parameters[i], v)) continue;
    const Dim number = Dim::from_word(v.integer);
    check_sizes(Dims(&number, 1), where);
  }
}

void Verifier::check(const Instruction& instruction) {
  if (!instruction.op) return problem("an instruction has no op");
  std::string where = instruction.op->name();
  if (!instruction.results.empty()) where = program_.label(instruction.results[0]) + " = " + where;
  if (check_operands(instruction, where)) check_types(instruction, where);
  for (ValueId id : instruction.results) define(id, where);
}

bool Verifier::check_operands(const Instruction& instruction, const std::string& where) {
  const Op& op = *instruction.op;
  bool sound = true;
  for (const Parameter& p : op.schema().parameters)
    if (p.written && !is_update(op)) {
      problem("{}: writes its argument {}, which no instruction may", where, p.name);
      sound = false;
    }
  const size_t count = op.schema().parameters.size();
  if (instruction.operands.size() != count || instruction.attributes.size() != count) {
    problem("{}: {} operands and {} attributes for {} parameters", where,
            instruction.operands.size(), instruction.attributes.size(), count);
    return false;
  }
  for (size_t i = 0; i < count; ++i) sound &= check_operand(instruction, i, where);
  if (sound) sound = check_regions(instruction, where);
  return sound;
}

bool Verifier::check_regions(const Instruction& instruction, const std::string& where) {
  bool sound = true;
  for_each_program(instruction.attributes.args(), [&](const Closure& c) {
    const Program& inner = program_of(c);
    for (std::string& text : Verifier(inner, sizes_).run()) {
      problem("{}: in {}: {}", where, inner.name, text);
      sound = false;
    }
  });
  return sound;
}

bool Verifier::check_operand(const Instruction& instruction, size_t i, const std::string& where) {
  const Parameter& p = instruction.op->schema().parameters[i];
  const Operand& operand = instruction.operands[i];
  const Operand::Kind wanted = !p.is_tensor() ? Operand::Attribute
                               : p.list       ? Operand::List
                                              : Operand::One;
  if (operand.kind != wanted) {
    problem("{}: argument {} is not a {}", where, p.name, p.type_text());
    return false;
  }
  if (wanted == Operand::Attribute) {
    if (tag_fits(p, instruction.attributes[i])) return true;
    problem("{}: attribute {} is {}, not a {}", where, p.name, instruction.attributes[i].str(),
            p.type_text());
    return false;
  }
  bool sound = true;
  if (wanted == Operand::One && operand.ids.size() != 1) {
    problem("{}: argument {} holds {} values", where, p.name, operand.ids.size());
    return false;
  }
  for (ValueId id : operand.ids) {
    if (id == kNoValue && (p.optional || p.optional_elements)) continue;
    sound &= use(id, where);
  }
  return sound;
}

Frame Verifier::meta_arguments(const Instruction& instruction) const {
  return with_operands(instruction.attributes.clone(), instruction, [&](size_t, ValueId id) {
    const ValueType& type = program_.type_of(id);
    return Tensor::meta(type.shape, type.dtype, type.device);
  });
}

bool Verifier::is_assumed(const DimAssumption& a) const {
  for (const DimAssumption& b : program_.assumptions)
    if (a.kind == b.kind && a.left == b.left && a.right == b.right) return true;
  return false;
}

void Verifier::check_types(const Instruction& instruction, const std::string& where) {
  check_sizes(*instruction.op, instruction.attributes.args(), where);
  const Frame frame = meta_arguments(instruction);
  Metas metas;
  const DimAssumptions assumptions;
  try {
    // Inference alone: no layer of an active capture may see this call.
    const LayersOff off(kDispatchMask);
    Frame other;
    if (prepare(*instruction.op, frame.args(), other))
      return problem("{}: the operands {} differ in shape or dtype from what the op computes with",
                     where, listed(frame.args()));
    metas = infer_types(*instruction.op, frame.args());
  } catch (const Error& error) {
    return problem("{}: inference fails: {}", where, error.what());
  }
  for (const DimAssumption& a : assumptions.learnt())
    if (!is_assumed(a)) problem("{}: needs the assumption {}", where, to_string(a));
  if (is_update(*instruction.op)) {
    metas.clear();
    for_each_updated(instruction, [&](ValueId id) {
      metas.push_back({program_.type_of(id).dtype, program_.type_of(id).shape, false});
    });
  }
  if (metas.size() != instruction.results.size())
    return problem("{}: has {} results, not {}", where, metas.size(), instruction.results.size());
  for (size_t i = 0; i < metas.size(); ++i) {
    if (!exists(instruction.results[i])) continue;
    const ValueType& type = program_.type_of(instruction.results[i]);
    if (metas[i].data_dependent)
      learn_sizes(type.shape);
    else
      check_sizes(type.shape, where);
    const bool same_shape = metas[i].data_dependent ? metas[i].shape.size() == type.shape.size()
                                                    : metas[i].shape == type.shape;
    if (metas[i].dtype != type.dtype || !same_shape)
      problem("{}: result {} is {}{} by inference, but {} is written", where, i,
              name_of(metas[i].dtype), metas[i].shape.str(), type.str());
  }
}

}  // namespace

std::vector<std::string> verify(const Program& program) { return Verifier(program).run(); }

namespace {
// Can the instruction be printed?
bool is_whole(const Program& program, const Instruction& call) {
  const auto exists = [&](ValueId id) {
    return id == kNoValue || (id >= 0 && static_cast<size_t>(id) < program.values.size());
  };
  bool whole = call.op && std::all_of(call.results.begin(), call.results.end(), exists) &&
               call.attributes.size() == call.op->schema().parameters.size();
  for (const Operand& operand : call.operands)
    whole &= std::all_of(operand.ids.begin(), operand.ids.end(), exists);
  return whole;
}
}  // namespace

void check_verified(const Program& program, ErrorKind kind, const std::string& what,
                    ProgramKind is) {
  Verifier verifier(program);
  if (is == ProgramKind::Region) verifier.know_all_sizes();
  const std::vector<std::string> problems = verifier.run();
  if (problems.empty()) return;
  std::string text = join(problems, "\n");
  for (const Instruction* call : verifier.wrong())
    if (is_whole(program, *call)) text += "\n  " + to_text(program, *call);
  fail(kind, "{} is not well formed:\n{}", what, text);
}

}  // namespace oar
