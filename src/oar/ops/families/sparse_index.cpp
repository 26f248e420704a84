// Index vectors of sparse tensors: coordinates and flat positions, rows and where they begin, orders, unions, and sums of
// the values that share a place.
#include "oar/ops/gen/sparse_index.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/sparse_rules.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/index.h"

namespace oar {
namespace {

const OpDef ravel_indices_op = {
    .schema = "ravel_indices(Tensor indices, shape shape) -> Tensor",
    .brief =
        "The row-major positions of elements in a tensor of this shape, from their coordinates: one row per "
        "axis. A coordinate that is out of range is an error.",
    .infer = [](const args::ravel_indices& a) -> Metas {
      check_integers(a.indices, "indices", 2);
      user_check(
          same(a.indices.dim(0), Dim(static_cast<int64_t>(a.shape.size()))),
          ErrorKind::InvalidArgument, "indices of shape {} has {} rows, and shape {} has {} axes.",
          to_string(a.indices.dims()), a.indices.dim(0).str(), to_string(a.shape), a.shape.size());
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
    .brief = "The coordinates, one row per axis, of row-major positions in a tensor of this shape.",
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

const OpDef key_order_op = {
    .schema = "key_order(Tensor keys, shape size) -> Tensor",
    .brief =
        "The order of small numbers, from 0 up to `size`: first where 0 occurs, then where 1 does, and so on. Equal ones "
        "keep their order.",
    .infer = [](const args::key_order& a) -> Metas {
      check_integers(a.keys, "keys", 1);
      one_size(a.size);
      return TensorMeta{DType::Int64, a.keys.shape()};
    },
    .shard = "whole: elements are compared with all others",
    .traits = Trait::NoGrad,
    .dtypes = "int",
    .numpy = "np.argsort(keys, kind='stable')",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 4, {9}), IntVector{4})
              .add(ints(0, 4, {9}), IntVector{int64_t{1} << 40})
              .add(ints(0, 2, {5}, DType::Int32), IntVector{3})
              .add(ints(0, 1, {0}), IntVector{2});
        },
};

const OpDef sums_at_op = {
    .schema = "sums_at(Tensor places, Tensor values, shape size) -> Tensor",
    .brief =
        "Row places[k] of the result is the sum of the rows values[k]; others are zero. `size` is the number of rows.",
    .infer = [](const args::sums_at& a) -> Metas {
      check_integers(a.places, "places", 1);
      user_check(a.values.rank() >= 1, ErrorKind::InvalidArgument,
                 "values is 0-d; it must have an axis.");
      check_count(a.places, "places", a.values, "values");
      Shape shape = a.values.shape();
      shape[0] = one_size(a.size);
      return TensorMeta{a.values.dtype(), shape};
    },
    .decompose = [](const args::sums_at& a) -> Made {
      Shape shape = a.values.shape();
      shape[0] = one_size(a.size);
      return index_add(zeros(shape, a.values.dtype()), a.places, 0, a.values);
    },
    .vjp = [](const vjp::sums_at& v) -> Grads {
      return {Tensor(), index_take(v.grad, {v.places})};
    },
    .saves = "places",
    .plan =
        [](const PlanCall& c) {
          for (size_t i = 1; i < c.plan.operands[1].axes.size(); ++i)
            c.plan.pass(c.plan.operands[1], i, c.plan.results[0], i);
        },
    .linear_in = "values",
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .promotes = "values",
    .numpy =
        "(lambda m: (np.add.at(m, places, values), m)[1])(np.zeros((size[0], *values.shape[1:]), values.dtype))",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 4, {6}), t({6}), IntVector{5})
              .add(ints(0, 3, {4}, DType::Int32), t({4, 2, 3}), IntVector{3})
              .add(ints(0, 3, {0}), t({0, 2}), IntVector{2});
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
      return {
          TensorMeta{DType::Int64, Shape{known ? most : Dim::symbol("merged", most.hint())}, true},
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
           &key_order_op, &sums_at_op, &merge_sorted_op)

}  // namespace oar
