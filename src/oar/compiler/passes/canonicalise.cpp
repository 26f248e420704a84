// Removes calls that change nothing, and merges chains that one call can do. The rules are in the records of the ops
// (`canonical`); this pass runs them.
#include "oar/compiler/passes/context.h"
#include "oar/compiler/passes/pass.h"

namespace oar {
namespace {

// A call as its op's rule sees it.
class Call final : public CanonicalCall {
 public:
  Call(const Program& program, PassContext& context, Instruction& call)
      : program_(program), context_(context), call_(call) {}

  GraphValue result() const override { return call_.results[0]; }
  const Op* op_of(GraphValue value) const override {
    const Instruction* maker = context_.makers()(value);
    return maker ? maker->op : nullptr;
  }
  std::span<const GraphValue> operands_of(GraphValue value,
                                          std::string_view parameter) const override {
    const Instruction& maker = *context_.makers()(value);
    const int i = maker.op->schema().index_of(parameter);
    const auto& ids = maker.operands[static_cast<size_t>(i)].ids;
    return {ids.data(), ids.size()};
  }
  Value attribute_of(GraphValue value, std::string_view parameter) const override {
    return oar::attribute(*context_.makers()(value), parameter);
  }
  Dims shape(GraphValue value) const override { return program_.type_of(value).shape; }
  bool same_type(GraphValue a, GraphValue b) const override {
    return program_.type_of(a) == program_.type_of(b);
  }
  std::optional<double> number(GraphValue value) const override { return context_.number(value); }
  bool is_returned(GraphValue value) const override { return context_.uses().is_returned(value); }

  void replace_by(GraphValue value) const override { same_ = value; }
  void set_operand(std::string_view parameter, GraphValue value) const override {
    oar::set_operand(call_, parameter, value);
    changed_ = true;
  }
  void set_attribute(std::string_view parameter, const Value& value) const override {
    oar::set_attribute(call_, parameter, value);
    changed_ = true;
  }

  ValueId same() const { return same_; }
  bool changed() const { return changed_; }

 private:
  const Program& program_;
  PassContext& context_;
  Instruction& call_;
  mutable ValueId same_ = kNoValue;
  mutable bool changed_ = false;
};

}  // namespace

bool canonicalise(Program& program, PassContext& context) {
  Aliases aliases(program);
  bool changed = false;
  for (Instruction& instruction : program.body.instructions) {
    aliases.apply(instruction);
    const CanonicalRule& rule = instruction.op->def().canonical;
    if (!rule) continue;
    const Call call(program, context, instruction);
    rule(call);
    changed |= call.changed();
    const ValueId result = instruction.results[0];
    if (call.same() == kNoValue || call.same() == result) continue;
    // A result of the program stays a separate tensor, unless eager mode would return a view too.
    if (context.uses().is_returned(result) && !instruction.op->has(Trait::View)) continue;
    aliases.set(result, call.same());
  }
  aliases.apply_to_results(program);
  changed |= aliases.any();
  if (changed) remove_dead(program);
  return changed;
}

}  // namespace oar
