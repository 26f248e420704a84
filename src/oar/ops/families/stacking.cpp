// NumPy's family of stacks, grids of vectors, and ranks made up to a minimum.
#include "oar/ops/gen/stacking.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/join.h"
#include "oar/ops/gen/scan.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"

namespace oar {
namespace {

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

// Columns: a vector stands upright.
Tensor as_column(const Tensor& x) { return x.rank() >= 2 ? x : reshape(x, {x.numel(), 1}); }

Samples lists() {
  return Samples()
      .add(Specs{t({2, 3}), t({2, 3})})
      .add(Specs{t({3}), t({3})})
      .add(Specs{t({}), t({})})
      .add(Specs{t({2, 3, 2})});
}

const OpDef atleast_1d_op = {
    .schema = "atleast_1d(Tensor(a)[] inputs) -> Tensor(a)[]",
    .brief = "Each tensor, with an axis where it has none.",
    .decompose = [](const args::atleast_1d& a) -> Made { return all_with_rank(a.inputs, 1); },
    .traits = Trait::Linear,
    .numpy = "[np.atleast_1d(i) for i in inputs]",
    .samples = lists,
};

const OpDef atleast_2d_op = {
    .schema = "atleast_2d(Tensor(a)[] inputs) -> Tensor(a)[]",
    .brief = "Each tensor, made up to rank 2; a vector becomes a row.",
    .decompose = [](const args::atleast_2d& a) -> Made { return all_with_rank(a.inputs, 2); },
    .traits = Trait::Linear,
    .numpy = "[np.atleast_2d(i) for i in inputs]",
    .samples = lists,
};

const OpDef atleast_3d_op = {
    .schema = "atleast_3d(Tensor(a)[] inputs) -> Tensor(a)[]",
    .brief = "Each tensor, made up to rank 3; a vector lies along the middle axis.",
    .decompose = [](const args::atleast_3d& a) -> Made { return all_with_rank(a.inputs, 3); },
    .traits = Trait::Linear,
    .numpy = "[np.atleast_3d(i) for i in inputs]",
    .samples = lists,
};

const OpDef hstack_op = {
    .schema = "hstack(Tensor[] x) -> Tensor",
    .brief = "The tensors side by side: along axis 1, vectors along axis 0.",
    .decompose = [](const args::hstack& a) -> Made {
      const std::vector<Tensor> parts = all_with_rank(a.x, 1);
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
    .decompose = [](const args::vstack& a) -> Made { return concat(all_with_rank(a.x, 2), 0); },
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
    .decompose = [](const args::dstack& a) -> Made { return concat(all_with_rank(a.x, 3), 2); },
    .traits = Trait::Linear,
    .numpy = "np.dstack(x)",
    .samples = lists,
    .python = "oar",
};

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

// Vectors, each along an axis of its own.
std::vector<Tensor> on_a_grid(TensorList list) {
  Shape shape;
  for (const Tensor& x : list) {
    user_check(x.rank() <= 1, ErrorKind::InvalidArgument,
               "a grid is made of vectors and numbers, not of a tensor of shape {}.",
               to_string(x.dims()));
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
      user_check(!columns.empty(), ErrorKind::InvalidArgument,
                 "the list of tensors is empty.\nhint: Pass at least one.");
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

OAR_FAMILY(stacking, &atleast_1d_op, &atleast_2d_op, &atleast_3d_op, &hstack_op, &vstack_op,
           &row_stack_op, &dstack_op, &column_stack_op, &broadcast_tensors_op, &meshgrid_op,
           &cartesian_prod_op)

}  // namespace oar
