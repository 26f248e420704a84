// Variance and order statistics: medians, quantiles, the most frequent element.
#include "oar/ops/gen/statistics.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/blank.h"
#include "oar/ops/families/cost_rules.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/families/reduce_rules.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/floating_point.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/rounding.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/sort.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

// The divisor of the squares: n - 1 for the unbiased estimate.
Tensor degrees_of_freedom(const Tensor& x, std::optional<Ints> axis, bool unbiased) {
  const auto axes = normalise_axes(axis, x.rank());
  const Tensor count = count_along(x, Ints(axes));
  return unbiased ? maximum(count - 1, literal(0)) : count;
}

constexpr const char* kVariance =
    "(lambda n: (np.sum(np.abs(x - np.mean(x, axis=tuple(axis) if axis else None, "
    "keepdims=True)) ** 2, axis=tuple(axis) if axis else None, keepdims=keepdim) / "
    "np.float64(max(n - unbiased, 0))))"
    "(int(np.prod([x.shape[i] for i in axis])) if axis else x.size)";

Samples variance_samples() {
  return Samples()
      .add(t({4, 7}))
      .add(t({2, 3, 5}), IntVector{1}, true, true)
      .add(t({2, 3, 5}), IntVector{0, -1}, false)
      .add(t({}), std::nullopt, false)
      .add(t({3, 0, 2}), IntVector{0});
}

const OpDef var_op = {
    .schema =
        "var(Tensor x, int[]? axis = None, bool unbiased = True, bool keepdim = False) -> "
        "Tensor",
    .brief =
        "The variance over axes: the squares of the distances from the mean, divided by n - "
        "1, or by n if unbiased is off.",
    .infer = [](const args::var& a) -> Metas {
      return reduced(a.x, a.axis, a.keepdim, a.x.dtype());
    },
    .decompose = [](const args::var& a) -> Made {
      const Tensor x = widened(a.x);
      const Tensor distance = x - mean(x, a.axis, true);
      const Tensor squares = sum(square(distance), a.axis, std::nullopt, a.keepdim);
      return narrowed(squares / degrees_of_freedom(x, a.axis, a.unbiased), a.x.dtype());
    },
    .vjp = [](const vjp::var& v) -> Grads {
      const Tensor scale = 2.0 * v.grad / degrees_of_freedom(v.x, v.axis, v.unbiased);
      return stretch(scale, v.x, v.axis) * (v.x - mean(v.x, v.axis, true));
    },
    .saves = "x",
    .shard = "...a... -> ...... ; a@axis whole # the mean is subtracted first",
    .traits = Trait::Reduction | Trait::FloatMath,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = kVariance,
    .samples = variance_samples,
    .python = "oar Tensor",
};

const OpDef std_op = {
    .schema =
        "std(Tensor x, int[]? axis = None, bool unbiased = True, bool keepdim = False) -> "
        "Tensor",
    .brief = "The standard deviation over axes: the square root of the variance.",
    .decompose = [](const args::std_& a) -> Made {
      // The variance of 16-bit numbers leaves their range long before its root does.
      return narrowed(sqrt(var(widened(a.x), a.axis, a.unbiased, a.keepdim)), a.x.dtype());
    },
    .traits = Trait::FloatMath,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "np.sqrt((lambda n: (np.sum((x - np.mean(x, axis=tuple(axis) if axis else None, "
        "keepdims=True)) ** 2, axis=tuple(axis) if axis else None, keepdims=keepdim) / "
        "np.float64(max(n - unbiased, 0))))(int(np.prod([x.shape[i] for i in axis])) if axis "
        "else x.size))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}))
              .add(t({2, 3, 5}), IntVector{1}, true, true)
              .add(t({2, 3, 5}), IntVector{0, -1}, false)
              .add(t({3, 0, 2}), IntVector{0});
        },
    .python = "oar Tensor",
};

const OpDef var_mean_op = {
    .schema =
        "var_mean(Tensor x, int[]? axis = None, bool unbiased = True, bool keepdim = False) -> "
        "(Tensor variance, Tensor average)",
    .brief = "The variance and the mean over axes.",
    .infer = [](const args::var_mean& a) -> Metas {
      const Metas one = reduced(a.x, a.axis, a.keepdim, a.x.dtype());
      return {one[0], one[0]};
    },
    .decompose = [](const args::var_mean& a) -> Made {
      return {var(a.x, a.axis, a.unbiased, a.keepdim), mean(a.x, a.axis, a.keepdim)};
    },
    .shard = "...a... -> ......, ...... ; a@axis whole # the mean is subtracted first",
    .traits = Trait::FloatMath | Trait::Reduction,
    .dtypes = "float",
    .numpy =
        "(np.var(x, axis=tuple(axis) if axis else None, ddof=int(unbiased), keepdims=keepdim), "
        "np.mean(x, axis=tuple(axis) if axis else None, keepdims=keepdim))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}))
              .add(t({2, 3, 4}), IntVector{0, -1}, true, true)
              .add(t({2, 3}), IntVector{1}, false, false)
              .add(t({3, 2}), std::nullopt, false, true)
              .add(t({0, 3}), IntVector{1});
        },
    .python = "oar Tensor",
};

void check_filled(const Tensor& x, int64_t axis) {
  user_check(x.rank() >= 1, ErrorKind::InvalidArgument, "x is 0-d; it needs an axis.");
  user_check(!(x.dim(axis) == Dim(0)), ErrorKind::InvalidArgument,
             "x of shape {} has no elements along axis {}.\nhint: Check for a size of 0 first.",
             to_string(x.dims()), axis);
}

// How many elements of each line are not NaN; the axis is kept.
Tensor numbers_along(const Tensor& x, int64_t axis) {
  return sum(logical_not(isnan(x)), IntArgs{axis}, DType::Int64, true);
}

Tensor length_of(const Tensor& x, int64_t axis) {
  return cast(count_along(x, Ints(&axis, 1)), DType::Int64);
}

// Positions of the middle among `count` sorted elements, of which there may be none.
Tensor middle(const Tensor& count, bool upper) {
  return maximum(floor_divide(upper ? count : count - 1, literal(2)), literal(0));
}

const OpDef median_along_op = {
    .schema =
        "median_along(Tensor x, int axis, bool average = True, bool ignore_nan = False) -> (Tensor values, "
        "Tensor indices)",
    .brief =
        "The middle element in the order along an axis, which is kept, and its index. Of two middle ones it "
        "is the average, or the lower one. Where there is a NaN it is the result, unless NaN is ignored.",
    .decompose = [](const args::median_along& a) -> Made {
      const int64_t axis = normalise_axis(a.axis, a.x.rank());
      check_filled(a.x, axis);
      const auto [sorted, places] = sort_with_indices(a.x, axis);
      const Tensor numbers = numbers_along(a.x, axis);
      Tensor low = middle(numbers, false), high = middle(numbers, true);
      if (!a.ignore_nan) {  // the first NaN comes after the last number
        const Tensor spoilt = less_than(numbers, length_of(a.x, axis));
        low = where(spoilt, numbers, low);
        high = where(spoilt, numbers, high);
      }
      const Tensor values = take_along(sorted, low, axis), at = take_along(places, low, axis);
      if (!a.average) return {values, at};
      const Tensor upper = take_along(sorted, high, axis);
      const Tensor mean = (widened(values) + widened(upper)) * 0.5;
      return {narrowed(mean, a.x.dtype()), at};
    },
    .shard = "...a... -> ...a..., ...a... ; a@axis whole # elements are compared with all others",
    .dtypes = "float",
    .numpy =
        "(lambda s, o: (lambda n, k: ((np.take(s, (n - 1) // 2, k) + np.take(s, n // 2, k)).reshape(["
        "1 if i == k else m for i, m in enumerate(x.shape)]) / x.dtype.type(2) if average else np.take(s, [(n - 1) // 2], k), np.take(o, [(n "
        "- 1) // 2], k)))(x.shape[axis], axis % x.ndim))(np.sort(x, axis), np.argsort(x, axis, kind='stable'))",
    .samples =
        [] {
          return Samples()
              .add(distinct({4, 7}), 1)
              .add(distinct({4, 3}), 0)
              .add(distinct({2, 4, 3}), -2, false)
              .add(distinct({5}), 0, true, true);
        },
};

const OpDef quantile_along_op = {
    .schema =
        "quantile_along(Tensor x, Tensor q, str interpolation = 'linear', bool ignore_nan = False) -> Tensor",
    .brief =
        "The quantiles of the last axis at the shares in the vector q, along a new first axis. Where there is "
        "a NaN it is the result, unless NaN is ignored.",
    .decompose = [](const args::quantile_along& a) -> Made {
      check_filled(a.x, -1);
      const std::string_view way = a.interpolation;
      user_check(way == "linear" || way == "lower" || way == "higher" || way == "nearest" ||
                     way == "midpoint",
                 ErrorKind::InvalidArgument,
                 "interpolation is '{}'; it can be linear, lower, higher, nearest or midpoint.",
                 way);
      user_check(a.q.rank() == 1, ErrorKind::InvalidArgument, "q of shape {} must have one axis.",
                 to_string(a.q.dims()));
      const int64_t last = a.x.rank() - 1;
      const Tensor sorted = sort(a.x, last), numbers = numbers_along(a.x, last);
      const Tensor shares = cast(a.q, DType::Float64);
      Tensor at = shares * cast(maximum(numbers - 1, literal(0)), DType::Float64);
      if (!a.ignore_nan)  // the last one is NaN if any is
        at = where(less_than(numbers, length_of(a.x, last)),
                   cast(length_of(a.x, last) - 1, DType::Float64), at);
      const auto pick = [&](const Tensor& place) {
        return take_along(sorted, cast(place, DType::Int64), -1);
      };
      Tensor out;
      const Tensor below = floor(at), above = ceil(at);
      if (way == "nearest") {
        // Halves round to the even index, as in NumPy.
        const Tensor half = equal(at - below, literal(0.5));
        const Tensor even = equal(remainder(below, literal(2.0)), literal(0));
        out = pick(where(half, where(even, below, above), floor(at + 0.5)));
      } else if (way == "lower") {
        out = pick(below);
      } else if (way == "higher") {
        out = pick(above);
      } else {
        const Tensor low = widened(pick(below)), high = widened(pick(above));
        const Tensor weight = way == "midpoint" ? literal(0.5) : cast(at - below, low.dtype());
        const Tensor step = zero_where(equal(below, above), high - low);  // equal infinities
        // From the nearer end, as NumPy does: with an infinite one the other half is infinite.
        out = narrowed(where(less_than(weight, literal(0.5)), low + step * weight,
                             high - step * (1.0 - weight)),
                       a.x.dtype());
      }
      return moveaxis(out, {-1}, {0});
    },
    .dtypes = "float",
    .numpy = "np.quantile(x, q, axis=-1, method=interpolation).astype(x.dtype)",
    .samples =
        [] {
          const TensorSpec q = fixed_values({0.3, 0.5, 0.95}, {3}, DType::Float64);
          return Samples()
              .add(distinct({4, 7}), q)
              .add(distinct({5}), q, "lower")
              .add(distinct({5}), q, "higher", true)
              .add(distinct({2, 4}), q, "nearest")
              .add(distinct({2, 4}), q, "midpoint");
        },
};

const OpDef mode_along_op = {
    .schema = "mode_along(Tensor x, int axis = -1) -> (Tensor values, Tensor indices)",
    .brief =
        "The most frequent element along an axis, the smallest of those that tie, and the last of its places.",
    .infer = [](const args::mode_along& a) -> Metas {
      const int64_t axis = normalise_axis(a.axis, std::max(a.x.rank(), 1));
      if (a.x.rank() == 0) return {infer::like(a.x), TensorMeta{DType::Int64, Shape{}}};
      check_filled(a.x, axis);
      const Shape shape = reduced_shape(a.x.shape(), Ints(&axis, 1), false);
      return {TensorMeta{a.x.dtype(), shape}, TensorMeta{DType::Int64, shape}};
    },
    .cost =
        [](const CostCall& c) {  // it sorts
          const args::mode_along a(c.args);
          return halving_cost(elements(a.x),
                              a.x.rank() ? extent(a.x, static_cast<int>(a.axis)) : 1);
        },
    .vjp = [](const vjp::mode_along& v) -> Grads {
      if (v.x.rank() == 0) return v.grad_values;
      const int64_t axis = normalise_axis(v.axis, v.x.rank());
      return put_along(blank(v.x.dims(), v.grad_values.dtype()), unsqueeze(v.indices, {axis}),
                       unsqueeze(v.grad_values, {axis}), axis, "add");
    },
    .saves = "x:shape indices",
    .shard = "...a... -> ......, ...... ; a@axis whole # elements are compared with all others",
    .dtypes = "bool int float",
    .numpy =
        "(lambda y: (lambda f: (np.apply_along_axis(lambda l: f(l)[0], axis, y).reshape([n for i, n in "
        "enumerate(x.shape) if i != axis % max(x.ndim, 1)]).astype(x.dtype), np.apply_along_axis(lambda l: f(l)[1], axis, "
        "y).reshape([n for i, n in enumerate(x.shape) if i != axis % max(x.ndim, 1)])))(lambda l: (lambda v, c: "
        "(v[np.argmax(c)], np.flatnonzero(l == v[np.argmax(c)])[-1]))(*np.unique(l, return_counts=True))))("
        "np.atleast_1d(x))",
    .samples =
        [] {
          return Samples()
              .add(ints(0, 3, {4, 7}))
              .add(ints(0, 2, {3, 5, 2}), 1)
              .add(distinct({3, 4}), 0)
              .add(distinct({}));
        },
};

}  // namespace

OAR_FAMILY(statistics, &var_op, &std_op, &var_mean_op, &median_along_op, &quantile_along_op,
           &mode_along_op)

}  // namespace oar
