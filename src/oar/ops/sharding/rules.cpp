#include "oar/ops/sharding/rules.h"

#include <algorithm>
#include <numeric>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"

namespace oar::sharding {
namespace {

// The largest factor that both sizes certainly have.
Dim common_factor(Dim a, Dim b) {
  if (a.is_known() && b.is_known()) return std::gcd(a.word(), b.word());
  if (floor_mod(a, b) == Dim(0)) return b;
  if (floor_mod(b, a) == Dim(0)) return a;
  return 1;
}

size_t skip_ones(const Shape& shape, size_t i) {
  while (i < shape.size() && shape[i] == Dim(1)) ++i;
  return i;
}

}  // namespace

void keep_axes(ShardPlan& plan, Ints whole) {
  PlanTensor &x = plan.operands[0], &out = plan.results[0];
  for (size_t i = 0; i < x.axes.size(); ++i)
    if (std::find(whole.begin(), whole.end(), static_cast<int64_t>(i)) == whole.end())
      plan.pass(x, i, out, i);
}

void made_axes(const PlanCall& call) {
  for (PlanTensor& out : call.plan.results)
    for (size_t i = 0; i < out.axes.size(); ++i) call.plan.put(out, i, call.plan.add(out.shape[i]));
}

void reshaped(const PlanCall& call) {
  PlanTensor &x = call.plan.operands[0], &out = call.plan.results[0];
  if (x.shape.numel() == Dim(0)) return;
  size_t i = skip_ones(x.shape, 0), k = skip_ones(out.shape, 0);
  while (i < x.shape.size() && k < out.shape.size()) {
    const Dim from = x.shape[i], to = out.shape[k];
    const Dim common = common_factor(from, to);
    if (!(common == Dim(1))) {
      const int factor = call.plan.add(common);
      call.plan.put(x, i, factor, floor_div(from, common));
      call.plan.put(out, k, factor, floor_div(to, common));
    }
    // Advance until both sides have the same number of elements before this point.
    Dim left = from, right = to;
    ++i, ++k;
    while (!(left == right) && (i < x.shape.size() || k < out.shape.size())) {
      const bool take_left =
          k == out.shape.size() || (i < x.shape.size() && left.hint() < right.hint());
      if (take_left)
        left = left * x.shape[i++];
      else
        right = right * out.shape[k++];
    }
    i = skip_ones(x.shape, i);
    k = skip_ones(out.shape, k);
  }
}

void stretched(const PlanCall& call) {
  PlanTensor &x = call.plan.operands[0], &out = call.plan.results[0];
  const size_t added = out.axes.size() - x.axes.size();
  for (size_t i = 0; i < out.axes.size(); ++i) {
    const int factor = call.plan.add(out.shape[i]);
    call.plan.put(out, i, factor);
    if (i >= added) call.plan.put(x, i - added, factor);
  }
}

void reduced(ShardPlan& plan, std::optional<Ints> axes, Join join) {
  PlanTensor &x = plan.operands[0], &out = plan.results[0];
  const auto over = normalise_axes(axes, x.shape.rank());
  const bool kept = x.axes.size() == out.axes.size();
  size_t to = 0;
  for (size_t i = 0; i < x.axes.size(); ++i) {
    const bool gone = std::find(over.begin(), over.end(), static_cast<int64_t>(i)) != over.end();
    if (gone)
      plan.put(x, i, plan.add(x.shape[i], join));
    else
      plan.pass(x, i, out, to);
    to += !gone || kept;
  }
}

void like_parameters(const PlanCall& call) {
  for (PlanTensor& out : call.plan.results)
    for (size_t i = 0; i < out.axes.size(); ++i) {
      const int factor = call.plan.add(out.shape[i]);
      call.plan.put(out, i, factor);
      for (PlanTensor& t : call.plan.operands)
        if (t.element == out.element && t.shape == out.shape) call.plan.put(t, i, factor);
    }
}

void looked_up(ShardPlan& plan, size_t table, size_t positions, size_t axis) {
  PlanTensor &rows = plan.operands[table], &index = plan.operands[positions];
  PlanTensor& out = plan.results[0];
  for (size_t i = 0; i < rows.axes.size(); ++i)
    if (i != axis) plan.pass(rows, i, out, i < axis ? i : i + index.axes.size() - 1);
  for (size_t i = 0; i < index.axes.size(); ++i) plan.pass(index, i, out, axis + i);
  const int masked = plan.add(rows.shape[axis], Join::Sum);
  plan.factors.back().positions = static_cast<int>(positions);
  plan.put(rows, axis, masked);
}

bool cuts(const PieceCall& piece, const PlanTensor& tensor) {
  return std::any_of(tensor.axes.begin(), tensor.axes.end(), [&](const PlanAxis& axis) {
    return axis.factor == static_cast<int>(piece.factor);
  });
}

Dim local_size(const PieceCall& piece, const PlanTensor& tensor, size_t axis) {
  const PlanAxis& a = tensor.axes[axis];
  if (a.factor != static_cast<int>(piece.factor)) return tensor.shape[axis];
  return piece.size * a.inner + Dim(piece.plan.writes(piece.factor) ? 1 : 0);
}

void set_result_shape(const PieceCall& piece, const char* parameter) {
  const PlanTensor& out = piece.plan.results[0];
  Shape shape;
  for (size_t i = 0; i < out.axes.size(); ++i) shape.push_back(local_size(piece, out, i));
  piece.frame.set(static_cast<size_t>(piece.op.schema().index_of(parameter)), Value(Dims(shape)));
}

LocaliseRule result_shape(const char* parameter) {
  return [parameter](const PieceCall& piece) { set_result_shape(piece, parameter); };
}

}  // namespace oar::sharding
