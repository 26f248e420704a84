// Products with sparse matrices, as ops of their index vectors and values. Each gradient is another product of this
// family, so derivatives of any order exist.
#include "oar/ops/gen/sparse_products.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/work.h"
#include "oar/ops/families/sparse_rules.h"
#include "oar/ops/gen/complex.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/index.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/sort.h"
#include "oar/ops/gen/sparse_index.h"

namespace oar {
namespace {

Tensor rows_at(const Tensor& x, const Tensor& numbers) { return index_take(x, {numbers}); }

// values · y summed into rows.
Tensor summed_products(const Tensor& rows, const Tensor& cols, const Tensor& values,
                       const Tensor& y, Dim size) {
  const Tensor terms = reshape(values, {values.dim(0), 1}) * rows_at(y, cols);
  return sums_at(rows, terms, Shape{size});
}

Cost products_cost(const Tensor& values, const Tensor& y) {
  return Cost::of_products(2 * elements(values) * extent(y, -1));
}

const OpDef csr_matmul_op = {
    .schema = "csr_matmul(Tensor crows, Tensor cols, Tensor values, Tensor y) -> Tensor",
    .brief = "The product of a CSR matrix with a dense matrix.",
    .infer = [](const args::csr_matmul& a) -> Metas {
      check_integers(a.crows, "crows", 1);
      check_integers(a.cols, "cols", 1);
      check_rank(a.values, "values", 1);
      check_rank(a.y, "y", 2);
      check_count(a.cols, "cols", a.values, "values");
      user_check(!known_less(a.crows.dim(0), Dim(1)), ErrorKind::InvalidArgument,
                 "crows is empty; a matrix of n rows has n + 1 entries.");
      return TensorMeta{a.y.dtype(), Shape{a.crows.dim(0) - 1, a.y.dim(1)}};
    },
    .decompose = [](const args::csr_matmul& a) -> Made {
      return summed_products(expand_rows(a.crows, a.cols), a.cols, a.values, a.y,
                             a.crows.dim(0) - 1);
    },
    .cost =
        [](const CostCall& c) {
          const args::csr_matmul a(c.args);
          return products_cost(a.values, a.y);
        },
    .vjp = [](const vjp::csr_matmul& v) -> Grads {
      const Tensor rows = expand_rows(v.crows, v.cols);
      Grads grads{Tensor(), Tensor(), Tensor(), Tensor()};
      if (v.needs(2)) grads[2] = sampled_matmul(rows, v.cols, v.grad, conj(v.y));
      if (v.needs(3))
        grads[3] = coo_matmul(v.cols, rows, conj(v.values), v.grad, Shape{v.y.dim(0)});
      return grads;
    },
    .saves = "crows cols values>y y",
    .plan = [](const PlanCall& c) { c.plan.pass(c.plan.operands[3], 1, c.plan.results[0], 1); },
    .linear_in = "values y",
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .promotes = "values y",
    .numpy =
        "(lambda m: (np.add.at(m, (np.repeat(np.arange(len(crows) - 1), np.diff(crows)), cols), values), m @ "
        "y)[1])(np.zeros((len(crows) - 1, len(y)), values.dtype))",
    .samples =
        [] {
          return Samples()
              .add(fixed_values({0, 2, 2, 5}, {4}, DType::Int64), ints(0, 4, {5}), t({5}),
                   t({4, 3}))
              .add(fixed_values({0, 1, 3}, {3}, DType::Int32), ints(0, 2, {3}, DType::Int32),
                   t({3}), t({2, 1}))
              .add(fixed_values({0, 0, 0}, {3}, DType::Int64), ints(0, 4, {0}), t({0}), t({4, 2}));
        },
};

const OpDef coo_matmul_op = {
    .schema = "coo_matmul(Tensor rows, Tensor cols, Tensor values, Tensor y, shape size) -> Tensor",
    .brief =
        "The product of a sparse matrix with a dense matrix: row rows[k] of the result is the sum of values[k] "
        "times row cols[k] of y. `size` is the number of rows.",
    .infer = [](const args::coo_matmul& a) -> Metas {
      check_integers(a.rows, "rows", 1);
      check_integers(a.cols, "cols", 1);
      check_rank(a.values, "values", 1);
      check_rank(a.y, "y", 2);
      check_count(a.rows, "rows", a.values, "values");
      check_count(a.cols, "cols", a.values, "values");
      return TensorMeta{a.y.dtype(), Shape{one_size(a.size), a.y.dim(1)}};
    },
    .decompose = [](const args::coo_matmul& a) -> Made {
      return summed_products(a.rows, a.cols, a.values, a.y, one_size(a.size));
    },
    .cost =
        [](const CostCall& c) {
          const args::coo_matmul a(c.args);
          return products_cost(a.values, a.y);
        },
    .vjp = [](const vjp::coo_matmul& v) -> Grads {
      Grads grads{Tensor(), Tensor(), Tensor(), Tensor()};
      if (v.needs(2)) grads[2] = sampled_matmul(v.rows, v.cols, v.grad, conj(v.y));
      if (v.needs(3))
        grads[3] = coo_matmul(v.cols, v.rows, conj(v.values), v.grad, Shape{v.y.dim(0)});
      return grads;
    },
    .saves = "rows cols values>y y",
    .plan = [](const PlanCall& c) { c.plan.pass(c.plan.operands[3], 1, c.plan.results[0], 1); },
    .linear_in = "values y",
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .promotes = "values y",
    .numpy =
        "(lambda m: (np.add.at(m, (rows, cols), values), m @ y)[1])(np.zeros((size[0], len(y)), values.dtype))",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 3, {6}), ints(0, 4, {6}), t({6}), t({4, 3}), IntVector{3})
              .add(fixed_values({0, 1, 1, 2}, {4}, DType::Int32), ints(0, 2, {4}, DType::Int32),
                   t({4}), t({2, 1}), IntVector{5})
              .add(ints(0, 3, {0}), ints(0, 4, {0}), t({0}), t({4, 2}), IntVector{2});
        },
};

const OpDef sampled_matmul_op = {
    .schema = "sampled_matmul(Tensor rows, Tensor cols, Tensor x, Tensor y) -> Tensor",
    .brief = "Some elements of x · yᵀ: the products of row rows[k] of x and row cols[k] of y.",
    .infer = [](const args::sampled_matmul& a) -> Metas {
      check_integers(a.rows, "rows", 1);
      check_integers(a.cols, "cols", 1);
      check_rank(a.x, "x", 2);
      check_rank(a.y, "y", 2);
      check_count(a.rows, "rows", a.cols, "cols");
      user_check(same(a.x.dim(1), a.y.dim(1)), ErrorKind::InvalidArgument,
                 "x of shape {} and y of shape {} must have rows of one length.",
                 to_string(a.x.dims()), to_string(a.y.dims()));
      return TensorMeta{a.x.dtype(), Shape{a.rows.dim(0)}};
    },
    .decompose = [](const args::sampled_matmul& a) -> Made {
      return sum(rows_at(a.x, a.rows) * rows_at(a.y, a.cols), IntVector{1}, a.x.dtype());
    },
    .cost =
        [](const CostCall& c) {
          const args::sampled_matmul a(c.args);
          return products_cost(a.rows, a.x);
        },
    .vjp = [](const vjp::sampled_matmul& v) -> Grads {
      Grads grads{Tensor(), Tensor(), Tensor(), Tensor()};
      if (v.needs(2)) grads[2] = coo_matmul(v.rows, v.cols, v.grad, conj(v.y), Shape{v.x.dim(0)});
      if (v.needs(3)) grads[3] = coo_matmul(v.cols, v.rows, v.grad, conj(v.x), Shape{v.y.dim(0)});
      return grads;
    },
    .saves = "rows cols x>y y>x",
    .shard = "k, k, rj, cj -> k ; r whole, c whole # a pair may name any row and column",
    .linear_in = "x y",
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .promotes = "x y",
    .numpy = "np.sum(x[rows] * y[cols], axis=1, dtype=x.dtype)",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 3, {6}), ints(0, 4, {6}), t({3, 2}), t({4, 2}))
              .add(ints(0, 3, {2}, DType::Int32), ints(0, 1, {2}, DType::Int32), t({3, 1}),
                   t({1, 1}))
              .add(ints(0, 3, {0}), ints(0, 4, {0}), t({3, 2}), t({4, 2}));
        },
};

// ---- products of two sparse matrices -----------------------------------------------------------

struct Csr {
  Tensor crows, cols, values;
};

// The elements sorted by rows.
Csr by_rows(const Tensor& rows, const Tensor& cols, const Tensor& values, Dim size) {
  const Tensor order = key_order(rows, Shape{size});
  return {compress_rows(rows, Shape{size}), rows_at(cols, order), rows_at(values, order)};
}

Csr transposed(const Tensor& crows, const Tensor& cols, const Tensor& values, Dim width) {
  return by_rows(cols, expand_rows(crows, cols), values, width);
}

void check_csr(const Tensor& crows, const Tensor& cols, const Tensor& values, const char* name) {
  const std::string prefix(name);
  check_integers(crows, (prefix + "_crows").c_str(), 1);
  check_integers(cols, (prefix + "_cols").c_str(), 1);
  check_rank(values, (prefix + "_values").c_str(), 1);
  check_count(cols, (prefix + "_cols").c_str(), values, (prefix + "_values").c_str());
  user_check(!known_less(crows.dim(0), Dim(1)), ErrorKind::InvalidArgument,
             "{}_crows is empty; a matrix of n rows has n + 1 entries.", name);
}

const OpDef csr_product_op = {
    .schema =
        "csr_product(Tensor x_crows, Tensor x_cols, Tensor x_values, Tensor y_crows, Tensor y_cols, Tensor "
        "y_values, shape size) -> (Tensor crows, Tensor cols, Tensor values)",
    .brief =
        "The product of two CSR matrices. `size` is the number of columns of y. Columns of the result rise in each "
        "row.",
    .infer = [](const args::csr_product& a) -> Metas {
      check_csr(a.x_crows, a.x_cols, a.x_values, "x");
      check_csr(a.y_crows, a.y_cols, a.y_values, "y");
      one_size(a.size);
      // The kernel computes the number; only a program needs a symbol for it.
      const Dim most = a.x_cols.dim(0);
      const Dim count = a.x_cols.is_dense() ? most : Dim::symbol("products", most.hint());
      return {TensorMeta{DType::Int64, Shape{a.x_crows.dim(0)}, true},
              TensorMeta{DType::Int64, Shape{count}, true},
              TensorMeta{a.x_values.dtype(), Shape{count}, true}};
    },
    .vjp = [](const vjp::csr_product& v) -> Grads {
      Grads grads{Tensor(), Tensor(), Tensor(), Tensor(), Tensor(), Tensor()};
      const Dim width = one_size(v.size), inner = v.y_crows.dim(0) - 1;
      if (v.needs(2))
        grads[2] = csr_dots(expand_rows(v.x_crows, v.x_cols), v.x_cols, v.crows, v.cols,
                            v.grad_values, v.y_crows, v.y_cols, conj(v.y_values), Shape{width});
      if (v.needs(5)) {
        const Dim height = v.x_crows.dim(0) - 1;
        const Csr x = transposed(v.x_crows, v.x_cols, conj(v.x_values), inner);
        const Csr g = transposed(v.crows, v.cols, v.grad_values, width);
        grads[5] = csr_dots(expand_rows(v.y_crows, v.y_cols), v.y_cols, x.crows, x.cols, x.values,
                            g.crows, g.cols, g.values, Shape{height});
      }
      return grads;
    },
    .saves = "x_crows x_cols x_values>y_values y_crows y_cols y_values>x_values crows cols",
    .shard = "whole: how many elements the product has depends on all of them",
    .traits = Trait::DataDependent | Trait::Promote,
    .dtypes = "int float complex",
    .promotes = "x_values y_values",
    .numpy =
        "(lambda dense: (lambda m: (lambda w: (np.append(0, np.cumsum((m != 0).sum(1))), w[1], (dense(x_crows, "
        "x_cols, x_values, len(y_crows) - 1) @ dense(y_crows, y_cols, y_values, size[0]))[w]))(np.nonzero(m)))("
        "dense(x_crows, x_cols, np.ones(len(x_cols), 'int64'), len(y_crows) - 1) @ dense(y_crows, y_cols, "
        "np.ones(len(y_cols), 'int64'), size[0])))(lambda crows, cols, values, n: (lambda m: "
        "(np.add.at(m, (np.repeat(np.arange(len(crows) - 1), np.diff(crows)), cols), values), m)[1])("
        "np.zeros((len(crows) - 1, n), values.dtype)))",
    .samples =
        [] {
          return Samples()
              .add(fixed_values({0, 2, 2, 5}, {4}, DType::Int64),
                   fixed_values({0, 3, 0, 1, 2}, {5}, DType::Int64), t({5}),
                   fixed_values({0, 1, 3, 3, 4}, {5}, DType::Int64),
                   fixed_values({1, 0, 2, 2}, {4}, DType::Int64), t({4}), IntVector{3})
              .add(fixed_values({0, 0}, {2}, DType::Int64), ints(0, 2, {0}), t({0}),
                   fixed_values({0, 1, 2}, {3}, DType::Int64), ints(0, 2, {2}), t({2}),
                   IntVector{2});
        },
};

const OpDef csr_dots_op = {
    .schema =
        "csr_dots(Tensor rows, Tensor cols, Tensor x_crows, Tensor x_cols, Tensor x_values, Tensor y_crows, Tensor "
        "y_cols, Tensor y_values, shape size) -> Tensor",
    .brief =
        "Some elements of x · yᵀ for two CSR matrices: the products of row rows[k] of x and row cols[k] of y. `size` "
        "is the number of columns of both.",
    .infer = [](const args::csr_dots& a) -> Metas {
      check_integers(a.rows, "rows", 1);
      check_integers(a.cols, "cols", 1);
      check_count(a.rows, "rows", a.cols, "cols");
      check_csr(a.x_crows, a.x_cols, a.x_values, "x");
      check_csr(a.y_crows, a.y_cols, a.y_values, "y");
      one_size(a.size);
      return TensorMeta{a.x_values.dtype(), Shape{a.rows.dim(0)}};
    },
    .vjp = [](const vjp::csr_dots& v) -> Grads {
      Grads grads;
      grads.resize(8);
      const Dim width = one_size(v.size), x_rows = v.x_crows.dim(0) - 1,
                y_rows = v.y_crows.dim(0) - 1;
      if (v.needs(4)) {
        const Csr g = by_rows(v.rows, v.cols, v.grad, x_rows);
        const Csr y = transposed(v.y_crows, v.y_cols, conj(v.y_values), width);
        grads[4] = csr_dots(expand_rows(v.x_crows, v.x_cols), v.x_cols, g.crows, g.cols, g.values,
                            y.crows, y.cols, y.values, Shape{y_rows});
      }
      if (v.needs(7)) {
        const Csr g = by_rows(v.cols, v.rows, v.grad, y_rows);
        const Csr x = transposed(v.x_crows, v.x_cols, conj(v.x_values), width);
        grads[7] = csr_dots(expand_rows(v.y_crows, v.y_cols), v.y_cols, g.crows, g.cols, g.values,
                            x.crows, x.cols, x.values, Shape{x_rows});
      }
      return grads;
    },
    .saves = "rows cols x_crows x_cols x_values>y_values y_crows y_cols y_values>x_values",
    .plan =
        [](const PlanCall& c) {
          c.plan.pass(c.plan.operands[0], 0, c.plan.results[0], 0);
          c.plan.put(c.plan.operands[1], 0, c.plan.operands[0].axes[0].factor);
        },
    .linear_in = "x_values y_values",
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .promotes = "x_values y_values",
    .numpy =
        "(lambda dense: np.sum(dense(x_crows, x_cols, x_values)[rows] * dense(y_crows, y_cols, y_values)[cols], "
        "axis=1, dtype=x_values.dtype))(lambda crows, cols, values: (lambda m: (np.add.at(m, "
        "(np.repeat(np.arange(len(crows) - 1), np.diff(crows)), cols), values), m)[1])(np.zeros((len(crows) - 1, "
        "size[0]), values.dtype)))",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 3, {6}), ints(0, 4, {6}), fixed_values({0, 2, 2, 5}, {4}, DType::Int64),
                   fixed_values({0, 2, 0, 1, 2}, {5}, DType::Int64), t({5}),
                   fixed_values({0, 1, 3, 3, 4}, {5}, DType::Int64),
                   fixed_values({1, 0, 2, 2}, {4}, DType::Int64), t({4}), IntVector{3})
              .add(ints(0, 1, {0}), ints(0, 1, {0}), fixed_values({0, 0}, {2}, DType::Int64),
                   ints(0, 2, {0}), t({0}), fixed_values({0, 1}, {2}, DType::Int64),
                   ints(0, 2, {1}), t({1}), IntVector{2});
        },
};

// ---- softmax of rows ---------------------------------------------------------------------------

const OpDef csr_softmax_op = {
    .schema = "csr_softmax(Tensor crows, Tensor values) -> Tensor",
    .brief = "The softmax of each row of a CSR matrix over the elements that it holds.",
    .infer = [](const args::csr_softmax& a) -> Metas {
      check_integers(a.crows, "crows", 1);
      check_rank(a.values, "values", 1);
      user_check(!known_less(a.crows.dim(0), Dim(1)), ErrorKind::InvalidArgument,
                 "crows is empty; a matrix of n rows has n + 1 entries.");
      return infer::like(a.values);
    },
    .vjp = [](const vjp::csr_softmax& v) -> Grads {
      const Tensor rows = expand_rows(v.crows, v.out);
      const Tensor weighted = v.grad * v.out;
      return {Tensor(),
              weighted - v.out * rows_at(sums_at(rows, weighted, Shape{v.crows.dim(0) - 1}), rows)};
    },
    .saves = "crows out",
    .shard = "whole: a row's elements share a sum",
    .traits = Trait::Promote,
    .dtypes = "float",
    .promotes = "values",
    .numpy =
        "(lambda r: (lambda e: e / np.bincount(r, e, len(crows) - 1)[r])(np.exp((values - "
        "values.max(initial=0)).astype('float64'))).astype(values.dtype))(np.repeat(np.arange(len(crows) - 1), "
        "np.diff(crows)))",
    .samples =
        [] {
          return Samples()
              .add(fixed_values({0, 2, 2, 5}, {4}, DType::Int64), t({5}))
              .add(fixed_values({0, 1, 4}, {3}, DType::Int32), t({4}))
              .add(fixed_values({0, 0}, {2}, DType::Int64), t({0}));
        },
};

}  // namespace

OAR_FAMILY(sparse_products, &csr_matmul_op, &coo_matmul_op, &sampled_matmul_op, &csr_product_op,
           &csr_dots_op, &csr_softmax_op)

}  // namespace oar
