#include "oar/ops/sharding/pieces.h"

#include <algorithm>

#include "oar/ops/core/dispatcher.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/view.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/sharding/bind.h"

namespace oar {
namespace {

std::optional<size_t> axis_with(const PlanTensor& place, size_t factor) {
  for (size_t i = 0; i < place.axes.size(); ++i)
    if (place.axes[i].factor == static_cast<int>(factor)) return i;
  return std::nullopt;
}

// Positions along a factor; negative ones count from the end.
Tensor from_the_start(const Tensor& positions, Dim size) {
  const Tensor end = full({}, Scalar(size.value()), positions.dtype());
  return where(less_than(positions, zeros_like(positions)), positions + end, positions);
}

// Which of the positions fall into the piece.
Tensor falls_into(const Tensor& positions, const Piece& piece) {
  const Tensor first = full({}, Scalar(piece.start.value()), positions.dtype());
  const Tensor end = full({}, Scalar((piece.start + piece.size).value()), positions.dtype());
  return logical_and(greater_equal(positions, first), less_than(positions, end));
}

// A mask over an operand as a mask over a result: axes of one factor meet.
Tensor aligned(const Tensor& mask, const PlanTensor& from, const PlanTensor& to) {
  Shape shape(to.axes.size(), 1);
  for (size_t i = 0; i < from.axes.size(); ++i) {
    if (mask.dims()[i] == Dim(1)) continue;
    const auto axis = axis_with(to, static_cast<size_t>(from.axes[i].factor));
    internal_check(from.axes[i].factor >= 0 && axis, "positions have an axis that results lack");
    shape[*axis] = mask.dims()[i];
  }
  return reshape(mask, shape);
}

Tensor combined(Join join, const Tensor& a, const Tensor& b) {
  if (join == Join::Max) return is_bool(a.dtype()) ? logical_or(a, b) : maximum(a, b);
  if (join == Join::Min) return is_bool(a.dtype()) ? logical_and(a, b) : minimum(a, b);
  return a + b;
}

// The reduction over the results of its pieces.
Tensor reduced_again(const Op& op, Args args, const std::vector<Tensor>& parts) {
  const auto axis = static_cast<size_t>(op.schema().index_of("axis"));
  const int keepdim = op.schema().index_of("keepdim");
  const int64_t first = 0;
  Frame frame(args);
  frame.set_tensor(0, stack(parts, 0));
  frame.set(axis, op.schema().parameters[axis].list ? Value(Ints(&first, 1)) : Value(first));
  if (keepdim >= 0) frame.set(static_cast<size_t>(keepdim), false);
  return dispatch(op, frame.args())[0];
}

}  // namespace

const Tensor& tensor_at(Args args, const PlanTensor& place) {
  const Value& v = args[place.parameter];
  return v.is_tensors() ? v.as_tensors()[place.element] : v.as_tensor();
}

void set_tensor(Frame& frame, const PlanTensor& place, const Tensor& t) {
  if (!frame[place.parameter].is_tensors()) return frame.set_tensor(place.parameter, t);
  const TensorList old = frame[place.parameter].as_tensors();
  std::vector<Tensor> list(old.begin(), old.end());
  list[place.element] = t;
  frame.set_tensors(place.parameter, std::move(list));
}

Tensor cut(const Tensor& t, const PlanTensor& place, const Piece& piece) {
  const auto axis = axis_with(place, piece.factor);
  if (!axis || !t.defined()) return t;
  const Dim inner = place.axes[*axis].inner;
  SliceIndex index;
  index.skip(static_cast<int64_t>(*axis));
  index.range(piece.start * inner, (piece.start + piece.size) * inner);
  return slice_view(t, index);
}

Frame piece_call(const Op& op, Args args, const ShardPlan& plan, const Piece& piece) {
  internal_check(!plan.by_calls, "{} is cut call by call: no single call is its piece", op.name());
  Frame frame(args);
  const PlanFactor& factor = plan.factors[piece.factor];
  for (const PlanTensor& place : plan.operands)
    set_tensor(frame, place, cut(tensor_at(args, place), place, piece));
  if (factor.positions >= 0) {
    const PlanTensor& place = plan.operands[static_cast<size_t>(factor.positions)];
    const Tensor positions = from_the_start(tensor_at(args, place), factor.size);
    const Tensor start = full({}, Scalar(piece.start.value()), positions.dtype());
    set_tensor(frame, place,
               where(falls_into(positions, piece), positions - start, zeros_like(positions)));
  }
  if (const OpDef& rules = rules_of(op).def(); rules.localise)
    rules.localise({op, frame, plan, piece.factor, piece.start, piece.size});
  return frame;
}

Outputs run_piece(const Op& op, Args args, const ShardPlan& plan, const Piece& piece) {
  if (plan.by_calls) return run_calls(op, args, plan, piece);
  const Frame frame = piece_call(op, args, plan, piece);
  Outputs outputs = dispatch(op, frame.args());
  const int positions = plan.factors[piece.factor].positions;
  if (positions < 0 || outputs[0].numel() == Dim(0)) return outputs;
  const PlanTensor& place = plan.operands[static_cast<size_t>(positions)];
  const Tensor mask =
      falls_into(from_the_start(tensor_at(args, place), plan.factors[piece.factor].size), piece);
  for (size_t r = 0; r < outputs.size(); ++r)
    outputs[r] = where(aligned(mask, place, plan.results[r]), outputs[r], zeros_like(outputs[r]));
  return outputs;
}

Outputs join_pieces(const Op& op, Args args, const ShardPlan& plan, std::span<const Piece> pieces,
                    std::span<const Outputs> results) {
  Outputs joined;
  const size_t factor = pieces[0].factor;
  for (size_t r = 0; r < plan.results.size(); ++r) {
    const Join join = plan.join_of(factor, r);
    std::vector<Tensor> parts;
    for (size_t p = 0; p < pieces.size(); ++p) {
      Tensor part = results[p][r];
      if (join == Join::Mean)
        part = part * (static_cast<double>(pieces[p].size.value()) /
                       static_cast<double>(plan.factors[factor].size.value()));
      parts.push_back(part);
    }
    if (join == Join::Concat) {
      const auto axis = static_cast<int64_t>(*axis_with(plan.results[r], factor));
      joined.push_back(concat(parts, axis));
      continue;
    }
    if (join == Join::Again) {
      joined.push_back(reduced_again(op, args, parts));
      continue;
    }
    Tensor total = parts[0];
    for (size_t p = 1; p < parts.size() && join != Join::Same; ++p)
      total = combined(join, total, parts[p]);
    joined.push_back(total);
  }
  return joined;
}

}  // namespace oar
