#include "oar/ops/sharding/partial.h"

#include "oar/base/string_util.h"
#include "oar/ops/core/registry.h"

namespace oar {
namespace {

class Reading {
 public:
  Reading(const ShardTrace& trace, const Classes& classes, int cls)
      : trace_(trace), classes_(classes), cls_(cls), late_value_(trace.value_count()) {}

  std::optional<CutCalls> run() {
    for (const TracedCall& call : trace_.calls())
      if (!read(call)) return std::nullopt;
    for (int v : trace_.written())
      if (is_partial(v) || is_late(v)) return std::nullopt;
    for (int v : trace_.results()) found_.joins.push_back(join_of(v));
    return std::move(found_);
  }

 private:
  bool is_partial(int value) const { return partial_.contains(value); }
  bool is_late(int value) const { return late_value_[static_cast<size_t>(value)]; }
  bool is_handed(int value) const {
    return std::any_of(found_.handed.begin(), found_.handed.end(),
                       [&](const Handed& h) { return h.value == value; });
  }

  void hand_over(int value) {
    if (!is_handed(value))
      found_.handed.push_back(is_partial(value) ? partial_.at(value) : Handed{value, Join::Same});
  }

  // How a result of the op is joined. The op cannot do what one of its calls would do again.
  Join join_of(int value) {
    if (is_partial(value) && partial_.at(value).join == Join::Again) hand_over(value);
    const bool inside = is_late(value) || (is_partial(value) && is_handed(value));
    return inside                      ? Join::Inside
           : is_partial(value)         ? partial_.at(value).join
           : classes_.has(value, cls_) ? Join::Concat
                                       : Join::Same;
  }

  // Can a piece run the call as it is, on parts of its operands?
  bool is_early(const TracedCall& call) const {
    std::vector<bool> partial;
    std::optional<Join> join;
    for (int v : call.operands) {
      if (is_late(v)) return false;
      partial.push_back(is_partial(v));
      if (!partial.back()) continue;
      if (join && *join != partial_.at(v).join) return false;
      join = partial_.at(v).join;
    }
    if (!join) return true;
    const bool rounds = std::any_of(call.results.begin(), call.results.end(), [&](int v) {
      return is_integral(trace_.tensor(v).dtype()) &&
             !is_integral(trace_.tensor(call.operands[0]).dtype());
    });
    return !rounds && passes_partial(*call.op, call.plan, partial, *join);
  }

  bool read(const TracedCall& call) {
    const std::vector<size_t> factors = classes_.factors(call, cls_);
    const bool early = is_early(call);
    found_.late.push_back(!early);
    const bool joined = std::any_of(call.operands.begin(), call.operands.end(),
                                    [&](int v) { return is_partial(v) || is_late(v); });
    if (factors.size() > 1 || (joined && !factors.empty())) return false;
    if (!early) return hand_over(call);
    const auto from = std::find_if(call.operands.begin(), call.operands.end(),
                                   [&](int v) { return is_partial(v); });
    const Join passed = from == call.operands.end() ? Join::Same : partial_.at(*from).join;
    for (size_t r = 0; r < call.results.size(); ++r) {
      const Join how = factors.empty() ? passed : call.plan.join_of(factors[0], r);
      if (how == Join::Same || how == Join::Concat) continue;
      partial_[call.results[r]] = {call.results[r], how, static_cast<int>(found_.late.size()) - 1};
    }
    return true;
  }

  // The call runs on joined values.
  bool hand_over(const TracedCall& call) {
    if (rules_of(*call.op).has(Trait::Random) || call.op->has(Trait::Inplace)) return false;
    for (int v : call.operands)
      if (!is_late(v) && !trace_.is_constant(v)) hand_over(v);
    for (int v : call.results) late_value_[static_cast<size_t>(v)] = true;
    return true;
  }

  const ShardTrace& trace_;
  const Classes& classes_;
  const int cls_;
  CutCalls found_;
  std::map<int, Handed> partial_;  // by value
  std::vector<bool> late_value_;
};

}  // namespace

bool passes_partial(const Op& op, const ShardPlan& plan, const std::vector<bool>& partial,
                    Join join) {
  const auto count = std::count(partial.begin(), partial.end(), true);
  if (join == Join::Again) return false;
  if (join == Join::Max || join == Join::Min) return op.has(Trait::View) && count == 1;
  if (op.has(Trait::Linear)) return count == static_cast<ptrdiff_t>(partial.size());
  if (count != 1) return false;
  const size_t which =
      static_cast<size_t>(std::find(partial.begin(), partial.end(), true) - partial.begin());
  const std::vector<std::string_view> names = split(op.def().linear_in, ' ');
  const std::string& name = op.schema().parameters[plan.operands[which].parameter].name;
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::optional<CutCalls> cut_calls(const ShardTrace& trace, const Classes& classes, int cls) {
  return Reading(trace, classes, cls).run();
}

}  // namespace oar
