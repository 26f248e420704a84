// Patterns of calls. A pattern describes a value: the call that computes it, that call's operands, and so on. What it
// names is captured.
//
//   using namespace patterns;
//   const Pattern kAffine = call(has_role(EpilogueRole::ScaleShift))
//                               .operand("x", call(takes(EpilogueStep::ScaleShift)).once().as("conv"))
//                               .operand("scale", constant().as("scale"));
//   if (const std::optional<Match> m = match(kAffine, instruction, context)) m->call("conv") …
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

#include "oar/base/api.h"
#include "oar/compiler/passes/context.h"

namespace OAR_API oar {

class Pattern;

// What a pattern has captured.
class Match {
 public:
  ValueId value(std::string_view name) const;  // kNoValue for an optional operand that is missing
  const Instruction& call(std::string_view name) const;

 private:
  friend class Pattern;
  friend std::optional<Match> match(const Pattern&, const Instruction&, PassContext&);
  struct Captured {
    std::string_view name;
    ValueId value;
    const Instruction* call;
  };
  std::vector<Captured> captured_;
};

using OpTest = std::function<bool(const Op&)>;
using CallTest = std::function<bool(const Instruction&)>;

// Cheap to copy. Each method returns a pattern with one more condition.
class Pattern {
 public:
  Pattern();  // any value

  // Captures the value and, if there is one, the call that computes it. The name lives as long as the pattern.
  Pattern as(std::string_view name) const;
  // Nothing else reads the value.
  Pattern once() const;
  // The operand may be missing.
  Pattern optional() const;
  // The operand of the call, by the name of the parameter.
  Pattern operand(std::string_view parameter, const Pattern& pattern) const;
  // The operands "x" and "y", in either order.
  Pattern either_order(const Pattern& one, const Pattern& other) const;
  Pattern attribute(std::string_view parameter, std::function<bool(const Value&)> test) const;
  Pattern where(CallTest test) const;

  // Builders: see the functions below.
  static Pattern computed_by(OpTest test);
  static Pattern of_value(std::function<bool(ValueId, PassContext&)> test);

 private:
  friend std::optional<Match> match(const Pattern&, const Instruction&, PassContext&);
  friend std::optional<Match> match(const Pattern&, ValueId, PassContext&);
  struct Node;
  explicit Pattern(std::shared_ptr<const Node> node) : node_(std::move(node)) {}
  template <class F>
  Pattern with(F&& change) const;
  bool matches(ValueId id, PassContext& context, Match& match) const;
  bool matches(const Instruction& call, PassContext& context, Match& match) const;

  std::shared_ptr<const Node> node_;
};

// In their own namespace: `number` and `any` are also names of op functions.
namespace patterns {

// ---- what a value can be

inline Pattern any() { return {}; }
inline Pattern call(OpTest test) { return Pattern::computed_by(std::move(test)); }
Pattern this_value(ValueId id);
Pattern constant();
// Every element is this number.
Pattern number(double number);

// ---- what an op can be: ask its record

inline OpTest is_op(const Op& op) {
  return [&op](const Op& other) { return &other == &op; };
}
inline OpTest has_trait(Trait trait) {
  return [trait](const Op& op) { return op.has(trait); };
}
inline OpTest has_role(EpilogueRole role) {
  return [role](const Op& op) { return op.def().epilogue.role == role; };
}
OpTest takes(EpilogueStep step);

}  // namespace patterns

std::optional<Match> match(const Pattern& pattern, const Instruction& call, PassContext& context);
std::optional<Match> match(const Pattern& pattern, ValueId value, PassContext& context);

}  // namespace oar
