// Paddle's names for reading and writing by positions, in terms of index_take and index_put.
#include "oar/ops/gen/gather.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/index.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/gen/split.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

// Index tensors with one at `axis` only.
std::vector<Tensor> at_axis(int64_t axis, const Tensor& index) {
  std::vector<Tensor> indices(static_cast<size_t>(axis) + 1);
  indices.back() = index;
  return indices;
}

// One position per row: a vector, or a column of them.
Tensor row_index(const Tensor& index) {
  if (index.rank() == 2 && index.dim(1) == Dim(1)) return reshape(index, {index.dim(0)});
  user_check(index.rank() <= 1, ErrorKind::InvalidArgument,
             "index has shape {}; it must be a number, a vector or a column.",
             to_string(index.dims()));
  return index;
}

const OpDef gather_op = {
    .schema = "gather(Tensor x, Tensor index, int? axis = None) -> Tensor",
    .brief = "The slices of x along an axis (the first by default) that index names.",
    .decompose = [](const args::gather& a) -> Made {
      return index_take(
          a.x, at_axis(normalise_axis(a.axis.value_or(0), a.x.rank()), row_index(a.index)));
    },
    .numpy = "np.take(x, index, axis or 0)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), ints(0, 4, {5}))
              .add(t({2, 4, 3}), ints(-4, 4, {2}), 1)
              .add(t({4, 3}), ints(0, 3, {}), -1)
              .add(t({4, 3}), ints(0, 4, {0}));
        },
    .python = "oar Tensor",
    .onnx = "Gather",
};

const OpDef index_select_op = {
    .schema = "index_select(Tensor x, Tensor index, int axis = 0) -> Tensor",
    .brief = "The slices of x along an axis that the vector `index` names.",
    .decompose = [](const args::index_select& a) -> Made {
      user_check(a.index.rank() == 1, ErrorKind::InvalidArgument,
                 "index has shape {}; it must be a vector.", to_string(a.index.dims()));
      return index_take(a.x, at_axis(normalise_axis(a.axis, a.x.rank()), a.index));
    },
    .numpy = "np.take(x, index, axis)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), ints(0, 4, {5}))
              .add(t({2, 4, 3}), ints(-4, 4, {2}, DType::Int32), 1)
              .add(t({0, 3}), ints(0, 3, {2}), -1);
        },
    .python = "oar Tensor",
};

// The last axis of a list of coordinates, as one index tensor per coordinate.
std::vector<Tensor> coordinates(const Tensor& x, const Tensor& index) {
  user_check(index.rank() >= 1, ErrorKind::InvalidArgument,
             "index is 0-d; its last axis must list coordinates.");
  user_check(specialised(index.dim(-1)) <= x.rank(), ErrorKind::InvalidArgument,
             "index of shape {} has {} coordinates for a tensor of rank {}.",
             to_string(index.dims()), index.dim(-1).str(), x.rank());
  return unbind(index, -1);
}

const OpDef gather_nd_op = {
    .schema = "gather_nd(Tensor x, Tensor index) -> Tensor",
    .brief = "The slices of x at the coordinates that the last axis of index lists.",
    .decompose = [](const args::gather_nd& a) -> Made {
      const std::vector<Tensor> at = coordinates(a.x, a.index);
      if (!at.empty()) return index_take(a.x, at);
      Shape shape(a.index.dims().first(static_cast<size_t>(a.index.rank() - 1)));
      for (Dim d : a.x.dims()) shape.push_back(d);
      return assign(broadcast_to(a.x, shape));
    },
    .numpy =
        "x[tuple(np.moveaxis(index, -1, 0))] if index.shape[-1] else np.broadcast_to(x, index.shape[:-1] + x.shape).copy()",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), ints(-3, 3, {2, 2}))
              .add(t({3, 4, 2}), ints(0, 3, {2, 3, 1}))
              .add(t({3, 2}), ints(0, 2, {2}))
              .add(t({2, 2}), ints(0, 2, {3, 0}));
        },
    .python = "oar Tensor",
    .onnx = "GatherND",
};

const OpDef index_sample_op = {
    .schema = "index_sample(Tensor x, Tensor index) -> Tensor",
    .brief = "From each row of x the elements that the same row of index names.",
    .decompose = [](const args::index_sample& a) -> Made {
      return take_along_axis(a.x, a.index, 1);
    },
    .numpy = "np.take_along_axis(x, index, 1)",
    .samples =
        [] {
          return Samples().add(t({3, 4}), ints(0, 4, {3, 2})).add(t({2, 3}), ints(0, 3, {2, 5}));
        },
    .python = "oar Tensor",
};

const OpDef take_op = {
    .schema = "take(Tensor x, Tensor index, str mode = 'raise') -> Tensor",
    .brief =
        "Elements of x, seen as a flat list, at the positions in index. Positions out of range are an error, "
        "or with mode 'wrap' start again, with 'clip' stop at the ends.",
    .infer = [](const args::take& a) -> Metas {
      user_check(is_integral(a.index.dtype()) && a.index.dtype() != DType::Bool,
                 ErrorKind::InvalidType, "index has dtype {}; it must be an integer type.",
                 name_of(a.index.dtype()));
      return TensorMeta{a.x.dtype(), a.index.shape()};
    },
    .decompose = [](const args::take& a) -> Made {
      user_check(a.mode == "raise" || a.mode == "wrap" || a.mode == "clip",
                 ErrorKind::InvalidArgument, "mode is '{}'; it can be raise, wrap or clip.",
                 a.mode);
      const Tensor flat = reshape(a.x, {a.x.numel()});
      if (a.mode == "raise") return index_take(flat, {a.index});
      const Tensor size = full({}, Scalar(specialised(a.x.numel())), a.index.dtype());
      const Tensor index = a.mode == "wrap" ? remainder(a.index, size)
                                            : minimum(maximum(a.index, zeros_like(size)), size - 1);
      return index_take(flat, {index});
    },
    .numpy = "np.take(x, index, mode=mode)",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), ints(-12, 12, {2, 3}))
              .add(t({5}), ints(-9, 9, {4}), "wrap")
              .add(t({2, 2}), ints(-9, 9, {6}), "clip")
              .add(t({}), ints(0, 1, {2}));
        },
    .python = "oar Tensor",
};

// The rows of x are cut, and a piece does the writes that fall into it. The updates are cut as well: the rows
// that are written, and those that are not, form a sum.
void plan_scatter(const PlanCall& c) {
  PlanTensor &x = c.plan.operands[0], &updates = c.plan.operands[2], &out = c.plan.results[0];
  for (size_t i = 1; i < x.axes.size(); ++i) {
    c.plan.pass(x, i, out, i);
    if (const size_t from_end = x.axes.size() - i; from_end <= updates.axes.size())
      c.plan.put(updates, updates.axes.size() - from_end,
                 static_cast<int>(c.plan.factors.size()) - 1);
  }
  if (x.axes.empty() || c.op.has(Trait::Inplace)) return;  // a piece writes to a copy of its rows
  const int rows = c.plan.add(x.shape[0]);
  c.plan.factors.back().positions = 1;
  c.plan.put(x, 0, rows);
  c.plan.put(out, 0, rows);
  if (!c.plan.operands[1].axes.empty() && updates.axes.size() == x.axes.size())
    c.plan.put(updates, 0, c.plan.add(updates.shape[0], Join::Sum));
}

// A piece with some of the updates has all of the index, to know which rows others write and which of its
// writes last. Rows that are not written are in the first piece.
void localise_scatter(const PieceCall& piece) {
  if (piece.plan.writes(piece.factor) || sharding::cuts(piece, piece.plan.results[0])) return;
  const args::scatter a(piece.frame.args());
  const Tensor index = row_index(a.index);
  const auto own = [&](const Tensor& t) {
    return slice_view(t, SliceIndex().range(piece.start, piece.start + piece.size));
  };
  Tensor updates = a.updates;
  if (a.overwrite) {
    Shape column{piece.size};
    for (int i = 1; i < updates.rank(); ++i) column.push_back(1);
    updates = zero_unless(reshape(own(last_writes({index}, a.x.dims())), column), updates);
  }
  const Tensor x =
      piece.start == Dim(0) ? index_put(a.x, {index}, zeros({}, a.x.dtype())) : zeros_like(a.x);
  const Tensor rows = own(index);
  piece.frame.set_tensor(0, x);
  piece.frame.set_tensor(1, rows);
  piece.frame.set_tensor(2, updates);
  piece.frame.set(3, false);
}

const OpDef scatter_op = {
    .schema = "scatter(Tensor x, Tensor index, Tensor updates, bool overwrite = True) -> Tensor",
    .brief =
        "A copy of x with the rows that index names replaced by `updates`; without overwrite, by the sum of "
        "all updates for a row.",
    .decompose = [](const args::scatter& a) -> Made {
      const Tensor index = row_index(a.index);
      if (a.overwrite) return index_put(a.x, {index}, a.updates);
      return index_put(index_put(a.x, {index}, zeros({}, a.x.dtype())), {index}, a.updates, true);
    },
    .plan = plan_scatter,
    .localise = localise_scatter,
    .traits = Trait::HasInplace,
    .numpy =
        "(lambda out: (out.__setitem__(index, updates if overwrite else 0), "
        "None if overwrite else np.add.at(out, index, updates), out)[2])(x.copy())",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), ints(0, 4, {3}), t({3, 3}))
              .add(t({4, 3}), ints(0, 4, {5}), t({5, 3}), false)
              .add(t({4}), ints(0, 4, {2}), t({2}))
              .add(t({3, 2}), ints(0, 3, {0}), t({0, 2}));
        },
    .python = "oar Tensor",
};

const OpDef scatter_nd_add_op = {
    .schema = "scatter_nd_add(Tensor x, Tensor index, Tensor updates) -> Tensor",
    .brief = "x with `updates` added at the coordinates that the last axis of index lists.",
    .decompose = [](const args::scatter_nd_add& a) -> Made {
      const std::vector<Tensor> at = coordinates(a.x, a.index);
      if (!at.empty()) return index_put(a.x, at, a.updates, true);
      return a.x + sum_to(a.updates, a.x.dims());
    },
    .numpy =
        "(lambda out: (np.add.at(out, tuple(np.moveaxis(index, -1, 0)), updates), out)[1])(x.copy())",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), ints(-3, 3, {5, 2}), t({5}))
              .add(t({4, 3}), ints(0, 4, {2, 2, 1}), t({2, 2, 3}))
              .add(t({3}), ints(0, 3, {0, 1}), t({0}));
        },
    .python = "oar Tensor",
};

const OpDef scatter_nd_op = {
    .schema = "scatter_nd(Tensor index, Tensor updates, shape shape) -> Tensor",
    .brief =
        "Zeros of a shape with `updates` added at the coordinates that the last axis of index lists.",
    .infer = [](const args::scatter_nd& a) -> Metas {
      return TensorMeta{a.updates.dtype(), Shape(a.shape)};
    },
    .decompose = [](const args::scatter_nd& a) -> Made {
      return scatter_nd_add(zeros(a.shape, a.updates.dtype()), a.index, a.updates);
    },
    .numpy =
        "(lambda out: (np.add.at(out, tuple(np.moveaxis(index, -1, 0)), updates), out)[1])(np.zeros(shape, updates.dtype))",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 3, {5, 1}), t({5, 2}), IntVector{3, 2})
              .add(ints(0, 2, {3, 2}), t({3}), IntVector{2, 2});
        },
    .python = "oar",
};

const OpDef index_add_op = {
    .schema = "index_add(Tensor x, Tensor index, int axis, Tensor value) -> Tensor",
    .brief = "x with the slices of `value` added to its slices along an axis that index names.",
    .decompose = [](const args::index_add& a) -> Made {
      return index_put(a.x, at_axis(normalise_axis(a.axis, a.x.rank()), row_index(a.index)),
                       a.value, true);
    },
    .traits = Trait::HasInplace,
    .numpy =
        "(lambda out: (np.add.at(out, (slice(None),) * (axis % x.ndim) + (index,), value), out)[1])(x.copy())",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), ints(0, 4, {5}), 0, t({5, 3}))
              .add(t({2, 3, 2}), ints(0, 3, {2}), -2, t({2, 2, 2}))
              .add(t({3}), ints(0, 3, {0}), 0, t({0}));
        },
    .python = "oar Tensor",
};

const OpDef index_fill_op = {
    .schema = "index_fill(Tensor x, Tensor index, int axis, Tensor value) -> Tensor",
    .brief = "x with one value in all slices along an axis that index names.",
    .decompose = [](const args::index_fill& a) -> Made {
      return index_put(a.x, at_axis(normalise_axis(a.axis, a.x.rank()), row_index(a.index)),
                       a.value);
    },
    .traits = Trait::HasInplace,
    .numpy =
        "(lambda out: (out.__setitem__((slice(None),) * (axis % x.ndim) + (index,), value), out)[1])(x.copy())",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), ints(0, 4, {2}), 0, t({}))
              .add(t({2, 3, 2}), ints(-3, 3, {2}), -2, t({}));
        },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(gather, &gather_op, &index_select_op, &gather_nd_op, &index_sample_op, &take_op,
           &scatter_op, &scatter_nd_add_op, &scatter_nd_op, &index_add_op, &index_fill_op)

}  // namespace oar
