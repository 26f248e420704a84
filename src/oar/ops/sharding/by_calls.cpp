// Pieces of ops that are cut call by call: the calls of the whole op's decomposition run one after the other,
// each as a piece of itself.
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/sharding/bind.h"
#include "oar/ops/sharding/classes.h"
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

// The call with the tensors of a piece and the attributes that its own rule returns for it.
Frame localised(const TracedCall& call, const std::vector<size_t>& factors, const Piece& piece,
                Dim count, const std::vector<Tensor>& values) {
  Frame frame(call.frame.args());
  for (size_t i = 0; i < call.operands.size(); ++i)
    set_tensor(frame, call.plan.operands[i], values[static_cast<size_t>(call.operands[i])]);
  const OpDef& rules = rules_of(*call.op).def();
  if (factors.empty() || !rules.localise) return frame;
  const size_t f = factors[0];
  const Dim unit = floor_div(call.plan.factors[f].size, count);
  rules.localise({*call.op, frame, call.plan, f, piece.start * unit, piece.size * unit});
  return frame;
}

}  // namespace

Outputs run_calls(const Op& op, Args args, const ShardPlan& plan, const Piece& piece) {
  std::optional<ShardTrace> trace;
  {
    const LayersOff plain(kDispatchMask & ~kPlanning);
    const DimAssumptions follow_hints;
    const Frame meta = bare_call(args);
    trace.emplace(op, meta.args());
  }
  const Classes classes(*trace);
  const int cls = class_of_factor(plan, piece.factor, *trace, classes);
  std::vector<Tensor> values(trace->value_count());
  for (size_t v = 0; v < values.size(); ++v)
    if (trace->is_constant(static_cast<int>(v))) values[v] = trace->tensor(static_cast<int>(v));
  for (size_t i = 0; i < plan.operands.size(); ++i)
    values[static_cast<size_t>(trace->operands()[i])] =
        cut(tensor_at(args, plan.operands[i]), plan.operands[i], piece);
  for (const TracedCall& call : trace->calls()) {
    const Frame frame =
        localised(call, classes.factors(call, cls), piece, plan.factors[piece.factor].size, values);
    const Outputs outputs = dispatch(*call.op, frame.args());
    for (size_t r = 0; r < call.results.size(); ++r)
      values[static_cast<size_t>(call.results[r])] = outputs[r];
  }
  Outputs results;
  for (int v : trace->results()) results.push_back(values[static_cast<size_t>(v)]);
  return results;
}

}  // namespace oar
