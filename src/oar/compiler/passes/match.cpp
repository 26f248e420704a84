#include "oar/compiler/passes/match.h"

#include <algorithm>

namespace oar {

struct Pattern::Node {
  struct Part {
    std::string_view parameter;
    Pattern pattern;
  };
  std::string_view name;
  bool once = false, optional = false, needs_call = false;
  std::vector<OpTest> ops;
  std::vector<CallTest> calls;
  std::vector<std::function<bool(ValueId, PassContext&)>> values;
  std::vector<Part> operands;
  std::vector<std::pair<Pattern, Pattern>> pairs;
};

Pattern::Pattern() {
  static const auto anything = std::make_shared<const Node>();
  node_ = anything;
}

template <class F>
Pattern Pattern::with(F&& change) const {
  auto node = std::make_shared<Node>(*node_);
  change(*node);
  return Pattern(std::move(node));
}

Pattern Pattern::as(std::string_view name) const {
  return with([&](Node& n) { n.name = name; });
}
Pattern Pattern::once() const {
  return with([](Node& n) { n.once = true; });
}
Pattern Pattern::optional() const {
  return with([](Node& n) { n.optional = true; });
}
Pattern Pattern::operand(std::string_view parameter, const Pattern& pattern) const {
  return with([&](Node& n) {
    n.needs_call = true;
    n.operands.push_back({parameter, pattern});
  });
}
Pattern Pattern::either_order(const Pattern& one, const Pattern& other) const {
  return with([&](Node& n) {
    n.needs_call = true;
    n.pairs.emplace_back(one, other);
  });
}
Pattern Pattern::attribute(std::string_view parameter,
                           std::function<bool(const Value&)> test) const {
  return where([parameter, test = std::move(test)](const Instruction& call) {
    return has_parameter(call, parameter) && test(oar::attribute(call, parameter));
  });
}
Pattern Pattern::where(CallTest test) const {
  return with([&](Node& n) {
    n.needs_call = true;
    n.calls.push_back(std::move(test));
  });
}
Pattern Pattern::computed_by(OpTest test) {
  return Pattern().with([&](Node& n) {
    n.needs_call = true;
    n.ops.push_back(std::move(test));
  });
}
Pattern Pattern::of_value(std::function<bool(ValueId, PassContext&)> test) {
  return Pattern().with([&](Node& n) { n.values.push_back(std::move(test)); });
}

bool Pattern::matches(ValueId id, PassContext& context, Match& match) const {
  const Node& n = *node_;
  if (id == kNoValue) {
    if (n.optional && !n.name.empty()) match.captured_.push_back({n.name, kNoValue, nullptr});
    return n.optional;
  }
  if (n.once && context.uses().count(id) != 1) return false;
  for (const auto& test : n.values)
    if (!test(id, context)) return false;
  const Instruction* call = context.makers()(id);
  if (n.needs_call && (!call || !matches(*call, context, match))) return false;
  if (!n.name.empty()) match.captured_.push_back({n.name, id, call});
  return true;
}

// Parts that fail leave captures; so each alternative starts from what was captured before it.
bool Pattern::matches(const Instruction& call, PassContext& context, Match& match) const {
  const Node& n = *node_;
  for (const OpTest& test : n.ops)
    if (!test(*call.op)) return false;
  for (const CallTest& test : n.calls)
    if (!test(call)) return false;
  for (const auto& [parameter, pattern] : n.operands) {
    const int i = call.op->schema().index_of(parameter);
    if (i < 0 || call.operands[static_cast<size_t>(i)].kind != Operand::One) return false;
    if (!pattern.matches(oar::operand(call, static_cast<size_t>(i)), context, match)) return false;
  }
  return std::all_of(n.pairs.begin(), n.pairs.end(), [&](const auto& pair) {
    if (!has_parameter(call, "x") || !has_parameter(call, "y")) return false;
    const ValueId x = oar::operand(call, "x"), y = oar::operand(call, "y");
    const size_t before = match.captured_.size();
    const auto both = [&](ValueId one, ValueId other) {
      match.captured_.resize(before);
      return pair.first.matches(one, context, match) && pair.second.matches(other, context, match);
    };
    return both(x, y) || both(y, x);
  });
}

ValueId Match::value(std::string_view name) const {
  for (const Captured& c : captured_)
    if (c.name == name) return c.value;
  fail(ErrorKind::Internal, "the pattern captures no {}", name);
}

const Instruction& Match::call(std::string_view name) const {
  for (const Captured& c : captured_)
    if (c.name == name && c.call) return *c.call;
  fail(ErrorKind::Internal, "the pattern captures no call {}", name);
}

namespace patterns {

Pattern this_value(ValueId id) {
  return Pattern::of_value([id](ValueId other, PassContext&) { return other == id; });
}

Pattern constant() {
  return Pattern::of_value(
      [](ValueId id, PassContext& context) { return context.constant(id) != nullptr; });
}

Pattern number(double number) {
  return Pattern::of_value(
      [number](ValueId id, PassContext& context) { return context.number(id) == number; });
}

OpTest takes(EpilogueStep step) {
  return [step](const Op& op) {
    const auto& steps = op.def().epilogue.steps;
    return std::find(steps.begin(), steps.end(), step) != steps.end();
  };
}

}  // namespace patterns

std::optional<Match> match(const Pattern& pattern, const Instruction& call, PassContext& context) {
  Match found;
  if (!pattern.matches(call, context, found)) return std::nullopt;
  const std::string_view name = pattern.node_->name;
  if (!name.empty()) found.captured_.push_back({name, call.results[0], &call});
  return found;
}

std::optional<Match> match(const Pattern& pattern, ValueId value, PassContext& context) {
  Match found;
  return pattern.matches(value, context, found) ? std::optional(std::move(found)) : std::nullopt;
}

}  // namespace oar
