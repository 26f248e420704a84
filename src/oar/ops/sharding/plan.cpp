#include "oar/ops/sharding/plan.h"

#include <algorithm>

#include "oar/base/string_util.h"
#include "oar/device/generator.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/sharding/bind.h"

namespace oar {
namespace {

PlanTensor whole_tensor(const Tensor& t, size_t parameter, size_t element) {
  PlanTensor tensor{parameter, element, t.defined() ? t.shape() : Shape(), {}};
  tensor.axes.resize(tensor.shape.size());
  return tensor;
}

std::string axes_text(const PlanTensor& tensor) {
  std::string text;
  for (const PlanAxis& axis : tensor.axes) {
    const std::string letter(1, axis.factor < 0 ? '-' : static_cast<char>('a' + axis.factor % 26));
    text += axis.inner == Dim(1) ? letter : format("({}*{})", letter, axis.inner.str());
  }
  return text;
}

}  // namespace

PlanTensor* ShardPlan::operand(size_t parameter, size_t element) {
  for (PlanTensor& t : operands)
    if (t.parameter == parameter && t.element == element) return &t;
  return nullptr;
}

const PlanTensor* ShardPlan::operand(size_t parameter, size_t element) const {
  return const_cast<ShardPlan*>(this)->operand(parameter, element);
}

Join ShardPlan::join_of(size_t factor, size_t result) const {
  for (const PlanAxis& axis : results[result].axes)
    if (axis.factor == static_cast<int>(factor)) return Join::Concat;
  const PlanFactor& f = factors[factor];
  return f.joins.empty() ? f.join : f.joins[result];
}

bool ShardPlan::writes(size_t factor) const {
  if (factors[factor].positions < 0) return false;
  return std::any_of(results.begin(), results.end(), [&](const PlanTensor& t) {
    return std::any_of(t.axes.begin(), t.axes.end(),
                       [&](const PlanAxis& a) { return a.factor == static_cast<int>(factor); });
  });
}

int ShardPlan::add(Dim size, Join join) {
  factors.push_back({size, join, {}});
  return static_cast<int>(factors.size()) - 1;
}

void ShardPlan::put(PlanTensor& tensor, size_t axis, int factor, Dim inner) {
  if (tensor.shape[axis] == Dim(1)) return;
  tensor.axes[axis] = {factor, inner};
}

void ShardPlan::pass(PlanTensor& from, size_t axis, PlanTensor& to, size_t to_axis) {
  const int factor = add(from.shape[axis]);
  put(from, axis, factor);
  put(to, to_axis, factor);
}

void ShardPlan::tidy() {
  std::vector<int> renamed(factors.size(), -1);
  std::vector<PlanFactor> kept;  // in the order in which axes name them
  for (auto* list : {&operands, &results})
    for (PlanTensor& t : *list)
      for (PlanAxis& axis : t.axes) {
        if (axis.factor < 0) continue;
        const PlanFactor& factor = factors[static_cast<size_t>(axis.factor)];
        int& name = renamed[static_cast<size_t>(axis.factor)];
        const bool single = factor.size.is_known() && factor.size.word() < 2;
        if (name < 0 && !single) {
          name = static_cast<int>(kept.size());
          kept.push_back(factor);
        }
        axis = {name, single ? Dim(1) : axis.inner};
      }
  factors = std::move(kept);
}

std::string ShardPlan::str() const {
  std::vector<std::string> left, right, how;
  for (const PlanTensor& t : operands) left.push_back(axes_text(t));
  for (const PlanTensor& t : results) right.push_back(axes_text(t));
  for (size_t f = 0; f < factors.size(); ++f) {
    std::vector<std::string> joins;
    for (size_t r = 0; r < results.size(); ++r)
      if (const std::string name = name_of(join_of(f, r)); !name.empty()) joins.push_back(name);
    joins.erase(std::unique(joins.begin(), joins.end()), joins.end());
    how.push_back(format("{} {}{}{}{}", static_cast<char>('a' + f % 26), factors[f].size.str(),
                         joins.empty() ? "" : " ",
                         factors[f].positions >= 0 && !writes(f) ? "masked " : "",
                         join(joins, "/")));
  }
  return format("{} -> {}{}{}", join(left, ", "), join(right, ", "), how.empty() ? "" : " ; ",
                join(how, ", "));
}

Frame bare_call(Args args) {
  const auto bare = [](const Tensor& t) {
    return t.defined() ? Tensor::meta(t.dims(), t.dtype(), t.device()) : Tensor();
  };
  Frame meta(args);
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_tensor()) meta.set_tensor(i, bare(args[i].as_tensor()));
    if (!args[i].is_tensors()) continue;
    std::vector<Tensor> list;
    for (const Tensor& t : args[i].as_tensors()) list.push_back(bare(t));
    meta.set_tensors(i, std::move(list));
  }
  return meta;
}

ShardPlan whole_plan(const Op& op, Args args, TensorList results) {
  ShardPlan plan;
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i].is_tensor()) plan.operands.push_back(whole_tensor(args[i].as_tensor(), i, 0));
    if (!args[i].is_tensors()) continue;
    for (size_t k = 0; k < args[i].as_tensors().size(); ++k)
      if (const Tensor& t = args[i].as_tensors()[k]; t.defined())
        plan.operands.push_back(whole_tensor(t, i, k));
  }
  const bool list = op.schema().returns_list();
  for (size_t k = 0; k < results.size(); ++k)
    plan.results.push_back(whole_tensor(results[k], list ? 0 : k, list ? k : 0));
  return plan;
}

bool states_plan(const Op& op) {
  return rules_of(op).def().shard != nullptr || rules_of(op).def().plan;
}

void stated_plan(const PlanCall& call) {
  const Op& rules = rules_of(call.op);
  if (rules.def().shard)
    bind_rule(ShardRule::parse(rules.def().shard, rules.schema()), call);
  else
    rules.def().plan(call);
  call.plan.tidy();
}

ShardPlan plan_of(const Op& op, Args args) {
  const LayersOff plain(kDispatchMask & ~kPlanning);
  const DimAssumptions follow_hints;  // a plan is for the hinted sizes
  const generator::Detour aside({});  // and draws no random numbers
  const Frame meta = bare_call(args);
  ShardPlan plan = whole_plan(op, meta.args(), dispatch(op, meta.args()));
  const PlanCall call{op, meta.args(), plan};
  if (states_plan(op)) {
    stated_plan(call);
  } else if (rules_of(op).def().decompose) {
    derive_plan(call);
    plan.tidy();
  }
  return plan;
}

}  // namespace oar
