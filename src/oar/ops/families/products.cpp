// Products of vectors and of whole tensors.
#include "oar/ops/gen/products.h"

#include <algorithm>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/reduce_rules.h"
#include "oar/ops/families/rows.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/flip.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

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

const OpDef vecdot_op = {
    .schema = "vecdot(Tensor x, Tensor y, int axis = -1) -> Tensor",
    .brief = "The sum of x * y along an axis.",
    .infer = [](const args::vecdot& a) -> Metas {
      return reduced(a.x, IntVector{a.axis}, false, a.x.dtype());
    },
    .decompose = [](const args::vecdot& a) -> Made {
      return narrowed(sum(widened(a.x) * widened(a.y), IntVector{a.axis}), a.x.dtype());
    },
    .vjp = [](const vjp::vecdot& v) -> Grads {
      const Tensor grad = stretch(v.grad, v.x, IntVector{v.axis});
      return {grad * v.y, grad * v.x};
    },
    .saves = "x y",
    .shard = "...a..., ...a... -> ...... ; a@axis sum",
    .linear_in = "x y",
    .traits = Trait::Reduction | Trait::Broadcast | Trait::Promote,
    .dtypes = "float",
    .numpy = "np.sum(x * y, axis=axis)",
    .samples =
        [] {
          return Samples()
              .add(t({4}), t({4}))
              .add(t({2, 3}), t({2, 3}), 0)
              .add(t({2, 3, 4}), t({3, 1}), -2)  // broadcast
              .add(t({2, 1, 3}), t({4, 1}), 1)
              .add(t({0, 3}), t({0, 3}), 0)
              .add(t({3, 0}), t({3, 0}), 0);
        },
    .python = "oar Tensor",
};

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
    .amp = Amp::Low,
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
        "The sums of products over pairs of axes, one of x and one of y; the other axes of x come first. An axis "
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
    .amp = Amp::Low,
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

}  // namespace

OAR_FAMILY(products, &dot_op, &vecdot_op, &inner_op, &outer_op, &cross_op, &kron_op,
           &tensordot_axes_op)

}  // namespace oar
