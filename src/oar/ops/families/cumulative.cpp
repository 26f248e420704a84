// Running sums, products and extremes along an axis, and the linear recurrence that differentiates them.
#include "oar/ops/gen/cumulative.h"

#include <algorithm>
#include <cmath>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/blank.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/flip.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

// A 0-d tensor is scanned as if it had one axis of one element.
Metas infer_scan(const Tensor& x, int64_t axis) {
  normalise_axis(axis, std::max(x.rank(), 1));
  return infer::like(x);
}

const OpDef cumsum_along_op = {
    .schema =
        "cumsum_along(Tensor x, int axis, bool exclusive = False, bool reverse = False) -> "
        "Tensor",
    .brief =
        "The sum of the elements up to each one along an axis: without itself if exclusive, "
        "from the end if reverse.",
    .infer = [](const args::cumsum_along& a) { return infer_scan(a.x, a.axis); },
    .vjp = [](const vjp::cumsum_along& v) -> Grads {
      return cumsum_along(v.grad, v.axis, v.exclusive, !v.reverse);
    },
    .shard = "...a... -> ...a... ; a@axis whole # an element depends on all before it",
    .traits = Trait::Linear,
    .dtypes = "int float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda f: f(np.atleast_1d(x), 0) if x.ndim == 0 else f(x, axis))(lambda x, axis: np.moveaxis("
        "(lambda c: c[::-1] if reverse else c)((lambda y: np.concatenate([np.zeros_like(y[:1]), "
        "np.cumsum(y[:-1], 0, dtype=x.dtype)]) if exclusive else np.cumsum(y, 0, dtype=x.dtype))("
        "np.moveaxis(x, axis, 0)[::-1 if reverse else 1])), 0, axis))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}), 0)
              .add(t({2, 3, 5}), 1, true)
              .add(t({3, 4}), -1, false, true)
              .add(t({3, 4}), -1, true, true)
              .add(t({0, 3}), 0);
        },
    .onnx = "CumSum",
};

Samples scan_samples() {
  return Samples()
      .add(t({4, 7}), 0)
      .add(t({2, 3, 5}), 1)
      .add(t({3, 4}), -1)
      .add(t({}), 0)
      .add(t({0, 3}), 0)
      .add(t({2, 0}), 1);
}

const OpDef cumsum_op = {
    .schema = "cumsum(Tensor x, int? axis = None, dtype? dtype = None) -> Tensor",
    .brief =
        "The running sum along an axis; without one, of the flattened tensor. Integers and "
        "bools are summed as int64.",
    .decompose = [](const args::cumsum& a) -> Made {
      const DType natural = is_differentiable(a.x.dtype()) ? a.x.dtype() : DType::Int64;
      const Tensor x =
          narrowed(a.axis ? a.x : reshape(a.x, {a.x.numel()}), a.dtype.value_or(natural));
      return cumsum_along(x, a.axis.value_or(0));
    },
    .traits = Trait::HasInplace,
    .amp = Amp::Full,
    .numpy =
        "(lambda to: np.cumsum(x, axis=axis, dtype=to) if axis is None or x.ndim else "
        "x.astype(to))(dtype or ('int64' if x.dtype.kind in 'biu' else x.dtype))",
    .samples =
        [] { return scan_samples().add(t({2, 3})).add(t({})).add(t({2, 3}), 1, DType::Float64); },
    .python = "oar Tensor",
};

const OpDef cumprod_along_op = {
    .schema = "cumprod_along(Tensor x, int axis, bool exclusive = False) -> Tensor",
    .brief =
        "The product of the elements up to each one along an axis, without itself if "
        "exclusive.",
    .infer = [](const args::cumprod_along& a) { return infer_scan(a.x, a.axis); },
    // With L the exclusive product, dx[i] = L[i] * s[i], where s[i] = g[i] + x[i + 1] * s[i + 1].
    // There is no division, so zeros are safe.
    .vjp = [](const vjp::cumprod_along& v) -> Grads {
      const Tensor before = v.exclusive ? v.out : cumprod_along(v.x, v.axis, true);
      const Tensor g = v.exclusive ? shift_along(v.grad, v.axis, -1) : v.grad;
      return conjugate(before) * linear_recurrence(conjugate(v.x), g, v.axis, /*reverse=*/true);
    },
    .saves = "x out",
    .shard = "...a... -> ...a... ; a@axis whole # an element depends on all before it",
    .dtypes = "int float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda y: np.moveaxis(np.cumprod(y, 0, dtype=x.dtype) if not exclusive else "
        "np.concatenate([np.ones_like(y[:1]), np.cumprod(y[:-1], 0, "
        "dtype=x.dtype)])[:y.shape[0]], 0, axis).reshape(x.shape))(np.moveaxis(np.atleast_1d(x), "
        "axis, 0))",
    .samples =
        [] {
          return scan_samples()
              .add(t({3, 4}), 1, true)
              .add(filled_with({2, 0, 3, 4, 0, 1, 0, 5}, {2, 4}), 1)
              .add(filled_with({2, 0, 3, 4, 0, 1, 0, 5}, {2, 4}), 1, true);
        },
};

// Not divided by the element, so that zeros are safe and the rule can be differentiated.
const OpDef product_of_others_op = {
    .schema = "product_of_others(Tensor x, int axis) -> Tensor",
    .brief = "For each element the product of the other ones along an axis.",
    .infer = [](const args::product_of_others& a) { return infer_scan(a.x, a.axis); },
    .decompose = [](const args::product_of_others& a) -> Made {
      const Tensor x = widened(a.x);
      if (x.rank() == 0) return ones_like(a.x);
      const Tensor before = cumprod_along(x, a.axis, /*exclusive=*/true);
      const Tensor behind = flip(cumprod_along(flip(x, {a.axis}), a.axis, true), {a.axis});
      return narrowed(before * behind, a.x.dtype());
    },
    .shard = "...a... -> ...a... ; a@axis whole # an element depends on all others",
    .dtypes = "int float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda y: np.moveaxis(np.stack([np.prod(np.delete(y, i, 0), 0, dtype=x.dtype) for i in "
        "range(len(y))]) if y.size else y, 0, axis).reshape(x.shape))(np.moveaxis("
        "np.atleast_1d(x), axis, 0))",
    .samples =
        [] {
          return scan_samples().add(filled_with({2, 0, 3, 4, 0, 1, 0, 5, 1, 2, 3, 4}, {3, 4}), 1);
        },
};

const OpDef cumprod_op = {
    .schema = "cumprod(Tensor x, int? dim = None, dtype? dtype = None) -> Tensor",
    .brief = "The running product along an axis; without one, of the flattened tensor.",
    .decompose = [](const args::cumprod& a) -> Made {
      const DType natural = is_bool(a.x.dtype()) ? DType::Int64 : a.x.dtype();
      const Tensor x =
          narrowed(a.dim ? a.x : reshape(a.x, {a.x.numel()}), a.dtype.value_or(natural));
      return cumprod_along(x, a.dim.value_or(0));
    },
    .traits = Trait::HasInplace,
    .amp = Amp::Full,
    .numpy =
        "(lambda to: np.cumprod(x, axis=dim, dtype=to) if dim is None or x.ndim else "
        "x.astype(to))(dtype or (x.dtype if x.dtype != np.bool_ else 'int64'))",
    .samples = [] { return scan_samples().add(t({2, 3})).add(t({2, 3}), 1, DType::Float64); },
    .python = "oar Tensor",
};

// Its derivative is the same recurrence reversed, so it is closed under differentiation.
const OpDef linear_recurrence_op = {
    .schema = "linear_recurrence(Tensor a, Tensor b, int axis, bool reverse = False) -> Tensor",
    .brief =
        "h[i] = a[i] * h[i - 1] + b[i] along an axis, with h[-1] = 0; in reverse its "
        "transpose, h[i] = a[i + 1] * h[i + 1] + b[i].",
    .infer =
        [](const args::linear_recurrence& a) {
          user_check(same(a.a.shape(), a.b.shape()), ErrorKind::InvalidArgument,
                     "a has shape {} and b {}; they must be equal.", to_string(a.a.dims()),
                     to_string(a.b.dims()));
          return infer_scan(a.a, a.axis);
        },
    .vjp = [](const vjp::linear_recurrence& v) -> Grads {
      const Tensor gb = linear_recurrence(conjugate(v.a), v.grad, v.axis, !v.reverse);
      if (!v.needs(0)) return {Tensor(), gb};
      const Tensor h = conjugate(v.out);
      return {v.reverse ? shift_along(gb, v.axis, 1) * h : gb * shift_along(h, v.axis, 1), gb};
    },
    .saves = "a out",
    .shard = "...a..., ...a... -> ...a... ; a@axis whole # an element depends on all before it",
    .traits = Trait::Promote,
    .dtypes = "float complex",
    .amp = Amp::Full,
    .numpy =
        "(lambda f: np.moveaxis(np.stack(f(np.moveaxis(a, axis, 0), np.moveaxis(b, axis, "
        "0))), 0, axis) if a.size else a)(lambda p, q: [sum((np.prod(p[j + 1:i + 1], 0) * q[j] "
        "for j in range(i + 1)), np.zeros_like(q[0])) if not reverse else sum((np.prod(p[i + 1:j "
        "+ 1], 0) * q[j] for j in range(i, len(p))), np.zeros_like(q[0])) for i in "
        "range(len(p))])",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), t({3, 4}), 1)
              .add(t({3, 4}), t({3, 4}), 0, true)
              .add(t({2, 3, 2}), t({2, 3, 2}), -2, true)
              .add(t({0, 3}), t({0, 3}), 0);
        },
};

const OpDef shift_along_op = {
    .schema = "shift_along(Tensor x, int axis, int by) -> Tensor",
    .brief = "x shifted along an axis, back if negative, and filled with zeros.",
    .infer = [](const args::shift_along& a) { return infer_scan(a.x, a.axis); },
    .vjp = [](const vjp::shift_along& v) -> Grads { return shift_along(v.grad, v.axis, -v.by); },
    .shard = "...a... -> ...a... ; a@axis whole # elements cross a cut",
    .traits = Trait::Linear,
    .numpy =
        "(lambda y: np.moveaxis((lambda n, k: np.concatenate([np.zeros_like(y[:min(k, n)]), "
        "y[:max(n - k, 0)]]) if k >= 0 else np.concatenate([y[min(-k, n):], "
        "np.zeros_like(y[:min(-k, n)])]))(y.shape[0], by), 0, "
        "axis).reshape(x.shape))(np.moveaxis(np.atleast_1d(x), axis, 0))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), 0, 1)
              .add(t({2, 5}), -1, -2)
              .add(t({2, 3}), 1, 7)
              .add(t({}), 0, 0)
              .add(t({0, 3}), 0, 1);
        },
};

// log(sum(exp)) up to each element: a running maximum keeps the exponents small.
const OpDef logcumsumexp_along_op = {
    .schema = "logcumsumexp_along(Tensor x, int axis, bool reverse = False) -> Tensor",
    .brief = "log(cumsum(exp(x))) along an axis, without overflow.",
    .infer = [](const args::logcumsumexp_along& a) { return infer_scan(a.x, a.axis); },
    // dx[i] = exp(x[i] - out[i]) * r[i] with r[i] = g[i] + exp(out[i] - out[i + 1]) * r[i + 1]: no
    // exponent is positive.
    .vjp = [](const vjp::logcumsumexp_along& v) -> Grads {
      const Tensor& out = v.out;
      const Tensor previous = shift_along(out, v.axis, 1);
      const Tensor step =
          zero_where(equal(out, previous), v.reverse ? out - previous : previous - out);
      const Tensor decay = exp(clip(step, std::nullopt, Scalar(0.0)));
      const Tensor none = literal(-INFINITY);
      const Tensor share = exp(where(equal(v.x, none), none, v.x - out));
      return share * linear_recurrence(decay, v.grad, v.axis, !v.reverse);
    },
    .saves = "x out",
    .shard = "...a... -> ...a... ; a@axis whole # an element depends on all before it",
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda y: np.moveaxis(np.log(np.cumsum(np.exp(y[::-1 if reverse else 1]), "
        "0))[::-1 if reverse else 1], 0, axis).reshape(x.shape))(np.moveaxis(np.atleast_1d(x), "
        "axis, 0))",
    .samples = [] { return scan_samples().add(t({2, 4}), 1, true); },
};

const OpDef logcumsumexp_op = {
    .schema = "logcumsumexp(Tensor x, int? axis = None, dtype? dtype = None) -> Tensor",
    .brief = "log(cumsum(exp(x))) along an axis, or of the flattened tensor, without overflow.",
    .decompose = [](const args::logcumsumexp& a) -> Made {
      const Tensor x =
          narrowed(a.axis ? a.x : reshape(a.x, {a.x.numel()}), a.dtype.value_or(a.x.dtype()));
      return logcumsumexp_along(x, a.axis.value_or(0));
    },
    .traits = Trait::FloatMath,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "np.log(np.cumsum(np.exp(x), axis=axis)) if axis is None or x.ndim else x",
    .samples = [] { return scan_samples().add(t({2, 3})); },
    .python = "oar Tensor",
};

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
    .shard = "...a... -> ...a..., ...a... ; a@axis whole # an element depends on all before it",
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

}  // namespace

OAR_FAMILY(cumulative, &cumsum_along_op, &cumsum_op, &cumprod_along_op, &product_of_others_op,
           &cumprod_op, &linear_recurrence_op, &shift_along_op, &logcumsumexp_along_op,
           &logcumsumexp_op, &extreme_along_op, &cummax_op, &cummin_op)

}  // namespace oar
