// Singular values, and what is computed with them: the pseudoinverse and least squares.
#include "oar/ops/gen/svd.h"

#include "oar/ops/core/registry.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/gauge.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/eigen.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/slice.h"

namespace oar {
namespace {

using namespace matrices;

Dim rank_of(const Tensor& x) { return min_of(x.dim(-2), x.dim(-1)); }

Shape values_shape(const Tensor& x) {
  Shape shape = batch_of(x);
  shape.push_back(rank_of(x));
  return shape;
}

// The first `count` rows or columns.
Tensor first(const Tensor& x, int64_t axis, Dim count) {
  return same(x.dim(axis), count) ? x : slice(x, {axis}, {0}, {count.word()});
}

// x without its part in the space that the orthonormal columns of `basis` span.
Tensor outside(const Tensor& basis, const Tensor& x) {
  return x - matmul(basis, matmul(adjoint(basis), x));
}

Tensor inverse_or_zero(const Tensor& x) {
  const Tensor none = equal(x, literal(0));
  return where(none, zeros_like(x), reciprocal(where(none, ones_like(x), x)));
}

Grads svd_vjp(const vjp::svd& v) {
  const Dim size = rank_of(v.x);
  const Tensor u = first(v.u, -1, size), vh = first(v.vh, -2, size);
  const Tensor right = adjoint(vh), grad_right = adjoint(first(v.grad_vh, -2, size));
  Tensor grad_u = first(v.grad_u, -1, size);
  const bool has_phase = is_complex(v.x.dtype());
  if (has_phase) grad_u = without_gauge(u, grad_u, turn_of(u, grad_u) + turn_of(right, grad_right));
  const Tensor along_u = matmul(adjoint(u), grad_u), along_v = matmul(adjoint(right), grad_right);
  // 1 / (s_j^2 - s_i^2), without the squares of small numbers
  const Tensor gaps =
      inverse_gaps(v.s) * inverse_or_zero(unsqueeze(v.s, {-2}) + unsqueeze(v.s, {-1}));
  const Tensor inverse = inverse_or_zero(v.s);
  Tensor middle = scale_columns(gaps * (along_u - adjoint(along_u)), v.s) +
                  scale_rows(v.s, gaps * (along_v - adjoint(along_v))) + diag_embed(v.grad_s);
  if (has_phase) {
    const Tensor turn = imag(diagonal_of(along_u)) * inverse;
    middle = middle + diag_embed(oar::complex(zeros_like(turn), turn));
  }
  Tensor left = matmul(u, middle);
  if (!same(v.x.dim(-2), size)) left = left + scale_columns(outside(u, grad_u), inverse);
  Tensor grad = matmul(left, vh);
  if (!same(v.x.dim(-1), size))
    grad = grad + matmul(u, adjoint(scale_columns(outside(right, grad_right), inverse)));
  return grad;
}

const OpDef svd_op = {
    .schema = "svd(Tensor x, bool full_matrices = False) -> (Tensor u, Tensor s, Tensor vh)",
    .brief =
        "The singular value decomposition x = u diag(s) vh, with s in descending order. The largest "
        "element of each column of u is real and positive (of several that large, the first). The "
        "derivative of u and vh does not exist if singular values are equal (up to rounding) or zero; "
        "such pairs contribute nothing. The columns that full_matrices adds have no gradient.",
    .infer = [](const args::svd& a) -> Metas {
      check_matrices(a.x, "x");
      const Dim m = a.x.dim(-2), n = a.x.dim(-1), k = rank_of(a.x);
      const Shape batch = batch_of(a.x);
      return {TensorMeta{a.x.dtype(), with_sizes(batch, m, a.full_matrices ? m : k)},
              TensorMeta{real_type_of(a.x.dtype()), values_shape(a.x)},
              TensorMeta{a.x.dtype(), with_sizes(batch, a.full_matrices ? n : k, n)}};
    },
    .cost = [](const CostCall& c) { return cubic_cost(c.args[0].as_tensor(), 14); },
    .vjp = svd_vjp,
    .saves = "x:shape u s vh",
    .shard =
        "...ij -> ...ik, ...l, ...mj ; i whole, j whole, k whole, l whole, m whole # a singular value depends on the whole matrix",
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda u, s, v: (lambda p: (u * np.conj(p)[..., None, :], s, p[..., :v.shape[-2], None] * v if "
        "p.shape[-1] >= v.shape[-2] else np.concatenate([p[..., :, None] * v[..., :p.shape[-1], :], "
        "v[..., p.shape[-1]:, :]], -2)))((lambda q: q / np.where(q == 0, 1, np.abs(q)))("
        "np.take_along_axis(u, np.argmax(np.abs(u) ** 2 >= 0.999 * np.max(np.abs(u) ** 2, -2, "
        "keepdims=True), -2, keepdims=True), -2)[..., 0, :])) if u.size and v.size else (u, s, v))("
        "*np.linalg.svd(x, full_matrices))",
    .samples =
        [] {
          TensorSpec fixed = full_rank({3, 2});
          fixed.differentiable = false;
          return Samples()
              .add(full_rank({3, 3}))
              .add(full_rank({2, 4, 3}))
              .add(full_rank({3, 5}))
              .add(full_rank({4, 4}), true)
              .add(full_rank({12, 10}))
              .add(fixed, true)
              .add(full_rank({0, 3, 2}));
        },
    .python = "oar.linalg",
};

const OpDef svdvals_op = {
    .schema = "svdvals(Tensor x) -> Tensor",
    .brief = "The singular values of matrices in descending order.",
    .infer = [](const args::svdvals& a) -> Metas {
      check_matrices(a.x, "x");
      return TensorMeta{real_type_of(a.x.dtype()), values_shape(a.x)};
    },
    .decompose = [](const args::svdvals& a) -> Made { return std::get<1>(svd(a.x)); },
    .cost = [](const CostCall& c) { return cubic_cost(c.args[0].as_tensor(), 4); },
    .shard =
        "...ij -> ...k ; i whole, j whole, k whole # a singular value depends on the whole matrix",
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy = "np.linalg.svd(x, compute_uv=False)",
    .samples =
        [] {
          return Samples()
              .add(full_rank({3, 3}))
              .add(full_rank({2, 4, 3}))
              .add(full_rank({3, 5}))
              .add(full_rank({12, 10}))
              .add(full_rank({0, 3, 2}))
              .add(full_rank({2, 0, 3}));
        },
    .python = "oar.linalg",
};

// The largest along the last axis, kept; of nothing, nothing.
Tensor largest(const Tensor& values) {
  return values.dim(-1) == Dim(0) ? values : max(values, IntArgs{-1}, true);
}

// 1 / values, and 0 where the magnitude is not above rcond, one for each matrix or for all, times the largest one.
Tensor cut_inverse(const Tensor& values, const Tensor& rcond) {
  const Tensor sizes = abs(values);
  const Tensor given = cast(rcond, sizes.dtype());
  const Tensor part = given.rank() == 0 ? given : unsqueeze(given, {-1});
  const Tensor kept = greater_than(sizes, largest(sizes) * part);
  return zero_unless(kept, reciprocal(where(kept, values, ones_like(values))));
}

// The gradient of x from that of its pseudoinverse p, at fixed rank.
Tensor pseudo_gradient(const Tensor& x, const Tensor& p, const Tensor& grad) {
  const Tensor ph = adjoint(p), gh = adjoint(grad);
  const Tensor rows = matmul(gh, p), columns = matmul(p, gh);
  return matmul(rows - matmul(x, matmul(p, rows)), ph) +
         matmul(ph, columns - matmul(matmul(columns, p), x)) - matmul(ph, matmul(grad, ph));
}

const OpDef pseudo_inverse_op = {
    .schema = "pseudo_inverse(Tensor x, Tensor rcond, bool hermitian = False) -> Tensor",
    .brief =
        "The pseudoinverse of matrices. Singular values up to rcond times the largest one count as "
        "zero. With hermitian, x equals its conjugate transpose. The derivative is that at fixed rank; equal singular values are no obstacle.",
    .infer = [](const args::pseudo_inverse& a) -> Metas {
      a.hermitian ? check_square(a.x, "x") : check_matrices(a.x, "x");
      user_check(is_floating(a.rcond.dtype()), ErrorKind::InvalidType,
                 "rcond has dtype {}; it takes float types.", name_of(a.rcond.dtype()));
      const Shape batch = batch_of(a.x);
      user_check(a.rcond.rank() == 0 || same(broadcast_shapes(batch, a.rcond.shape()), batch),
                 ErrorKind::InvalidArgument,
                 "rcond of shape {} does not broadcast to the leading axes of x of shape {}.",
                 to_string(a.rcond.dims()), to_string(a.x.dims()));
      return TensorMeta{a.x.dtype(), with_sizes(batch_of(a.x), a.x.dim(-1), a.x.dim(-2))};
    },
    .decompose = [](const args::pseudo_inverse& a) -> Made {
      if (a.hermitian) {
        const auto [values, vectors] = eigh(a.x);
        return matmul(scale_columns(vectors, cut_inverse(values, a.rcond)), adjoint(vectors));
      }
      const auto [u, s, vh] = svd(a.x);
      return matmul(scale_columns(adjoint(vh), cut_inverse(s, a.rcond)), adjoint(u));
    },
    .vjp = [](const vjp::pseudo_inverse& v) -> Grads {
      if (!v.hermitian) return {pseudo_gradient(v.x, v.out, v.grad), Tensor()};
      return {hermitian_part(pseudo_gradient(hermitian_part(v.x), v.out, v.grad)), Tensor()};
    },
    .saves = "x out",
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy = "np.linalg.pinv(x, rcond, hermitian).astype(x.dtype)",
    .samples =
        [] {
          const auto limit = [](const Shape& shape) {
            return fixed_values(
                std::vector<double>(static_cast<size_t>(shape.numel().value()), 0.1), shape,
                DType::Float64);
          };
          return Samples()
              .add(full_rank({3, 3}), limit({}))
              .add(full_rank({2, 4, 3}), limit({2}))
              .add(full_rank({2, 4}), limit({}))
              .add(definite({3, 3}), limit({}), true)
              .add(full_rank({0, 3, 2}), limit({}))
              .add(full_rank({2, 0, 3}), limit({}));
        },
};

const OpDef least_squares_op = {
    .schema = "least_squares(Tensor x, Tensor y, float rcond) -> (Tensor solution, Tensor values)",
    .brief =
        "The z of smallest length among those with the smallest distance of x z from y. Singular "
        "values of x up to rcond times the largest one count as zero. The leading axes are equal. "
        "The derivative is that at fixed rank. The second result is the singular values of x.",
    .infer = [](const args::least_squares& a) -> Metas {
      check_matrices(a.x, "x");
      check_matrices(a.y, "y");
      check_same_batch(a.x, a.y);
      user_check(same(a.x.dim(-2), a.y.dim(-2)), ErrorKind::InvalidArgument,
                 "x of shape {} and y of shape {} must have as many rows.", to_string(a.x.dims()),
                 to_string(a.y.dims()));
      return {TensorMeta{a.x.dtype(), with_sizes(batch_of(a.x), a.x.dim(-1), a.y.dim(-1))},
              TensorMeta{real_type_of(a.x.dtype()), values_shape(a.x)}};
    },
    .decompose = [](const args::least_squares& a) -> Made {
      const auto [u, s, vh] = svd(a.x);
      const Tensor limit = full({}, a.rcond, s.dtype());
      return {matmul(adjoint(vh), scale_rows(cut_inverse(s, limit), matmul(adjoint(u), a.y))), s};
    },
    .vjp = [](const vjp::least_squares& v) -> Grads {
      const Tensor limit = full({}, v.rcond, real_type_of(v.x.dtype()));
      const Tensor p = pseudo_inverse(v.x, limit), ph = adjoint(p);
      const Tensor right = matmul(ph, v.grad_solution);
      if (!v.needs(0)) return {Tensor(), right};
      const Tensor rest = v.y - matmul(v.x, v.solution);
      const auto [u, s, vh] = svd(v.x);
      const Tensor outside_rows = adjoint(v.grad_solution) - matmul(adjoint(right), v.x);
      return {matmul(rest, matmul(adjoint(right), ph)) +
                  matmul(matmul(ph, v.solution), outside_rows) -
                  matmul(right, adjoint(v.solution)) + matmul(scale_columns(u, v.grad_values), vh),
              right};
    },
    .saves = "x y solution",
    .batch = [](const BatchCall& c) -> Made {
      return least_squares(with_batch(c, 0), with_batch(c, 1), args::least_squares(c.args).rcond);
    },
    .shard =
        "...ij, ...ik -> ...jk, ...l ; k same, i whole, j whole, l whole # unknowns depend on the whole matrix",
    .traits = Trait::Promote,
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy = "(np.linalg.pinv(x, rcond) @ y, np.linalg.svd(x, compute_uv=False))",
    .samples =
        [] {
          return Samples()
              .add(full_rank({3, 3}), t({3, 2}), 1e-6)
              .add(full_rank({2, 4, 3}), t({2, 4, 1}), 1e-6)
              .add(full_rank({2, 4}), t({2, 3}), 1e-6)
              .add(full_rank({12, 10}), t({12, 2}), 1e-6)
              .add(full_rank({2, 9, 10}), t({2, 9, 1}), 1e-6)
              .add(full_rank({0, 3, 2}), t({0, 3, 1}), 1e-6);
        },
};

}  // namespace

OAR_FAMILY(svd, &svd_op, &svdvals_op, &pseudo_inverse_op, &least_squares_op)

}  // namespace oar
