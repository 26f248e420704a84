// Differences and integrals along an axis, running extremes, and sums of whole tensors.
#include "oar/ops/gen/difference.h"

#include <algorithm>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/blank.h"
#include "oar/ops/families/count.h"
#include "oar/ops/gen/along.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/index.h"
#include "oar/ops/gen/join.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/scan.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"

namespace oar {
namespace {

const OpDef extreme_along_op = {
    .schema =
        "extreme_along(Tensor x, int axis, bool largest = True) -> (Tensor values, Tensor indices)",
    .brief =
        "The largest (or smallest) element so far along an axis, and its place: the last of equals, and from a "
        "NaN on the NaN.",
    .infer = [](const args::extreme_along& a) -> Metas {
      normalise_axis(a.axis, std::max(a.x.rank(), 1));
      return {infer::like(a.x), TensorMeta{DType::Int64, a.x.shape()}};
    },
    .vjp = [](const vjp::extreme_along& v) -> Grads {
      if (v.x.rank() == 0) return v.grad_values;
      return put_along(blank(v.x.dims(), v.grad_values.dtype()), v.indices, v.grad_values, v.axis,
                       "add");
    },
    .saves = "x:shape indices",
    .shard = "...a... -> ...a..., ...a... ; a@axis whole",
    .dtypes = "bool int float",
    .numpy =
        "(lambda y: (lambda v: (v.reshape(x.shape).astype(x.dtype), np.maximum.accumulate(np.where(y == v, "
        "np.arange(y.shape[axis]).reshape([-1 if i == axis % y.ndim else 1 for i in range(y.ndim)]), 0), "
        "axis).reshape(x.shape)))((np.maximum if largest else np.minimum).accumulate(y, axis)))(np.atleast_1d(x))",
    .samples =
        [] {
          return Samples()
              .add(distinct({4, 7}), 1)
              .add(distinct({2, 3, 5}), 1, false)
              .add(ints(0, 4, {9}), 0)
              .add(ints(0, 4, {9}), 0, false)
              .add(distinct({}), 0)
              .add(distinct({0, 3}), 0);
        },
};

Made running_extreme(const Tensor& x, std::optional<int64_t> axis, DType dtype, bool largest) {
  user_check(dtype == DType::Int64 || dtype == DType::Int32, ErrorKind::InvalidType,
             "dtype is {}; a position is int64 or int32.", name_of(dtype));
  const Tensor line = axis ? x : reshape(x, {x.numel()});
  const auto [values, indices] = extreme_along(line, axis.value_or(0), largest);
  return {values, narrowed(indices, dtype)};
}

const OpDef cummax_op = {
    .schema =
        "cummax(Tensor x, int? axis = None, dtype dtype = int64) -> (Tensor out, Tensor indices)",
    .brief =
        "The largest element so far along an axis, or of the flattened tensor, and the last of its places.",
    .decompose = [](const args::cummax& a) -> Made {
      return running_extreme(a.x, a.axis, a.dtype, true);
    },
    .dtypes = "int float",
    .numpy =
        "(lambda y, k: (lambda v: (v, np.maximum.accumulate(np.where(y == v, np.arange(y.shape[k]).reshape([-1 if i "
        "== k % y.ndim else 1 for i in range(y.ndim)]), 0), k).astype(dtype)))(np.maximum.accumulate(y, k)))(x if "
        "axis is not None else x.ravel(), axis or 0)",
    .samples =
        [] {
          return Samples()
              .add(distinct({4, 7}))
              .add(distinct({2, 3, 5}), 1, DType::Int32)
              .add(ints(0, 4, {9}), -1)
              .add(distinct({0, 3}), 0);
        },
    .python = "oar Tensor",
};

const OpDef cummin_op = {
    .schema =
        "cummin(Tensor x, int? axis = None, dtype dtype = int64) -> (Tensor out, Tensor indices)",
    .brief =
        "The smallest element so far along an axis, or of the flattened tensor, and the last of its places.",
    .decompose = [](const args::cummin& a) -> Made {
      return running_extreme(a.x, a.axis, a.dtype, false);
    },
    .dtypes = "int float",
    .numpy =
        "(lambda y, k: (lambda v: (v, np.maximum.accumulate(np.where(y == v, np.arange(y.shape[k]).reshape([-1 if i "
        "== k % y.ndim else 1 for i in range(y.ndim)]), 0), k).astype(dtype)))(np.minimum.accumulate(y, k)))(x if "
        "axis is not None else x.ravel(), axis or 0)",
    .samples =
        [] {
          return Samples()
              .add(distinct({4, 7}))
              .add(distinct({2, 3, 5}), 1, DType::Int32)
              .add(ints(0, 4, {9}), -1)
              .add(distinct({0, 3}), 0);
        },
    .python = "oar Tensor",
};

// Without its first (or last) element along an axis.
Tensor without_first(const Tensor& x, int64_t axis) {
  return slice_view(x, SliceIndex().skip(axis).range(1, kOpenHigh));
}
Tensor without_last(const Tensor& x, int64_t axis) {
  return slice_view(x, SliceIndex().skip(axis).range(0, -1));
}

// Closed under differentiation: its derivative is its transpose, and the other way round.
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
    .shard = "...a... -> ...b... ; a@axis whole ; b@axis whole",
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
              .add(t({3}), 4)
              .add(t({0, 3}));
        },
    .python = "oar Tensor",
};

// The areas between neighbours: their mean height times their distance.
Tensor trapezoids(const Tensor& y, const Tensor& x, std::optional<double> dx, int64_t given_axis) {
  user_check(!(x.defined() && dx), ErrorKind::InvalidArgument,
             "x and dx are both given; the distances follow from one of them.");
  user_check(y.rank() >= 1, ErrorKind::InvalidArgument, "y is 0-d; it needs an axis.");
  const int64_t axis = normalise_axis(given_axis, y.rank());
  const Tensor heights = (without_first(y, axis) + without_last(y, axis)) * 0.5;
  if (!x.defined()) return dx.value_or(1.0) == 1.0 ? heights : heights * *dx;
  if (x.rank() == 1) {  // along the axis, whatever stands after it
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

const OpDef reduce_as_op = {
    .schema = "reduce_as(Tensor x, Tensor target) -> Tensor",
    .brief = "x summed over the axes that a tensor of the shape of `target` would be stretched by.",
    .decompose = [](const args::reduce_as& a) -> Made {
      const bool widens = !is_differentiable(a.x.dtype());  // as sum does
      return sum_to(widens ? cast(a.x, DType::Int64) : a.x, a.target.dims());
    },
    .plan =
        [](const PlanCall& c) {
          PlanTensor &x = c.plan.operands[0], &target = c.plan.operands[1];
          const size_t added = x.axes.size() - target.axes.size();
          for (size_t i = 0; i < x.axes.size(); ++i) {
            const int factor = c.plan.add(x.shape[i], Join::Sum);
            c.plan.put(x, i, factor);
            if (i < added) continue;
            c.plan.put(target, i - added, factor);
            c.plan.put(c.plan.results[0], i - added, factor);
          }
        },
    .numpy =
        "(lambda s: s.reshape(target.shape))(np.sum(x, axis=tuple(i for i in range(x.ndim) if i < x.ndim - "
        "target.ndim or target.shape[i - x.ndim + target.ndim] != x.shape[i]), dtype='int64' if x.dtype.kind in "
        "'biu' else x.dtype))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}), t({7}))
              .add(t({2, 3, 4}), t({3, 1}))
              .add(t({2, 3}), t({}))
              .add(t({2, 3}), t({2, 3}));
        },
    .python = "oar Tensor",
};

const OpDef add_n_op = {
    .schema = "add_n(Tensor[] inputs) -> Tensor",
    .brief = "The sum of tensors of one shape.",
    .decompose = [](const args::add_n& a) -> Made {
      user_check(!a.inputs.empty(), ErrorKind::InvalidArgument, "inputs is empty.");
      Tensor total = a.inputs[0];
      for (size_t i = 1; i < a.inputs.size(); ++i) {
        user_check(same(a.inputs[i].shape(), total.shape()), ErrorKind::InvalidArgument,
                   "inputs have the shapes {} and {}; they must be equal.", to_string(total.dims()),
                   to_string(a.inputs[i].dims()));
        total = total + a.inputs[i];
      }
      return a.inputs.size() == 1 ? assign(total) : total;
    },
    .numpy = "sum(inputs[1:], inputs[0])",
    .samples =
        [] {
          return Samples()
              .add(Specs{t({2, 3}), t({2, 3}), t({2, 3})})
              .add(Specs{t({4})})
              .add(Specs{t({}), t({})});
        },
};

const OpDef multiplex_op = {
    .schema = "multiplex(Tensor[] inputs, Tensor index) -> Tensor",
    .brief = "Row i of the result is row i of the tensor that index[i] names.",
    .decompose = [](const args::multiplex& a) -> Made {
      user_check(a.inputs.size() >= 2 && a.inputs[0].rank() >= 2, ErrorKind::InvalidArgument,
                 "inputs must be at least two tensors with at least two axes.");
      user_check(is_integral(a.index.dtype()), ErrorKind::InvalidType,
                 "index has dtype {}; it must be an integer type.", name_of(a.index.dtype()));
      const Dim rows = a.index.numel();
      user_check(!known_less(a.inputs[0].dim(0), rows), ErrorKind::InvalidArgument,
                 "index names {} rows and the tensors of shape {} have fewer.", rows.str(),
                 to_string(a.inputs[0].dims()));
      const Tensor all = stack(a.inputs, 0);
      const Tensor which = reshape(a.index, {rows});
      const Tensor row = cumsum_along(ones_like(which, DType::Int64), 0, /*exclusive=*/true);
      return index_take(all, {which, row});
    },
    .numpy = "np.stack([inputs[int(k)][i] for i, k in enumerate(index.ravel())])",
    .samples =
        [] {
          return Samples()
              .add(Specs{t({4, 3}), t({4, 3}), t({4, 3})}, ints(0, 3, {4, 1}, DType::Int32))
              .add(Specs{t({2, 2, 2}), t({2, 2, 2})}, ints(0, 2, {2}));
        },
    .python = "oar",
};

}  // namespace

OAR_FAMILY(difference, &extreme_along_op, &cummax_op, &cummin_op, &difference_along_op, &diff_op,
           &trapezoid_op, &cumulative_trapezoid_op, &reduce_as_op, &add_n_op, &multiplex_op)

}  // namespace oar
