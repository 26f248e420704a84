// Indexing by tensors of positions and by masks: x[tensor].
#include "oar/ops/gen/index.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/blank.h"
#include "oar/ops/families/cost_rules.h"
#include "oar/ops/families/index_layout.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

bool is_mask(const Tensor& t) { return t.defined() && is_bool(t.dtype()); }

// How many axes of the indexed tensor an entry indexes.
int64_t axes_of(const Tensor& entry) { return is_mask(entry) ? entry.rank() : 1; }

void check_entries(Dims x, TensorList indices) {
  int64_t axis = 0;
  for (const Tensor& entry : indices) {
    const int64_t count = axes_of(entry);
    user_check(axis + count <= static_cast<int64_t>(x.size()), ErrorKind::OutOfRange,
               "the indices speak of {} axes; the tensor has {}.", axis + count, x.size());
    if (entry.defined())
      user_check(is_bool(entry.dtype()) || is_integral(entry.dtype()), ErrorKind::InvalidType,
                 "an index has dtype {}; it must be an integer or bool tensor.",
                 name_of(entry.dtype()));
    for (int64_t i = 0; is_mask(entry) && i < count; ++i)
      user_check(same(entry.dim(i), x[static_cast<size_t>(axis + i)]), ErrorKind::OutOfRange,
                 "a mask of shape {} does not fit axes {} to {} of a tensor of shape {}.",
                 to_string(entry.dims()), axis, axis + count - 1, to_string(x));
    axis += count;
  }
}

// Masks become the positions where they are true; a 0-d one selects from a new axis of size 1.
struct Positions {
  Tensor x;
  std::vector<Tensor> indices;
};

Positions positions_of(const Tensor& x, TensorList indices) {
  check_entries(x.dims(), indices);
  Positions p{x, {}};
  for (const Tensor& entry : indices) {
    if (!is_mask(entry)) {
      p.indices.push_back(entry);
      continue;
    }
    if (entry.rank() == 0) p.x = unsqueeze(p.x, {static_cast<int64_t>(p.indices.size())});
    const Tensor places = nonzero(entry.rank() == 0 ? reshape(entry, {1}) : entry);
    for (int64_t i = 0; i < std::max(entry.rank(), 1); ++i)
      p.indices.push_back(slice_view(places, SliceIndex().all().at(i)));
  }
  return p;
}

bool any_defined(TensorList indices) {
  return std::any_of(indices.begin(), indices.end(), [](const Tensor& t) { return t.defined(); });
}

const OpDef index_get_op = {
    .schema = "index_get(Tensor x, Tensor?[] indices) -> Tensor",
    .brief =
        "x[indices] for tensors of positions or masks, one per axis (a mask: one per its axes) from the "
        "first on; None is a whole axis.",
    .decompose = [](const args::index_get& a) -> Made {
      check_entries(a.x.dims(), a.indices);
      if (a.indices.size() == 1 && is_mask(a.indices[0]) && a.indices[0].rank() == a.x.rank() &&
          a.x.rank() > 0)
        return masked_select(a.x, a.indices[0]);
      const Positions p = positions_of(a.x, a.indices);
      return any_defined(p.indices) ? index_take(p.x, p.indices) : assign(a.x);
    },
    .numpy = "x[tuple(slice(None) if i is None else i for i in indices)]",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), Specs{ints(-4, 4, {5})})
              .add(t({4, 3}), Specs{ints(0, 4, {2, 1}), ints(-3, 3, {3})})
              .add(t({3, 2, 2}), Specs{ints(0, 3, {})})
              .add(t({3, 2}), Specs{ints(0, 3, {0})});
        },
};

struct Resolved {
  IndexLayout layout;
  Shape index;  // the indices' common shape
};

// Of index tensors without masks.
Resolved resolve_positions(Dims x, TensorList indices) {
  check_entries(x, indices);
  SmallVector<int64_t, 6> taken;
  Shape index;
  for (size_t i = 0; i < indices.size(); ++i) {
    if (!indices[i].defined()) continue;
    user_check(
        is_integral(indices[i].dtype()), ErrorKind::InvalidType,
        "an index has dtype {}; positions are integers.\nhint: Index with a mask by x[mask].",
        name_of(indices[i].dtype()));
    taken.push_back(static_cast<int64_t>(i));
    index = broadcast_shapes(index, indices[i].shape());
  }
  user_check(!taken.empty(), ErrorKind::InvalidArgument,
             "there is no index tensor among the indices.");
  return {index_layout(std::move(taken), static_cast<int64_t>(x.size())), index};
}

// The axes that are not indexed, in x and in the rightmost axes of another tensor.
void pass_free_axes(ShardPlan& plan, const IndexLayout& layout, size_t index_rank) {
  PlanTensor &x = plan.operands.front(), &out = plan.results[0];
  size_t to = 0;
  for (int64_t axis : layout.before) plan.pass(x, static_cast<size_t>(axis), out, to++);
  to += index_rank;
  for (int64_t axis : layout.after) plan.pass(x, static_cast<size_t>(axis), out, to++);
}

void plan_take(const PlanCall& c) {
  const args::index_take a(c.args);
  const Resolved r = resolve_positions(a.x.dims(), a.indices);
  pass_free_axes(c.plan, r.layout, r.index.size());
  PlanTensor& out = c.plan.results[0];
  for (size_t i = 0; i < r.index.size(); ++i) {
    const int factor = c.plan.add(r.index[i]);
    c.plan.put(out, r.layout.before.size() + i, factor);
    for (PlanTensor& index : std::span(c.plan.operands).subspan(1))
      if (const size_t missing = r.index.size() - index.axes.size(); i >= missing)
        c.plan.put(index, i - missing, factor);
  }
  for (size_t k = 0; k < r.layout.taken.size(); ++k) {
    const auto axis = static_cast<size_t>(r.layout.taken[k]);
    const int factor = c.plan.add(c.plan.operands[0].shape[axis], Join::Sum);
    c.plan.factors.back().positions = static_cast<int>(1 + k);
    c.plan.put(c.plan.operands[0], axis, factor);
  }
}

const OpDef index_take_op = {
    .schema = "index_take(Tensor x, Tensor?[] indices) -> Tensor",
    .brief = "x[indices] for tensors of positions.",
    .infer = [](const args::index_take& a) -> Metas {
      const Resolved r = resolve_positions(a.x.dims(), a.indices);
      return TensorMeta{a.x.dtype(), indexed_shape(r.layout, a.x.dims(), r.index)};
    },
    .cost = [](const CostCall& c) { return lookup_cost(c, 0); },
    .vjp = [](const vjp::index_take& v) -> Grads {
      Grads grads(index_put(blank(v.x.dims(), v.grad.dtype()), v.indices, v.grad, true));
      for (size_t i = 0; i < v.indices.size(); ++i) grads.push_back(Tensor());
      return grads;
    },
    .saves = "x:shape indices",
    .plan = plan_take,
    .numpy = "x[tuple(slice(None) if i is None else i for i in indices)]",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), Specs{ints(-4, 4, {5})})
              .add(t({4, 3}), Specs{ints(0, 4, {2, 1}), ints(-3, 3, {3})})
              .add(t({3, 2, 2}), Specs{ints(0, 3, {}, DType::Int32)})
              .add(t({3, 2}), Specs{ints(0, 3, {0})})
              .add(t({2, 0}), Specs{ints(0, 2, {3})});
        },
};

const OpDef last_writes_op = {
    .schema = "last_writes(Tensor?[] indices, shape shape) -> Tensor",
    .brief =
        "Which of the positions that `indices` name in a tensor of the given shape are not named again "
        "later: the writes that last.",
    .infer = [](const args::last_writes& a) -> Metas {
      return TensorMeta{DType::Bool, resolve_positions(a.shape, a.indices).index};
    },
    .shard = "whole: a later write anywhere undoes an earlier one",
    .traits = Trait::NoGrad,
    .numpy =
        "(lambda p: np.array([q not in p[i + 1:] for i, q in enumerate(p)], bool).reshape("
        "np.broadcast_shapes(*[i.shape for i in indices])))(list(zip(*[np.broadcast_to(i % n, "
        "np.broadcast_shapes(*[j.shape for j in indices])).ravel().tolist() for i, n in zip(indices, shape)])))",
    .samples =
        [] {
          return Samples()
              .add(Specs{ints(-4, 4, {6})}, IntVector{4})
              .add(Specs{ints(0, 2, {2, 1}), ints(0, 2, {3})}, IntVector{2, 2});
        },
};

bool any_mask(TensorList indices) { return std::any_of(indices.begin(), indices.end(), is_mask); }

// A mask is cut with the axes of x that it covers if one value, or one for each of the other axes, is
// written wherever it is true.
void plan_put_masked(const PlanCall& c) {
  const args::index_put a(c.args);
  PlanTensor &x = c.plan.operands.front(), &value = c.plan.operands.back();
  int64_t named = 0;
  for (const Tensor& entry : a.indices) named += axes_of(entry);
  const bool one =
      a.indices.size() == 1 && value.axes.size() + static_cast<size_t>(named) <= x.axes.size();
  for (size_t axis = 0; axis < x.axes.size(); ++axis) {
    const bool covered = static_cast<int64_t>(axis) < named;
    if (covered && !one) continue;
    c.plan.pass(x, axis, c.plan.results[0], axis);
    const size_t from_end = x.axes.size() - axis;
    if (covered)
      c.plan.put(c.plan.operands[1], axis, x.axes[axis].factor);
    else if (from_end <= value.axes.size() && x.axes[axis].factor >= 0)
      c.plan.put(value, value.axes.size() - from_end, x.axes[axis].factor);
  }
}

// Free axes pass through. An indexed axis is cut in x, and a piece does the writes that fall into it. The axes
// of the indices are cut in `value`: some of the writes are a part of a sum. If the last write lasts, every
// piece has all indices, to know which of its writes do.
void plan_put(const PlanCall& c) {
  const args::index_put a(c.args);
  if (any_mask(a.indices)) return plan_put_masked(c);
  const Resolved r = resolve_positions(a.x.dims(), a.indices);
  PlanTensor &x = c.plan.operands.front(), &value = c.plan.operands.back();
  PlanTensor& out = c.plan.results[0];
  const Shape whole = indexed_shape(r.layout, a.x.dims(), r.index);
  const auto put_value = [&](size_t axis, int factor) {  // of the shape that value is broadcast to
    const size_t missing = whole.size() - value.axes.size();
    if (axis < missing || value.shape[axis - missing] == Dim(1)) return false;
    c.plan.put(value, axis - missing, factor);
    return true;
  };
  const auto pass = [&](int64_t axis, size_t of_value) {
    c.plan.pass(x, static_cast<size_t>(axis), out, static_cast<size_t>(axis));
    put_value(of_value, static_cast<int>(c.plan.factors.size()) - 1);
  };
  size_t at = 0;
  for (int64_t axis : r.layout.before) pass(axis, at++);
  const size_t first = at;
  at += r.index.size();
  for (int64_t axis : r.layout.after) pass(axis, at++);
  if (c.op.has(Trait::Inplace)) return;  // the other pieces do not write to x itself
  for (size_t k = 0; k < r.layout.taken.size(); ++k) {
    const int factor = c.plan.add(x.shape[static_cast<size_t>(r.layout.taken[k])]);
    c.plan.factors.back().positions = static_cast<int>(1 + k);
    c.plan.put(x, static_cast<size_t>(r.layout.taken[k]), factor);
    c.plan.put(out, static_cast<size_t>(r.layout.taken[k]), factor);
  }
  for (size_t i = 0; i < r.index.size(); ++i) {
    const int factor = c.plan.add(r.index[i], Join::Sum);
    put_value(first + i, factor);
    for (size_t k = 0; a.accumulate && k < r.layout.taken.size(); ++k) {
      PlanTensor& index = c.plan.operands[1 + k];
      if (const size_t missing = r.index.size() - index.axes.size(); i >= missing)
        c.plan.put(index, i - missing, factor);
    }
  }
}

// The part of a tensor that is broadcast to `rank` axes, along one of those.
Tensor part_along(const Tensor& t, size_t axis, size_t rank, const PieceCall& piece) {
  const size_t missing = rank - static_cast<size_t>(t.rank());
  if (axis < missing || t.dims()[axis - missing] == Dim(1)) return t;
  SliceIndex index;
  index.skip(static_cast<int64_t>(axis - missing));
  return slice_view(t, index.range(piece.start, piece.start + piece.size));
}

// Some of the writes: x is in the first part of the sum only, without the elements that are replaced.
void localise_put(const PieceCall& piece) {
  const PlanTensor& place = piece.plan.operands.back();
  const args::index_put a(piece.frame.args());
  if (any_mask(a.indices) || piece.plan.writes(piece.factor) ||
      sharding::cuts(piece, piece.plan.results[0]))
    return;
  Tensor x = a.x;
  if (!a.accumulate) {
    const Resolved r = resolve_positions(a.x.dims(), a.indices);
    const Shape whole = indexed_shape(r.layout, a.x.dims(), r.index);
    size_t axis = 0;  // of the indices
    for (size_t i = 0; i < place.axes.size(); ++i)
      if (place.axes[i].factor == static_cast<int>(piece.factor))
        axis = i + whole.size() - place.axes.size() - r.layout.before.size();
    Tensor last = part_along(last_writes(a.indices, a.x.dims()), axis, r.index.size(), piece);
    Shape aligned = last.shape();
    for (size_t i = 0; i < r.layout.after.size(); ++i) aligned.push_back(1);
    last = reshape(last, aligned);
    x = index_put(x, a.indices, zeros({}, x.dtype()));
    std::vector<Tensor> own(a.indices.begin(), a.indices.end());
    for (Tensor& t : own)
      if (t.defined()) t = part_along(t, axis, r.index.size(), piece);
    const Tensor value = a.value.dtype() == x.dtype() ? a.value : cast(a.value, x.dtype());
    piece.frame.set_tensor(2, zero_unless(last, value));
    piece.frame.set_tensors(1, std::move(own));
    piece.frame.set(3, true);
  }
  piece.frame.set_tensor(0, piece.start == Dim(0) ? x : zeros_like(x));
}

Metas infer_index_put(const Tensor& x, TensorList indices, const Tensor& value) {
  check_entries(x.dims(), indices);
  user_check(any_defined(indices), ErrorKind::InvalidArgument,
             "there is no index tensor among the indices.");
  if (!any_mask(indices)) {
    const Resolved r = resolve_positions(x.dims(), indices);
    static_cast<void>(broadcast_target(value, indexed_shape(r.layout, x.dims(), r.index)));
  }
  return infer::like(x);
}

// The gradient of what was written, for each write that was not overwritten.
Tensor gathered_gradient(const Tensor& grad, TensorList indices, const Tensor& value,
                         bool accumulate) {
  const Positions p = positions_of(grad, indices);
  Tensor part = index_take(p.x, p.indices);
  const bool repeats = std::any_of(indices.begin(), indices.end(), [](const Tensor& t) {
    return t.defined() && !is_mask(t) && !(t.numel() == Dim(1));
  });
  if (!accumulate && repeats) {
    const Resolved r = resolve_positions(p.x.dims(), p.indices);
    Shape aligned = r.index;
    for (size_t i = 0; i < r.layout.after.size(); ++i) aligned.push_back(1);
    part = zero_unless(reshape(last_writes(p.indices, p.x.dims()), aligned), part);
  }
  part = sum_to(part, value.dims());
  return part.dtype() == value.dtype() ? part : cast(part, value.dtype());
}

template <class Call>
Grads index_put_vjp(const Call& v) {
  Grads grads(!v.needs(0)    ? Tensor()
              : v.accumulate ? v.grad
                             : index_put(v.grad, v.indices, zeros({}, v.grad.dtype())));
  for (size_t i = 0; i < v.indices.size(); ++i) grads.push_back(Tensor());
  const bool wanted = v.needs(1 + v.indices.size());
  grads.push_back(wanted ? gathered_gradient(v.grad, v.indices, v.value, v.accumulate) : Tensor());
  return grads;
}

const OpDef index_put_op = {
    .schema =
        "index_put(Tensor x, Tensor?[] indices, Tensor value, bool accumulate = False) -> Tensor",
    .brief =
        "A copy of x in which the places x[indices] hold `value`, broadcast and cast; or, with accumulate, "
        "have it added. The last of several writes to a place lasts.",
    .infer = [](const args::index_put& a) { return infer_index_put(a.x, a.indices, a.value); },
    .vjp = index_put_vjp<vjp::index_put>,
    .saves = "indices value:shape",
    .plan = plan_put,
    .localise = localise_put,
    .numpy =
        "(lambda out, at: ((np.add.at(out, at, value) if accumulate else out.__setitem__(at, value)), out)[1])("
        "x.copy(), tuple(slice(None) if i is None else i for i in indices))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), Specs{ints(-4, 4, {5})}, t({5, 3}))
              .add(t({4, 3}), Specs{ints(-4, 4, {5})}, t({5, 3}), true)
              .add(t({4, 3}), Specs{bools({4})}, t({3}))
              .add(t({4, 3}), Specs{bools({4, 3})}, t({}), true)
              .add(t({4, 3}), Specs{ints(0, 4, {2, 1}), ints(-3, 3, {3})}, t({2, 3}), true)
              .add(t({4, 3}), Specs{ints(0, 4, {6}), ints(0, 3, {6})}, t({6}))
              .add(t({3, 2}), Specs{ints(0, 3, {0})}, t({2}));
        },
    .python = "oar Tensor",
};

const OpDef index_put_inplace_op = {
    .schema =
        "index_put_(Tensor(a!) x, Tensor?[] indices, Tensor value, bool accumulate = False) -> Tensor(a!)",
    .brief = "Writes `value`, broadcast and cast, to the places x[indices], or adds it to them.",
    .infer = [](const args::index_put_& a) { return infer_index_put(a.x, a.indices, a.value); },
    .vjp = index_put_vjp<vjp::index_put_>,
    .saves = "indices value:shape",
    .plan = plan_put,
    .numpy = index_put_op.numpy,
    .samples = index_put_op.samples,
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(index, &index_get_op, &index_take_op, &last_writes_op, &index_put_op,
           &index_put_inplace_op)

}  // namespace oar
