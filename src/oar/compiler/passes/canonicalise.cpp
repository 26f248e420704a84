// Calls that change nothing are left out, and chains that one call can do become one.
#include <numeric>
#include <unordered_map>

#include "oar/compiler/passes/edit.h"
#include "oar/compiler/passes/pass.h"

namespace oar {
namespace {

struct Context {
  explicit Context(const Program& p)
      : program(p), makers(p), constants(constant_tensors(p)), given(given_back(p)) {}

  const ValueType& type(ValueId id) const { return program.type_of(id); }
  bool same_type(ValueId a, ValueId b) const { return type(a) == type(b); }
  // The instruction that makes the value, if it is a call of this op.
  const Instruction* made_by(ValueId id, std::string_view op) const {
    const Instruction* maker = makers(id);
    return maker && maker->op->name() == op ? maker : nullptr;
  }
  // Is every element of the value this number? Looks through views that repeat elements.
  bool is_number(ValueId id, double number) const {
    while (const Instruction* maker = makers(id)) {
      if (maker->op->name() == "full") {
        const Scalar fill = attribute(*maker, "fill_value").as_scalar();
        return fill.kind() != Scalar::Complex && fill.to_double() == number;
      }
      if (maker->op->name() != "broadcast_to" && maker->op->name() != "reshape") return false;
      id = operand(*maker, 0);
    }
    const Tensor* t = constants[static_cast<size_t>(id)];
    return t && t->is_dense() && t->device().is_cpu() && (*t)->numel == 1 &&
           t->to_vector<std::complex<double>>()[0] == std::complex<double>(number);
  }

  const Program& program;
  const Makers makers;
  const std::vector<const Tensor*> constants;
  const std::vector<bool> given;
};

// Answers the value that the call's result is, or kNoValue. May change the call into a simpler one,
// and then sets `changed`.
using Rule = ValueId (*)(Instruction& call, const Context& c, bool& changed);

// x under its own shape, dtype or size.
ValueId to_own_type(Instruction& call, const Context& c, bool&) {
  const ValueId x = operand(call, 0);
  return c.same_type(x, call.results[0]) ? x : kNoValue;
}

// Of reshapes in a row the last one counts.
ValueId reshaped(Instruction& call, const Context& c, bool& changed) {
  if (const Instruction* inner = c.made_by(operand(call, 0), "reshape")) {
    call.operands[0].ids[0] = operand(*inner, 0);
    changed = true;
  }
  return to_own_type(call, c, changed);
}

ValueId transposed(Instruction& call, const Context& c, bool& changed) {
  const auto rank = static_cast<int64_t>(c.type(operand(call, 0)).shape.size());
  const auto axes_of = [&](const Instruction& i) {
    SmallVector<int64_t, 6> axes;
    for (int64_t axis : attribute(i, "perm").as_ints())
      axes.push_back(axis < 0 ? axis + rank : axis);
    return axes;
  };
  SmallVector<int64_t, 6> axes = axes_of(call);
  if (const Instruction* inner = c.made_by(operand(call, 0), "transpose")) {
    const SmallVector<int64_t, 6> before = axes_of(*inner);
    for (int64_t& axis : axes) axis = before[static_cast<size_t>(axis)];
    call.operands[0].ids[0] = operand(*inner, 0);
    call.attributes.set(1, Value(Ints(axes.data(), axes.size())));
    changed = true;
  }
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int64_t>(i)) return kNoValue;
  return operand(call, 0);
}

// A copy is needed only for what leaves the program: there, the caller may write it.
ValueId copied(Instruction& call, const Context& c, bool&) {
  return c.given[static_cast<size_t>(call.results[0])] ? kNoValue : operand(call, 0);
}

ValueId undone_twice(Instruction& call, const Context& c, bool&) {
  const Instruction* inner = c.made_by(operand(call, 0), call.op->name());
  return inner ? operand(*inner, 0) : kNoValue;
}

ValueId enough_once(Instruction& call, const Context& c, bool&) {
  return c.made_by(operand(call, 0), call.op->name()) ? operand(call, 0) : kNoValue;
}

ValueId times_one(Instruction& call, const Context& c, bool&) {
  for (const size_t side : {size_t{0}, size_t{1}})
    if (c.is_number(operand(call, 1 - side), 1) &&
        c.same_type(operand(call, side), call.results[0]))
      return operand(call, side);
  return kNoValue;
}

ValueId by_one(Instruction& call, const Context& c, bool&) {
  const bool one = c.is_number(operand(call, 1), 1);
  return one && c.same_type(operand(call, 0), call.results[0]) ? operand(call, 0) : kNoValue;
}

// x - 0 is x for every float; x + 0 is not, since -0 + 0 is 0.
ValueId less_zero(Instruction& call, const Context& c, bool&) {
  const bool zero = c.is_number(operand(call, 1), 0);
  return zero && c.same_type(operand(call, 0), call.results[0]) ? operand(call, 0) : kNoValue;
}

ValueId joined(Instruction& call, const Context&, bool&) {
  return call.operands[0].ids.size() == 1 ? call.operands[0].ids[0] : kNoValue;
}

const std::unordered_map<std::string_view, Rule> kRules = {
    {"reshape", reshaped},
    {"transpose", transposed},
    {"broadcast_to", to_own_type},
    {"cast", to_own_type},
    {"assign", copied},
    {"neg", undone_twice},
    {"conj", undone_twice},
    {"logical_not", undone_twice},
    {"bitwise_not", undone_twice},
    {"relu", enough_once},
    {"abs", enough_once},
    {"floor", enough_once},
    {"ceil", enough_once},
    {"sign", enough_once},
    {"multiply", times_one},
    {"divide", by_one},
    {"subtract", less_zero},
    {"concat", joined},
};

}  // namespace

bool canonicalise(Program& program) {
  Aliases aliases(program);
  bool changed = false;
  const Context context(program);
  for (Instruction& call : program.body.instructions) {
    aliases.apply(call);
    const auto rule = kRules.find(call.op->name());
    if (rule == kRules.end()) continue;
    const ValueId same = rule->second(call, context, changed);
    // A result of the program stays a tensor of its own, unless eager mode would give a view too.
    if (same == kNoValue || same == call.results[0]) continue;
    if (context.given[static_cast<size_t>(call.results[0])] && !call.op->has(Trait::View)) continue;
    aliases.set(call.results[0], same);
  }
  aliases.apply_to_results(program);
  changed |= aliases.any();
  if (changed) remove_dead(program);
  return changed;
}

}  // namespace oar
