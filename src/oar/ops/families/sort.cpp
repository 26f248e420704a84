// Ordering along an axis. NaN is above every number; equal elements keep their order.
#include "oar/ops/gen/sort.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/blank.h"
#include "oar/ops/families/cost_rules.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/reduce_rules.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"

namespace oar {
namespace {

int64_t axis_of(const Tensor& x, int64_t axis) {
  return normalise_axis(axis, std::max(x.rank(), 1));
}

// Puts the gradient of chosen elements back where they came from; everything else gets zero.
Tensor put_back(const Tensor& x, const Tensor& indices, const Tensor& grad, int64_t axis) {
  if (x.rank() == 0) return grad;
  return put_along(blank(x.dims(), grad.dtype()), indices, grad, axis, "add");
}

const OpDef sort_with_indices_op = {
    .schema =
        "sort_with_indices(Tensor x, int axis = -1, bool descending = False) -> (Tensor "
        "values, Tensor indices)",
    .brief = "The elements along an axis in order, and the index where each of them was. Stable.",
    .infer = [](const args::sort_with_indices& a) -> Metas {
      axis_of(a.x, a.axis);
      return {infer::like(a.x), TensorMeta{DType::Int64, a.x.shape()}};
    },
    .cost =
        [](const CostCall& c) {
          const args::sort_with_indices a(c.args);
          return halving_cost(elements(a.x),
                              a.x.rank() ? extent(a.x, static_cast<int>(a.axis)) : 1);
        },
    .vjp = [](const vjp::sort_with_indices& v) -> Grads {
      return put_back(v.x, v.indices, v.grad_values, v.axis);
    },
    .saves = "x:shape indices",
    .shard = "...a... -> ...a..., ...a... ; a@axis whole # an element may go to any place",
    .dtypes = "bool int float",
    .numpy =
        "(lambda i: (np.take_along_axis(np.atleast_1d(x), i, axis).reshape(x.shape), "
        "i.reshape(x.shape)))((lambda y: np.argsort(y, axis, kind='stable') if not descending "
        "else y.shape[axis] - 1 - np.flip(np.argsort(np.flip(y, axis), axis, kind='stable'), "
        "axis))(np.atleast_1d(x)))",
    .samples =
        [] {
          return Samples()
              .add(distinct({4, 7}))
              .add(distinct({2, 3, 5}), 1, true)
              .add(distinct({5, 2}), 0)
              .add(distinct({}))
              .add(distinct({0, 3}), 0)
              .add(ints(0, 3, {2, 9}), 1, true);
        },
};

const OpDef sort_op = {
    .schema =
        "sort(Tensor x, int axis = -1, bool descending = False, bool stable = False) -> "
        "Tensor",
    .brief = "The elements along an axis in order. The sort is always stable.",
    .decompose = [](const args::sort& a) -> Made {
      return std::get<0>(sort_with_indices(a.x, a.axis, a.descending));
    },
    .dtypes = "bool int float",
    .numpy =
        "(lambda s: np.flip(s, axis) if descending else s)(np.sort(np.atleast_1d(x), "
        "axis)).reshape(x.shape)",
    .samples =
        [] {
          return Samples()
              .add(distinct({4, 7}))
              .add(distinct({2, 3, 5}), 1, true)
              .add(distinct({}))
              .add(distinct({0, 3}), 0, false, true);
        },
    .python = "oar Tensor",
};

const OpDef argsort_op = {
    .schema =
        "argsort(Tensor x, int axis = -1, bool descending = False, bool stable = False) -> "
        "Tensor",
    .brief = "The indices that sort the elements along an axis. The sort is always stable.",
    .decompose = [](const args::argsort& a) -> Made {
      return std::get<1>(sort_with_indices(a.x, a.axis, a.descending));
    },
    .traits = Trait::NoGrad,
    .dtypes = "bool int float",
    .numpy =
        "(lambda y: np.argsort(y, axis, kind='stable') if not descending else y.shape[axis] "
        "- 1 - np.flip(np.argsort(np.flip(y, axis), axis, kind='stable'), "
        "axis))(np.atleast_1d(x)).reshape(x.shape)",
    .samples =
        [] {
          return Samples()
              .add(distinct({4, 7}))
              .add(distinct({2, 3, 5}), 1, true)
              .add(distinct({}))
              .add(ints(0, 3, {2, 9}), 1, true, true);
        },
    .python = "oar Tensor",
};

void check_k(const Tensor& x, int64_t k, int64_t axis) {
  const Dim size = x.rank() == 0 ? Dim(1) : x.dim(axis);
  user_check(k >= 1, ErrorKind::InvalidArgument, "k is {}; it must be at least 1.", k);
  user_check(size.is_symbolic() || k <= size.word(), ErrorKind::InvalidArgument,
             "k is {}, but x of shape {} has only {} elements along axis {}.\nhint: Pass k "
             "up to {}.",
             k, to_string(x.dims()), size.str(), axis, size.str());
}

const OpDef topk_along_op = {
    .schema =
        "topk_along(Tensor x, int k, int axis, bool largest = True) -> (Tensor values, "
        "Tensor indices)",
    .brief =
        "The k largest (or smallest) elements along an axis in order, and their indices. "
        "Of equals the first ones are taken.",
    .infer = [](const args::topk_along& a) -> Metas {
      const int64_t axis = axis_of(a.x, a.axis);
      check_k(a.x, a.k, axis);
      Shape shape = a.x.shape();
      if (!shape.empty()) shape[static_cast<size_t>(axis)] = a.k;
      return {TensorMeta{a.x.dtype(), shape}, TensorMeta{DType::Int64, shape}};
    },
    .cost =
        [](const CostCall& c) {
          const args::topk_along a(c.args);
          return halving_cost(elements(a.x), static_cast<double>(a.k));
        },
    .vjp = [](const vjp::topk_along& v) -> Grads {
      return put_back(v.x, v.indices, v.grad_values, v.axis);
    },
    .saves = "x:shape indices",
    .shard = "...a... -> ...a..., ...a... ; a@axis whole # elements are compared with all others",
    .dtypes = "bool int float",
    .numpy =
        "(lambda i: (np.take_along_axis(np.atleast_1d(x), i, axis).reshape(i.shape if "
        "x.ndim else ()), i.reshape(i.shape if x.ndim else ())))(np.take((lambda y: "
        "np.argsort(y, axis, kind='stable') if not largest else y.shape[axis] - 1 - "
        "np.flip(np.argsort(np.flip(y, axis), axis, kind='stable'), axis))(np.atleast_1d(x)), "
        "np.arange(k), axis))",
    .samples =
        [] {
          return Samples()
              .add(distinct({4, 7}), 3, 1)
              .add(distinct({5, 2, 3}), 2, 0, false)
              .add(distinct({2, 6}), 6, -1)
              .add(distinct({}), 1, 0)
              .add(distinct({0, 3}), 2, 1)
              .add(ints(0, 3, {2, 20}), 4, 1);
        },
};

const OpDef topk_op = {
    .schema =
        "topk(Tensor x, int k, int? axis = None, bool largest = True, bool sorted = True) "
        "-> (Tensor values, Tensor indices)",
    .brief =
        "The k largest (or smallest) elements along an axis, the last one by default, and "
        "their indices. They are always in order.",
    .decompose = [](const args::topk& a) -> Made {
      return topk_along(a.x, a.k, a.axis.value_or(-1), a.largest);
    },
    .dtypes = "bool int float",
    .numpy =
        "(lambda i, ax: (np.take_along_axis(x, i, ax), i))(np.take((lambda y, a: "
        "np.argsort(y, a, kind='stable') if not largest else y.shape[a] - 1 - "
        "np.flip(np.argsort(np.flip(y, a), a, kind='stable'), a))(x, -1 if axis is None else "
        "axis), np.arange(k), -1 if axis is None else axis), -1 if axis is None else axis)",
    .samples =
        [] {
          return Samples()
              .add(distinct({4, 7}), 3)
              .add(distinct({5, 2, 3}), 2, 0, false, false)
              .add(distinct({6}), 1);
        },
    .python = "oar Tensor",
    .onnx = "TopK",
};

const OpDef kthvalue_op = {
    .schema =
        "kthvalue(Tensor x, int k, int? axis = None, bool keepdim = False) -> (Tensor "
        "values, Tensor indices)",
    .brief =
        "The k-th smallest element along an axis, the last one by default, and its "
        "index.",
    .infer = [](const args::kthvalue& a) -> Metas {
      const int64_t axis = axis_of(a.x, a.axis.value_or(-1));
      check_k(a.x, a.k, axis);
      Shape shape;
      for (int64_t i = 0; i < a.x.rank(); ++i) {
        if (i != axis)
          shape.push_back(a.x.dim(i));
        else if (a.keepdim)
          shape.push_back(1);
      }
      return {TensorMeta{a.x.dtype(), shape}, TensorMeta{DType::Int64, shape}};
    },
    .decompose = [](const args::kthvalue& a) -> Made {
      const int64_t axis = axis_of(a.x, a.axis.value_or(-1));
      const auto [values, indices] = topk_along(a.x, a.k, axis, /*largest=*/false);
      if (a.x.rank() == 0) return {values, indices};
      const auto last = [&](const Tensor& t) {
        const Tensor one = slice(t, {axis}, {a.k - 1}, {a.k});
        return a.keepdim ? one : squeeze(one, IntArgs{axis});
      };
      return {last(values), last(indices)};
    },
    .dtypes = "bool int float",
    .numpy =
        "(lambda ax: (lambda i: (lambda f: (f(np.take_along_axis(x, i, ax)), f(i)))(lambda "
        "v: v if keepdim else np.squeeze(v, ax)))(np.take(np.argsort(x, ax, kind='stable'), [k - "
        "1], ax)))(-1 if axis is None else axis)",
    .samples =
        [] {
          return Samples()
              .add(distinct({4, 7}), 3)
              .add(distinct({5, 2, 3}), 2, 0, true)
              .add(distinct({6}), 1);
        },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(sort, &sort_with_indices_op, &sort_op, &argsort_op, &topk_along_op, &topk_op,
           &kthvalue_op)

}  // namespace oar
