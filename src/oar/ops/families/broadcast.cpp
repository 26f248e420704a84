// Tensors broadcast to a common shape, and the inverse.
#include "oar/ops/gen/broadcast.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/canonical_rules.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

// The axes that broadcasting from `shape` to that of x had stretched or added.
SmallVector<int64_t, 6> stretched_axes(const Tensor& x, Dims shape) {
  const auto refuse = [&] {
    fail(ErrorKind::InvalidArgument,
         "a tensor of shape {} cannot be summed to shape {}.\nhint: Sizes must be equal from the "
         "right, or 1 in the shape.",
         to_string(x.dims()), to_string(shape));
  };
  const int64_t added = x.rank() - static_cast<int64_t>(shape.size());
  if (added < 0) refuse();
  SmallVector<int64_t, 6> axes;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i >= added) {
      const Dim size = shape[static_cast<size_t>(i - added)];
      if (same(size, x.dim(i))) continue;
      if (!same(size, Dim(1))) refuse();
    }
    axes.push_back(i);
  }
  return axes;
}

const OpDef broadcast_to_op = {
    .schema = "broadcast_to(Tensor(a) x, shape shape) -> Tensor(a)",
    .brief =
        "x repeated along axes of size 1 and new leading axes, without a copy; -1 keeps a size.",
    .infer = [](const args::broadcast_to& a) -> Metas {
      return TensorMeta{a.x.dtype(), broadcast_target(a.x, a.shape)};
    },
    .view = [](const args::broadcast_to& a) -> std::optional<ViewSpec> {
      ViewSpec spec{broadcast_target(a.x, a.shape), {}, 0};
      const size_t added = spec.shape.size() - static_cast<size_t>(a.x.rank());
      for (size_t i = 0; i < spec.shape.size(); ++i) {
        const bool stretched =
            i < added || (a.x.dims()[i - added] == Dim(1) && !(spec.shape[i] == Dim(1)));
        spec.strides.push_back(stretched ? 0 : a.x.strides()[i - added]);
      }
      return spec;
    },
    .vjp = [](const vjp::broadcast_to& v) -> Grads { return sum_to(v.grad, v.x.dims()); },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::broadcast_to a(c.args);
      return broadcast_to(with_batch(c, 0, static_cast<int>(a.shape.size())),
                          behind_batch(-1, a.shape));
    },
    .plan = sharding::stretched,
    .localise = sharding::result_shape("shape"),
    .canonical = canonical::same_type,
    .layout = {.images = "x", .sizes = "shape"},
    .epilogue = {.role = EpilogueRole::Spread},
    .traits = Trait::Linear,
    .numpy = "np.broadcast_to(x, shape).copy()",
    .samples =
        [] {
          return Samples()
              .add(t({3, 1}), IntVector{2, 3, 4})
              .add(t({}), IntVector{2})
              .add(t({1, 0}), IntVector{3, 0});
        },
    .python = "oar Tensor",
};

const OpDef sum_to_op = {
    .schema = "sum_to(Tensor x, shape shape) -> Tensor",
    .brief =
        "Sums the axes that broadcasting from `shape` had stretched: the reverse of broadcast_to.",
    .decompose = [](const args::sum_to& a) -> Made {
      const SmallVector<int64_t, 6> axes = stretched_axes(a.x, a.shape);
      if (axes.empty()) return a.x;
      return reshape(sum(a.x, IntArgs(axes), a.x.dtype(), true), a.shape);
    },
    .localise = sharding::result_shape("shape"),
    .layout = {.images = "x", .sizes = "shape"},
    .traits = Trait::Linear,
    .numpy =
        "x.sum(axis=tuple(i for i in range(x.ndim) if i < x.ndim - len(shape) or "
        "(shape[i - x.ndim + len(shape)] == 1)), keepdims=True, dtype=x.dtype).reshape(shape)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 4}), IntVector{3, 1})
              .add(t({2}), IntVector{})
              .add(t({3, 2}), IntVector{3, 2});
        },
};

const OpDef expand_op = {
    .schema = "expand(Tensor(a) x, shape shape) -> Tensor(a)",
    .brief = "broadcast_to under its other name.",
    .decompose = [](const args::expand& a) -> Made { return broadcast_to(a.x, a.shape); },
    .plan = sharding::stretched,
    .localise = sharding::result_shape("shape"),
    .traits = Trait::Linear,
    .numpy =
        "np.broadcast_to(x, [x.shape[i - len(shape)] if d == -1 else d for i, d in enumerate(shape)]).copy()",
    .samples =
        [] {
          return Samples()
              .add(t({3, 1}), IntVector{2, -1, 4})
              .add(t({}), IntVector{2})
              .add(t({1, 0}), IntVector{3, 0});
        },
    .python = "oar Tensor",
    .onnx = "Expand",
};

const OpDef expand_as_op = {
    .schema = "expand_as(Tensor(a) x, Tensor y) -> Tensor(a)",
    .brief = "x broadcast to the shape of y.",
    .decompose = [](const args::expand_as& a) -> Made { return broadcast_to(a.x, a.y.dims()); },
    .plan =
        [](const PlanCall& c) {
          sharding::stretched(c);
          c.plan.operands[1].axes = c.plan.results[0].axes;  // only its shape is used
        },
    .numpy = "np.broadcast_to(x, y.shape).copy()",
    .samples =
        [] {
          return Samples()
              .add(t({3, 1}), t({2, 3, 4}))
              .add(t({}), t({2}))
              .add(t({1, 0}), t({3, 0}));
        },
    .python = "oar Tensor",
};

const OpDef broadcast_tensors_op = {
    .schema = "broadcast_tensors(Tensor(a)[] input) -> Tensor(a)[]",
    .brief = "The tensors, all broadcast to one shape. Views.",
    .decompose = [](const args::broadcast_tensors& a) -> Made {
      Shape shape;
      for (const Tensor& x : a.input) shape = broadcast_shapes(shape, x.shape());
      Made out;
      for (const Tensor& x : a.input) out.push_back(broadcast_to(x, shape));
      return out;
    },
    .plan =
        [](const PlanCall& c) {
          for (size_t i = 0; i < c.plan.results[0].axes.size(); ++i) {
            const int factor = c.plan.add(c.plan.results[0].shape[i]);
            const size_t from_end = c.plan.results[0].axes.size() - i;
            for (PlanTensor& out : c.plan.results) c.plan.put(out, i, factor);
            for (PlanTensor& x : c.plan.operands)
              if (from_end <= x.axes.size()) c.plan.put(x, x.axes.size() - from_end, factor);
          }
        },
    .traits = Trait::Linear,
    .numpy = "[i.copy() for i in np.broadcast_arrays(*input)]",
    .samples =
        [] {
          return Samples()
              .add(Specs{t({2, 1}), t({3})})
              .add(Specs{t({}), t({2, 2}), t({1, 2})})
              .add(Specs{t({0, 1}), t({3})});
        },
    .python = "oar",
};

// Vectors, each along a different axis.
std::vector<Tensor> on_a_grid(TensorList list) {
  Shape shape;
  for (const Tensor& x : list) {
    user_check(x.rank() <= 1, ErrorKind::InvalidArgument,
               "a grid takes vectors and numbers, not a tensor of shape {}.", to_string(x.dims()));
    shape.push_back(x.numel());
  }
  std::vector<Tensor> out;
  for (size_t i = 0; i < list.size(); ++i) {
    Shape own(shape.size(), Dim(1));
    own[i] = shape[i];
    out.push_back(broadcast_to(reshape(list[i], own), shape));
  }
  return out;
}

Samples vectors() {
  return Samples()
      .add(Specs{t({2}), t({3})})
      .add(Specs{t({2}), t({1}), t({3})})
      .add(Specs{t({3})})
      .add(Specs{t({0}), t({2})});
}

const OpDef meshgrid_op = {
    .schema = "meshgrid(Tensor[] inputs) -> Tensor[]",
    .brief = "The coordinates of a grid: vector i spread along axis i, as many tensors as vectors.",
    .decompose = [](const args::meshgrid& a) -> Made { return on_a_grid(a.inputs); },
    .traits = Trait::Linear,
    .numpy = "[i.copy() for i in np.meshgrid(*inputs, indexing='ij')]",
    .samples = [] { return vectors().add(Specs{t({2}), t({})}); },
};

const OpDef cartesian_prod_op = {
    .schema = "cartesian_prod(Tensor[] x) -> Tensor",
    .brief = "Every choice of one element from each vector, as rows; of one vector, itself.",
    .decompose = [](const args::cartesian_prod& a) -> Made {
      std::vector<Tensor> columns = on_a_grid(a.x);
      user_check(
          !columns.empty(), ErrorKind::InvalidArgument,
          "a list of tensors is expected, but got empty list.\nhint: Pass at least one tensor.");
      if (columns.size() == 1) return assign(columns[0]);
      for (Tensor& column : columns) column = reshape(column, {column.numel()});
      return stack(columns, 1);
    },
    .traits = Trait::Linear,
    .numpy =
        "x[0] if len(x) == 1 else np.stack([i.ravel() for i in np.meshgrid(*x, indexing='ij')], 1)",
    .samples = vectors,
    .python = "oar",
};

}  // namespace

OAR_FAMILY(broadcast, &broadcast_to_op, &sum_to_op, &expand_op, &expand_as_op,
           &broadcast_tensors_op, &meshgrid_op, &cartesian_prod_op)

}  // namespace oar
