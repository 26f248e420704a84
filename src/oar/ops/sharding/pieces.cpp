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
  if (from.shape == to.shape) return mask;  // an element each
  Shape shape(to.axes.size(), 1);
  for (size_t i = 0; i < from.axes.size(); ++i) {
    if (mask.dims()[i] == Dim(1)) continue;
    const auto axis = axis_with(to, static_cast<size_t>(from.axes[i].factor));
    internal_check(from.axes[i].factor >= 0 && axis, "positions have an axis that results lack");
    shape[*axis] = mask.dims()[i];
  }
  return reshape(mask, shape);
}

// One more element along an axis.
Tensor with_spare(const Tensor& t, size_t axis) {
  Shape one = t.shape();
  one[axis] = 1;
  return concat(std::vector{t, zeros(one, t.dtype())}, static_cast<int64_t>(axis));
}

// Axes whose sizes depend on values have the largest size of all pieces; what a piece lacks is zero.
std::vector<Tensor> padded(std::vector<Tensor> parts) {
  Shape largest = parts[0].shape();
  for (const Tensor& t : parts)
    for (size_t i = 0; i < largest.size(); ++i)
      if (largest[i].value() < t.dims()[i].value()) largest[i] = t.dims()[i];
  for (Tensor& t : parts)
    for (size_t i = 0; i < largest.size(); ++i) {
      Shape more = t.shape();
      more[i] = largest[i] - more[i];
      const auto axis = static_cast<int64_t>(i);
      if (!(more[i] == Dim(0))) t = concat(std::vector{t, zeros(more, t.dtype())}, axis);
    }
  return parts;
}

Tensor combined(Join join, const Tensor& a, const Tensor& b) {
  if (join == Join::Max) return is_bool(a.dtype()) ? logical_or(a, b) : maximum(a, b);
  if (join == Join::Min) return is_bool(a.dtype()) ? logical_and(a, b) : minimum(a, b);
  return a + b;
}

}  // namespace

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

Frame localised(const Op& op, const Frame& cut_call, const ShardPlan& plan, const Piece& piece) {
  Frame frame = cut_call.clone();
  const PlanFactor& factor = plan.factors[piece.factor];
  if (factor.positions >= 0) {
    const PlanTensor& place = plan.operands[static_cast<size_t>(factor.positions)];
    const Tensor positions = from_the_start(tensor_at(frame.args(), place), factor.size);
    const auto number = [&](Dim d) { return full({}, Scalar(d.value()), positions.dtype()); };
    const bool writes = plan.writes(piece.factor);
    const Tensor elsewhere = writes ? number(piece.size) : zeros_like(positions);
    set_tensor(frame, place,
               where(falls_into(positions, piece), positions - number(piece.start), elsewhere));
    for (const PlanTensor& t : plan.operands)
      if (writes && axis_with(t, piece.factor))
        set_tensor(frame, t, with_spare(tensor_at(frame.args(), t), *axis_with(t, piece.factor)));
  }
  if (const OpDef& rules = rules_of(op).def(); rules.localise)
    rules.localise({op, frame, plan, piece.factor, piece.start, piece.size});
  return frame;
}

namespace {

Frame with_operands_cut(Args args, const ShardPlan& plan, const Piece& piece) {
  Frame frame(args);
  for (const PlanTensor& place : plan.operands)
    set_tensor(frame, place, cut(tensor_at(args, place), place, piece));
  return frame;
}

}  // namespace

Frame piece_call(const Op& op, Args args, const ShardPlan& plan, const Piece& piece) {
  const PlanFactor& factor = plan.factors[piece.factor];
  internal_check(!factor.by_calls && factor.positions < 0,
                 "{} is cut call by call, or with a mask: no single call is its piece", op.name());
  return localised(op, with_operands_cut(args, plan, piece), plan, piece);
}

Outputs run_cut(const Op& op, const Frame& cut_call, const ShardPlan& plan, const Piece& piece) {
  const Frame frame = localised(op, cut_call, plan, piece);
  Outputs outputs = dispatch(op, frame.args());
  const PlanFactor& factor = plan.factors[piece.factor];
  if (factor.positions < 0) return outputs;
  const PlanTensor& place = plan.operands[static_cast<size_t>(factor.positions)];
  if (plan.writes(piece.factor)) {
    for (size_t r = 0; r < outputs.size(); ++r)
      outputs[r] = cut(outputs[r], plan.results[r], {piece.factor, 0, piece.size});
    return outputs;
  }
  const Tensor positions = from_the_start(tensor_at(cut_call.args(), place), factor.size);
  const Tensor mask = falls_into(positions, piece);
  for (size_t r = 0; r < outputs.size(); ++r)
    if (!(outputs[r].numel() == Dim(0)))
      outputs[r] = where(aligned(mask, place, plan.results[r]), outputs[r], zeros_like(outputs[r]));
  return outputs;
}

Outputs run_piece(const Op& op, Args args, const ShardPlan& plan, const Piece& piece) {
  return run_cut_piece(op, args, with_operands_cut(args, plan, piece), plan, piece);
}

Outputs run_cut_piece(const Op& op, Args whole, const Frame& cut_call, const ShardPlan& plan,
                      const Piece& piece) {
  return plan.factors[piece.factor].by_calls ? run_calls(op, whole, cut_call, plan, piece)
                                             : run_cut(op, cut_call, plan, piece);
}

Tensor joined_parts(Join join, const PlanTensor* place, std::span<const Piece> pieces, Dim size,
                    std::vector<Tensor> parts, const Op& op, Args args) {
  if (join == Join::Same) return parts[0];
  if (join == Join::Again) return reduced_again(op, args, parts);
  if (join == Join::Concat)
    return concat(parts, static_cast<int64_t>(*axis_with(*place, pieces[0].factor)));
  for (size_t p = 0; p < pieces.size() && join == Join::Mean; ++p)
    parts[p] = parts[p] *
               (static_cast<double>(pieces[p].size.value()) / static_cast<double>(size.value()));
  if (join == Join::Sum) parts = padded(std::move(parts));
  Tensor total = parts[0];
  for (size_t p = 1; p < parts.size(); ++p) total = combined(join, total, parts[p]);
  return total;
}

Outputs join_pieces(const Op& op, Args args, const ShardPlan& plan, std::span<const Piece> pieces,
                    std::span<const Outputs> results) {
  const size_t factor = pieces[0].factor;
  const auto joined_at = [&](Join join, const PlanTensor* place, size_t r, const Op& by, Args of) {
    std::vector<Tensor> parts;
    for (const Outputs& of_piece : results) parts.push_back(of_piece[r]);
    return joined_parts(join, place, pieces, plan.factors[factor].size, std::move(parts), by, of);
  };
  Outputs joined;
  for (size_t r = 0; r < plan.results.size(); ++r) {
    const Join join = plan.join_of(factor, r);
    joined.push_back(join == Join::Inside ? Tensor()
                                          : joined_at(join, &plan.results[r], r, op, args));
  }
  if (plan.factors[factor].by_calls)
    finish_calls(
        op, args, plan, factor,
        [&](Join join, size_t r, const Op& by, Args of) {
          return joined_at(join, nullptr, r, by, of);
        },
        joined);
  return joined;
}

}  // namespace oar
