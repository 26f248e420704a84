// Cholesky factors of Hermitian positive definite matrices, and what is solved with them.
#include "oar/ops/gen/cholesky.h"

#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/matrix_rules.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/solve.h"

namespace oar {
namespace {

using namespace matrices;

// By which a Hermitian matrix moves if its lower factor moves by a cotangent: L^-H sym(L^H g) L^-1, where sym mirrors the lower
// triangle and drops the imaginary part of the diagonal.
Tensor factor_gradient(const Tensor& lower, const Tensor& grad) {
  const Tensor inner = matmul(adjoint(lower), tril(grad));
  const Tensor middle = tril(inner, -1) + tril(inner);  // twice the triangle, once the diagonal
  const Tensor half = triangular_solve_core(lower, hermitian_part(middle) * 0.5, false, true);
  return hermitian_part(adjoint(triangular_solve_core(lower, adjoint(half), false, true)));
}

const OpDef cholesky_op = {
    .schema = "cholesky(Tensor x, bool upper = False) -> Tensor",
    .brief =
        "The lower triangular factor L of Hermitian positive definite matrices, x = L L^H; with "
        "upper, the factor L^H. Only that triangle of x is read. The gradient is Hermitian. A "
        "matrix that is not positive definite is an error.",
    .infer = [](const args::cholesky& a) -> Metas {
      check_square(a.x, "x");
      return infer::like(a.x);
    },
    .cost = [](const CostCall& c) { return cubic_cost(c.args[0].as_tensor(), 1.0 / 3); },
    .vjp = [](const vjp::cholesky& v) -> Grads {
      return v.upper ? factor_gradient(adjoint(v.out), adjoint(v.grad))
                     : factor_gradient(v.out, v.grad);
    },
    .saves = "out",
    .shard =
        "...ij -> ...ij ; i whole, j whole # every element of a factor depends on those before it",
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "np.conj(np.swapaxes(np.linalg.cholesky(x), -1, -2)) if upper else np.linalg.cholesky(x)",
    .samples =
        [] {
          return Samples()
              .add(definite({3, 3}))
              .add(definite({2, 4, 4}), true)
              .add(definite({1, 1}))
              .add(definite({10, 10}))
              .add(definite({2, 1, 9, 9}), true)
              .add(definite({0, 3, 3}))
              .add(definite({2, 0, 0}));
        },
    .python = "oar Tensor",
};

const OpDef cholesky_solve_op = {
    .schema = "cholesky_solve(Tensor x, Tensor y, bool upper = False) -> Tensor",
    .brief =
        "The solution z of A z = x, where y is the lower (with upper, the upper) Cholesky factor of "
        "A. Leading axes broadcast.",
    .infer = [](const args::cholesky_solve& a) -> Metas {
      check_square(a.y, "y");
      check_matrices(a.x, "x");
      user_check(same(a.x.dim(-2), a.y.dim(-1)), ErrorKind::InvalidArgument,
                 "x of shape {} must have as many rows as the factor y of shape {}.",
                 to_string(a.x.dims()), to_string(a.y.dims()));
      return TensorMeta{a.x.dtype(), with_sizes(broadcast_shapes(batch_of(a.x), batch_of(a.y)),
                                                a.x.dim(-2), a.x.dim(-1))};
    },
    .decompose = [](const args::cholesky_solve& a) -> Made {
      const Shape batch = broadcast_shapes(batch_of(a.x), batch_of(a.y));
      const Tensor factor = with_batch(widened(a.y), batch),
                   right = with_batch(widened(a.x), batch);
      const Tensor inner = triangular_solve_core(factor, right, a.upper, a.upper);
      return narrowed(triangular_solve_core(factor, inner, a.upper, !a.upper), a.x.dtype());
    },
    .traits = Trait::Promote,
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda f: np.linalg.solve(f @ np.conj(np.swapaxes(f, -1, -2)), x))(np.conj("
        "np.swapaxes(np.triu(y), -1, -2)) if upper else np.tril(y))",
    .samples =
        [] {
          return Samples()
              .add(t({3, 2}), with_triangles({3, 3}))
              .add(t({2, 4, 1}), with_triangles({4, 4}), true)
              .add(t({3, 2}), with_triangles({2, 3, 3}))
              .add(t({10, 3}), with_triangles({10, 10}), true)
              .add(t({0, 2, 1}), with_triangles({0, 2, 2}))
              .add(t({0, 2}), with_triangles({0, 0}));
        },
    .python = "oar.linalg Tensor",
};

const OpDef cholesky_inverse_op = {
    .schema = "cholesky_inverse(Tensor x, bool upper = False) -> Tensor",
    .brief = "The inverse of A, where x is the lower (with upper, the upper) Cholesky factor of A.",
    .infer = [](const args::cholesky_inverse& a) -> Metas {
      check_square(a.x, "x");
      return infer::like(a.x);
    },
    .decompose = [](const args::cholesky_inverse& a) -> Made {
      // A^-1 = T^H T, where T is the inverse of the lower factor.
      const Tensor factor = widened(a.x);
      const Tensor identity =
          broadcast_to(identity_matrix(a.x.dim(-1), factor.dtype()), a.x.shape());
      const Tensor inverse = triangular_solve_core(factor, identity, a.upper, a.upper);
      return narrowed(matmul(adjoint(inverse), inverse), a.x.dtype());
    },
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda f: np.linalg.inv(f @ np.conj(np.swapaxes(f, -1, -2))))(np.conj(np.swapaxes("
        "np.triu(x), -1, -2)) if upper else np.tril(x))",
    .samples =
        [] {
          return Samples()
              .add(with_triangles({3, 3}))
              .add(with_triangles({2, 4, 4}), true)
              .add(with_triangles({10, 10}))
              .add(with_triangles({0, 3, 3}));
        },
    .python = "oar.linalg Tensor",
};

}  // namespace

OAR_FAMILY(cholesky, &cholesky_op, &cholesky_solve_op, &cholesky_inverse_op)

}  // namespace oar
