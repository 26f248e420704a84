// Diagonals and triangles of matrices: read, written, and matrices built from them.
#include "oar/ops/gen/diagonals.h"

#include <cmath>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/pad.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/strided.h"
#include "oar/tensor/byte_count.h"

namespace oar {
namespace {

struct Diagonal {
  int64_t first, second;
  Dim length, row, column;  // where it starts
};

Diagonal resolve_diagonal(const Tensor& x, int64_t offset, int64_t axis1, int64_t axis2) {
  user_check(x.rank() >= 2, ErrorKind::InvalidArgument,
             "a diagonal needs a tensor of rank 2 or more; x has shape {}.", to_string(x.dims()));
  Diagonal d{normalise_axis(axis1, x.rank(), "axis1"), normalise_axis(axis2, x.rank(), "axis2"), 0,
             offset < 0 ? -offset : 0, offset > 0 ? offset : 0};
  user_check(d.first != d.second, ErrorKind::InvalidArgument, "axis1 and axis2 are both axis {}.",
             d.first);
  d.length = max_of(min_of(x.dim(d.first) - d.row, x.dim(d.second) - d.column), 0);
  return d;
}

// Shape or strides of a diagonal: the other axes, then the joint one.
template <class List>
void without_two(const Diagonal& d, List& from, List& to) {
  for (size_t i = 0; i < from.size(); ++i)
    if (static_cast<int64_t>(i) != d.first && static_cast<int64_t>(i) != d.second)
      to.push_back(from[i]);
}

const OpDef diagonal_op = {
    .schema = "diagonal(Tensor(a) x, int offset = 0, int axis1 = 0, int axis2 = 1) -> Tensor(a)",
    .brief =
        "The elements where the indices of two axes differ by offset, as a new last axis. A view.",
    .infer = [](const args::diagonal& a) -> Metas {
      const Diagonal d = resolve_diagonal(a.x, a.offset, a.axis1, a.axis2);
      Shape all = a.x.shape(), shape;
      without_two(d, all, shape);
      shape.push_back(d.length);
      return TensorMeta{a.x.dtype(), shape};
    },
    .view = [](const args::diagonal& a) -> std::optional<ViewSpec> {
      const Diagonal d = resolve_diagonal(a.x, a.offset, a.axis1, a.axis2);
      const Ints s = a.x.strides();
      SmallVector<int64_t, 6> strides(s.begin(), s.end());
      Shape all = a.x.shape();
      ViewSpec spec;
      without_two(d, all, spec.shape);
      without_two(d, strides, spec.strides);
      const int64_t down = s[static_cast<size_t>(d.first)],
                    right = s[static_cast<size_t>(d.second)];
      spec.shape.push_back(d.length);
      spec.strides.push_back(down + right);
      if (d.length.value() > 0) spec.offset = d.row.value() * down + d.column.value() * right;
      return spec;
    },
    .vjp = [](const vjp::diagonal& v) -> Grads {
      const Diagonal d = resolve_diagonal(v.x, v.offset, v.axis1, v.axis2);
      Shape all = logical_strides(v.x.dims()), strides;
      without_two(d, all, strides);
      const Dim down = all[static_cast<size_t>(d.first)],
                right = all[static_cast<size_t>(d.second)];
      strides.push_back(down + right);
      const Dim start = d.length == Dim(0) ? Dim(0) : d.row * down + d.column * right;
      return as_strided_grad(v.grad, v.x.dims(), IntArgs(as_words(strides)), start.word());
    },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::diagonal a(c.args);
      const int64_t rank = a.x.rank() - 1;
      return diagonal(a.x, a.offset, behind_batch(a.axis1, rank, "axis1"),
                      behind_batch(a.axis2, rank, "axis2"));
    },
    .plan =
        [](const PlanCall& c) {
          const args::diagonal a(c.args);
          const Diagonal d = resolve_diagonal(a.x, a.offset, a.axis1, a.axis2);
          size_t to = 0;
          for (size_t i = 0; i < c.plan.operands[0].axes.size(); ++i)
            if (static_cast<int64_t>(i) != d.first && static_cast<int64_t>(i) != d.second)
              c.plan.pass(c.plan.operands[0], i, c.plan.results[0], to++);
        },
    .traits = Trait::Linear,
    .numpy = "np.diagonal(x, offset, axis1, axis2).copy()",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}))
              .add(t({3, 4}), 1)
              .add(t({2, 3, 4}), -1, 0, 2)
              .add(t({2, 3, 4}), 0, -1, -2)
              .add(t({3, 3}), 5)
              .add(t({0, 3}));
        },
    .python = "oar Tensor",
};

const OpDef trace_op = {
    .schema = "trace(Tensor x, int offset = 0, int axis1 = 0, int axis2 = 1) -> Tensor",
    .brief = "The sum along a diagonal of two axes.",
    .decompose = [](const args::trace& a) -> Made {
      return sum(diagonal(a.x, a.offset, a.axis1, a.axis2), IntArgs{-1}, a.x.dtype());
    },
    .dtypes = "int float complex",
    .numpy = "np.trace(x, offset, axis1, axis2, dtype=x.dtype)",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}))
              .add(t({3, 4}), -1)
              .add(t({2, 3, 4}), 1, -1, 0)
              .add(t({0, 3}));
        },
    .python = "oar Tensor",
};

// `values`, whose last axis runs along a diagonal of axes (first, second) of `shape`, in zeros.
Tensor embedded(const Tensor& values, const Shape& shape, int64_t offset, int64_t first,
                int64_t second) {
  const Shape all = logical_strides(shape);
  Shape strides;
  for (int64_t i = 0; i < shape.rank(); ++i)
    if (i != first && i != second) strides.push_back(all[static_cast<size_t>(i)]);
  const Dim down = all[static_cast<size_t>(first)], right = all[static_cast<size_t>(second)];
  strides.push_back(down + right);
  // A diagonal outside the matrix is empty.
  const bool none = values.numel() == Dim(0);
  const Dim start = none ? Dim(0) : offset >= 0 ? right * offset : down * -offset;
  const bool bits = is_bool(values.dtype());
  const Tensor zeros_and_values = as_strided_grad(bits ? cast(values, DType::UInt8) : values, shape,
                                                  IntArgs(as_words(strides)), start.word());
  return bits ? cast(zeros_and_values, DType::Bool) : zeros_and_values;
}

const OpDef diag_embed_op = {
    .schema = "diag_embed(Tensor input, int offset = 0, int dim1 = -2, int dim2 = -1) -> Tensor",
    .brief = "The last axis laid along a diagonal of two new axes; zeros elsewhere.",
    .decompose = [](const args::diag_embed& a) -> Made {
      user_check(a.input.rank() >= 1, ErrorKind::InvalidArgument,
                 "input is 0-d; a diagonal needs an axis.");
      const int64_t rank = a.input.rank() + 1, first = normalise_axis(a.dim1, rank, "dim1"),
                    second = normalise_axis(a.dim2, rank, "dim2");
      user_check(first != second, ErrorKind::InvalidArgument, "dim1 and dim2 are both axis {}.",
                 first);
      const Dim size = a.input.dim(-1) + std::abs(a.offset);
      Shape shape;
      for (int64_t i = 0, next = 0; i < rank; ++i)
        shape.push_back(i == first || i == second ? size : a.input.dim(next++));
      return embedded(a.input, shape, a.offset, first, second);
    },
    .plan =
        [](const PlanCall& c) {
          const args::diag_embed a(c.args);
          const int64_t rank = a.input.rank() + 1, first = normalise_axis(a.dim1, rank, "dim1"),
                        second = normalise_axis(a.dim2, rank, "dim2");
          for (int64_t i = 0, next = 0; i < rank; ++i)
            if (i != first && i != second)
              c.plan.pass(c.plan.operands[0], static_cast<size_t>(next++), c.plan.results[0],
                          static_cast<size_t>(i));
        },
    .traits = Trait::Linear,
    .numpy =
        "(lambda n, r: (lambda z: ([z.__setitem__((..., i + max(-offset, 0), i + max(offset, 0)), input[..., i]) for i "
        "in range(input.shape[-1])], np.moveaxis(z, (-2, -1), (dim1 % r, dim2 % r)))[1])(np.zeros(input.shape[:-1] + "
        "(n, n), input.dtype)))(input.shape[-1] + abs(offset), input.ndim + 1)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3}))
              .add(t({3}), 1)
              .add(t({2, 2, 3}), -2, 0, 2)
              .add(t({2, 3}), 1, -1, 0)
              .add(t({0, 2}))
              .add(t({2, 0}), 1);
        },
    .python = "oar Tensor",
};

Tensor on_diagonal(const Tensor& like, const Shape& shape, int64_t offset, int64_t first,
                   int64_t second) {
  return embedded(ones(like.dims(), DType::Bool), shape, offset, first, second);
}

const OpDef diag_op = {
    .schema = "diag(Tensor x, int offset = 0, Scalar padding_value = 0) -> Tensor",
    .brief =
        "A matrix with the vector x on a diagonal and padding_value elsewhere; of a matrix, its diagonal.",
    .decompose = [](const args::diag& a) -> Made {
      user_check(a.x.rank() == 1 || a.x.rank() == 2, ErrorKind::InvalidArgument,
                 "x must be a vector or a matrix, but its shape is {}.", to_string(a.x.dims()));
      if (a.x.rank() == 2) return assign(diagonal(a.x, a.offset));
      const Dim size = a.x.dim(0) + std::abs(a.offset);
      const Shape shape{size, size};
      const Tensor matrix = embedded(a.x, shape, a.offset, 0, 1);
      if (a.padding_value.to_complex() == 0.0) return matrix;
      return where(on_diagonal(a.x, shape, a.offset, 0, 1), matrix,
                   full({}, a.padding_value, a.x.dtype()));
    },
    .shard = "whole: a diagonal crosses both axes",
    .numpy =
        "np.diag(x, offset).copy() if x.ndim == 2 else np.where(np.diag(np.ones(len(x), bool), offset), np.diag(x, "
        "offset), np.array(padding_value).astype(x.dtype))",
    .samples =
        [] {
          return Samples()
              .add(t({3}))
              .add(t({3}), -1, 2)
              .add(t({3, 4}), 1)
              .add(t({0}))
              .add(t({2, 2}), 5);
        },
    .python = "oar Tensor",
};

const OpDef diagflat_op = {
    .schema = "diagflat(Tensor x, int offset = 0) -> Tensor",
    .brief = "A matrix with all elements of x, in order, on a diagonal.",
    .decompose = [](const args::diagflat& a) -> Made {
      return diag_embed(reshape(a.x, {a.x.numel()}), a.offset);
    },
    .shard = "whole: a diagonal crosses both axes",
    .traits = Trait::Linear,
    .numpy = "np.diagflat(x, offset)",
    .samples = [] { return Samples().add(t({2, 2})).add(t({3}), 2).add(t({}), -1).add(t({0, 2})); },
    .python = "oar Tensor",
};

const OpDef diagonal_scatter_op = {
    .schema =
        "diagonal_scatter(Tensor x, Tensor y, int offset = 0, int axis1 = 0, int axis2 = 1) -> Tensor",
    .brief = "A copy of x whose diagonal of two axes, as `diagonal` returns it, is y.",
    .decompose = [](const args::diagonal_scatter& a) -> Made {
      const Shape wanted = diagonal(a.x, a.offset, a.axis1, a.axis2).shape();
      user_check(same(wanted, a.y.shape()), ErrorKind::InvalidArgument,
                 "y has shape {}; the diagonal of x, which has shape {}, has shape {}.",
                 to_string(a.y.dims()), to_string(a.x.dims()), wanted.str());
      const int64_t first = normalise_axis(a.axis1, a.x.rank(), "axis1"),
                    second = normalise_axis(a.axis2, a.x.rank(), "axis2");
      const Tensor y = a.y.dtype() == a.x.dtype() ? a.y : cast(a.y, a.x.dtype());
      if (a.y.numel() == Dim(0)) return assign(a.x);
      return where(on_diagonal(y, a.x.shape(), a.offset, first, second),
                   embedded(y, a.x.shape(), a.offset, first, second), a.x);
    },
    .plan =
        [](const PlanCall& c) {
          const args::diagonal_scatter a(c.args);
          const int64_t first = normalise_axis(a.axis1, a.x.rank(), "axis1"),
                        second = normalise_axis(a.axis2, a.x.rank(), "axis2");
          size_t next = 0;
          for (size_t i = 0; i < c.plan.operands[0].axes.size(); ++i) {
            if (static_cast<int64_t>(i) == first || static_cast<int64_t>(i) == second) continue;
            c.plan.pass(c.plan.operands[0], i, c.plan.results[0], i);
            c.plan.put(c.plan.operands[1], next++, c.plan.operands[0].axes[i].factor);
          }
        },
    .numpy =
        "(lambda z: ((lambda d: (d.setflags(write=True), d.__setitem__(..., y)))(np.diagonal(z, offset, axis1, "
        "axis2)), z)[1])(x.copy())",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), t({3}))
              .add(t({3, 4}), t({2}), -1)
              .add(t({2, 3, 4}), t({3, 1}), 3, 0, 2)
              .add(t({2, 3, 2}), t({3, 2}), 0, -1, 0)
              .add(t({2, 2}), t({0}), 4);
        },
    .python = "oar Tensor",
};

const OpDef block_diag_op = {
    .schema = "block_diag(Tensor[] inputs) -> Tensor",
    .brief = "A matrix with the given matrices along its diagonal; vectors are rows.",
    .decompose = [](const args::block_diag& a) -> Made {
      user_check(
          !a.inputs.empty(), ErrorKind::InvalidArgument,
          "a list of tensors is expected, but got empty list.\nhint: Pass at least one tensor.");
      std::vector<Tensor> blocks;
      Dim width = 0, left = 0;
      for (const Tensor& x : a.inputs) {
        user_check(x.rank() <= 2, ErrorKind::InvalidArgument,
                   "inputs holds a tensor of shape {}; only matrices, vectors and numbers have a "
                   "place on the diagonal.",
                   to_string(x.dims()));
        blocks.push_back(x.rank() == 2 ? x : reshape(x, {1, x.numel()}));
        width = width + blocks.back().dim(1);
      }
      for (Tensor& block : blocks) {
        const Dim right = width - left - block.dim(1);
        const Dim next = left + block.dim(1);
        block = pad_constant(block, {0, 0, left.word(), right.word()});
        left = next;
      }
      return concat(blocks, 0);
    },
    .numpy =
        "(lambda b: np.concatenate([np.pad(m, ((0, 0), (sum(n.shape[1] for n in b[:i]), sum(n.shape[1] for n in b[i + "
        "1:])))) for i, m in enumerate(b)]))([np.atleast_2d(i) for i in inputs])",
    .samples =
        [] {
          return Samples()
              .add(Specs{t({2, 3}), t({1, 2})})
              .add(Specs{t({}), t({3}), t({2, 2})})
              .add(Specs{t({2, 2})})
              .add(Specs{t({0, 2}), t({2, 1})});
        },
    .python = "oar",
};

Metas infer_triangle(const Tensor& x) {
  user_check(x.rank() >= 2, ErrorKind::InvalidArgument,
             "a triangle needs a tensor of rank 2 or more; x has shape {}.", to_string(x.dims()));
  return infer::like(x);
}

Samples triangles() {
  return Samples()
      .add(t({3, 4}))
      .add(t({4, 3}), 1)
      .add(t({2, 3, 3}), -1)
      .add(t({0, 3}))
      .add(t({2, 2}), 9)
      .add(t({2, 2}), -9);
}

// The diagonal of the whole, relative to a piece of some rows or columns.
void shifted_diagonal(const PieceCall& piece) {
  const auto& axes = piece.plan.operands[0].axes;
  const int64_t diagonal = piece.frame[1].as_int();
  if (axes[axes.size() - 2].factor == static_cast<int>(piece.factor))
    piece.frame.set(1, diagonal + piece.start.value());
  if (axes.back().factor == static_cast<int>(piece.factor))
    piece.frame.set(1, diagonal - piece.start.value());
}

const OpDef tril_op = {
    .schema = "tril(Tensor x, int diagonal = 0) -> Tensor",
    .brief = "The elements on and below a diagonal of the last two axes; zero above.",
    .infer = [](const args::tril& a) { return infer_triangle(a.x); },
    .vjp = [](const vjp::tril& v) -> Grads { return tril(v.grad, v.diagonal); },
    .shard = "...ij -> ...ij",
    .localise = shifted_diagonal,
    .traits = Trait::Linear | Trait::HasInplace,
    .numpy = "np.tril(x, diagonal)",
    .samples = triangles,
    .python = "oar Tensor",
};

const OpDef triu_op = {
    .schema = "triu(Tensor x, int diagonal = 0) -> Tensor",
    .brief = "The elements on and above a diagonal of the last two axes; zero below.",
    .infer = [](const args::triu& a) { return infer_triangle(a.x); },
    .vjp = [](const vjp::triu& v) -> Grads { return triu(v.grad, v.diagonal); },
    .shard = "...ij -> ...ij",
    .localise = shifted_diagonal,
    .traits = Trait::Linear | Trait::HasInplace,
    .numpy = "np.triu(x, diagonal)",
    .samples = triangles,
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(diagonals, &diagonal_op, &trace_op, &diag_embed_op, &diag_op, &diagflat_op,
           &diagonal_scatter_op, &block_diag_op, &tril_op, &triu_op)

}  // namespace oar
