// Lengths of vectors, distances and angles between them.
#include "oar/ops/gen/distance.h"

#include <algorithm>
#include <cmath>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/layer_dtypes.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/families/reduce_rules.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/products.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/sharding/rules.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

const OpDef root_sum_square_op = {
    .schema = "root_sum_square(Tensor x, int[]? axis = None, bool keepdim = False) -> Tensor",
    .brief = "The Euclidean norm over axes. Its gradient at zero is zero.",
    .infer = [](const args::root_sum_square& a) -> Metas {
      return reduced(a.x, a.axis, a.keepdim, real_type_of(a.x.dtype()));
    },
    .decompose = [](const args::root_sum_square& a) -> Made {
      const Tensor x = is_complex(a.x.dtype()) ? abs(a.x) : widened(a.x);
      const Tensor norm = sqrt(sum(square(x), a.axis, std::nullopt, a.keepdim));
      return narrowed(norm, real_type_of(a.x.dtype()));
    },
    .vjp = [](const vjp::root_sum_square& v) -> Grads {
      const Tensor zero = equal(v.out, literal(0));
      const Tensor scale = zero_where(zero, v.grad / where(zero, literal(1), v.out));
      return stretch(scale, v.x, v.axis) * v.x;
    },
    .saves = "x out",
    .plan =
        [](const PlanCall& c) {
          const args::root_sum_square a(c.args);
          sharding::reduced(c.plan, a.axis, Join::Again);
        },
    .traits = Trait::Reduction,
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "np.sqrt(np.sum(np.abs(x) ** 2, axis=tuple(axis) if axis else None, "
        "keepdims=keepdim))",
    .samples = [] { return reduction_samples(t); },
};

const OpDef p_norm_op = {
    .schema =
        "p_norm(Tensor x, float porder = 2.0, int[]? axis = None, bool keepdim = False) -> "
        "Tensor",
    .brief =
        "sum(|x|^p)^(1/p) over axes: p = 0 counts, infinity takes the largest, minus "
        "infinity the smallest magnitude.",
    .decompose = [](const args::p_norm& a) -> Made {
      const double p = a.porder;
      if (p == 2) return root_sum_square(a.x, a.axis, a.keepdim);
      const DType dtype = real_type_of(a.x.dtype());
      if (p == 0) return cast(count_nonzero(a.x, a.axis, a.keepdim), dtype);
      const Tensor size = abs(a.x);
      if (std::isinf(p)) return p > 0 ? max(size, a.axis, a.keepdim) : min(size, a.axis, a.keepdim);
      if (p == 1) return sum(size, a.axis, std::nullopt, a.keepdim);
      const Tensor powers = pow(widened(size), literal(p));
      return narrowed(pow(sum(powers, a.axis, std::nullopt, a.keepdim), literal(1 / p)), dtype);
    },
    .plan =
        [](const PlanCall& c) {
          const args::p_norm a(c.args);
          sharding::reduced(c.plan, a.axis, a.porder == 0 ? Join::Sum : Join::Again);
        },
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda s, ax: np.sum(s != 0, axis=ax, keepdims=keepdim).astype(s.dtype) if porder "
        "== 0 else np.max(s, axis=ax, keepdims=keepdim) if porder == np.inf else np.min(s, "
        "axis=ax, keepdims=keepdim) if porder == -np.inf else np.sum(s ** porder, axis=ax, "
        "keepdims=keepdim) ** (1 / porder))(np.abs(x), tuple(axis) if axis else None)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}))
              .add(t({2, 3, 2}), 1.0, IntVector{1}, true)
              .add(distinct({3, 4}), INFINITY, IntVector{-1})
              .add(distinct({3, 4}), -INFINITY)
              .add(positive({3, 4}), 3.0, IntVector{0})
              .add(positive({2, 2}), 0.0)
              .add(positive({}), 2.5)
              .add(t({2, 0}), 2.0, IntVector{1});
        },
};

using Axes = SmallVector<int64_t, 6>;

Axes others(const Tensor& t, const Axes& taken) {
  Axes rest;
  for (int64_t i = 0; i < t.rank(); ++i)
    if (std::find(taken.begin(), taken.end(), i) == taken.end()) rest.push_back(i);
  return rest;
}

const OpDef renorm_op = {
    .schema = "renorm(Tensor x, float p, int axis, float max_norm) -> Tensor",
    .brief =
        "x with every slice along an axis scaled down to the p-norm max_norm where it exceeds it.",
    .decompose = [](const args::renorm& a) -> Made {
      user_check(a.p > 0, ErrorKind::InvalidArgument, "p is {}; it must be positive.", a.p);
      user_check(a.max_norm >= 0, ErrorKind::InvalidArgument,
                 "max_norm is {}; it must not be negative.", a.max_norm);
      const int64_t axis = normalise_axis(a.axis, a.x.rank());
      const Tensor x = widened(a.x);
      Axes taken;
      taken.push_back(axis);
      const Tensor norm = p_norm(x, a.p, IntArgs(others(x, taken)), true);
      const Tensor above = greater_than(norm, literal(a.max_norm));
      const Tensor factor =
          where(above, a.max_norm / (where(above, norm, literal(1)) + 1e-7), literal(1));
      return narrowed(x * factor, a.x.dtype());
    },
    .traits = Trait::HasInplace,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda n: x * np.where(n > max_norm, max_norm / (n + 1e-7), 1).astype(x.dtype))(np.sum(np.abs(x) ** p, "
        "axis=tuple(i for i in range(x.ndim) if i != axis % x.ndim), keepdims=True) ** (1 / p))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), 2.0, 0, 1.0)
              .add(t({2, 3, 4}), 1.0, -1, 2.5)
              .add(t({2, 3}), 3.0, 1, 0.5)
              .add(t({0, 3}), 2.0, 1, 1.0);
        },
    .python = "oar Tensor",
};

const OpDef normalize_op = {
    .schema = "normalize(Tensor x, float p = 2, int axis = 1, float epsilon = 1e-12) -> Tensor",
    .brief = "x divided by its p-norm along an axis, or by epsilon where the norm is smaller.",
    .decompose = [](const args::normalize& a) -> Made {
      // Paddle normalises the only axis of a vector, whatever positive axis is passed.
      const int64_t axis = a.x.rank() == 1 ? 0 : a.axis;
      return a.x / maximum(p_norm(a.x, a.p, IntArgs{axis}, true), literal(a.epsilon));
    },
    .dtypes = "float",
    .numpy =
        "(lambda ax: x / np.maximum(np.sum(np.abs(x) ** p, ax, keepdims=True) ** (1 / p), "
        "epsilon))(axis if x.ndim > 1 else 0)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}))
              .add(t({2, 3, 2}), 1.0, -1)
              .add(positive({2, 3}), 3.0, 0)
              .add(t({5}));
        },
    .python = "oar.nn.functional",
};

const OpDef dist_op = {
    .schema = "dist(Tensor x, Tensor y, float p = 2.0) -> Tensor",
    .brief = "The p-norm of x - y over all elements, a 0-d tensor. Shapes are broadcast.",
    .decompose = [](const args::dist& a) -> Made { return p_norm(a.x - a.y, a.p); },
    .traits = Trait::Broadcast | Trait::Promote,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda d: np.sum(d != 0).astype(d.dtype) if p == 0 else np.max(d) if p == np.inf else np.min(d) if p "
        "== -np.inf else np.sum(d ** p) ** d.dtype.type(1 / p))(np.abs(x - y))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({4, 3}))
              .add(t({2, 1, 3}), t({4, 1}), 1.0)
              .add(t({4}), t({}), 3.0)
              .add(t({5}), t({5}), 0.0)
              .add(distinct({3, 2}), t({}), INFINITY);
        },
    .python = "oar Tensor",
};

// Distances of 0 get a zero gradient, not an infinite one.
Tensor safe_ratio(const Tensor& a, const Tensor& b) {
  const Tensor zero = equal(b, literal(0));
  return zero_where(zero, a / where(zero, literal(1), b));
}

Tensor transpose_last(const Tensor& t) {
  Axes order;
  for (int64_t i = 0; i < t.rank(); ++i) order.push_back(i);
  std::swap(order[order.size() - 2], order.back());
  return transpose(t, IntArgs(order));
}

const OpDef euclidean_pairs_op = {
    .schema = "euclidean_pairs(Tensor x, Tensor y) -> Tensor",
    .brief =
        "The distance of each row of x from each row of y by one matrix product. Its gradient is 0 where the "
        "distance is.",
    .infer = [](const args::euclidean_pairs& a) -> Metas {
      user_check(a.x.rank() >= 2 && a.y.rank() >= 2 && assume_same(a.x.dim(-1), a.y.dim(-1)),
                 ErrorKind::InvalidArgument,
                 "x of shape {} and y of shape {} must hold rows of one length in their last axes.",
                 to_string(a.x.dims()), to_string(a.y.dims()));
      Shape shape = a.x.shape();
      shape.back() = a.y.dim(-2);
      return TensorMeta{a.x.dtype(), shape};
    },
    .decompose = [](const args::euclidean_pairs& a) -> Made {
      const auto squares = [](const Tensor& t) {
        return sum(square(t), IntArgs{-1}, t.dtype(), true);
      };
      const Tensor x = widened(a.x), y = widened(a.y);
      const Tensor xs = squares(x), ys = squares(y);
      const Tensor left = concat({x * -2, xs, ones_like(xs)}, -1);
      const Tensor right = concat({y, ones_like(ys), ys}, -1);
      const Tensor product = matmul(left, right, false, true);
      return narrowed(sqrt(clip(product, Scalar(0.0))), a.x.dtype());
    },
    // With w = grad / distance: the gradient of row i of x is sum_j w[i, j] (x[i] - y[j]).
    .vjp = [](const vjp::euclidean_pairs& v) -> Grads {
      const Tensor w = safe_ratio(v.grad, v.out);
      const auto side = [](const Tensor& weights, const Tensor& own, const Tensor& other,
                           bool turn) {
        const Tensor total = sum(weights, IntArgs{turn ? -2 : -1}, weights.dtype(), true);
        const Tensor column = turn ? transpose_last(total) : total;
        return column * own - matmul(weights, other, turn);
      };
      return {v.needs(0) ? side(w, v.x, v.y, false) : Tensor(),
              v.needs(1) ? side(w, v.y, v.x, true) : Tensor()};
    },
    .saves = "x y out",
    .shard = "...ik, ...jk -> ...ij ; k whole # the root of the sum is part of the op",
    .traits = Trait::Promote,
    .dtypes = "float",
    .numpy = "np.sqrt(np.sum((x[..., :, None, :] - y[..., None, :, :]) ** 2, -1))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({5, 3}))
              .add(t({2, 3, 2}), t({2, 2, 2}))
              .add(t({0, 3}), t({2, 3}));
        },
};

const OpDef cdist_op = {
    .schema =
        "cdist(Tensor x, Tensor y, float p = 2.0, str compute_mode = 'use_mm_for_euclid_dist_if_necessary') -> "
        "Tensor",
    .brief =
        "The p-norm distance of each row of x from each row of y; leading axes are batches and broadcast.",
    .decompose = [](const args::cdist& a) -> Made {
      const std::string_view mode = a.compute_mode;
      user_check(mode == "use_mm_for_euclid_dist_if_necessary" ||
                     mode == "use_mm_for_euclid_dist" || mode == "donot_use_mm_for_euclid_dist",
                 ErrorKind::InvalidArgument,
                 "compute_mode is '{}'; it can be use_mm_for_euclid_dist_if_necessary, "
                 "use_mm_for_euclid_dist or donot_use_mm_for_euclid_dist.",
                 mode);
      user_check(a.p >= 0, ErrorKind::InvalidArgument, "p is {}; it must not be negative.", a.p);
      user_check(a.x.rank() >= 2 && a.y.rank() >= 2 && assume_same(a.x.dim(-1), a.y.dim(-1)),
                 ErrorKind::InvalidArgument,
                 "x of shape {} and y of shape {} must hold rows of one length.",
                 to_string(a.x.dims()), to_string(a.y.dims()));
      const auto batch = [](const Tensor& t) {
        Shape front;
        for (int i = 0; i + 2 < t.rank(); ++i) front.push_back(t.dim(i));
        return front;
      };
      const Shape leading = broadcast_shapes(batch(a.x), batch(a.y));
      const auto stretched = [&](const Tensor& t) {
        Shape shape = leading;
        shape.push_back(t.dim(-2));
        shape.push_back(t.dim(-1));
        return broadcast_to(t, shape);
      };
      const Tensor x = stretched(a.x), y = stretched(a.y);
      const auto many = [](Dim n) { return n.is_symbolic() || n.word() > 25; };
      const bool product =
          mode == "use_mm_for_euclid_dist" ||
          (mode == "use_mm_for_euclid_dist_if_necessary" && (many(x.dim(-2)) || many(y.dim(-2))));
      if (a.p == 2 && product) return euclidean_pairs(x, y);
      return p_norm(unsqueeze(x, {-2}) - unsqueeze(y, {-3}), a.p, IntArgs{-1});
    },
    .traits = Trait::Promote,
    .dtypes = "float",
    .numpy =
        "(lambda d: np.sum(d != 0, -1).astype(d.dtype) if p == 0 else np.max(d, -1, initial=0) if p == np.inf "
        "else np.sum(d ** p, -1) ** (1 / p))(np.abs(x[..., :, None, :] - y[..., None, :, :]))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({5, 3}))
              .add(t({2, 1, 3, 2}), t({4, 2, 2}), 1.0)
              .add(t({4, 3}), t({2, 3}), 3.0)
              .add(distinct({3, 2}), distinct({2, 2}), INFINITY)
              .add(t({4, 3}), t({2, 3}), 2.0, "use_mm_for_euclid_dist")
              .add(t({0, 3}), t({2, 3}));
        },
    .python = "oar Tensor",
};

const OpDef pairwise_distance_op = {
    .schema =
        "pairwise_distance(Tensor x, Tensor y, float p = 2.0, float epsilon = 1e-6, bool keepdim = "
        "False) -> Tensor",
    .brief = "The p-norm of x - y + epsilon along the last axis.",
    .decompose = [](const args::pairwise_distance& a) -> Made {
      return p_norm(a.x - a.y + a.epsilon, a.p, IntArgs{-1}, a.keepdim);
    },
    .dtypes = "float",
    .numpy = "np.linalg.norm(x - y + epsilon, p, axis=-1, keepdims=keepdim)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({4, 3}))
              .add(t({4, 3}), t({3}), 1.0, 1e-3, true)
              .add(t({3}), t({3}), 3.0)
              .add(distinct({2, 3}), positive({2, 3}), std::numeric_limits<double>::infinity());
        },
    .python = "oar.nn.functional",
};

const OpDef cosine_similarity_op = {
    .schema = "cosine_similarity(Tensor x1, Tensor x2, int axis = 1, float eps = 1e-8) -> Tensor",
    .brief =
        "The cosine of the angle between vectors along an axis; eps bounds their lengths below.",
    .decompose = [](const args::cosine_similarity& a) -> Made {
      const Tensor x1 = widened(a.x1), x2 = widened(a.x2);
      // Of long vectors the product of the squared lengths would overflow first.
      const Tensor sizes =
          root_sum_square(x1, IntArgs{a.axis}) * root_sum_square(x2, IntArgs{a.axis});
      return narrowed(vecdot(x1, x2, a.axis) / clip(sizes, Scalar(a.eps)), a.x1.dtype());
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(x1 * x2).sum(axis) / np.sqrt(np.maximum((x1 * x1).sum(axis) * (x2 * x2).sum(axis), eps * "
        "eps))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({4, 3}))
              .add(t({2, 3, 4}), t({2, 3, 4}), -1, 1e-6)
              .add(t({3, 4}), t({3, 4}), 0);
        },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(distance, &root_sum_square_op, &p_norm_op, &renorm_op, &normalize_op, &dist_op,
           &euclidean_pairs_op, &cdist_op, &pairwise_distance_op, &cosine_similarity_op)

}  // namespace oar
