#include "oar/ops/sharding/choice.h"

#include <algorithm>

#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/view.h"
#include "oar/ops/sharding/bind.h"
#include "oar/ops/sharding/partial.h"

namespace oar {
namespace {

using Axis = MeshAxisPlacement;

bool has_factor(const PlanTensor& t, size_t factor) {
  return std::any_of(t.axes.begin(), t.axes.end(),
                     [&](const PlanAxis& a) { return a.factor == static_cast<int>(factor); });
}

double elements_of(const PlanTensor& t) { return static_cast<double>(t.shape.numel().hint()); }

// More than a call, which cannot be cut again.
bool is_more_than_a_call(const PlanFactor& f) { return f.by_calls || f.positions >= 0; }

// The smallest of the pieces of pieces.
int64_t smallest(int64_t size, const std::vector<int64_t>& counts, size_t from = 0) {
  if (from == counts.size() || size == 0) return size;
  const int64_t count = counts[from], last = part_of(size, count, count - 1).size;
  const int64_t step = part_of(size, count, 0).size;
  int64_t least = std::min(smallest(last, counts, from + 1), smallest(step, counts, from + 1));
  for (int64_t place = count - 2; place > 0 && last == 0; --place)  // the one that is shorter
    if (const int64_t part = part_of(size, count, place).size; part != step)
      least = std::min(least, smallest(part, counts, from + 1));
  return least;
}

// In bytes that a process receives.
double cost_of_move(const Axis& from, const Axis& to, double bytes, double count) {
  if (from.kind == Axis::Replicate) return 0;
  const double others = bytes * (count - 1) / count;
  if (from.kind == Axis::Partial) return to.kind == Axis::Shard ? others : 2 * others;
  if (to.kind == Axis::Shard) return from.axis == to.axis ? 0 : others / count;
  return others;
}

class Chooser {
 public:
  Chooser(const Op& op, Args args, const ShardPlan& plan, int64_t mesh)
      : op_(op), args_(args), plan_(plan), mesh_(mesh_of(mesh)), choice_(uncut(plan, mesh)) {
    for (const PlanTensor& place : plan.operands) {
      const Tensor& t = tensor_at(args, place);
      now_.push_back(is_sharded(t) ? sharded(t).placement : replicated_on(mesh));
    }
  }

  Choice run() {
    for (size_t m = 0; m < mesh_.rank(); ++m) choose(m);
    return std::move(choice_);
  }

 private:
  void choose(size_t m) {
    const auto is = [&](Axis::Kind kind) {
      return std::any_of(now_.begin(), now_.end(),
                         [&](const Placement& p) { return p.axes[m].kind == kind; });
    };
    if (mesh_.sizes[m] == 1) return;
    if (!is(Axis::Shard)) {
      if (is(Axis::Partial)) keep_partial(m);
      return;
    }
    // What a factor saves does not depend on the others: no tensor has two that are chosen.
    std::vector<std::pair<double, size_t>> best;
    for (size_t f = 0; f < plan_.factors.size(); ++f)
      if (const double change = change_of_cost(m, f); change < 0) best.emplace_back(change, f);
    std::stable_sort(best.begin(), best.end(), [](auto& a, auto& b) { return a.first < b.first; });
    std::vector<bool> operands(plan_.operands.size()), results(plan_.results.size());
    for (const auto& [change, f] : best)
      if (is_free(f, operands, results) && fits(m, f)) take(m, f, operands, results);
  }

  // Pieces of two factors at once would be diagonal blocks of a tensor that has both, or of a sum that runs over both.
  bool is_free(size_t f, const std::vector<bool>& operands,
               const std::vector<bool>& results) const {
    for (size_t i = 0; i < operands.size(); ++i)
      if (operands[i] && has_factor(plan_.operands[i], f)) return false;
    for (size_t r = 0; r < results.size(); ++r)
      if (results[r] && plan_.join_of(f, r) != Join::Same) return false;
    return true;
  }

  void take(size_t m, size_t f, std::vector<bool>& operands, std::vector<bool>& results) {
    choice_.factors[m].push_back(f);
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!has_factor(plan_.operands[i], f)) continue;
      operands[i] = true;
      choice_.operands[i].axes[m] = wanted(m, i, f);
    }
    for (size_t r = 0; r < results.size(); ++r)
      results[r] = results[r] || plan_.join_of(f, r) != Join::Same;
  }

  // Sums of what the processes have: may the call be part of the sum?
  void keep_partial(size_t m) {
    if (op_.has(Trait::Inplace)) return;
    std::vector<bool> partial;
    std::optional<PartialBy> by;
    for (const Placement& p : now_) {
      partial.push_back(p.axes[m].kind == Axis::Partial);
      if (!partial.back()) continue;
      if (by && *by != p.axes[m].by) return;
      by = p.axes[m].by;
    }
    if (*by == PartialBy::Prod || rounds()) return;
    const Join join = *by == PartialBy::Max   ? Join::Max
                      : *by == PartialBy::Min ? Join::Min
                                              : Join::Sum;
    if (!passes_partial(op_, plan_, partial, join)) return;
    choice_.parts[m] = by;
    for (size_t i = 0; i < now_.size(); ++i) choice_.operands[i].axes[m] = now_[i].axes[m];
  }

  // Rounding to integers is not linear.
  bool rounds() const {
    const auto is_rounded = [](const Tensor& t) {
      return t.defined() && !is_differentiable(t.dtype());
    };
    for (const PlanTensor& place : plan_.operands)
      if (is_rounded(tensor_at(args_, place))) return true;
    if (rules_of(op_).has(Trait::Random))
      return true;  // not linear either, and asking would draw numbers
    const LayersOff plain(kDispatchMask);
    const Frame bare = bare_call(args_);
    const Outputs results = dispatch(op_, bare.args());
    return std::any_of(results.begin(), results.end(), is_rounded);
  }

  Axis wanted(size_t m, size_t operand, size_t factor) const {
    Axis axis{mesh_.axes[m], Axis::Shard};
    const PlanTensor& t = plan_.operands[operand];
    for (size_t i = 0; i < t.axes.size(); ++i)
      if (t.axes[i].factor == static_cast<int>(factor)) axis.axis = static_cast<int32_t>(i);
    return axis;
  }

  // By cutting a factor instead of keeping its tensors whole.
  double change_of_cost(size_t m, size_t f) const {
    double change = 0;
    const auto count = static_cast<double>(mesh_.sizes[m]);
    const Axis whole{mesh_.axes[m]};
    for (size_t i = 0; i < now_.size(); ++i) {
      if (!has_factor(plan_.operands[i], f)) continue;
      const Axis& now = now_[i].axes[m];
      const Axis to = wanted(m, i, f);
      const double bytes = elements_of(plan_.operands[i]) * size_of_element(i);
      change += cost_of_move(now, to, bytes, count) - cost_of_move(now, whole, bytes, count);
      if (op_.schema().parameters[plan_.operands[i].parameter].written)  // it has to go back
        change += cost_of_move(to, now, bytes, count) - cost_of_move(whole, now, bytes, count);
    }
    // A part of a sum may have to be joined later; less often than an operand has to be gathered now.
    for (size_t r = 0; r < plan_.results.size(); ++r)
      if (const Join join = plan_.join_of(f, r); join != Join::Concat && join != Join::Same)
        change += kJoinLater * elements_of(plan_.results[r]) * size_of_element(0);
    return change;
  }

  double size_of_element(size_t operand) const {
    return static_cast<double>(size_of(tensor_at(args_, plan_.operands[operand]).dtype()));
  }

  // Can the call be cut so, in pieces that are where placements put them?
  bool fits(size_t m, size_t f) const {
    const PlanFactor& factor = plan_.factors[f];
    if (factor.positions >= 0 && op_.has(Trait::Inplace)) return false;  // it would write a copy
    std::vector<int64_t> counts;
    for (size_t k = 0; k <= m; ++k) {
      const std::vector<size_t>& chosen = choice_.factors[k];
      if (k == m || std::find(chosen.begin(), chosen.end(), f) != chosen.end())
        counts.push_back(mesh_.sizes[k]);
      for (const size_t other : chosen)
        if (other != f && is_more_than_a_call(factor) && is_more_than_a_call(plan_.factors[other]))
          return false;
    }
    int64_t total = 1;
    for (const int64_t count : counts) total *= count;
    const int64_t size = specialised(factor.size);
    if (smallest(size, counts) == 0) return false;
    const auto coarse = [&](const PlanTensor& t) {
      return std::any_of(t.axes.begin(), t.axes.end(), [&](const PlanAxis& a) {
        return a.factor == static_cast<int>(f) && !(a.inner == Dim(1));
      });
    };
    const bool any = std::any_of(plan_.operands.begin(), plan_.operands.end(), coarse) ||
                     std::any_of(plan_.results.begin(), plan_.results.end(), coarse);
    return !any || size % total == 0;
  }

  static constexpr double kJoinLater = 0.25;

  const Op& op_;
  const Args args_;
  const ShardPlan& plan_;
  const ProcessMesh& mesh_;
  Choice choice_;
  std::vector<Placement> now_;
};

}  // namespace

Choice uncut(const ShardPlan& plan, int64_t mesh) {
  const size_t rank = mesh_of(mesh).rank();
  return {std::vector<std::vector<size_t>>(rank), std::vector<std::optional<PartialBy>>(rank),
          std::vector<Placement>(plan.operands.size(), replicated_on(mesh))};
}

Choice choose_cut(const Op& op, Args args, const ShardPlan& plan, int64_t mesh) {
  return Chooser(op, args, plan, mesh).run();
}

}  // namespace oar
