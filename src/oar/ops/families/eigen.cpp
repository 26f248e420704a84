// Eigenvalues and eigenvectors.
#include "oar/ops/gen/eigen.h"

#include "oar/ops/core/registry.h"
#include "oar/ops/families/gauge.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/solve.h"

namespace oar {
namespace {

using namespace matrices;

void check_half(std::string_view half) {
  user_check(half == "L" || half == "U", ErrorKind::InvalidArgument,
             "UPLO is \"{}\"; it can be \"L\" or \"U\".", half);
}

Shape values_shape(const Tensor& x) {
  Shape shape = batch_of(x);
  shape.push_back(x.dim(-1));
  return shape;
}

const OpDef eigh_op = {
    .schema = "eigh(Tensor x, str UPLO = \"L\") -> (Tensor values, Tensor vectors)",
    .brief =
        "The eigenvalues of Hermitian matrices in ascending order, and orthonormal eigenvectors as "
        "columns. Only the lower (UPLO=\"L\") or upper triangle of x is read. The largest element of "
        "each vector is real and positive (of several that large, the first). The gradient is "
        "Hermitian. The derivative of the vectors does not exist if eigenvalues are equal; those that "
        "are equal up to rounding are treated as if they stayed equal.",
    .infer = [](const args::eigh& a) -> Metas {
      check_square(a.x, "x");
      check_half(a.UPLO);
      return {TensorMeta{real_type_of(a.x.dtype()), values_shape(a.x)}, infer::like(a.x)};
    },
    .cost = [](const CostCall& c) { return cubic_cost(c.args[0].as_tensor(), 9); },
    .vjp = [](const vjp::eigh& v) -> Grads {
      Tensor grad = v.grad_vectors;
      if (is_complex(v.x.dtype())) grad = without_gauge(v.vectors, grad, turn_of(v.vectors, grad));
      const Tensor inner = inverse_gaps(v.values) * matmul(adjoint(v.vectors), grad);
      const Tensor middle = inner + diag_embed(v.grad_values);
      return hermitian_part(matmul(matmul(v.vectors, middle), adjoint(v.vectors)));
    },
    .saves = "x:shape values vectors",
    .shard = "...ij -> ...i, ...ij ; i whole, j whole # an eigenvalue depends on the whole matrix",
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda w, v: (w, v * (lambda p: np.conj(p) / np.where(p == 0, 1, np.abs(p)))("
        "np.take_along_axis(v, np.argmax(np.abs(v) ** 2 >= 0.999 * np.max(np.abs(v) ** 2, -2, "
        "keepdims=True), -2, keepdims=True), -2)) if v.size else v))(*np.linalg.eigh(x, UPLO))",
    .samples =
        [] {
          return Samples()
              .add(definite({3, 3}))
              .add(definite({2, 4, 4}), "U")
              .add(definite({1, 1}))
              .add(definite({10, 10}))
              .add(definite({0, 3, 3}))
              .add(definite({2, 0, 0}));
        },
    .python = "oar.linalg",
};

const OpDef eigvalsh_op = {
    .schema = "eigvalsh(Tensor x, str UPLO = \"L\") -> Tensor",
    .brief =
        "The eigenvalues of Hermitian matrices in ascending order. Only the lower (UPLO=\"L\") or "
        "upper triangle of x is read.",
    .infer = [](const args::eigvalsh& a) -> Metas {
      check_square(a.x, "x");
      check_half(a.UPLO);
      return TensorMeta{real_type_of(a.x.dtype()), values_shape(a.x)};
    },
    .decompose = [](const args::eigvalsh& a) -> Made { return std::get<0>(eigh(a.x, a.UPLO)); },
    .cost = [](const CostCall& c) { return cubic_cost(c.args[0].as_tensor(), 4.0 / 3); },
    .shard = "...ij -> ...i ; i whole, j whole # an eigenvalue depends on the whole matrix",
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy = "np.linalg.eigvalsh(x, UPLO)",
    .samples =
        [] {
          return Samples()
              .add(definite({3, 3}))
              .add(definite({2, 4, 4}), "U")
              .add(definite({10, 10}))
              .add(definite({0, 3, 3}))
              .add(definite({2, 0, 0}));
        },
    .python = "oar Tensor",
};

const OpDef eig_op = {
    .schema = "eig(Tensor x) -> (Tensor values, Tensor vectors)",
    .brief =
        "The complex eigenvalues of square matrices in no particular order, and eigenvectors of "
        "length 1 as columns. The largest element of each vector is real and positive (of several "
        "that large, the first). There is no derivative if eigenvalues are equal or the vectors "
        "are linearly dependent.",
    .infer = [](const args::eig& a) -> Metas {
      check_square(a.x, "x");
      const DType dtype = complex_type_of(a.x.dtype());
      return {TensorMeta{dtype, values_shape(a.x)}, TensorMeta{dtype, a.x.shape()}};
    },
    .cost = [](const CostCall& c) { return cubic_cost(c.args[0].as_tensor(), 25); },
    .vjp = [](const vjp::eig& v) -> Grads {
      const Tensor turned_vectors = adjoint(v.vectors);
      const Tensor free =
          without_gauge(v.vectors, v.grad_vectors, turn_of(v.vectors, v.grad_vectors));
      // A vector keeps its length.
      const Tensor longer = real(sum(conj(v.vectors) * free, IntArgs{-2}, std::nullopt, true));
      const Tensor grad = free - v.vectors * longer;
      const Tensor middle =
          conj(inverse_gaps(v.values)) * matmul(turned_vectors, grad) + diag_embed(v.grad_values);
      const Tensor found = solve_core(turned_vectors, matmul(middle, turned_vectors));
      return is_complex(v.x.dtype()) ? found : real(found);
    },
    .saves = "x:shape values vectors",
    .shard = "...ij -> ...i, ...ij ; i whole, j whole # an eigenvalue depends on the whole matrix",
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda w, v: (w.astype(np.result_type(x.dtype, np.complex64)), (v * (lambda p: np.conj(p) / "
        "np.where(p == 0, 1, np.abs(p)))(np.take_along_axis(v, np.argmax(np.abs(v) ** 2 >= 0.999 * "
        "np.max(np.abs(v) ** 2, -2, keepdims=True), -2, keepdims=True), -2)) if v.size else v).astype("
        "np.result_type(x.dtype, np.complex64))))(*np.linalg.eig(x))",
    .samples =
        [] {
          return Samples()
              .add(full_rank({3, 3}))
              .add(full_rank({2, 4, 4}))
              .add(full_rank({1, 1}))
              .add(full_rank({0, 3, 3}))
              .add(full_rank({2, 0, 0}));
        },
    .python = "oar.linalg Tensor",
};

const OpDef eigvals_op = {
    .schema = "eigvals(Tensor x) -> Tensor",
    .brief = "The complex eigenvalues of square matrices, in no particular order.",
    .infer = [](const args::eigvals& a) -> Metas {
      check_square(a.x, "x");
      return TensorMeta{complex_type_of(a.x.dtype()), values_shape(a.x)};
    },
    .decompose = [](const args::eigvals& a) -> Made { return std::get<0>(eig(a.x)); },
    .cost = [](const CostCall& c) { return cubic_cost(c.args[0].as_tensor(), 10); },
    .shard = "...ij -> ...i ; i whole, j whole # an eigenvalue depends on the whole matrix",
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy = "np.linalg.eigvals(x).astype(np.result_type(x.dtype, np.complex64))",
    .samples =
        [] {
          return Samples()
              .add(full_rank({3, 3}))
              .add(full_rank({2, 4, 4}))
              .add(full_rank({0, 3, 3}))
              .add(full_rank({2, 0, 0}));
        },
    .python = "oar.linalg Tensor",
};

}  // namespace

OAR_FAMILY(eigen, &eigh_op, &eigvalsh_op, &eig_op, &eigvals_op)

}  // namespace oar
