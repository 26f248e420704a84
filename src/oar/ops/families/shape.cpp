// Views of the same elements in another shape.
#include "oar/ops/gen/shape.h"

#include <algorithm>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/canonical_rules.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

Metas first_with_shape(const Tensor& x, Shape shape) {
  return TensorMeta{x.dtype(), std::move(shape)};
}

// Of reshapes in a row the last one counts. Its 0 and -1 refer to sizes of the one before, so they become sizes.
void canonical_reshape(const CanonicalCall& c) {
  const GraphValue x = c.operand("x");
  if (c.op_of(x) == &c.op()) {
    c.set_attribute("shape", Value(c.shape(c.result())));
    c.set_operand("x", c.operands_of(x, "x")[0]);
  }
  canonical::same_type(c);
}

// Transposes in a row are one.
void canonical_transpose(const CanonicalCall& c) {
  const GraphValue x = c.operand("x");
  const auto rank = static_cast<int64_t>(c.shape(x).size());
  const auto axes_of = [&](GraphValue value) {
    IntVector axes;
    const Value perm = c.attribute_of(value, "perm");
    for (int64_t axis : perm.as_ints()) axes.push_back(axis < 0 ? axis + rank : axis);
    return axes;
  };
  IntVector axes = axes_of(c.result());
  if (c.op_of(x) == &c.op()) {
    const IntVector before = axes_of(x);
    for (int64_t& axis : axes) axis = before[static_cast<size_t>(axis)];
    c.set_operand("x", c.operands_of(x, "x")[0]);
    c.set_attribute("perm", Value(Ints(axes.data(), axes.size())));
  }
  for (size_t i = 0; i < axes.size(); ++i)
    if (axes[i] != static_cast<int64_t>(i)) return;
  c.replace_by(c.operand("x"));
}

const OpDef reshape_op = {
    .schema = "reshape(Tensor(a) x, shape shape) -> Tensor(a)",
    .brief =
        "The same elements in the same order in another shape: a view if the layout allows "
        "it. One size may be -1 (the rest), 0 keeps the size at its position.",
    .infer = [](const args::reshape& a) -> Metas {
      return first_with_shape(a.x, resolve_reshape(a.x.shape(), a.shape));
    },
    .view =
        [](const args::reshape& a) {
          return reshape_view(a.x, resolve_reshape(a.x.shape(), a.shape));
        },
    .vjp = [](const vjp::reshape& v) -> Grads { return reshape(v.grad, v.x.dims()); },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::reshape a(c.args);
      return reshape(a.x,
                     behind_batch(c.size, resolve_reshape(Shape(a.x.dims().subspan(1)), a.shape)));
    },
    .plan = sharding::reshaped,
    .localise = sharding::result_shape("shape"),
    .canonical = canonical_reshape,
    .traits = Trait::Linear,
    .numpy = "x.reshape([x.shape[i] if d == 0 and x.size else d for i, d in enumerate(shape)])",
    .samples =
        [] {
          return Samples()
              .add(t({4, 6}), IntVector{2, -1})
              .add(t({2, 3, 4}), IntVector{0, 12})
              .add(t({1}), IntVector{})
              .add(t({0, 3}), IntVector{3, 0})
              .add(t({}), IntVector{1, 1});
        },
    .python = "oar Tensor",
    .onnx = "Reshape",
};

const OpDef transpose_op = {
    .schema = "transpose(Tensor(a) x, int[] perm) -> Tensor(a)",
    .brief = "The axes in another order: axis i of the result is axis perm[i] of x. A view.",
    .infer = [](const args::transpose& a) -> Metas {
      Shape shape;
      for (int64_t axis : checked_permutation(a.perm, a.x.rank())) shape.push_back(a.x.dim(axis));
      return first_with_shape(a.x, shape);
    },
    .view = [](const args::transpose& a) -> std::optional<ViewSpec> {
      ViewSpec spec;
      for (int64_t axis : checked_permutation(a.perm, a.x.rank())) {
        spec.shape.push_back(a.x.dim(axis));
        spec.strides.push_back(a.x.strides()[static_cast<size_t>(axis)]);
      }
      return spec;
    },
    .vjp = [](const vjp::transpose& v) -> Grads {
      const auto perm = checked_permutation(v.perm, static_cast<int>(v.perm.size()));
      SmallVector<int64_t, 6> inverse;
      inverse.resize(perm.size());
      for (size_t i = 0; i < perm.size(); ++i)
        inverse[static_cast<size_t>(perm[i])] = static_cast<int64_t>(i);
      return transpose(v.grad, inverse);
    },
    .batch = [](const BatchCall& c) -> Made {
      const args::transpose a(c.args);
      SmallVector<int64_t, 6> perm{0};
      for (int64_t axis : checked_permutation(a.perm, a.x.rank() - 1)) perm.push_back(axis + 1);
      return transpose(a.x, perm);
    },
    .plan =
        [](const PlanCall& c) {
          const auto perm =
              checked_permutation(args::transpose(c.args).perm, c.plan.operands[0].shape.rank());
          for (size_t i = 0; i < perm.size(); ++i)
            c.plan.pass(c.plan.operands[0], static_cast<size_t>(perm[i]), c.plan.results[0], i);
        },
    .canonical = canonical_transpose,
    .traits = Trait::Linear,
    .numpy = "np.transpose(x, perm)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 4}), IntVector{2, 0, 1})
              .add(t({3, 5}), IntVector{-1, 0})
              .add(t({}), IntVector{})
              .add(t({0, 3}), IntVector{1, 0});
        },
    .python = "oar Tensor",
    .onnx = "Transpose",
};

const OpDef view_as_op = {
    .schema = "view_as(Tensor(a) x, Tensor other) -> Tensor(a)",
    .brief = "x in the shape of another tensor.",
    .decompose = [](const args::view_as& a) -> Made { return reshape(a.x, a.other.dims()); },
    .plan =
        [](const PlanCall& c) {
          sharding::reshaped(c);
          c.plan.operands[1].axes = c.plan.results[0].axes;  // only its shape is used
        },
    .numpy = "x.reshape(other.shape)",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), t({2, 6}))
              .add(t({4, 6}), t({2, 12}))
              .add(t({1}), t({}))
              .add(t({0, 3}), t({3, 0}));
        },
    .python = "oar Tensor",
};

// Axes of size 1 among the given ones (None: all); others stay, as in Paddle.
Shape squeezed_shape(const Tensor& x, std::optional<Ints> axis) {
  const bool all = !axis || axis->empty();
  SmallVector<int64_t, 6> chosen;
  if (!all && (x.rank() > 0 || (*axis)[0] < -1 || (*axis)[0] > 0))
    for (int64_t i : *axis) chosen.push_back(normalise_axis(i, x.rank()));
  Shape shape;
  for (int64_t i = 0; i < x.rank(); ++i) {
    const bool named = all || std::find(chosen.begin(), chosen.end(), i) != chosen.end();
    if (!named || !same(x.dim(i), Dim(1))) shape.push_back(x.dim(i));
  }
  return shape;
}

const OpDef squeeze_op = {
    .schema = "squeeze(Tensor(a) x, int[]? axis = None) -> Tensor(a)",
    .brief = "Without the axes of size 1, or without those of them that `axis` names.",
    .decompose = [](const args::squeeze& a) -> Made {
      return reshape(a.x, squeezed_shape(a.x, a.axis));
    },
    .plan =
        [](const PlanCall& c) {
          const args::squeeze a(c.args);
          sharding::reshaped(c);
          if (c.plan.results[0].axes.size() < c.plan.operands[0].axes.size()) return;
          // Nothing is removed, and nothing may be removed from a piece of size 1: the named axes stay whole.
          for (int64_t axis : normalise_axes(a.axis, a.x.rank())) {
            c.plan.operands[0].axes[static_cast<size_t>(axis)] = {};
            c.plan.results[0].axes[static_cast<size_t>(axis)] = {};
          }
        },
    .localise =
        [](const PieceCall& piece) {
          // By name: a piece may have size 1 where the whole does not.
          const PlanTensor& x = piece.plan.operands[0];
          if (piece.plan.results[0].axes.size() == x.axes.size()) return;
          const args::squeeze a(piece.frame.args());
          std::vector<int64_t> gone;
          for (int64_t axis : normalise_axes(a.axis, x.shape.rank()))
            if (x.shape[static_cast<size_t>(axis)] == Dim(1)) gone.push_back(axis);
          piece.frame.set(1, Ints(gone));
        },
    .traits = Trait::Linear,
    .numpy =
        "x.reshape([d for i, d in enumerate(x.shape) if d != 1 or not (not axis or i in axis or i - x.ndim in axis)])",
    .samples =
        [] {
          return Samples()
              .add(t({1, 3, 1, 2}))
              .add(t({1, 3, 1}), IntVector{0, -1})
              .add(t({2, 1}), IntVector{0})
              .add(t({}))
              .add(t({0, 1}));
        },
    .python = "oar Tensor",
    .onnx = "Squeeze",
};

const OpDef unsqueeze_op = {
    .schema = "unsqueeze(Tensor(a) x, int[] axis) -> Tensor(a)",
    .brief = "With new axes of size 1. Several are put in one after the other.",
    .decompose = [](const args::unsqueeze& a) -> Made {
      Shape shape = a.x.shape();
      for (int64_t axis : a.axis)
        shape.insert(shape.begin() + normalise_axis(axis, shape.rank() + 1), Dim(1));
      return reshape(a.x, shape);
    },
    .traits = Trait::Linear,
    .numpy = "__import__('functools').reduce(np.expand_dims, axis, x)",
    .samples =
        [] {
          return Samples()
              .add(t({3, 2}), IntVector{1})
              .add(t({3, 2}), IntVector{-1, 0})
              .add(t({}), IntVector{0})
              .add(t({0, 2}), IntVector{0, 2});
        },
    .python = "oar Tensor",
    .onnx = "Unsqueeze",
};

const OpDef flatten_op = {
    .schema = "flatten(Tensor(a) x, int start_axis = 0, int stop_axis = -1) -> Tensor(a)",
    .brief = "The axes from start_axis to stop_axis, both included, as one.",
    .decompose = [](const args::flatten& a) -> Made {
      if (a.x.rank() == 0) return reshape(a.x, {1});
      const int64_t start = normalise_axis(a.start_axis, a.x.rank(), "start_axis");
      const int64_t stop = normalise_axis(a.stop_axis, a.x.rank(), "stop_axis");
      user_check(start <= stop, ErrorKind::InvalidArgument,
                 "start_axis {} comes after stop_axis {} in a tensor of rank {}.", a.start_axis,
                 a.stop_axis, a.x.rank());
      Shape shape;
      for (int64_t i = 0; i < a.x.rank(); ++i) {
        if (i > start && i <= stop)
          shape.back() = shape.back() * a.x.dim(i);
        else
          shape.push_back(a.x.dim(i));
      }
      return reshape(a.x, shape);
    },
    .traits = Trait::Linear,
    .numpy =
        "x.reshape(x.shape[:start_axis % max(x.ndim, 1)] + "
        "(int(np.prod(x.shape[start_axis % max(x.ndim, 1):stop_axis % max(x.ndim, 1) + 1])),) + "
        "x.shape[stop_axis % max(x.ndim, 1) + 1:])",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 4}))
              .add(t({2, 3, 4}), 1)
              .add(t({2, 3, 4, 2}), 1, 2)
              .add(t({}))
              .add(t({0, 3}))
              .add(t({2, 0, 3}), -3, -2);
        },
    .python = "oar Tensor",
};

const OpDef unflatten_op = {
    .schema = "unflatten(Tensor(a) x, int axis, shape shape) -> Tensor(a)",
    .brief = "One axis split into several; one of their sizes may be -1.",
    .decompose = [](const args::unflatten& a) -> Made {
      const int64_t axis = normalise_axis(a.axis, a.x.rank());
      Shape shape;
      for (int64_t i = 0; i < a.x.rank(); ++i) {
        if (i != axis) {
          shape.push_back(a.x.dim(i));
          continue;
        }
        for (Dim d : resolve_reshape(Shape{a.x.dim(i)}, a.shape)) shape.push_back(d);
      }
      return reshape(a.x, shape);
    },
    .localise =
        [](const PieceCall& piece) {
          const args::unflatten a(piece.frame.args());
          const int64_t axis = normalise_axis(a.axis, a.x.rank());
          Shape shape;
          for (size_t i = 0; i < a.shape.size(); ++i)
            shape.push_back(
                sharding::local_size(piece, piece.plan.results[0], static_cast<size_t>(axis) + i));
          piece.frame.set(2, Value(Dims(shape)));
        },
    .traits = Trait::Linear,
    .numpy =
        "x.reshape(x.shape[:axis % x.ndim] + np.empty(x.shape[axis]).reshape(shape).shape + "
        "x.shape[axis % x.ndim + 1:])",
    .samples =
        [] {
          return Samples()
              .add(t({2, 6}), 1, IntVector{2, 3})
              .add(t({6, 2}), 0, IntVector{-1, 3})
              .add(t({0, 4}), -1, IntVector{2, 2});
        },
    .python = "oar Tensor",
};

const OpDef moveaxis_op = {
    .schema = "moveaxis(Tensor(a) x, int[] source, int[] destination) -> Tensor(a)",
    .brief = "Axes moved to new places; the others keep their order. A view.",
    .decompose = [](const args::moveaxis& a) -> Made {
      user_check(a.source.size() == a.destination.size(), ErrorKind::InvalidArgument,
                 "source {} and destination {} name different numbers of axes.",
                 to_string(a.source), to_string(a.destination));
      const int64_t rank = a.x.rank();
      SmallVector<int64_t, 6> perm(static_cast<size_t>(rank), -1), moved;
      for (size_t i = 0; i < a.source.size(); ++i) {
        const int64_t from = normalise_axis(a.source[i], rank, "source");
        int64_t& slot =
            perm[static_cast<size_t>(normalise_axis(a.destination[i], rank, "destination"))];
        user_check(slot < 0 && std::find(moved.begin(), moved.end(), from) == moved.end(),
                   ErrorKind::InvalidArgument, "source {} or destination {} names an axis twice.",
                   to_string(a.source), to_string(a.destination));
        slot = from;
        moved.push_back(from);
      }
      int64_t next = 0;
      for (int64_t& slot : perm) {
        if (slot >= 0) continue;
        while (std::find(moved.begin(), moved.end(), next) != moved.end()) ++next;
        slot = next++;
      }
      return transpose(a.x, perm);
    },
    .traits = Trait::Linear,
    .numpy = "np.moveaxis(x, source, destination)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 4}), IntVector{0}, IntVector{2})
              .add(t({2, 3, 4}), IntVector{0, -1}, IntVector{-1, 0})
              .add(t({0, 2}), IntVector{1}, IntVector{0});
        },
    .python = "oar Tensor",
};

// The order of axes with two of them exchanged.
SmallVector<int64_t, 6> exchanged(const Tensor& x, int64_t first, int64_t second) {
  SmallVector<int64_t, 6> perm;
  for (int64_t i = 0; i < x.rank(); ++i)
    perm.push_back(i == first ? second : i == second ? first : i);
  return perm;
}

const OpDef swapaxes_op = {
    .schema = "swapaxes(Tensor(a) x, int axis0, int axis1) -> Tensor(a)",
    .brief = "Two axes exchanged. A view.",
    .decompose = [](const args::swapaxes& a) -> Made {
      return transpose(a.x, exchanged(a.x, normalise_axis(a.axis0, a.x.rank(), "axis0"),
                                      normalise_axis(a.axis1, a.x.rank(), "axis1")));
    },
    .traits = Trait::Linear,
    .numpy = "np.swapaxes(x, axis0, axis1).copy()",
    .samples =
        [] { return Samples().add(t({2, 3, 4}), 0, -1).add(t({2, 3}), 1, 1).add(t({0, 2}), 0, 1); },
    .python = "oar Tensor",
};

// As NumPy's atleast_1d, atleast_2d and atleast_3d: a row in 2-d, a plane's middle axis in 3-d.
Tensor with_rank(const Tensor& x, int rank) {
  if (x.rank() >= rank) return x;
  if (rank == 1) return reshape(x, {1});
  if (rank == 2) return reshape(x, {1, x.rank() == 1 ? x.dim(0) : Dim(1)});
  if (x.rank() == 2) return reshape(x, {x.dim(0), x.dim(1), 1});
  return reshape(x, {1, x.rank() == 1 ? x.dim(0) : Dim(1), 1});
}

std::vector<Tensor> all_with_rank(TensorList list, int rank) {
  std::vector<Tensor> out;
  for (const Tensor& x : list) out.push_back(with_rank(x, rank));
  return out;
}

Samples of_all_ranks() {
  return Samples()
      .add(Specs{t({2, 3}), t({2, 3})})
      .add(Specs{t({3}), t({})})
      .add(Specs{t({}), t({2, 3, 2})})
      .add(Specs{t({2, 1, 3, 2})});
}

const OpDef atleast_1d_op = {
    .schema = "atleast_1d(Tensor(a)[] inputs) -> Tensor(a)[]",
    .brief = "Each tensor, with an axis added if it has none.",
    .decompose = [](const args::atleast_1d& a) -> Made { return all_with_rank(a.inputs, 1); },
    .traits = Trait::Linear,
    .numpy = "[np.atleast_1d(i) for i in inputs]",
    .samples = of_all_ranks,
};

const OpDef atleast_2d_op = {
    .schema = "atleast_2d(Tensor(a)[] inputs) -> Tensor(a)[]",
    .brief = "Each tensor, extended to rank 2; a vector becomes a row.",
    .decompose = [](const args::atleast_2d& a) -> Made { return all_with_rank(a.inputs, 2); },
    .traits = Trait::Linear,
    .numpy = "[np.atleast_2d(i) for i in inputs]",
    .samples = of_all_ranks,
};

const OpDef atleast_3d_op = {
    .schema = "atleast_3d(Tensor(a)[] inputs) -> Tensor(a)[]",
    .brief = "Each tensor, extended to rank 3; a vector runs along the middle axis.",
    .decompose = [](const args::atleast_3d& a) -> Made { return all_with_rank(a.inputs, 3); },
    .traits = Trait::Linear,
    .numpy = "[np.atleast_3d(i) for i in inputs]",
    .samples = of_all_ranks,
};

}  // namespace

OAR_FAMILY(shape, &reshape_op, &transpose_op, &view_as_op, &squeeze_op, &unsqueeze_op, &flatten_op,
           &unflatten_op, &moveaxis_op, &swapaxes_op, &atleast_1d_op, &atleast_2d_op,
           &atleast_3d_op)

}  // namespace oar
