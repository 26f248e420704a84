#include "oar/ops/sharding/bind.h"

#include <algorithm>
#include <map>

#include "oar/base/string_util.h"
#include "oar/ops/core/infer.h"

namespace oar {
namespace {

// A letter and which of its axes; '.' and the position in an ellipsis, counted from its inner end.
using Key = std::pair<char, int>;

struct Place {
  PlanTensor* tensor;
  size_t axis;
};

Join join_named(std::string_view word) {
  if (word == "max") return Join::Max;
  if (word == "min") return Join::Min;
  if (word == "mean") return Join::Mean;
  if (word == "again") return Join::Again;
  if (word == "same") return Join::Same;
  return Join::Sum;
}

class Binder {
 public:
  Binder(const ShardRule& rule, const PlanCall& call) : rule_(rule), call_(call) {
    for (PlanTensor& t : call_.plan.operands)
      if (const ShardTerm& term = operand_term(t); term.leading && term.trailing)
        rank_ = std::max(rank_, t.shape.rank());
    for (const ShardFactor& factor : rule_.factors) bind_attribute(factor);
  }

  void run() {
    for (PlanTensor& t : call_.plan.operands) place(operand_term(t), t, 0);
    int gone = 0;  // as many axes as a result may lack
    for (const auto& [letter, axes] : bound_) gone = std::max(gone, static_cast<int>(axes.size()));
    for (PlanTensor& t : call_.plan.results) place(rule_.results[t.parameter], t, gone);
    for (const auto& [key, places] : places_) add_factor(key, places);
  }

 private:
  const ShardTerm& operand_term(const PlanTensor& t) const {
    size_t term = 0;
    for (size_t i = 0; i < t.parameter; ++i) term += call_.op.schema().parameters[i].is_tensor();
    return rule_.operands[term];
  }

  // The axes that an attribute names, in tensors of rank_ axes.
  void bind_attribute(const ShardFactor& factor) {
    if (factor.attribute.empty()) return;
    const auto index = static_cast<size_t>(call_.op.schema().index_of(factor.attribute));
    const Value& v = call_.args[index];
    if (v.tag == OAR_TAG_BOOL) {
      if (v.as_bool()) last_ += factor.letter;
      return;
    }
    const int64_t one = v.tag == OAR_TAG_INT ? v.as_int() : 0;
    const std::optional<Ints> axes =
        v.is_none() ? std::nullopt
                    : std::optional(v.tag == OAR_TAG_INT ? Ints(&one, 1) : v.as_ints());
    bound_[factor.letter] = normalise_axes(axes, rank_, factor.attribute.c_str());
  }

  void place(const ShardTerm& term, PlanTensor& t, int gone) {
    if (term.leading && term.trailing)
      place_around(term, t, gone);
    else
      place_at_an_end(term, t);
  }

  // "...a...": the axes that attributes name are factors, or were removed, or have size 1.
  void place_around(const ShardTerm& term, PlanTensor& t, int gone) {
    const int rank = t.shape.rank();
    const bool kept = rank > rank_ - gone || gone == 0;
    size_t axis = 0;
    for (int at = kept ? rank_ - rank : 0; at < rank_ && axis < t.axes.size(); ++at) {
      const std::optional<Key> key = key_at(term, at);
      if (!kept && is_bound(at)) continue;
      if (key) places_[*key].push_back({&t, axis});
      ++axis;
    }
  }

  bool is_bound(int at) const {
    return std::any_of(bound_.begin(), bound_.end(), [&](const auto& entry) {
      return std::find(entry.second.begin(), entry.second.end(), at) != entry.second.end();
    });
  }

  std::optional<Key> key_at(const ShardTerm& term, int at) const {
    for (char letter : term.factors) {
      const auto found = bound_.find(letter);
      internal_check(found != bound_.end(), "the sharding rule of {} leaves open where '{}' is",
                     call_.op.name(), letter);
      const auto& axes = found->second;
      for (size_t k = 0; k < axes.size(); ++k)
        if (axes[k] == at) return Key{letter, static_cast<int>(k)};
    }
    return is_bound(at) ? std::nullopt : std::optional(Key{'.', rank_ - at});
  }

  // Letters at the end after "...", or before it, or alone.
  void place_at_an_end(const ShardTerm& term, PlanTensor& t) {
    std::string letters = term.factors, back;
    for (char letter : last_)
      if (const size_t i = letters.find(letter); i != std::string::npos) {
        letters.erase(i, 1);
        back += letter;
      }
    const int rank = t.shape.rank(), count = static_cast<int>(letters.size());
    const int rest = rank - count - static_cast<int>(back.size());
    if (t.shape == Shape{0} && rest != 0) return;  // represents a missing tensor
    const bool fits = rest == 0 || (rest > 0 && (term.leading || term.trailing));
    internal_check(fits, "the sharding rule of {} has '{}' for a tensor of shape {}",
                   call_.op.name(), term.factors, t.shape.str());
    for (int axis = 0; axis < rank; ++axis) {
      const int front = term.leading ? rest : count;
      Key key{'.', term.leading ? rest - axis : axis - count};
      if (term.leading ? axis >= rest : axis < front)
        key = {letters[static_cast<size_t>(term.leading ? axis - rest : axis)], 0};
      else if (!term.leading && axis >= count + rest)
        key = {back[static_cast<size_t>(axis - count - rest)], 0};
      places_[key].push_back({&t, static_cast<size_t>(axis)});
    }
  }

  void add_factor(Key key, const std::vector<Place>& places) {
    const ShardFactor* stated = rule_.factor(key.first);
    if (stated && stated->combine == "whole") return;
    Dim size = 1;
    for (const Place& p : places) {
      const Dim d = p.tensor->shape[p.axis];
      if (d == Dim(1)) continue;
      if (!(size == Dim(1)) && !same(size, d)) return;  // an index shorter than what it indexes
      size = d;
    }
    const int factor = call_.plan.add(size, Join::Sum);
    for (const Place& p : places) call_.plan.put(*p.tensor, p.axis, factor);
    if (!stated) return;
    PlanFactor& made = call_.plan.factors.back();
    const std::vector<std::string_view> words = split(stated->combine, '/');
    made.join = join_named(words[0]);
    if (words.size() > 1)
      for (const PlanTensor& t : call_.plan.results)
        made.joins.push_back(join_named(words[t.parameter]));
    if (stated->positions.empty()) return;
    const int parameter = call_.op.schema().index_of(stated->positions);
    for (size_t i = 0; i < call_.plan.operands.size(); ++i)
      if (call_.plan.operands[i].parameter == static_cast<size_t>(parameter))
        made.positions = static_cast<int>(i);
  }

  const ShardRule& rule_;
  const PlanCall& call_;
  int rank_ = 0;  // of the tensors in which attributes name axes
  std::map<char, SmallVector<int64_t, 6>> bound_;
  std::string last_;  // letters that a bool attribute moves to the end
  std::map<Key, std::vector<Place>> places_;
};

}  // namespace

void bind_rule(const ShardRule& rule, const PlanCall& call) {
  if (rule.whole.empty()) Binder(rule, call).run();
}

}  // namespace oar
