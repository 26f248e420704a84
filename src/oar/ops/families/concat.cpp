// Tensors joined.
#include "oar/ops/gen/concat.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

void check_some(TensorList x) {
  user_check(!x.empty(), ErrorKind::InvalidArgument,
             "a list of tensors is expected, but got empty list.\nhint: Pass at least one tensor.");
}

// The operands' common shape, except along `axis`, where the sizes add up.
Metas infer_concat(TensorList x, int64_t given_axis) {
  check_some(x);
  user_check(x[0].rank() > 0, ErrorKind::InvalidArgument,
             "x[0] is 0-d and has no axis to join along.\nhint: Use stack, or reshape to [1].");
  const int64_t axis = normalise_axis(given_axis, x[0].rank());
  TensorMeta meta = infer::like(x[0]);
  for (size_t k = 1; k < x.size(); ++k) {
    meta.dtype = promote(meta.dtype, x[k].dtype());
    bool fits = x[k].rank() == x[0].rank();
    for (int64_t i = 0; fits && i < x[0].rank(); ++i) {
      Dim& size = meta.shape[static_cast<size_t>(i)];
      if (i == axis) {
        size = size + x[k].dim(i);
        continue;
      }
      fits = same(size, x[k].dim(i));
      if (fits && x[k].dim(i).is_known()) size = x[k].dim(i);
    }
    user_check(fits, ErrorKind::InvalidArgument,
               "x[0] has shape {} and x[{}] has shape {}; they may differ only at axis {}.",
               to_string(x[0].dims()), k, to_string(x[k].dims()), axis);
  }
  return meta;
}

const OpDef concat_op = {
    .schema = "concat(Tensor[] x, int axis = 0) -> Tensor",
    .brief = "The tensors concatenated along an axis.",
    .infer = [](const args::concat& a) { return infer_concat(a.x, a.axis); },
    .vjp = [](const vjp::concat& v) -> Grads {
      const int64_t axis = normalise_axis(v.axis, v.grad.rank());
      Grads grads;
      Dim start = 0;
      for (size_t i = 0; i < v.x.size(); ++i) {
        const Dim stop = start + v.x[i].dim(axis);
        Tensor part =
            v.needs(i) ? slice_view(v.grad, SliceIndex().skip(axis).range(start, stop)) : Tensor();
        if (part.defined() && part.dtype() != v.x[i].dtype()) part = cast(part, v.x[i].dtype());
        grads.push_back(part);
        start = stop;
      }
      return grads;
    },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::concat a(c.args);
      int rank = 0;  // some parts are batched and have one axis more
      for (const Tensor& part : a.x) rank = std::max(rank, part.rank());
      std::vector<Tensor> parts;
      for (const Tensor& part : a.x)
        parts.push_back(
            part.rank() == rank ? part : broadcast_to(part, behind_batch(c.size, part.dims())));
      return concat(parts, behind_batch(a.axis, rank - 1));
    },
    .shard = "...a... -> ...a... ; a@axis whole # the operands have different parts of the axis",
    .canonical =
        [](const CanonicalCall& c) {
          const std::span<const GraphValue> x = c.operands_of(c.result(), "x");
          if (x.size() == 1) c.replace_by(x[0]);
        },
    .layout = {.images = "x", .axes = "axis"},
    .traits = Trait::Linear | Trait::Moves,
    .numpy = "np.concatenate(x, axis)",
    .samples =
        [] {
          return Samples()
              .add(Specs{t({2, 3}), t({4, 3})})
              .add(Specs{t({2, 3}), t({2, 1}), t({2, 2})}, 1)
              .add(Specs{t({2, 1, 3}), t({2, 2, 3})}, -2)
              .add(Specs{t({4})})
              .add(Specs{t({0, 3}), t({2, 3})});
        },
    .python = "oar",
    .onnx = "Concat",
};

bool of_one_shape(const Tensor& a, const Tensor& b) {
  bool equal = a.rank() == b.rank();
  for (int64_t i = 0; equal && i < a.rank(); ++i) equal = assume_same(a.dim(i), b.dim(i));
  return equal;
}

const OpDef stack_op = {
    .schema = "stack(Tensor[] x, int axis = 0) -> Tensor",
    .brief = "Tensors of one shape side by side along a new axis.",
    .decompose = [](const args::stack& a) -> Made {
      check_some(a.x);
      const int64_t axis = normalise_axis(a.axis, a.x[0].rank() + 1);
      std::vector<Tensor> parts;
      for (size_t k = 0; k < a.x.size(); ++k) {
        user_check(
            of_one_shape(a.x[k], a.x[0]), ErrorKind::InvalidArgument,
            "x[0] has shape {} and x[{}] has shape {}; only tensors of one shape are stacked.",
            to_string(a.x[0].dims()), k, to_string(a.x[k].dims()));
        parts.push_back(unsqueeze(a.x[k], {axis}));
      }
      return concat(parts, axis);
    },
    .traits = Trait::Linear | Trait::Moves,
    .numpy = "np.stack(x, axis)",
    .samples =
        [] {
          return Samples()
              .add(Specs{t({2, 3}), t({2, 3})})
              .add(Specs{t({2, 3}), t({2, 3}), t({2, 3})}, -1)
              .add(Specs{t({}), t({})})
              .add(Specs{t({0, 2})}, 1);
        },
    .python = "oar",
};

Samples lists() {
  return Samples()
      .add(Specs{t({2, 3}), t({2, 3})})
      .add(Specs{t({3}), t({3})})
      .add(Specs{t({}), t({})})
      .add(Specs{t({2, 3, 2})});
}

const OpDef hstack_op = {
    .schema = "hstack(Tensor[] x) -> Tensor",
    .brief = "The tensors side by side: along axis 1, vectors along axis 0.",
    .decompose = [](const args::hstack& a) -> Made {
      const std::vector<Tensor> parts = atleast_1d(a.x);
      return concat(parts, !parts.empty() && parts[0].rank() == 1 ? 0 : 1);
    },
    .traits = Trait::Linear,
    .numpy = "np.hstack(x)",
    .samples = lists,
    .python = "oar",
};

const OpDef vstack_op = {
    .schema = "vstack(Tensor[] x) -> Tensor",
    .brief = "The tensors one below the other; vectors are rows.",
    .decompose = [](const args::vstack& a) -> Made { return concat(atleast_2d(a.x), 0); },
    .traits = Trait::Linear,
    .numpy = "np.vstack(x)",
    .samples = lists,
    .python = "oar",
};

const OpDef row_stack_op = {
    .schema = "row_stack(Tensor[] x) -> Tensor",
    .brief = "vstack under its other name.",
    .decompose = [](const args::row_stack& a) -> Made { return vstack(a.x); },
    .traits = Trait::Linear,
    .numpy = "np.vstack(x)",
    .samples = lists,
    .python = "oar",
};

const OpDef dstack_op = {
    .schema = "dstack(Tensor[] x) -> Tensor",
    .brief = "The tensors concatenated along axis 2.",
    .decompose = [](const args::dstack& a) -> Made { return concat(atleast_3d(a.x), 2); },
    .traits = Trait::Linear,
    .numpy = "np.dstack(x)",
    .samples = lists,
    .python = "oar",
};

// Columns: a vector becomes one.
Tensor as_column(const Tensor& x) { return x.rank() >= 2 ? x : reshape(x, {x.numel(), 1}); }

const OpDef column_stack_op = {
    .schema = "column_stack(Tensor[] x) -> Tensor",
    .brief = "The tensors side by side along axis 1; vectors are columns.",
    .decompose = [](const args::column_stack& a) -> Made {
      std::vector<Tensor> parts;
      for (const Tensor& x : a.x) parts.push_back(as_column(x));
      return concat(parts, 1);
    },
    .traits = Trait::Linear,
    .numpy = "np.column_stack(x)",
    .samples = lists,
    .python = "oar",
};

}  // namespace

OAR_FAMILY(concat, &concat_op, &stack_op, &hstack_op, &vstack_op, &row_stack_op, &dstack_op,
           &column_stack_op)

}  // namespace oar
