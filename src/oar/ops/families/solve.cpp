// Systems of linear equations, and inverses.
#include "oar/ops/gen/solve.h"

#include "oar/ops/core/registry.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/matrix_rules.h"
#include "oar/ops/gen/matmul.h"

namespace oar {
namespace {

using namespace matrices;

Tensor triangle(const Tensor& x, bool upper, bool unitriangular) {
  return upper ? triu(x, unitriangular ? 1 : 0) : tril(x, unitriangular ? -1 : 0);
}

const OpDef triangular_solve_core_op = {
    .schema =
        "triangular_solve_core(Tensor x, Tensor y, bool upper = True, bool adjoint = False, bool "
        "unitriangular = False) -> Tensor",
    .brief =
        "The solution z of T z = y (with adjoint, of T^H z = y), where T is a triangle of x; with "
        "unitriangular its diagonal is 1. The leading axes are equal.",
    .infer = [](const args::triangular_solve_core& a) -> Metas {
      check_square(a.x, "x");
      check_rows(a.x, a.y);
      check_same_batch(a.x, a.y);
      return infer::like(a.y);
    },
    .cost =
        [](const CostCall& c) {
          return Cost::of_products(elements(c.results[0]) * extent(c.args[0].as_tensor(), -1));
        },
    .vjp = [](const vjp::triangular_solve_core& v) -> Grads {
      const Tensor right = triangular_solve_core(v.x, v.grad, v.upper, !v.adjoint, v.unitriangular);
      if (!v.needs(0)) return {Tensor(), right};
      const Tensor left = v.adjoint ? matmul(v.out, adjoint(right)) : matmul(right, adjoint(v.out));
      return {triangle(-left, v.upper, v.unitriangular), right};
    },
    .saves = "x out",
    .batch = [](const BatchCall& c) -> Made {
      const args::triangular_solve_core a(c.args);
      return triangular_solve_core(with_batch(c, 0), with_batch(c, 1), a.upper, a.adjoint,
                                   a.unitriangular);
    },
    .shard = "...ij, ...ik -> ...ik ; i whole, j whole # an unknown depends on those before it",
    .traits = Trait::Promote,
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda f: np.linalg.solve(np.conj(np.swapaxes(f, -1, -2)) if adjoint else f, y))((lambda t: "
        "np.where(np.eye(x.shape[-1]), np.ones((), x.dtype), t) if unitriangular else t)(np.triu(x) if "
        "upper else np.tril(x)))",
    .samples =
        [] {
          return Samples()
              .add(with_triangles({3, 3}), t({3, 2}))
              .add(with_triangles({2, 4, 4}), t({2, 4, 1}), false)
              .add(with_triangles({3, 3}), t({3, 4}), true, true)
              .add(with_triangles({3, 3}), t({3, 4}), false, true, true)
              .add(with_triangles({10, 10}), t({10, 3}), false)
              .add(with_triangles({2, 9, 9}), t({2, 9, 1}), true, true, true)
              .add(with_triangles({0, 2, 2}), t({0, 2, 1}))
              .add(with_triangles({2, 2}), t({2, 0}))
              .add(with_triangles({0, 0}), t({0, 2}));
        },
};

const OpDef triangular_solve_op = {
    .schema =
        "triangular_solve(Tensor x, Tensor y, bool upper = True, bool transpose = False, bool "
        "unitriangular = False) -> Tensor",
    .brief =
        "The solution z of T z = y (with transpose, of T^T z = y), where T is the upper or lower "
        "triangle of x; with unitriangular its diagonal is taken to be 1. The rest of x is not "
        "read. Leading axes broadcast.",
    .infer = [](const args::triangular_solve& a) -> Metas {
      check_square(a.x, "x");
      check_rows(a.x, a.y);
      return TensorMeta{a.y.dtype(), with_sizes(broadcast_shapes(batch_of(a.x), batch_of(a.y)),
                                                a.y.dim(-2), a.y.dim(-1))};
    },
    .decompose = [](const args::triangular_solve& a) -> Made {
      const Shape batch = broadcast_shapes(batch_of(a.x), batch_of(a.y));
      const Tensor x = a.transpose ? conjugate(a.x) : a.x;
      return triangular_solve_core(with_batch(x, batch), with_batch(a.y, batch), a.upper,
                                   a.transpose, a.unitriangular);
    },
    .traits = Trait::Promote,
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda f: np.linalg.solve(np.swapaxes(f, -1, -2) if transpose else f, y))((lambda t: "
        "np.where(np.eye(x.shape[-1]), np.ones((), x.dtype), t) if unitriangular else t)(np.triu(x) if "
        "upper else np.tril(x)))",
    .samples =
        [] {
          return Samples()
              .add(with_triangles({3, 3}), t({3, 2}))
              .add(with_triangles({4, 4}), t({2, 4, 1}), false)
              .add(with_triangles({2, 1, 3, 3}), t({2, 3, 2}), true, true)
              .add(with_triangles({3, 3}), t({3, 4}), false, true, true)
              .add(with_triangles({0, 2, 2}), t({2, 1}));
        },
    .python = "oar.linalg Tensor",
};

const OpDef solve_core_op = {
    .schema = "solve_core(Tensor x, Tensor y) -> Tensor",
    .brief = "The solution z of x z = y for matrices y. The leading axes are equal.",
    .infer = [](const args::solve_core& a) -> Metas {
      check_square(a.x, "x");
      check_rows(a.x, a.y);
      check_same_batch(a.x, a.y);
      return infer::like(a.y);
    },
    .cost =
        [](const CostCall& c) {
          Cost cost = cubic_cost(c.args[0].as_tensor(), 2.0 / 3);
          const double products = 2 * elements(c.results[0]) * extent(c.args[0].as_tensor(), -1);
          cost.flops += products;
          cost.products += products;
          return cost;
        },
    .vjp = [](const vjp::solve_core& v) -> Grads {
      const Tensor right = solve_core(adjoint(v.x), v.grad);
      return {v.needs(0) ? -matmul(right, adjoint(v.out)) : Tensor(), right};
    },
    .saves = "x out",
    .batch = [](const BatchCall& c) -> Made {
      return solve_core(with_batch(c, 0), with_batch(c, 1));
    },
    .shard = "...ij, ...ik -> ...ik ; i whole, j whole # unknowns depend on the whole matrix",
    .traits = Trait::Promote,
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy = "np.linalg.solve(x, y)",
    .samples =
        [] {
          return Samples()
              .add(full_rank({3, 3}), t({3, 2}))
              .add(full_rank({2, 4, 4}), t({2, 4, 1}))
              .add(full_rank({1, 1}), t({1, 3}))
              .add(full_rank({6, 6}), t({6, 2}))
              .add(full_rank({10, 10}), t({10, 3}))
              .add(full_rank({2, 9, 9}), t({2, 9, 1}))
              .add(full_rank({0, 2, 2}), t({0, 2, 1}))
              .add(full_rank({2, 2}), t({2, 0}))
              .add(full_rank({0, 0}), t({0, 2}));
        },
};

// One vector for all matrices, or one for each.
bool is_vector(const args::solve& a) {
  if (a.y.rank() == 1) return true;
  Shape each = batch_of(a.x);
  each.push_back(a.x.dim(-1));
  return a.y.rank() == a.x.rank() - 1 && same(a.y.shape(), each);
}

void check_solve(const args::solve& a) {
  check_square(a.x, "x");
  user_check(a.y.rank() >= 1, ErrorKind::InvalidArgument,
             "y is 0-d; it must be a vector or hold matrices.");
  const Dim rows = a.y.dim(is_vector(a) || !a.left ? -1 : -2);
  user_check(same(a.x.dim(-1), rows), ErrorKind::InvalidArgument,
             "x of shape {} and y of shape {} do not fit: y must have {} {}.",
             to_string(a.x.dims()), to_string(a.y.dims()), a.x.dim(-1).str(),
             is_vector(a) ? "elements"
             : a.left     ? "rows"
                          : "columns");
}

// x z = y, where x has no batch: the matrices of y side by side are one.
Tensor solve_once(const Tensor& x, const Tensor& y) {
  const Tensor first = moveaxis(y, {-2}, {0});
  const Tensor flat = reshape(first, {first.dim(0), first.numel() == Dim(0) ? Dim(0) : Dim(-1)});
  return moveaxis(reshape(solve_core(x, flat), first.dims()), {0}, {-2});
}

const OpDef solve_op = {
    .schema = "solve(Tensor x, Tensor y, bool left = True) -> Tensor",
    .brief =
        "The solution z of x z = y (without left, of z x = y) for square matrices x. y holds "
        "matrices, or is one vector, or has a vector for each matrix (the shape of x without its last "
        "axis). Leading axes broadcast. A singular matrix is an error.",
    .infer = [](const args::solve& a) -> Metas {
      check_solve(a);
      if (is_vector(a)) {
        Shape shape = batch_of(a.x);
        shape.push_back(a.x.dim(-1));
        return TensorMeta{a.x.dtype(), shape};
      }
      return TensorMeta{a.x.dtype(), with_sizes(broadcast_shapes(batch_of(a.x), batch_of(a.y)),
                                                a.y.dim(-2), a.y.dim(-1))};
    },
    .decompose = [](const args::solve& a) -> Made {
      check_solve(a);
      const Tensor x = a.left ? a.x : turned(a.x);
      if (is_vector(a)) {
        const Tensor column = unsqueeze(a.y, {-1});
        return squeeze(solve_core(x, with_batch(column, batch_of(x))), IntArgs{-1});
      }
      const Tensor y = a.left ? a.y : turned(a.y);
      const Shape batch = broadcast_shapes(batch_of(x), batch_of(y));
      const Tensor out = x.rank() == 2 && y.rank() > 2
                             ? solve_once(x, y)
                             : solve_core(with_batch(x, batch), with_batch(y, batch));
      return a.left ? out : turned(out);
    },
    .traits = Trait::Promote,
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda a, b: np.linalg.solve(a, b[..., None])[..., 0] if y.ndim == 1 or y.shape == x.shape[:-1] else np.linalg.solve(a, b) "
        "if left else np.swapaxes(np.linalg.solve(a, np.swapaxes(b, -1, -2)), -1, -2))(x if left else "
        "np.swapaxes(x, -1, -2), y)",
    .samples =
        [] {
          return Samples()
              .add(full_rank({3, 3}), t({3, 2}))
              .add(full_rank({3, 3}), t({3}))
              .add(full_rank({3, 3}), t({2, 3, 2}))
              .add(full_rank({2, 3, 3}), t({3}))
              .add(full_rank({2, 3, 3}), t({2, 3}))
              .add(full_rank({2, 1, 3, 3}), t({2, 3, 2}))
              .add(full_rank({2, 3, 3}), t({2, 2, 3}), false)
              .add(full_rank({3, 3}), t({3}), false)
              .add(full_rank({0, 2, 2}), t({2, 1}))
              .add(full_rank({2, 2}), t({0, 2, 1}));
        },
    .python = "oar.linalg Tensor",
};

const OpDef inverse_op = {
    .schema = "inverse(Tensor x) -> Tensor",
    .brief = "The inverse of square matrices. A singular matrix is an error.",
    .infer = [](const args::inverse& a) -> Metas {
      check_square(a.x, "x");
      return infer::like(a.x);
    },
    .cost = [](const CostCall& c) { return cubic_cost(c.args[0].as_tensor(), 2); },
    .vjp = [](const vjp::inverse& v) -> Grads {
      const Tensor turned_inverse = adjoint(v.out);
      return -matmul(matmul(turned_inverse, v.grad), turned_inverse);
    },
    .saves = "out",
    .shard = "...ij -> ...ij ; i whole, j whole # an element depends on the whole matrix",
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy = "np.linalg.inv(x)",
    .samples =
        [] {
          return Samples()
              .add(full_rank({3, 3}))
              .add(full_rank({2, 4, 4}))
              .add(full_rank({1, 1}))
              .add(full_rank({5, 5}))
              .add(full_rank({10, 10}))
              .add(full_rank({2, 9, 9}))
              .add(full_rank({0, 2, 2}))
              .add(full_rank({0, 0}));
        },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(solve, &triangular_solve_core_op, &triangular_solve_op, &solve_core_op, &solve_op,
           &inverse_op)

}  // namespace oar
