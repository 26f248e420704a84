// Products and distances of whole tensors: sums over pairs of axes, distances of points, cross products.
#include "oar/ops/gen/contraction.h"

#include <algorithm>
#include <cmath>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/index.h"
#include "oar/ops/gen/join.h"
#include "oar/ops/gen/linalg.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/scan.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/ops/gen/statistics.h"
#include "oar/ops/gen/strided.h"

namespace oar {
namespace {

using Axes = SmallVector<int64_t, 6>;

Axes axes_of(const Tensor& t, Ints axes, const char* name) {
  Axes found;
  for (const int64_t axis : axes) {
    const int64_t at = normalise_axis(axis, t.rank());
    user_check(std::find(found.begin(), found.end(), at) == found.end(), ErrorKind::InvalidArgument,
               "{} names axis {} twice.", name, at);
    found.push_back(at);
  }
  return found;
}
Axes others(const Tensor& t, const Axes& taken) {
  Axes rest;
  for (int64_t i = 0; i < t.rank(); ++i)
    if (std::find(taken.begin(), taken.end(), i) == taken.end()) rest.push_back(i);
  return rest;
}
// The axes in the order of the two lists, each list as one axis.
Tensor as_matrix(const Tensor& t, const Axes& first, const Axes& second) {
  Axes order = first;
  order.insert(order.end(), second.begin(), second.end());
  Dim rows = 1, columns = 1;
  for (const int64_t axis : first) rows = rows * t.dim(axis);
  for (const int64_t axis : second) columns = columns * t.dim(axis);
  return reshape(transpose(t, IntArgs(order)), {rows, columns});
}

const OpDef tensordot_axes_op = {
    .schema = "tensordot_axes(Tensor x, Tensor y, int[] x_axes, int[] y_axes) -> Tensor",
    .brief =
        "The sums of products over pairs of axes, one of x and one of y; what is left of x comes first. An axis "
        "of size 1 is stretched to its partner.",
    .decompose = [](const args::tensordot_axes& a) -> Made {
      user_check(a.x_axes.size() == a.y_axes.size(), ErrorKind::InvalidArgument,
                 "axes names {} axes of x and {} of y; they come in pairs.", a.x_axes.size(),
                 a.y_axes.size());
      Axes xs = axes_of(a.x, a.x_axes, "axes"), ys = axes_of(a.y, a.y_axes, "axes");
      Tensor x = a.x, y = a.y;
      for (size_t i = 0; i < xs.size(); ++i) {
        const Dim m = x.dim(xs[i]), n = y.dim(ys[i]);
        if (same(m, n)) continue;
        user_check(same(m, Dim(1)) || same(n, Dim(1)), ErrorKind::InvalidArgument,
                   "axis {} of x (shape {}) has size {} and axis {} of y (shape {}) size {}.",
                   xs[i], to_string(x.dims()), m.str(), ys[i], to_string(y.dims()), n.str());
        if (same(n, Dim(1)))
          x = sum(x, IntArgs{xs[i]}, x.dtype(), true);
        else
          y = sum(y, IntArgs{ys[i]}, y.dtype(), true);
      }
      const Axes left = others(x, xs), right = others(y, ys);
      Shape shape;
      for (const int64_t axis : left) shape.push_back(x.dim(axis));
      for (const int64_t axis : right) shape.push_back(y.dim(axis));
      return reshape(matmul(as_matrix(x, left, xs), as_matrix(y, ys, right)), shape);
    },
    .traits = Trait::Promote,
    .dtypes = "int float complex",
    .numpy =
        "np.tensordot(np.broadcast_to(x, [max(n, y.shape[y_axes[x_axes.index(i)]]) if i in x_axes else n for i, "
        "n in enumerate(x.shape)]), np.broadcast_to(y, [max(n, x.shape[x_axes[y_axes.index(i)]]) if i in y_axes "
        "else n for i, n in enumerate(y.shape)]), (x_axes, y_axes))",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 4}), t({3, 4, 5}), IntVector{1, 2}, IntVector{0, 1})
              .add(t({2, 3}), t({2, 4}), IntVector{0}, IntVector{0})
              .add(t({2, 3}), t({2}), IntVector{}, IntVector{})
              .add(t({2, 1}), t({3, 2}), IntVector{1}, IntVector{0})
              .add(t({2, 0}), t({0, 3}), IntVector{1}, IntVector{0});
        },
};

// Distances with zeros where they are, not infinite slopes.
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
      user_check(a.x.rank() >= 2 && a.y.rank() >= 2 && same(a.x.dim(-1), a.y.dim(-1)),
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
    .shard = "...ik, ...jk -> ...ij ; k whole",
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
      user_check(a.x.rank() >= 2 && a.y.rank() >= 2 && same(a.x.dim(-1), a.y.dim(-1)),
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

const OpDef dist_op = {
    .schema = "dist(Tensor x, Tensor y, float p = 2.0) -> Tensor",
    .brief = "The p-norm of x - y over all elements, a 0-d tensor. Shapes are broadcast.",
    .decompose = [](const args::dist& a) -> Made { return p_norm(a.x - a.y, a.p); },
    .traits = Trait::Broadcast | Trait::Promote,
    .dtypes = "float",
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

const OpDef cross_op = {
    .schema = "cross(Tensor x, Tensor y, int axis = 9) -> Tensor",
    .brief =
        "The cross product of vectors along an axis of size 3; by default (9) the first axis of that size.",
    .decompose = [](const args::cross& a) -> Made {
      int64_t axis = a.axis;
      if (axis == 9) {
        axis = 0;
        while (axis < a.x.rank() && !same(a.x.dim(axis), Dim(3))) ++axis;
        user_check(axis < a.x.rank(), ErrorKind::InvalidArgument,
                   "x of shape {} has no axis of size 3.", to_string(a.x.dims()));
      }
      axis = normalise_axis(axis, a.x.rank());
      user_check(same(a.x.dim(axis), Dim(3)), ErrorKind::InvalidArgument,
                 "axis {} of x (shape {}) must have size 3.", axis, to_string(a.x.dims()));
      const auto turned = [&](const Tensor& v, int64_t by) { return roll(v, {by}, IntArgs{axis}); };
      return turned(a.x, -1) * turned(a.y, -2) - turned(a.x, -2) * turned(a.y, -1);
    },
    .traits = Trait::Broadcast | Trait::Promote,
    .dtypes = "int float complex",
    .numpy =
        "(lambda k, u, v: np.moveaxis(np.cross(np.moveaxis(u, k, -1), np.moveaxis(v, k, -1)), -1, k))(axis if "
        "axis != 9 else np.broadcast_shapes(x.shape, y.shape).index(3), np.broadcast_to(x, "
        "np.broadcast_shapes(x.shape, y.shape)), np.broadcast_to(y, np.broadcast_shapes(x.shape, y.shape)))",
    .samples =
        [] {
          return Samples()
              .add(t({3}), t({3}))
              .add(t({2, 3}), t({2, 3}))
              .add(t({3, 3}), t({3, 3}), 1)
              .add(t({2, 3, 1}), t({3, 4}), -2)
              .add(t({0, 3}), t({0, 3}), 1);
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

const OpDef vander_op = {
    .schema = "vander(Tensor x, int? n = None, bool increasing = False) -> Tensor",
    .brief =
        "The powers of a vector's elements from n - 1 down to 0 (or, increasing, up) as columns; n is by default "
        "the vector's length.",
    .decompose = [](const args::vander& a) -> Made {
      user_check(a.x.rank() == 1, ErrorKind::InvalidArgument, "x of shape {} must have one axis.",
                 to_string(a.x.dims()));
      user_check(!a.n || *a.n >= 0, ErrorKind::InvalidArgument, "n is {}; it must not be negative.",
                 a.n.value_or(0));
      // 0, 1, 2, …: as many as x has elements where n does not say it.
      const Tensor up =
          a.n ? range(Scalar(int64_t{0}), Scalar(*a.n), Scalar(int64_t{1}), DType::Int64)
              : cumsum_along(ones_like(a.x, DType::Int64), 0, /*exclusive=*/true);
      const Tensor powers = a.increasing ? up : flip(up, {0});
      return pow(unsqueeze(a.x, {1}), cast(powers, a.x.dtype()));
    },
    .dtypes = "int float complex",
    .numpy = "np.vander(x, n, increasing).astype(x.dtype)",
    .samples =
        [] { return Samples().add(t({4})).add(t({3}), 5, true).add(t({3}), 0).add(t({0}), 2); },
    .python = "oar Tensor",
};

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

}  // namespace

OAR_FAMILY(contraction, &tensordot_axes_op, &euclidean_pairs_op, &cdist_op, &dist_op, &cross_op,
           &trace_op, &vander_op, &renorm_op)

}  // namespace oar
