// Index vectors of sparse tensors: coordinates and flat positions, rows and where they begin, unions.
#include "oar/ops/gen/sparse_index.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/sparse_rules.h"

namespace oar {
namespace {

const OpDef ravel_indices_op = {
    .schema = "ravel_indices(Tensor indices, shape shape) -> Tensor",
    .brief =
        "The row-major positions of elements in a tensor of this shape, from their coordinates: one row per "
        "axis. A coordinate that is out of range is an error.",
    .infer = [](const args::ravel_indices& a) -> Metas {
      check_integers(a.indices, "indices", 2);
      user_check(same(a.indices.dim(0), Dim(static_cast<int64_t>(a.shape.size()))),
                 ErrorKind::InvalidArgument,
                 "indices of shape {} has {} rows, and shape {} has {} axes.",
                 to_string(a.indices.dims()), a.indices.dim(0).str(), to_string(a.shape),
                 a.shape.size());
      return TensorMeta{DType::Int64, Shape{a.indices.dim(1)}};
    },
    .plan = [](const PlanCall& c) { c.plan.pass(c.plan.operands[0], 1, c.plan.results[0], 0); },
    .traits = Trait::NoGrad,
    .dtypes = "int",
    .numpy =
        "np.ravel_multi_index(tuple(indices), shape).astype('int64') if len(shape) else "
        "np.zeros(indices.shape[1], 'int64')",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 3, {2, 5}), IntVector{3, 4})
              .add(ints(0, 2, {3, 4}, DType::Int32), IntVector{2, 2, 3})
              .add(ints(0, 7, {1, 3}), IntVector{7})
              .add(ints(0, 1, {2, 0}), IntVector{3, 4});
        },
};

const OpDef unravel_indices_op = {
    .schema = "unravel_indices(Tensor x, shape shape) -> Tensor",
    .brief =
        "The coordinates, one row per axis, of row-major positions in a tensor of this shape.",
    .infer = [](const args::unravel_indices& a) -> Metas {
      check_integers(a.x, "x", 1);
      return TensorMeta{DType::Int64, Shape{static_cast<int64_t>(a.shape.size()), a.x.dim(0)}};
    },
    .plan = [](const PlanCall& c) { c.plan.pass(c.plan.operands[0], 0, c.plan.results[0], 1); },
    .traits = Trait::NoGrad,
    .dtypes = "int",
    .numpy = "np.stack(np.unravel_index(x, shape)).astype('int64')",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 12, {5}), IntVector{3, 4})
              .add(ints(0, 12, {4}, DType::Int32), IntVector{2, 2, 3})
              .add(ints(0, 7, {3}), IntVector{7})
              .add(ints(0, 1, {0}), IntVector{3, 4});
        },
};

const OpDef expand_rows_op = {
    .schema = "expand_rows(Tensor crows, Tensor cols) -> Tensor",
    .brief =
        "The row of each element of a CSR matrix: number i from crows[i] up to crows[i + 1]. Of cols, which has "
        "an entry per element, only the size matters.",
    .infer = [](const args::expand_rows& a) -> Metas {
      check_integers(a.crows, "crows", 1);
      check_rank(a.cols, "cols", 1);
      user_check(!known_less(a.crows.dim(0), Dim(1)), ErrorKind::InvalidArgument,
                 "crows is empty; a matrix of n rows has n + 1 entries.");
      return TensorMeta{DType::Int64, Shape{a.cols.dim(0)}};
    },
    .shard = "whole: an entry says where elements of other rows begin",
    .traits = Trait::NoGrad,
    .dtypes = "int",
    .numpy = "np.repeat(np.arange(len(crows) - 1), np.diff(crows))",
    .samples =
        [] {
          return Samples()
              .add(fixed_values({0, 2, 2, 5}, {4}, DType::Int64), ints(0, 3, {5}))
              .add(fixed_values({0, 3}, {2}, DType::Int32), ints(0, 3, {3}, DType::Int32))
              .add(fixed_values({0, 0}, {2}, DType::Int64), ints(0, 3, {0}));
        },
};

const OpDef compress_rows_op = {
    .schema = "compress_rows(Tensor rows, shape size) -> Tensor",
    .brief =
        "Where the elements of each row begin in a CSR matrix, from how often each row number occurs. `size` is "
        "the number of rows.",
    .infer = [](const args::compress_rows& a) -> Metas {
      check_integers(a.rows, "rows", 1);
      return TensorMeta{DType::Int64, Shape{one_size(a.size) + 1}};
    },
    .shard = "whole: an entry counts all elements before it",
    .traits = Trait::NoGrad,
    .dtypes = "int",
    .numpy = "np.append(0, np.cumsum(np.bincount(rows, minlength=size[0])))",
    .samples =
        [] {
          return Samples()
              .add(fixed_values({0, 0, 2, 2, 3}, {5}, DType::Int64), IntVector{5})
              .add(fixed_values({1, 1}, {2}, DType::Int32), IntVector{2})
              .add(ints(0, 1, {0}), IntVector{2});
        },
};

const OpDef merge_sorted_op = {
    .schema = "merge_sorted(Tensor x, Tensor y) -> (Tensor out, Tensor x_places, Tensor y_places)",
    .brief =
        "The numbers of two rising vectors in order, without repetition, and where those of each vector are in "
        "the result.",
    .infer = [](const args::merge_sorted& a) -> Metas {
      check_integers(a.x, "x", 1);
      check_integers(a.y, "y", 1);
      const Dim most = a.x.dim(0) + a.y.dim(0);
      const bool known = a.x.is_dense() && a.y.is_dense();
      return {TensorMeta{DType::Int64, Shape{known ? most : Dim::symbol("merged", most.hint())}, true},
              TensorMeta{DType::Int64, Shape{a.x.dim(0)}, true},
              TensorMeta{DType::Int64, Shape{a.y.dim(0)}, true}};
    },
    .shard = "whole: elements are compared with all others",
    .traits = Trait::DataDependent | Trait::NoGrad,
    .dtypes = "int",
    .numpy =
        "(lambda u: (u, np.searchsorted(u, x), np.searchsorted(u, y)))(np.union1d(x, y).astype('int64'))",
    .samples =
        [] {
          return Samples()
              .add(fixed_values({0, 2, 5}, {3}, DType::Int64),
                   fixed_values({1, 2, 7, 9}, {4}, DType::Int64))
              .add(fixed_values({4, 5}, {2}, DType::Int64), ints(0, 1, {0}))
              .add(fixed_values({4, 5}, {2}, DType::Int32),
                   fixed_values({4, 5}, {2}, DType::Int32));
        },
};

}  // namespace

OAR_FAMILY(sparse_index, &ravel_indices_op, &unravel_indices_op, &expand_rows_op, &compress_rows_op,
           &merge_sorted_op)

}  // namespace oar
