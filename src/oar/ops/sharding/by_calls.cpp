// Pieces of ops that are cut call by call: the calls of the whole op's decomposition run one after the other,
// each as a piece of itself; those that use joined values follow the joining.
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/sharding/bind.h"
#include "oar/ops/sharding/classes.h"
#include "oar/ops/sharding/partial.h"
#include "oar/ops/sharding/pieces.h"

namespace oar {
namespace {

// The class of axes that a factor of the op's plan represents.
int class_of_factor(const ShardPlan& plan, size_t factor, const ShardTrace& trace,
                    const Classes& classes) {
  const auto find = [&](const std::vector<PlanTensor>& tensors, const std::vector<int>& values) {
    for (size_t i = 0; i < tensors.size(); ++i)
      for (size_t axis = 0; axis < tensors[i].axes.size(); ++axis)
        if (tensors[i].axes[axis].factor == static_cast<int>(factor))
          return classes.class_of({values[i], axis});
    return -1;
  };
  const int cls = find(plan.operands, trace.operands());
  return cls >= 0 ? cls : find(plan.results, trace.results());
}

// A call that is cut call by call, with its decomposition.
class Replay {
 public:
  Replay(const Op& op, Args whole, const ShardPlan& plan, size_t factor)
      : plan_(plan),
        count_(plan.factors[factor].size),
        trace_(traced(op, whole)),
        classes_(trace_),
        cls_(class_of_factor(plan, factor, trace_, classes_)),
        calls_(*cut_calls(trace_, classes_, cls_)),
        values_(trace_.value_count()) {
    for (size_t v = 0; v < values_.size(); ++v)
      if (trace_.is_constant(static_cast<int>(v))) values_[v] = trace_.tensor(static_cast<int>(v));
  }

  // A piece's part of the results, and what it hands over.
  Outputs run(const Frame& cut_call, const Piece& piece) {
    for (size_t i = 0; i < plan_.operands.size(); ++i)
      at(trace_.operands()[i]) = tensor_at(cut_call.args(), plan_.operands[i]);
    for (size_t c = 0; c < trace_.calls().size(); ++c) {
      if (calls_.late[c]) continue;
      const TracedCall& call = trace_.calls()[c];
      const std::vector<size_t> factors = classes_.factors(call, cls_);
      if (factors.empty()) {
        keep(call, dispatch(*call.op, with_values(call).args()));
        continue;
      }
      const Dim unit = floor_div(call.plan.factors[factors[0]].size, count_);
      const Piece part{factors[0], piece.start * unit, piece.size * unit};
      keep(call, run_cut(*call.op, with_values(call), call.plan, part));
    }
    Outputs results;
    for (int v : trace_.results()) results.push_back(at(v));
    for (const Handed& h : calls_.handed) results.push_back(at(h.value));
    return results;
  }

  // The calls after the joining.
  void finish(const JoinPart& join, Outputs& joined) {
    for (size_t h = 0; h < calls_.handed.size(); ++h) {
      const Handed& handed = calls_.handed[h];
      const TracedCall& maker = trace_.calls()[static_cast<size_t>(std::max(handed.call, 0))];
      at(handed.value) =
          join(handed.join, trace_.results().size() + h, *maker.op, maker.frame.args());
    }
    for (size_t c = 0; c < trace_.calls().size(); ++c)
      if (const TracedCall& call = trace_.calls()[c]; calls_.late[c])
        keep(call, dispatch(*call.op, with_values(call).args()));
    for (size_t r = 0; r < joined.size(); ++r)
      if (calls_.joins[r] == Join::Inside) joined[r] = at(trace_.results()[r]);
  }

 private:
  static ShardTrace traced(const Op& op, Args args) {
    const LayersOff plain(kDispatchMask & ~kPlanning);
    const DimAssumptions follow_hints;
    const Frame meta = bare_call(args);
    return ShardTrace(op, meta.args());
  }

  Tensor& at(int value) { return values_[static_cast<size_t>(value)]; }

  Frame with_values(const TracedCall& call) {
    Frame frame(call.frame.args());
    for (size_t i = 0; i < call.operands.size(); ++i)
      set_tensor(frame, call.plan.operands[i], at(call.operands[i]));
    return frame;
  }

  void keep(const TracedCall& call, const Outputs& outputs) {
    for (size_t r = 0; r < call.results.size(); ++r) at(call.results[r]) = outputs[r];
  }

  const ShardPlan& plan_;
  const Dim count_;
  const ShardTrace trace_;
  const Classes classes_;
  const int cls_;
  const CutCalls calls_;
  std::vector<Tensor> values_;
};

}  // namespace

Outputs run_calls(const Op& op, Args whole, const Frame& cut_call, const ShardPlan& plan,
                  const Piece& piece) {
  return Replay(op, whole, plan, piece.factor).run(cut_call, piece);
}

void finish_calls(const Op& op, Args whole, const ShardPlan& plan, size_t factor,
                  const JoinPart& join, Outputs& joined) {
  const auto inside = [&](size_t r) { return plan.join_of(factor, r) == Join::Inside; };
  bool any = false;
  for (size_t r = 0; r < joined.size(); ++r) any = any || inside(r);
  if (any) Replay(op, whole, plan, factor).finish(join, joined);
}

}  // namespace oar
