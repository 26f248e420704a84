// Other ways to write a product: all of them lead to matmul or multiply.
#include "oar/ops/gen/products.h"

#include <algorithm>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/gen/binary.h"
#include "oar/ops/gen/linalg.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

void check_rank(const Tensor& x, int rank, const char* name) {
  user_check(x.rank() == rank, ErrorKind::InvalidArgument,
             "{} must have {} axes, but its shape is {}.\nhint: matmul takes any rank.", name, rank,
             to_string(x.dims()));
}

const OpDef mm_op = {
    .schema = "mm(Tensor input, Tensor mat2) -> Tensor",
    .brief = "The matrix product, without transposition.",
    .decompose = [](const args::mm& a) -> Made { return matmul(a.input, a.mat2); },
    .dtypes = "int float complex",
    .numpy = "np.matmul(input, mat2)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3}), t({3, 4}))
              .add(t({2, 2, 3}), t({2, 3, 1}))
              .add(t({0, 3}), t({3, 2}));
        },
    .python = "oar Tensor",
};

const OpDef bmm_op = {
    .schema = "bmm(Tensor x, Tensor y) -> Tensor",
    .brief = "The products of two equally long lists of matrices.",
    .decompose = [](const args::bmm& a) -> Made {
      check_rank(a.x, 3, "x");
      check_rank(a.y, 3, "y");
      user_check(
          same(a.x.dim(0), a.y.dim(0)), ErrorKind::InvalidArgument,
          "x of shape {} holds {} matrices and y of shape {} holds {}.\nhint: matmul broadcasts "
          "a single one.",
          to_string(a.x.dims()), a.x.dim(0).str(), to_string(a.y.dims()), a.y.dim(0).str());
      return matmul(a.x, a.y);
    },
    .dtypes = "int float complex",
    .numpy = "np.matmul(x, y)",
    .samples =
        [] { return Samples().add(t({2, 3, 4}), t({2, 4, 2})).add(t({0, 2, 3}), t({0, 3, 2})); },
    .python = "oar Tensor",
};

const OpDef dot_op = {
    .schema = "dot(Tensor x, Tensor y) -> Tensor",
    .brief =
        "The sum of x * y along the last axis: of two vectors, or of the rows of two matrices.",
    .decompose = [](const args::dot& a) -> Made {
      user_check((a.x.rank() == 1 || a.x.rank() == 2) && same(a.x.shape(), a.y.shape()),
                 ErrorKind::InvalidArgument,
                 "x of shape {} and y of shape {} must be two vectors, or two matrices, of one "
                 "shape.\nhint: For other shapes use matmul or (x * y).sum(-1).",
                 to_string(a.x.dims()), to_string(a.y.dims()));
      if (a.x.rank() == 1) return matmul(a.x, a.y);
      const Tensor rows = reshape(a.x, {a.x.dim(0), 1, a.x.dim(1)});
      const Tensor columns = reshape(a.y, {a.y.dim(0), a.y.dim(1), 1});
      return reshape(matmul(rows, columns), {a.x.dim(0)});
    },
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .numpy = "np.einsum('...i,...i->...', x, y)",
    .samples =
        [] {
          return Samples()
              .add(t({5}), t({5}))
              .add(t({3, 4}), t({3, 4}))
              .add(t({0}), t({0}))
              .add(t({2, 0}), t({2, 0}));
        },
    .python = "oar Tensor",
};

const OpDef mv_op = {
    .schema = "mv(Tensor x, Tensor vec) -> Tensor",
    .brief = "A matrix times a vector.",
    .decompose = [](const args::mv& a) -> Made {
      check_rank(a.x, 2, "x");
      check_rank(a.vec, 1, "vec");
      return matmul(a.x, a.vec);
    },
    .dtypes = "int float complex",
    .numpy = "np.matmul(x, vec)",
    .samples =
        [] {
          return Samples().add(t({3, 4}), t({4})).add(t({0, 3}), t({3})).add(t({2, 0}), t({0}));
        },
    .python = "oar Tensor",
};

const OpDef outer_op = {
    .schema = "outer(Tensor x, Tensor y) -> Tensor",
    .brief = "Every element of x times every element of y; both are flattened first.",
    .decompose = [](const args::outer& a) -> Made {
      return multiply(reshape(a.x, {a.x.numel(), 1}), reshape(a.y, {1, a.y.numel()}));
    },
    .traits = Trait::Promote,
    .numpy = "np.outer(x, y)",
    .samples =
        [] {
          return Samples()
              .add(t({3}), t({4}))
              .add(t({2, 2}), t({3}))
              .add(t({}), t({2}))
              .add(t({0}), t({3}));
        },
    .python = "oar Tensor",
};

// All axes but the last as one.
Tensor last_axis_rows(const Tensor& x) {
  const Dim last = x.dim(-1);
  Dim rows = 1;
  for (int i = 0; i + 1 < x.rank(); ++i) rows = rows * x.dims()[static_cast<size_t>(i)];
  return reshape(x, {rows, last});
}

const OpDef inner_op = {
    .schema = "inner(Tensor x, Tensor y) -> Tensor",
    .brief = "The sums over the last axis of x and y, for every pair of their other indices.",
    .decompose = [](const args::inner& a) -> Made {
      if (a.x.rank() == 0 || a.y.rank() == 0) return multiply(a.x, a.y);
      user_check(same(a.x.dim(-1), a.y.dim(-1)), ErrorKind::InvalidArgument,
                 "the last axes of x (shape {}) and y (shape {}) differ in size.",
                 to_string(a.x.dims()), to_string(a.y.dims()));
      Shape shape;
      for (const Tensor* t : {&a.x, &a.y})
        for (int i = 0; i + 1 < t->rank(); ++i) shape.push_back(t->dims()[static_cast<size_t>(i)]);
      return reshape(matmul(last_axis_rows(a.x), last_axis_rows(a.y), false, true), shape);
    },
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .numpy = "np.inner(x, y)",
    .samples =
        [] {
          return Samples()
              .add(t({4}), t({4}))
              .add(t({2, 3}), t({2, 2, 3}))
              .add(t({}), t({3}))
              .add(t({2, 0}), t({3, 0}));
        },
    .python = "oar Tensor",
};

Tensor scaled(const Tensor& x, double factor) { return factor == 1.0 ? x : x * factor; }

const OpDef addmm_op = {
    .schema =
        "addmm(Tensor input, Tensor x, Tensor y, float beta = 1.0, float alpha = 1.0) -> Tensor",
    .brief = "beta * input + alpha * (x @ y), with input broadcast to the product's shape.",
    .decompose = [](const args::addmm& a) -> Made {
      check_rank(a.x, 2, "x");
      check_rank(a.y, 2, "y");
      const Tensor product = matmul(a.x, a.y);
      user_check(a.input.rank() <= 2 &&
                     same(broadcast_shapes(a.input.shape(), product.shape()), product.shape()),
                 ErrorKind::InvalidArgument,
                 "input of shape {} does not broadcast to the shape {} of the product.",
                 to_string(a.input.dims()), to_string(product.dims()));
      return scaled(a.input, a.beta) + scaled(product, a.alpha);
    },
    .traits = Trait::Promote | Trait::HasInplace,
    .dtypes = "float complex",
    .numpy = "(beta * input + alpha * (x @ y)).astype(input.dtype)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 4}), t({2, 3}), t({3, 4}))
              .add(t({4}), t({2, 3}), t({3, 4}), 2.0, 3.0)
              .add(t({2, 1}), t({2, 0}), t({0, 4}), 2.0);
        },
    .python = "oar Tensor",
    .onnx = "Gemm",
};

// The sizes of both factors, axis by axis; missing ones are 1.
struct KronSizes {
  Shape x, y;
  KronSizes(const Tensor& left, const Tensor& right) {
    const int rank = std::max(left.rank(), right.rank());
    const auto size = [rank](const Tensor& t, int i) {
      const int axis = i - (rank - t.rank());
      return axis < 0 ? Dim(1) : t.dims()[static_cast<size_t>(axis)];
    };
    for (int i = 0; i < rank; ++i) {
      x.push_back(size(left, i));
      y.push_back(size(right, i));
    }
  }
  // An axis of x, then one of y, and so on.
  static Shape alternating(const Shape& x, const Shape& y) {
    Shape shape;
    for (size_t i = 0; i < x.size(); ++i) {
      shape.push_back(x[i]);
      shape.push_back(y[i]);
    }
    return shape;
  }
  Shape joined() const {
    Shape shape;
    for (size_t i = 0; i < x.size(); ++i) shape.push_back(x[i] * y[i]);
    return shape;
  }
};

// Both gradients are products with the matrix that has a row for each element of x and a column for
// each of y.
Grads kron_gradient(const vjp::kron& v) {
  const KronSizes sizes(v.x, v.y);
  SmallVector<int64_t, 12> order;
  const auto rank = static_cast<int64_t>(sizes.x.size());
  for (int64_t i = 0; i < rank; ++i) order.push_back(2 * i);
  for (int64_t i = 0; i < rank; ++i) order.push_back(2 * i + 1);
  const Tensor blocks = reshape(v.grad, KronSizes::alternating(sizes.x, sizes.y));
  const Tensor matrix = reshape(transpose(blocks, order), {v.x.numel(), v.y.numel()});
  const auto flat = [](const Tensor& t) { return reshape(conjugate(t), {t.numel()}); };
  return {v.needs(0) ? reshape(matmul(matrix, flat(v.y)), v.x.dims()) : Tensor(),
          v.needs(1) ? reshape(matmul(flat(v.x), matrix), v.y.dims()) : Tensor()};
}

const OpDef kron_op = {
    .schema = "kron(Tensor x, Tensor y) -> Tensor",
    .brief = "The Kronecker product: every element of x times the whole of y, laid out as blocks.",
    .infer = [](const args::kron& a) -> Metas {
      return TensorMeta{a.x.dtype(), KronSizes(a.x, a.y).joined()};
    },
    .decompose = [](const args::kron& a) -> Made {
      const KronSizes sizes(a.x, a.y);
      const Shape ones(sizes.x.size(), Dim(1));
      return reshape(multiply(reshape(a.x, KronSizes::alternating(sizes.x, ones)),
                              reshape(a.y, KronSizes::alternating(ones, sizes.y))),
                     sizes.joined());
    },
    .vjp = kron_gradient,
    .saves = "x y",
    .traits = Trait::Promote,
    .numpy = "np.kron(x, y)",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3}), t({3, 2}))
              .add(t({2}), t({2, 2, 1}))
              .add(t({}), t({3}))
              .add(t({0, 2}), t({3}));
        },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(products, &mm_op, &bmm_op, &dot_op, &mv_op, &outer_op, &inner_op, &addmm_op, &kron_op)

}  // namespace oar
