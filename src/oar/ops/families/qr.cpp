// QR factors, and products of reflections.
#include "oar/ops/gen/qr.h"

#include "oar/ops/core/registry.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/matrix_rules.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/gen/solve.h"

namespace oar {
namespace {

using namespace matrices;

Dim smaller_size(const Tensor& x) { return min_of(x.dim(-2), x.dim(-1)); }

Tensor columns(const Tensor& x, Dim begin, Dim end) {
  return slice(x, {-1}, {begin.word()}, {end.word()});
}

// Of x = q r with a square r.
Tensor square_gradient(const Tensor& q, const Tensor& r, const Tensor& grad_q,
                       const Tensor& grad_r) {
  const Tensor inner = triu(matmul(grad_r, adjoint(r)) - matmul(adjoint(q), grad_q));
  const Tensor twice = triu(inner, 1) + inner;  // with the diagonal once
  const Tensor whole = grad_q + matmul(q, hermitian_part(twice));
  return adjoint(triangular_solve_core(r, adjoint(whole), true));
}

Grads qr_vjp(const vjp::qr_parts& v) {
  const Dim m = v.r.dim(-2), n = v.r.dim(-1);
  const Tensor grad_r = triu(v.grad_r);
  if (!known_less(v.q.dim(-2), n)) {
    if (same(m, n)) return square_gradient(v.q, v.r, v.grad_q, grad_r);
    // The complete q: its last columns have no gradient.
    return square_gradient(columns(v.q, 0, n), slice(v.r, {-2}, {0}, {n.word()}),
                           columns(v.grad_q, 0, n), slice(grad_r, {-2}, {0}, {n.word()}));
  }
  // The last columns of r are q^H times those of x.
  const Tensor left = columns(v.r, 0, m), grad_right = columns(grad_r, m, n);
  const Tensor right = matmul(v.q, columns(v.r, m, n));
  const Tensor grad_q = v.grad_q + matmul(right, adjoint(grad_right));
  return concat(
      {square_gradient(v.q, left, grad_q, columns(grad_r, 0, m)), matmul(v.q, grad_right)}, -1);
}

const OpDef qr_parts_op = {
    .schema = "qr_parts(Tensor x, bool complete = False) -> (Tensor q, Tensor r)",
    .brief =
        "x = q r with orthonormal columns of q and an upper triangular r, whose diagonal is real. "
        "With complete, q is square. The first columns of x must be linearly independent for a "
        "derivative, and the columns that complete adds have none.",
    .infer = [](const args::qr_parts& a) -> Metas {
      check_matrices(a.x, "x");
      const Dim m = a.x.dim(-2), inner = a.complete ? m : smaller_size(a.x);
      return {TensorMeta{a.x.dtype(), with_sizes(batch_of(a.x), m, inner)},
              TensorMeta{a.x.dtype(), with_sizes(batch_of(a.x), inner, a.x.dim(-1))}};
    },
    .cost = [](const CostCall& c) { return cubic_cost(c.args[0].as_tensor(), 4); },
    .vjp = qr_vjp,
    .saves = "q r",
    .shard =
        "...ij -> ...ik, ...lj ; i whole, j whole, k whole, l whole # a column depends on all columns before it",
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy = "tuple(np.linalg.qr(x, 'complete' if complete else 'reduced'))",
    .samples =
        [] {
          TensorSpec fixed = full_rank({4, 2});
          fixed.differentiable = false;
          return Samples()
              .add(full_rank({3, 3}))
              .add(full_rank({2, 4, 3}))
              .add(full_rank({3, 5}))
              .add(full_rank({3, 3}), true)
              .add(fixed, true)
              .add(full_rank({12, 10}))
              .add(full_rank({0, 3, 2}));
        },
};

const OpDef householder_product_op = {
    .schema = "householder_product(Tensor x, Tensor tau) -> Tensor",
    .brief =
        "The first columns of the product of the reflections I - tau[i] v_i v_i^H, as many as x has. "
        "v_i is column i of x below its diagonal, with 1 on it and 0 above.",
    .infer = [](const args::householder_product& a) -> Metas {
      check_matrices(a.x, "x");
      user_check(!known_less(a.x.dim(-2), a.x.dim(-1)), ErrorKind::InvalidArgument,
                 "x of shape {} has more columns than rows.", to_string(a.x.dims()));
      user_check(
          a.tau.rank() == a.x.rank() - 1 && !known_less(a.x.dim(-1), a.tau.dim(-1)),
          ErrorKind::InvalidArgument,
          "tau of shape {} does not belong to x of shape {}: it has the leading axes of x and "
          "a number for each of its first columns.",
          to_string(a.tau.dims()), to_string(a.x.dims()));
      for (int i = 0; i + 2 < a.x.rank(); ++i)
        user_check(same(a.x.dim(i), a.tau.dim(i)), ErrorKind::InvalidArgument,
                   "the leading axes of x of shape {} and tau of shape {} differ.",
                   to_string(a.x.dims()), to_string(a.tau.dims()));
      return infer::like(a.x);
    },
    .decompose = [](const args::householder_product& a) -> Made {
      const Dim m = a.x.dim(-2), n = a.x.dim(-1), count = a.tau.dim(-1);
      user_check(!count.is_symbolic(), ErrorKind::Unsupported,
                 "the derivative needs to know how many reflections there are, and the size of tau "
                 "is open.\nhint: Capture with a fixed size of that axis.");
      const Tensor identity = columns(identity_matrix(m, a.x.dtype()), 0, n);
      const Tensor vectors = tril(a.x, -1) + identity;
      Tensor product = broadcast_to(identity, a.x.shape());
      for (int64_t i = count.value() - 1; i >= 0; --i) {
        const Tensor v = columns(vectors, i, i + 1);
        const Tensor scaled = v * unsqueeze(columns(a.tau, i, i + 1), {-1});
        product = product - matmul(scaled, matmul(adjoint(v), product));
      }
      return product;
    },
    .cost = [](const CostCall& c) { return cubic_cost(c.args[0].as_tensor(), 4); },
    .batch = [](const BatchCall& c) -> Made {
      return householder_product(with_batch(c, 0), with_batch(c, 1));
    },
    .shard =
        "...ij, ...k -> ...ij ; i whole, j whole, k whole # a reflection changes the whole matrix",
    .traits = Trait::Promote,
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda m, n, k: (lambda q: q[..., :, :n])(np.array([(lambda f: f(f, k - 1, np.eye(m, "
        "dtype=x.dtype)))(lambda f, i, q: q if i < 0 else f(f, i - 1, q - w[i] * np.outer(v := "
        "np.concatenate([np.zeros(i), [1], a[i + 1:, i]]), np.conj(v)) @ q)) for a, w in zip(x.reshape("
        "(-1, m, n)), tau.reshape((-1, k)))], np.result_type(x, tau)).reshape(x.shape[:-2] + (m, m))))(*x.shape[-2:], "
        "tau.shape[-1])",
    .samples =
        [] {
          return Samples()
              .add(t({3, 3}), t({3}))
              .add(t({2, 4, 3}), t({2, 2}))
              .add(t({5, 2}), t({2}))
              .add(t({0, 3, 2}), t({0, 2}));
        },
    .python = "oar.linalg Tensor",
};

const OpDef ormqr_op = {
    .schema =
        "ormqr(Tensor x, Tensor tau, Tensor y, bool left = True, bool transpose = False) -> Tensor",
    .brief =
        "The product Q y (without left, y Q), where Q is the matrix that householder_product returns "
        "for x and tau; with transpose, its transpose is the factor.",
    .decompose = [](const args::ormqr& a) -> Made {
      check_matrices(a.y, "y");
      const Tensor q = householder_product(a.x, a.tau);
      const Tensor factor = a.transpose ? turned(q) : q;
      user_check(a.left ? same(factor.dim(-1), a.y.dim(-2)) : same(a.y.dim(-1), factor.dim(-2)),
                 ErrorKind::InvalidArgument,
                 "y of shape {} does not fit the factor {} of it, which has shape {}.",
                 to_string(a.y.dims()), a.left ? "left" : "right", to_string(factor.dims()));
      return a.left ? matmul(factor, a.y) : matmul(a.y, factor);
    },
    .traits = Trait::Promote,
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda m, n, k: (lambda q: (lambda f: f @ y if left else y @ f)(np.swapaxes(q, -1, -2) if "
        "transpose else q))(np.array([(lambda f: f(f, k - 1, np.eye(m, n, dtype=x.dtype)))(lambda f, i, "
        "q: q if i < 0 else f(f, i - 1, q - w[i] * np.outer(v := np.concatenate([np.zeros(i), [1], "
        "a[i + 1:, i]]), np.conj(v)) @ q)) for a, w in zip(x.reshape((-1, m, n)), tau.reshape((-1, k)))], "
        "np.result_type(x, tau)).reshape(x.shape)))(*x.shape[-2:], tau.shape[-1])",
    .samples =
        [] {
          return Samples()
              .add(t({3, 3}), t({3}), t({3, 2}))
              .add(t({2, 4, 3}), t({2, 3}), t({2, 2, 4}), false)
              .add(t({4, 2}), t({2}), t({4, 3}), true, true)
              .add(t({3, 2}), t({2}), t({1, 2}), false, true);
        },
    .python = "oar.linalg Tensor",
};

}  // namespace

OAR_FAMILY(qr, &qr_parts_op, &householder_product_op, &ormqr_op)

}  // namespace oar
