// Differences and integrals along an axis.
#include "oar/ops/gen/difference.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/blank.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/cumulative.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"

namespace oar {
namespace {

// Without its first (or last) element along an axis.
Tensor without_first(const Tensor& x, int64_t axis) {
  return slice_view(x, SliceIndex().skip(axis).range(1, kOpenHigh));
}

Tensor without_last(const Tensor& x, int64_t axis) {
  return slice_view(x, SliceIndex().skip(axis).range(0, -1));
}

// Closed under differentiation: each is the transpose of the other.
const OpDef difference_along_op = {
    .schema = "difference_along(Tensor x, int axis, bool transposed = False) -> Tensor",
    .brief =
        "x[i + 1] - x[i] along an axis; transposed, x[i - 1] - x[i] with zeros before and after.",
    .infer = [](const args::difference_along& a) -> Metas {
      const auto axis = static_cast<size_t>(normalise_axis(a.axis, a.x.rank()));
      Shape shape = a.x.shape();
      user_check(a.transposed || !known_less(shape[axis], 1), ErrorKind::InvalidArgument,
                 "x has shape {}; there is nothing along axis {}.", shape.str(), axis);
      shape[axis] = a.transposed ? shape[axis] + 1 : shape[axis] - 1;
      return TensorMeta{a.x.dtype(), shape};
    },
    .decompose = [](const args::difference_along& a) -> Made {
      const int64_t axis = normalise_axis(a.axis, a.x.rank());
      if (!a.transposed) return without_first(a.x, axis) - without_last(a.x, axis);
      Shape edge = a.x.shape();
      edge[static_cast<size_t>(axis)] = 1;
      const Tensor nothing = zeros(edge, a.x.dtype());
      return concat({nothing, a.x}, axis) - concat({a.x, nothing}, axis);
    },
    .vjp = [](const vjp::difference_along& v) -> Grads {
      return difference_along(v.grad, v.axis, !v.transposed);
    },
    .shard = "...a... -> ...b... ; a@axis whole ; b@axis whole # differences reach across a cut",
    .traits = Trait::Linear,
    .dtypes = "int float complex",
    .numpy =
        "np.diff(x, 1, axis) if not transposed else (lambda e: np.concatenate([e, x], axis) - "
        "np.concatenate([x, e], axis))(np.zeros_like(np.take(x, [0], axis)))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}), 1)
              .add(t({5, 3}), 0)
              .add(t({2, 3, 4}), 1, true)
              .add(t({3, 4}), -1, true)
              .add(t({2, 1}), 1);
        },
};

const OpDef diff_op = {
    .schema =
        "diff(Tensor x, int n = 1, int axis = -1, Tensor? prepend = None, Tensor? append = None) -> Tensor",
    .brief =
        "The n-th differences of neighbours along an axis, after other tensors were joined on. Of bools, "
        "whether neighbours differ.",
    .decompose = [](const args::diff& a) -> Made {
      user_check(a.n >= 0, ErrorKind::InvalidArgument, "n is {}; it must not be negative.", a.n);
      user_check(a.x.rank() >= 1, ErrorKind::InvalidArgument, "x is 0-d; it needs an axis.");
      const int64_t axis = normalise_axis(a.axis, a.x.rank());
      if (a.n == 0) return a.x;  // as NumPy and PyTorch; nothing is joined on
      Tensor line = a.x;
      if (a.prepend.defined()) line = concat({a.prepend, line}, axis);
      if (a.append.defined()) line = concat({line, a.append}, axis);
      for (int64_t i = 0; i < a.n; ++i) {
        if (same(line.dim(axis), 0)) break;
        line = is_bool(line.dtype())
                   ? not_equal(without_first(line, axis), without_last(line, axis))
                   : difference_along(line, axis);
      }
      return line;
    },
    .numpy =
        "np.diff(x, n, axis, **({} if prepend is None else {'prepend': prepend}), **({} if append is None else "
        "{'append': append}))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}))
              .add(t({5, 3}), 2, 0)
              .add(t({2, 3}), 1, -1, t({2, 1}), t({2, 2}))
              .add(t({2, 3}), 0)
              .add(t({2, 3}), 0, -1, t({2, 1}))
              .add(t({3}), 4)
              .add(t({0, 3}));
        },
    .python = "oar Tensor",
};

// The areas between neighbours: their mean height times their distance.
Tensor trapezoids(const Tensor& y, const Tensor& x, std::optional<double> dx, int64_t given_axis) {
  user_check(!(x.defined() && dx), ErrorKind::InvalidArgument,
             "x and dx are both passed; the distances follow from one of them.");
  user_check(y.rank() >= 1, ErrorKind::InvalidArgument, "y is 0-d; it needs an axis.");
  const int64_t axis = normalise_axis(given_axis, y.rank());
  const Tensor heights = (without_first(y, axis) + without_last(y, axis)) * 0.5;
  if (!x.defined()) return dx.value_or(1.0) == 1.0 ? heights : heights * *dx;
  if (x.rank() == 1) {  // along the axis, whatever follows it
    Shape shape;
    for (int i = 0; i < y.rank(); ++i) shape.push_back(i == axis ? x.dim(0) : Dim(1));
    const Tensor places = reshape(x, shape);
    return heights * (without_first(places, axis) - without_last(places, axis));
  }
  user_check(x.rank() == y.rank(), ErrorKind::InvalidArgument,
             "x of shape {} is neither a vector nor of the rank of y (shape {}).",
             to_string(x.dims()), to_string(y.dims()));
  return heights * (without_first(x, axis) - without_last(x, axis));
}

Samples trapezoid_samples() {
  return Samples()
      .add(t({4, 7}))
      .add(t({2, 3}), t({3}))
      .add(t({3, 2}), t({3}), std::nullopt, 0)
      .add(t({2, 3}), t({2, 3}), std::nullopt, 0)
      .add(t({5}), std::nullopt, 0.5)
      .add(t({0, 3}), std::nullopt, 2.0, 1);
}

const OpDef trapezoid_op = {
    .schema = "trapezoid(Tensor y, Tensor? x = None, float? dx = None, int axis = -1) -> Tensor",
    .brief =
        "The integral of y along an axis by the trapezoidal rule, at the places x or at the distance dx (1).",
    .decompose = [](const args::trapezoid& a) -> Made {
      return sum(trapezoids(a.y, a.x, a.dx, a.axis), IntArgs{a.axis});
    },
    .traits = Trait::FloatMath,
    .dtypes = "float",
    .numpy = "np.trapezoid(y, x, 1.0 if dx is None else dx, axis)",
    .samples = trapezoid_samples,
    .python = "oar Tensor",
};

const OpDef cumulative_trapezoid_op = {
    .schema =
        "cumulative_trapezoid(Tensor y, Tensor? x = None, float? dx = None, int axis = -1) -> Tensor",
    .brief =
        "The running integral of y along an axis by the trapezoidal rule; one element fewer than y.",
    .decompose = [](const args::cumulative_trapezoid& a) -> Made {
      return cumsum_along(trapezoids(a.y, a.x, a.dx, a.axis), a.axis);
    },
    .traits = Trait::FloatMath,
    .dtypes = "float",
    .numpy =
        "(lambda k: (lambda s: np.cumsum((s(y, 1, None) + s(y, 0, -1)) * y.dtype.type(0.5) * (y.dtype.type(1 if dx is None else dx) if x is "
        "None else (lambda p: s(p, 1, None) - s(p, 0, -1))(x if x.ndim > 1 else x.reshape([-1 if i == k else 1 for "
        "i in range(y.ndim)]))), k))(lambda a, i, j: a[(slice(None),) * k + (slice(i, j),)]))(axis % y.ndim)",
    .samples = trapezoid_samples,
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(difference, &difference_along_op, &diff_op, &trapezoid_op, &cumulative_trapezoid_op)

}  // namespace oar
