// Plans from decompositions. The calls of a decomposition say which of their axes are cut together;
// axes that meet in one call form a class. A class is a factor of the whole op if every call allows it
// to be cut, and if what is joined over it meets no cut axis afterwards (partial.h). A piece is a single call
// of the op if the decomposition, run on it, would issue each of its calls as that call's own plan requires;
// otherwise it is cut call by call.
#include <algorithm>

#include "oar/base/string_util.h"
#include "oar/ops/core/dispatcher.h"
#include "oar/ops/sharding/bind.h"
#include "oar/ops/sharding/classes.h"
#include "oar/ops/sharding/partial.h"
#include "oar/ops/sharding/pieces.h"

namespace oar {
namespace {

// Do two calls have the same attributes? In a shape, -1 and 0 match any size.
bool alike(const Op& op, Args made, Args wanted) {
  for (size_t i = 0; i < made.size(); ++i) {
    const Value &a = made[i], &b = wanted[i];
    if (a.tag != b.tag) return false;
    if (a.is_tensor() || a.is_tensors()) continue;
    if (a.tag != OAR_TAG_INTS) {
      if (a.str() != b.str()) return false;
      continue;
    }
    const bool open = op.schema().parameters[i].type == ArgType::Shape;
    const auto equal = [&](int64_t x, int64_t y) {
      return x == y || (open && (x == -1 || x == 0));
    };
    if (!std::ranges::equal(a.as_ints(), b.as_ints(), equal)) return false;
  }
  return true;
}

// Numbers that a decomposition has computed from sizes must be those of the whole.
bool same_literals(const TracedCall& a, const TracedCall& b) {
  std::vector<Tensor> of_a, of_b;
  for_each_tensor(a.frame.args(), [&](const Tensor& t) { of_a.push_back(t); });
  for_each_tensor(b.frame.args(), [&](const Tensor& t) { of_b.push_back(t); });
  return std::ranges::equal(of_a, of_b, [](const Tensor& x, const Tensor& y) {
    if (!x.is_dense() || !y.is_dense()) return x.is_dense() == y.is_dense();
    return x.describe() == y.describe() &&
           x.to_vector<std::complex<double>>() == y.to_vector<std::complex<double>>();
  });
}

std::vector<const void*> tensors_of(Args args) {
  std::vector<const void*> list;
  for_each_tensor(args, [&](const Tensor& t) { list.push_back(t.impl()); });
  return list;
}

// Is `made`, a call of the decomposition of a piece, what the plan of the corresponding call of the
// whole requires for that piece?
bool is_piece_of(const TracedCall& call, const std::vector<size_t>& factors, const TracedCall& made,
                 const Piece& piece, Dim count) {
  if (made.op != call.op || !same_literals(call, made)) return false;
  if (factors.empty()) return alike(*call.op, made.frame.args(), call.frame.args());
  const size_t f = factors[0];
  if (call.plan.factors[f].positions >= 0) return false;
  const OpDef& rules = rules_of(*call.op).def();
  Frame wanted = made.frame.clone();  // the piece's tensors, the whole's attributes
  for (size_t i = 0; i < wanted.size(); ++i)
    if (!wanted[i].is_tensor() && !wanted[i].is_tensors()) wanted.set(i, call.frame[i]);
  if (rules.localise) {
    const std::vector<const void*> before = tensors_of(wanted.args());
    const Dim unit = floor_div(call.plan.factors[f].size, count);
    rules.localise({*call.op, wanted, call.plan, f, piece.start * unit, piece.size * unit});
    if (before != tensors_of(wanted.args())) return false;  // cannot be done from outside
  }
  return alike(*call.op, made.frame.args(), wanted.args());
}

// Reads the decomposition of a piece, and compares.
class Rehearsal {
 public:
  Rehearsal(const PlanCall& call, const ShardTrace& trace, const Classes& classes, int cls)
      : call_(call), trace_(trace), classes_(classes), cls_(cls) {}

  // For a piece of open size; or, if the decomposition needs a number, for all but the first element.
  bool holds(const ShardPlan& plan, size_t factor) const {
    const Dim count = plan.factors[factor].size;
    const int64_t other = count.hint() + 1;  // than the size of the whole
    const Dim open = Dim::symbol(format("piece:{}", other), other),
              start = Dim::symbol(format("start:{}", other), 1);
    return goes_through(plan, {factor, start, open}) || goes_through(plan, {factor, 1, count - 1});
  }

 private:
  bool goes_through(const ShardPlan& plan, const Piece& piece) const {
    try {
      const Frame frame = bare_piece(call_.op, call_.args, plan, piece);
      check_arguments(frame.args());
      const ShardTrace made(call_.op, frame.args());
      if (made.calls().size() != trace_.calls().size()) return false;
      for (size_t i = 0; i < made.calls().size(); ++i) {
        const TracedCall& call = trace_.calls()[i];
        if (!is_piece_of(call, classes_.factors(call, cls_), made.calls()[i], piece,
                         plan.factors[piece.factor].size))
          return false;
      }
      return true;
    } catch (const Error&) {
      return false;  // the op does not accept another number of elements
    }
  }

  // As a call would: inference rejects what does not fit.
  void check_arguments(Args args) const {
    if (!call_.op.def().infer) return;
    Frame ready;
    const bool changed = call_.op.prepares() && prepare(call_.op, args, ready);
    infer_results(call_.op, changed ? ready.args() : args);
  }

  const PlanCall& call_;
  const ShardTrace& trace_;
  const Classes& classes_;
  const int cls_;
};

// The plan with one more factor: the part of a class that the op's own tensors have.
ShardPlan with_factor(ShardPlan plan, const ShardTrace& trace, const Classes& classes, int cls,
                      Dim count, const SmallVector<Join, 3>& joins) {
  const int factor = plan.add(count);
  plan.factors.back().joins = joins;
  const auto put = [&](std::vector<PlanTensor>& tensors, const std::vector<int>& values) {
    for (size_t i = 0; i < tensors.size(); ++i)
      for (size_t axis = 0; axis < tensors[i].axes.size(); ++axis)
        if (const AxisOf at{values[i], axis}; classes.class_of(at) == cls)
          plan.put(tensors[i], axis, factor, classes.inner(at));
  };
  put(plan.operands, trace.operands());
  put(plan.results, trace.results());
  return plan;
}

// Can a piece run call by call? Some call must have the axes, and the calls must not depend on values.
bool runs_by_calls(const PlanCall& call, const ShardTrace& trace, const Classes& classes, int cls) {
  const Op& op = rules_of(call.op);
  const auto& parameters = call.op.schema().parameters;
  if (!op.has(Trait::Random) && std::any_of(parameters.begin(), parameters.end(),
                                            [](const Parameter& p) { return p.written; }))
    return false;
  bool found = false;
  for (const TracedCall& made : trace.calls()) {
    if (made.op->has(Trait::DataDependent)) return false;
    found = found || !classes.factors(made, cls).empty();
  }
  return found;
}

}  // namespace

Frame bare_piece(const Op& op, Args args, const ShardPlan& plan, const Piece& piece) {
  Frame frame = bare_call(args);
  for (const PlanTensor& place : plan.operands) {
    Shape shape = place.shape;
    for (size_t axis = 0; axis < shape.size(); ++axis)
      if (place.axes[axis].factor == static_cast<int>(piece.factor))
        shape[axis] = piece.size * place.axes[axis].inner;
    const Tensor& t = tensor_at(frame.args(), place);
    set_tensor(frame, place, Tensor::meta(shape, t.dtype(), t.device()));
  }
  if (const OpDef& rules = rules_of(op).def(); rules.localise)
    rules.localise({op, frame, plan, piece.factor, piece.start, piece.size});
  return frame;
}

void derive_plan(const PlanCall& call) {
  const ShardTrace trace(call.op, call.args);
  const Classes classes(trace);
  // Pieces of random numbers need the attributes that only the calls inside have; see run_calls.
  const bool random = rules_of(call.op).has(Trait::Random);
  std::vector<int> seen;
  const auto try_axis = [&](AxisOf at, Dim size) {
    const int cls = classes.class_of(at);
    if (classes.is_whole(cls) || std::find(seen.begin(), seen.end(), cls) != seen.end()) return;
    seen.push_back(cls);
    const Dim count = floor_div(size, classes.inner(at));
    if (count.hint() < 2 || !(count * classes.inner(at) == size)) return;
    const std::optional<CutCalls> cut = cut_calls(trace, classes, cls);
    if (!cut) return;
    ShardPlan plan = with_factor(call.plan, trace, classes, cls, count, cut->joins);
    const bool single = !random && cut->handed.empty() &&
                        Rehearsal(call, trace, classes, cls).holds(plan, plan.factors.size() - 1);
    if (!single && !runs_by_calls(call, trace, classes, cls)) return;
    plan.factors.back().by_calls = !single;
    call.plan = std::move(plan);
  };
  const std::vector<PlanTensor> operands = call.plan.operands, results = call.plan.results;
  for (size_t i = 0; i < operands.size(); ++i)
    for (size_t axis = 0; axis < operands[i].axes.size(); ++axis)
      try_axis({trace.operands()[i], axis}, operands[i].shape[axis]);
  for (size_t i = 0; i < results.size(); ++i)  // computed from attributes alone
    for (size_t axis = 0; axis < results[i].axes.size(); ++axis)
      try_axis({trace.results()[i], axis}, results[i].shape[axis]);
}

}  // namespace oar
