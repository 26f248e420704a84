// LU factors, and determinants, which are computed from them.
#include "oar/ops/gen/lu.h"

#include "oar/ops/core/registry.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/matrix_rules.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/gen/solve.h"
#include "oar/ops/gen/sort.h"

namespace oar {
namespace {

using namespace matrices;

Dim smaller_size(const Tensor& x) { return min_of(x.dim(-2), x.dim(-1)); }

Shape vector_shape(const Tensor& x, Dim size) {
  Shape shape = batch_of(x);
  shape.push_back(size);
  return shape;
}

// Rows (or columns) from `begin` up to `end` of the matrices.
Tensor part(const Tensor& x, int64_t axis, Dim begin, Dim end) {
  return slice(x, {axis}, {begin.word()}, {end.word()});
}

// The rows in the order of `places`, an index for each row of the result.
Tensor reordered(const Tensor& x, const Tensor& places) {
  return take_along_axis(x, broadcast_to(unsqueeze(places, {-1}), x.shape()), -2, false);
}

// The gradient of L U = A for square matrices from those of L below its diagonal and of U.
Tensor square_gradient(const Tensor& lu, const Tensor& grad_lower, const Tensor& grad_upper) {
  const Tensor lower = tril(lu, -1), upper = triu(lu);
  // L^H g with the ones on the diagonal of L added by hand.
  const Tensor below = tril(matmul(adjoint(lower), grad_lower) + grad_lower, -1);
  const Tensor above = triu(matmul(grad_upper, adjoint(upper)));
  const Tensor left = triangular_solve_core(lu, below + above, false, true, true);
  return adjoint(triangular_solve_core(lu, adjoint(left), true));
}

// x / U^H for the square upper triangle in lu.
Tensor over_upper(const Tensor& lu, const Tensor& x) {
  return adjoint(triangular_solve_core(lu, adjoint(x), true));
}

// The gradient of the rows in the order of the factors.
Tensor factor_gradient(const Tensor& lu, const Tensor& grad) {
  const Dim rows = lu.dim(-2), columns = lu.dim(-1);
  if (same(rows, columns)) return square_gradient(lu, tril(grad, -1), triu(grad));
  if (known_less(columns, rows)) {  // the lower rows of L are those of A / U
    const Tensor top = part(lu, -2, 0, columns), grad_top = part(grad, -2, 0, columns);
    const Tensor bottom = part(lu, -2, columns, rows);
    const Tensor through = over_upper(top, part(grad, -2, columns, rows));
    const Tensor grad_upper = triu(grad_top - matmul(adjoint(bottom), through));
    return concat({square_gradient(top, tril(grad_top, -1), grad_upper), through}, -2);
  }
  const Tensor left = part(lu, -1, 0, rows), grad_left = part(grad, -1, 0, rows);
  const Tensor right = part(lu, -1, rows, columns);
  const Tensor through =
      triangular_solve_core(left, part(grad, -1, rows, columns), false, true, true);
  const Tensor grad_lower = tril(grad_left - matmul(through, adjoint(right)), -1);
  return concat({square_gradient(left, grad_lower, triu(grad_left)), through}, -1);
}

const OpDef lu_factor_op = {
    .schema = "lu_factor(Tensor x) -> (Tensor lu, Tensor pivots, Tensor infos)",
    .brief =
        "Factors of the matrices with their rows exchanged: U, and below its diagonal L, whose "
        "diagonal is 1. Row i was exchanged with row pivots[i], counted from 1; infos is 0, or the "
        "number of the first zero pivot.",
    .infer = [](const args::lu_factor& a) -> Metas {
      check_matrices(a.x, "x");
      return {infer::like(a.x), TensorMeta{DType::Int32, vector_shape(a.x, smaller_size(a.x))},
              TensorMeta{DType::Int32, batch_of(a.x)}};
    },
    .cost = [](const CostCall& c) { return cubic_cost(c.args[0].as_tensor(), 2.0 / 3); },
    .vjp = [](const vjp::lu_factor& v) -> Grads {
      const Tensor places = pivot_permutation(v.pivots, v.lu.dim(-2).word());
      return reordered(factor_gradient(v.lu, v.grad_lu), argsort(places));
    },
    .saves = "lu pivots",
    .shard =
        "...ij -> ...ij, ...k, ... ; i whole, j whole, k whole # rows are exchanged over the whole matrix",
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda m, n, one: (lambda r: (np.array([a for a, p in r]).reshape(x.shape).astype(x.dtype), "
        "np.array([p for a, p in r], np.int32).reshape(x.shape[:-2] + (min(m, n),)), "
        "np.zeros(x.shape[:-2], np.int32)))([one(a) for a in x.reshape((-1, m, n))]))(*x.shape[-2:], "
        "lambda a: (lambda w, p: ([(lambda q: (p.append(q + 1), w.__setitem__([j, q], w[[q, j]]), "
        "w.__setitem__((slice(j + 1, None), j), w[j + 1:, j] / w[j, j]), "
        "w.__setitem__((slice(j + 1, None), slice(j + 1, None)), w[j + 1:, j + 1:] - "
        "np.outer(w[j + 1:, j], w[j, j + 1:]))))(j + int(np.argmax(np.abs(w[j:, j].real) + np.abs(w[j:, j].imag)))) for j in "
        "range(min(a.shape))], (w, p))[1])(a.copy(), []))",
    .samples =
        [] {
          return Samples()
              .add(full_rank({3, 3}))
              .add(full_rank({2, 4, 3}))
              .add(full_rank({3, 5}))
              .add(full_rank({10, 10}))
              .add(full_rank({2, 12, 9}))
              .add(full_rank({0, 2, 2}));
        },
};

const OpDef pivot_permutation_op = {
    .schema = "pivot_permutation(Tensor pivots, int rows) -> Tensor",
    .brief =
        "The order in which exchanges of rows leave the rows 0, 1, ...: row i is exchanged with row "
        "pivots[i], counted from 1, one after the other.",
    .infer = [](const args::pivot_permutation& a) -> Metas {
      user_check(a.pivots.rank() >= 1, ErrorKind::InvalidArgument, "pivots is 0-d.");
      const Dim rows = Dim::from_word(a.rows), count = a.pivots.dim(-1);
      user_check(rows.is_symbolic() || a.rows >= 0, ErrorKind::InvalidArgument,
                 "rows is {}; it must not be negative.", a.rows);
      user_check(rows.is_symbolic() || count.is_symbolic() || count.word() <= rows.word(),
                 ErrorKind::InvalidArgument,
                 "pivots of shape {} has more exchanges than there are rows ({}).",
                 to_string(a.pivots.dims()), rows.str());
      Shape shape = a.pivots.shape();
      shape[shape.size() - 1] = rows;
      return TensorMeta{DType::Int64, shape};
    },
    .shard = "...k -> ...m ; k whole, m whole # rows are exchanged over the whole matrix",
    .traits = Trait::NoGrad,
    .dtypes = "int",
    .numpy =
        "np.array([(lambda order: ([order.__setitem__(slice(None), [order[int(q) - 1] if i == j else "
        "order[j] if i == int(q) - 1 else order[i] for i in range(rows)]) for j, q in enumerate(row)], "
        "order)[1])(list(range(rows))) for row in pivots.reshape((-1, pivots.shape[-1]))], "
        "np.int64).reshape(pivots.shape[:-1] + (rows,))",
    .samples =
        [] {
          return Samples()
              .add(ints(1, 4, {3}, DType::Int32), 3)
              .add(ints(1, 4, {2, 2}), 5)
              .add(ints(1, 4, {0, 2}), 4);
        },
};

void check_factors(const Tensor& lu, const Tensor& pivots, const char* lu_name,
                   const char* pivots_name) {
  check_matrices(lu, lu_name);
  user_check(is_integral(pivots.dtype()), ErrorKind::InvalidType,
             "{} has dtype {}; the pivots of lu are int32.", pivots_name, name_of(pivots.dtype()));
  const Shape wanted = vector_shape(lu, smaller_size(lu));
  user_check(same(pivots.shape(), wanted), ErrorKind::InvalidArgument,
             "{} of shape {} does not belong to {} of shape {}: it must have shape {}.",
             pivots_name, to_string(pivots.dims()), lu_name, to_string(lu.dims()), wanted.str());
}

const OpDef lu_parts_op = {
    .schema = "lu_parts(Tensor x, Tensor y) -> (Tensor p, Tensor l, Tensor u)",
    .brief =
        "The matrices of A = P L U from the factors x and the pivots y of lu: P exchanges rows, L is "
        "lower triangular with ones on its diagonal, U is upper triangular.",
    .decompose = [](const args::lu_parts& a) -> Made {
      check_factors(a.x, a.y, "x", "y");
      const Dim rows = a.x.dim(-2), size = smaller_size(a.x);
      const Tensor places = pivot_permutation(a.y, rows.word());
      const Tensor exchanges = reordered(
          broadcast_to(identity_matrix(rows, a.x.dtype()), with_sizes(batch_of(a.x), rows, rows)),
          argsort(places));
      const Tensor ones_on_diagonal = identity_matrix(size, a.x.dtype());
      const Tensor square =
          same(rows, size) ? ones_on_diagonal
                           : concat({ones_on_diagonal, zeros({rows - size, size}, a.x.dtype())}, 0);
      return {exchanges, tril(part(a.x, -1, 0, size), -1) + square, triu(part(a.x, -2, 0, size))};
    },
    .batch = [](const BatchCall& c) -> Made {
      const auto [p, l, u] = lu_parts(with_batch(c, 0), with_batch(c, 1));
      return {p, l, u};
    },
    .shard =
        "...ij, ...k -> ...mn, ...pq, ...rs ; i whole, j whole, k whole, m whole, n whole, p whole, q whole, r whole, s whole # rows are exchanged over the whole matrix",
    .dtypes = "float complex",
    .numpy =
        "(lambda m, k: (np.array([np.eye(m, dtype=x.dtype)[(lambda order: ([order.__setitem__(slice("
        "None), [order[int(q) - 1] if i == j else order[j] if i == int(q) - 1 else order[i] for i in "
        "range(m)]) for j, q in enumerate(row)], order)[1])(list(range(m)))].T for row in y.reshape(("
        "-1, k))], x.dtype).reshape(x.shape[:-2] + (m, m)), np.tril(x[..., :, :k], -1) + np.eye(m, k, "
        "dtype=x.dtype), np.triu(x[..., :k, :])))(x.shape[-2], min(x.shape[-2:]))",
    .samples =
        [] {
          return Samples()
              .add(t({3, 3}), ints(1, 4, {3}, DType::Int32))
              .add(t({2, 4, 3}), ints(1, 5, {2, 3}, DType::Int32))
              .add(t({3, 5}), ints(1, 4, {3}, DType::Int32))
              .add(t({0, 2, 2}), ints(1, 3, {0, 2}, DType::Int32));
        },
};

const OpDef lu_solve_op = {
    .schema = "lu_solve(Tensor b, Tensor lu, Tensor pivots, str trans = \"N\") -> Tensor",
    .brief =
        "The solution z of A z = b from the factors and pivots of A that lu returns; with trans "
        "\"T\" of A^T z = b, with \"C\" of A^H z = b.",
    .infer = [](const args::lu_solve& a) -> Metas {
      user_check(a.trans == "N" || a.trans == "T" || a.trans == "C", ErrorKind::InvalidArgument,
                 "trans is \"{}\"; it can be \"N\", \"T\" or \"C\".", a.trans);
      check_square(a.lu, "lu");
      check_factors(a.lu, a.pivots, "lu", "pivots");
      check_matrices(a.b, "b");
      infer::check_dtype(a.b, "b", a.lu.dtype());
      user_check(same(a.b.dim(-2), a.lu.dim(-1)), ErrorKind::InvalidArgument,
                 "b of shape {} must have as many rows as lu of shape {}.", to_string(a.b.dims()),
                 to_string(a.lu.dims()));
      return TensorMeta{a.b.dtype(), with_sizes(broadcast_shapes(batch_of(a.b), batch_of(a.lu)),
                                                a.b.dim(-2), a.b.dim(-1))};
    },
    .decompose = [](const args::lu_solve& a) -> Made {
      const Shape batch = broadcast_shapes(batch_of(a.b), batch_of(a.lu));
      const Tensor lu = with_batch(a.trans == "T" ? conjugate(a.lu) : a.lu, batch);
      const Tensor b = with_batch(a.b, batch);
      Shape order = batch;
      order.push_back(a.lu.dim(-1));
      const Tensor places = broadcast_to(pivot_permutation(a.pivots, a.lu.dim(-1).word()), order);
      if (a.trans == "N")
        return triangular_solve_core(
            lu, triangular_solve_core(lu, reordered(b, places), false, false, true), true);
      const Tensor upper = triangular_solve_core(lu, b, true, true);
      return reordered(triangular_solve_core(lu, upper, false, true, true), argsort(places));
    },
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda f, order: np.linalg.solve(f if trans == 'N' else np.swapaxes(f if trans == 'T' else "
        "np.conj(f), -1, -2), np.broadcast_to(b, np.broadcast_shapes(f.shape[:-2], b.shape[:-2]) + "
        "b.shape[-2:])))((lambda m: np.array([((np.tril(w, -1) + np.eye(m)) @ np.triu(w))[np.argsort("
        "(lambda order: ([order.__setitem__(slice(None), [order[int(q) - 1] if i == j else order[j] if "
        "i == int(q) - 1 else order[i] for i in range(m)]) for j, q in enumerate(row)], order)[1])("
        "list(range(m))))] for w, row in zip(lu.reshape((-1, m, m)), pivots.reshape((-1, m)))], "
        "lu.dtype).reshape(lu.shape))(lu.shape[-1]), None)",
    .samples =
        [] {
          return Samples()
              .add(t({3, 2}), with_triangles({3, 3}), ints(1, 4, {3}, DType::Int32))
              .add(t({2, 4, 1}), with_triangles({2, 4, 4}), ints(1, 5, {2, 4}, DType::Int32), "T")
              .add(t({3, 2}), with_triangles({2, 3, 3}), ints(1, 4, {2, 3}, DType::Int32), "C")
              .add(t({0, 2, 1}), with_triangles({0, 2, 2}), ints(1, 3, {0, 2}, DType::Int32));
        },
    .python = "oar.linalg",
};

// The matrix of cofactors of up to three rows, which are polynomials: no inverse is needed.
Tensor small_cofactors(const Tensor& x) {
  const int64_t n = x.dim(-1).value();
  const auto at = [&](int64_t i, int64_t j) {
    return slice(x, {-2, -1}, {i % n, j % n}, {i % n + 1, j % n + 1});
  };
  if (n == 1) return ones_like(x);
  std::vector<Tensor> rows;
  for (int64_t i = 0; i < n; ++i) {
    std::vector<Tensor> row;
    for (int64_t j = 0; j < n; ++j) {
      if (n == 2)
        row.push_back((i + j) % 2 == 0 ? at(i + 1, j + 1) : -at(i + 1, j + 1));
      else
        row.push_back(at(i + 1, j + 1) * at(i + 2, j + 2) - at(i + 1, j + 2) * at(i + 2, j + 1));
    }
    rows.push_back(concat(row, -1));
  }
  return concat(rows, -2);
}

bool has_small_cofactors(const Tensor& x) {
  const Dim n = x.dim(-1);
  return !n.is_symbolic() && n.value() >= 1 && n.value() <= 3;
}

Tensor over_matrix(const Tensor& x) { return unsqueeze(unsqueeze(x, {-1}), {-1}); }

const OpDef cofactors_op = {
    .schema = "cofactors(Tensor x) -> Tensor",
    .brief =
        "The cofactors of square matrices, singular or not: the derivatives of the determinant. "
        "Their own derivatives are computed with the inverse, so a singular matrix is an error "
        "then.",
    .infer = [](const args::cofactors& a) -> Metas {
      check_square(a.x, "x");
      return infer::like(a.x);
    },
    .cost = [](const CostCall& c) { return cubic_cost(c.args[0].as_tensor(), 2); },
    .vjp = [](const vjp::cofactors& v) -> Grads {
      const Tensor turned_inverse = adjoint(inverse(v.x)), out = conjugate(v.out);
      const Tensor scale = sum(v.grad * out, IntArgs{-2, -1}, std::nullopt, true);
      return scale * turned_inverse - matmul(matmul(out, v.grad, false, true), turned_inverse);
    },
    .saves = "x out",
    .shard = "...ij -> ...ij ; i whole, j whole # an element depends on the whole matrix",
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy = "np.linalg.det(x)[..., None, None] * np.swapaxes(np.linalg.inv(x), -1, -2)",
    .samples =
        [] {
          return Samples()
              .add(full_rank({3, 3}))
              .add(full_rank({2, 4, 4}))
              .add(full_rank({1, 1}))
              .add(full_rank({9, 9}))
              .add(full_rank({0, 2, 2}))
              .add(full_rank({0, 0}));
        },
};

const OpDef det_op = {
    .schema = "det(Tensor x) -> Tensor",
    .brief =
        "The determinant of square matrices. Its derivative exists everywhere, the second one for "
        "up to three rows; for larger matrices that one is computed with the inverse, so a singular "
        "one is an error then.",
    .infer = [](const args::det& a) -> Metas {
      check_square(a.x, "x");
      return TensorMeta{a.x.dtype(), batch_of(a.x)};
    },
    .cost = [](const CostCall& c) { return cubic_cost(c.args[0].as_tensor(), 2.0 / 3); },
    .vjp = [](const vjp::det& v) -> Grads {
      const Tensor slopes = has_small_cofactors(v.x) ? small_cofactors(v.x) : cofactors(v.x);
      return over_matrix(v.grad) * conjugate(slopes);
    },
    .saves = "x",
    .shard = "...ij -> ... ; i whole, j whole # a product over the factors of the whole matrix",
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy = "np.linalg.det(x)",
    .samples =
        [] {
          return Samples()
              .add(full_rank({3, 3}))
              .add(full_rank({2, 2, 2}))
              .add(full_rank({1, 1}))
              .add(full_rank({2, 1, 4, 4}))
              .add(full_rank({9, 9}))
              .add(filled_with({1, 2, 2, 4}, {2, 2}))
              .add(full_rank({0, 3, 3}))
              .add(full_rank({2, 0, 0}));
        },
    .python = "oar.linalg",
};

const OpDef slogdet_parts_op = {
    .schema = "slogdet_parts(Tensor x) -> (Tensor sign, Tensor logarithm)",
    .brief =
        "The sign of the determinant (of a complex one, its direction) and the logarithm of its "
        "magnitude: 0 and -inf for a singular matrix, which has no derivative.",
    .infer = [](const args::slogdet_parts& a) -> Metas {
      check_square(a.x, "x");
      return {TensorMeta{a.x.dtype(), batch_of(a.x)},
              TensorMeta{real_type_of(a.x.dtype()), batch_of(a.x)}};
    },
    .cost = [](const CostCall& c) { return cubic_cost(c.args[0].as_tensor(), 2.0 / 3); },
    .vjp = [](const vjp::slogdet_parts& v) -> Grads {
      const Tensor turned_inverse = adjoint(inverse(v.x));
      if (!is_complex(v.x.dtype())) return over_matrix(v.grad_logarithm) * turned_inverse;
      const Tensor around = imag(conjugate(v.sign) * v.grad_sign);
      return over_matrix(oar::complex(v.grad_logarithm, around)) * turned_inverse;
    },
    .saves = "x sign",
    .shard =
        "...ij -> ..., ... ; i whole, j whole # a product over the factors of the whole matrix",
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy = "tuple(np.linalg.slogdet(x))",
    .samples =
        [] {
          return Samples()
              .add(full_rank({3, 3}))
              .add(full_rank({2, 2, 2}))
              .add(full_rank({2, 1, 4, 4}))
              .add(full_rank({9, 9}))
              .add(full_rank({0, 3, 3}))
              .add(full_rank({2, 0, 0}));
        },
};

}  // namespace

OAR_FAMILY(lu, &lu_factor_op, &pivot_permutation_op, &lu_parts_op, &lu_solve_op, &cofactors_op,
           &det_op, &slogdet_parts_op)

}  // namespace oar
