// Reading and writing along one axis, by an index tensor of the tensor's own rank.
#include "oar/ops/gen/along_axis.h"

#include <algorithm>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/blank.h"
#include "oar/ops/families/cost_rules.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/slice.h"

namespace oar {
namespace {

void check_index(const Tensor& index, Dims x, int64_t axis) {
  user_check(is_integral(index.dtype()), ErrorKind::InvalidType,
             "indices has dtype {}; it must be an integer type.", name_of(index.dtype()));
  user_check(index.rank() == static_cast<int>(x.size()) && !x.empty(), ErrorKind::InvalidArgument,
             "indices has shape {} and the tensor {}; both need the same rank, at least 1.",
             to_string(index.dims()), to_string(x));
  for (size_t i = 0; i < x.size(); ++i)
    user_check(static_cast<int64_t>(i) == axis || !known_less(x[i], index.dims()[i]),
               ErrorKind::InvalidArgument,
               "indices of shape {} is larger than the tensor of shape {} at axis {}.",
               to_string(index.dims()), to_string(x), i);
}

// The axes besides `axis` that x and the index have alike: an index may be shorter than x.
void plan_beside(ShardPlan& plan, size_t axis) {
  const PlanTensor &x = plan.operands[0], &index = plan.operands[1];
  for (size_t i = 0; i < x.axes.size(); ++i) {
    if (i == axis || !same(x.shape[i], index.shape[i])) continue;
    const int factor = plan.add(x.shape[i]);
    for (PlanTensor& t : plan.operands) plan.put(t, i, factor);
    plan.put(plan.results[0], i, factor);
  }
}

void plan_take_along(const PlanCall& c) {
  PlanTensor &x = c.plan.operands[0], &index = c.plan.operands[1];
  const auto axis =
      static_cast<size_t>(normalise_axis(args::take_along(c.args).axis, x.shape.rank()));
  plan_beside(c.plan, axis);
  c.plan.pass(index, axis, c.plan.results[0], axis);
  c.plan.put(x, axis, c.plan.add(x.shape[axis], Join::Sum));
  c.plan.factors.back().positions = 1;
}

// Writes along `axis`: x is cut there, and a piece does the writes that fall into it. Values are cut as
// well if the pieces' results have a join; cut_index says whether the index is cut with them.
void plan_writes(const PlanCall& c, int64_t along, std::optional<Join> join, bool cut_index) {
  PlanTensor &x = c.plan.operands[0], &index = c.plan.operands[1], &value = c.plan.operands[2];
  const auto axis = static_cast<size_t>(normalise_axis(along, x.shape.rank()));
  plan_beside(c.plan, axis);
  const int places = c.plan.add(x.shape[axis]);
  c.plan.factors.back().positions = 1;
  c.plan.put(x, axis, places);
  c.plan.put(c.plan.results[0], axis, places);
  if (!join) return;
  const int values = c.plan.add(value.shape[axis], *join);
  c.plan.put(value, axis, values);
  if (cut_index) c.plan.put(index, axis, values);
}

const OpDef take_along_op = {
    .schema = "take_along(Tensor x, Tensor index, int axis) -> Tensor",
    .brief = "out[i, j, …] = x[i, index[i, j, …], …], the index standing at `axis`.",
    .infer = [](const args::take_along& a) -> Metas {
      check_index(a.index, a.x.dims(), normalise_axis(a.axis, a.x.rank()));
      return TensorMeta{a.x.dtype(), a.index.shape()};
    },
    .cost = [](const CostCall& c) { return lookup_cost(c, 0); },
    .vjp = [](const vjp::take_along& v) -> Grads {
      return {put_along(blank(v.x.dims(), v.grad.dtype()), v.index, v.grad, v.axis, "add"),
              Tensor()};
    },
    .saves = "x:shape index",
    .batch = [](const BatchCall& c) -> Made {
      const Tensor x = with_batch(c, 0);
      return take_along(x, with_batch(c, 1),
                        behind_batch(args::take_along(c.args).axis, x.rank() - 1));
    },
    .plan = plan_take_along,
    .numpy =
        "np.take_along_axis(x[tuple(slice(None) if i == axis % x.ndim else slice(n) for i, n in enumerate(index.shape))], index, axis)",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), ints(-4, 4, {3, 2}), 1)
              .add(t({3, 4}), ints(0, 3, {5, 4}), 0)
              .add(t({2, 3, 4}), ints(0, 3, {2, 5, 3}, DType::Int32), -2)
              .add(t({4}), ints(0, 4, {0}), 0)
              .add(t({0, 3}), ints(0, 3, {0, 2}), 1);
        },
};

template <class Call>
Metas infer_put(const Call& a, std::initializer_list<std::string_view> reductions) {
  user_check(std::find(reductions.begin(), reductions.end(), a.reduce) != reductions.end(),
             ErrorKind::InvalidArgument,
             "reduce is '{}'; it can be assign, add, mul, mean, amin or amax.", a.reduce);
  check_index(a.index, a.x.dims(), normalise_axis(a.axis, a.x.rank()));
  user_check(same(a.value.shape(), a.index.shape()), ErrorKind::InvalidArgument,
             "values has shape {} and indices {}; they must be equal.", to_string(a.value.dims()),
             to_string(a.index.dims()));
  user_check(a.value.dtype() == a.x.dtype(), ErrorKind::InvalidType,
             "values has dtype {} and the tensor {}.", name_of(a.value.dtype()),
             name_of(a.x.dtype()));
  return infer::like(a.x);
}

// x's gradient if the old value of a written element does not count.
template <class Call>
Tensor untouched(const Tensor& grad, const Call& v) {
  return put_along(grad, v.index, zeros_like(v.index, grad.dtype()), v.axis, "assign");
}

Grads add_gradient(const vjp::put_along& v) {
  return {!v.needs(0)      ? Tensor()
          : v.include_self ? v.grad
                           : untouched(v.grad, v),
          Tensor(), v.needs(2) ? take_along(v.grad, v.index, v.axis) : Tensor()};
}

Grads assign_gradient(const vjp::put_along& v) {
  if (!v.needs(2)) return {untouched(v.grad, v), Tensor(), Tensor()};
  const Tensor last = last_writes_along(v.index, v.axis, v.grad.dim(v.axis).word());
  return {v.needs(0) ? untouched(v.grad, v) : Tensor(), Tensor(),
          zero_unless(last, take_along(v.grad, v.index, v.axis))};
}

// A factor's derivative is the product of the others: all but it, unless another one is zero.
Grads multiply_gradient(const vjp::put_along& v) {
  const auto is_zero = [](const Tensor& t) { return equal(t, zeros_like(t)); };
  const auto ones_for_zeros = [&](const Tensor& t) { return where(is_zero(t), ones_like(t), t); };
  const auto along = [&](const Tensor& t) { return take_along(t, v.index, v.axis); };
  const DType count = DType::Int64;
  const Tensor x = ones_for_zeros(v.x), value = ones_for_zeros(v.value);
  const Tensor product = put_along(x, v.index, value, v.axis, "mul", v.include_self);
  const Tensor x_zero = cast(is_zero(v.x), count), value_zero = cast(is_zero(v.value), count);
  const Tensor zeros_met = put_along(x_zero, v.index, value_zero, v.axis, "add", v.include_self);
  const auto none_but = [](const Tensor& met, const Tensor& own) { return equal(met, own); };
  const Tensor gx = v.include_self
                        ? zero_unless(none_but(zeros_met, x_zero), v.grad * conjugate(product / x))
                        : untouched(v.grad, v);
  const Tensor gv = zero_unless(none_but(along(zeros_met), value_zero),
                                along(v.grad) * conjugate(along(product) / value));
  return {gx, Tensor(), gv};
}

// Products are not joined. In a sum x counts once; where its old elements do not count, and where the last
// write lasts, every piece has the whole index to know what the others write.
void plan_put_along(const PlanCall& c) {
  const args::put_along a(c.args);
  const bool adds = a.reduce == "add";
  plan_writes(c, a.axis, a.reduce == "mul" ? std::nullopt : std::optional(Join::Sum),
              adds && a.include_self);
}

void localise_put_along(const PieceCall& piece) {
  const PlanTensor& values = piece.plan.operands[2];
  const args::put_along a(piece.frame.args());
  const auto axis = static_cast<size_t>(normalise_axis(a.axis, values.shape.rank()));
  if (values.axes[axis].factor != static_cast<int>(piece.factor) || piece.plan.writes(piece.factor))
    return;
  const auto own = [&](const Tensor& t) {
    SliceIndex index;
    index.skip(static_cast<int64_t>(axis));
    return slice_view(t, index.range(piece.start, piece.start + piece.size));
  };
  Tensor x = a.x, index = a.index, value = a.value;
  if (a.reduce == "assign" || !a.include_self) {
    if (a.reduce == "assign")
      value = zero_unless(own(last_writes_along(a.index, a.axis, a.x.dim(a.axis).word())), value);
    x = untouched(x, a);
    index = own(index);
  }
  piece.frame.set_tensor(0, piece.start == Dim(0) ? x : zeros_like(x));
  piece.frame.set_tensor(1, index);
  piece.frame.set_tensor(2, value);
  piece.frame.set(4, Value(std::string_view("add")));
  piece.frame.set(5, true);
}

const OpDef put_along_op = {
    .schema =
        "put_along(Tensor x, Tensor index, Tensor value, int axis, str reduce = 'assign', "
        "bool include_self = True) -> Tensor",
    .brief =
        "A copy of x with value[i, j, …] written to, added to or multiplied with x[i, index[i, j, …], …]: reduce "
        "is assign, add or mul; without include_self the old element is not included.",
    .infer = [](const args::put_along& a) { return infer_put(a, {"assign", "add", "mul"}); },
    .vjp = [](const vjp::put_along& v) -> Grads {
      return v.reduce == "assign" ? assign_gradient(v)
             : v.reduce == "add"  ? add_gradient(v)
                                  : multiply_gradient(v);
    },
    .saves = "x index value",
    .batch = [](const BatchCall& c) -> Made {
      const args::put_along a(c.args);
      const Tensor x = with_batch(c, 0);
      return put_along(x, with_batch(c, 1), with_batch(c, 2), behind_batch(a.axis, x.rank() - 1),
                       a.reduce, a.include_self);
    },
    .plan = plan_put_along,
    .localise = localise_put_along,
    .dtypes = "int float complex",
    .numpy =
        "(lambda out, seen, f: ([out.__setitem__(j, f(out[j], value[i]) if include_self or j in seen else value[i]) "
        "or seen.add(j) for i in np.ndindex(index.shape) for j in [i[:axis % x.ndim] + (index[i] % x.shape[axis],) + "
        "i[axis % x.ndim + 1:]]], out)[1])(x.copy(), set(), {'assign': lambda a, b: b, 'add': np.add, 'mul': "
        "np.multiply}[reduce])",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), ints(-4, 4, {3, 2}), t({3, 2}), 1)
              .add(t({3, 4}), ints(0, 3, {5, 4}), t({5, 4}), 0, "add")
              .add(t({2, 3}), ints(0, 3, {2, 2}), t({2, 2}), 1, "mul")
              .add(t({3, 4}), ints(-3, 3, {5, 4}), t({5, 4}), 0, "add", false)
              .add(t({2, 3}), ints(0, 3, {2, 4}), t({2, 4}), 1, "mul", false)
              .add(t({0, 3}), ints(0, 3, {0, 2}), t({0, 2}), 1);
        },
};

// All elements that equal the extreme share its gradient.
Grads extreme_gradient(const vjp::put_along_extreme& v) {
  const DType dtype = v.grad.dtype();
  const auto along = [&](const Tensor& t) { return take_along(t, v.index, v.axis); };
  const Tensor x_is = equal(v.x, v.out), value_is = equal(v.value, along(v.out));
  const Tensor sharing =
      put_along(cast(x_is, dtype), v.index, cast(value_is, dtype), v.axis, "add", v.include_self);
  const Tensor share = v.grad / sharing;
  const Tensor gx = zero_unless(x_is, share);
  return {v.include_self ? gx : untouched(gx, v), Tensor(), zero_unless(value_is, along(share))};
}

const OpDef put_along_extreme_op = {
    .schema =
        "put_along_extreme(Tensor x, Tensor index, Tensor value, int axis, str reduce = 'amin', "
        "bool include_self = True) -> Tensor",
    .brief =
        "A copy of x with the smallest (reduce amin) or largest (amax) of x[i, index[i, j, …], …] and all values "
        "for that element; without include_self the old element is not included.",
    .infer = [](const args::put_along_extreme& a) { return infer_put(a, {"amin", "amax"}); },
    .vjp = extreme_gradient,
    .saves = "x index value out",
    .batch = [](const BatchCall& c) -> Made {
      const args::put_along_extreme a(c.args);
      const Tensor x = with_batch(c, 0);
      return put_along_extreme(x, with_batch(c, 1), with_batch(c, 2),
                               behind_batch(a.axis, x.rank() - 1), a.reduce, a.include_self);
    },
    .plan =
        [](const PlanCall& c) {
          const args::put_along_extreme a(c.args);
          const Join join = a.reduce == "amin" ? Join::Min : Join::Max;
          plan_writes(c, a.axis, a.include_self ? std::optional(join) : std::nullopt, true);
        },
    .dtypes = "int float",
    .numpy =
        "(lambda out, seen, f: ([out.__setitem__(j, f(out[j], value[i]) if include_self or j in seen else value[i]) "
        "or seen.add(j) for i in np.ndindex(index.shape) for j in [i[:axis % x.ndim] + (index[i] % x.shape[axis],) + "
        "i[axis % x.ndim + 1:]]], out)[1])(x.copy(), set(), {'amin': np.minimum, 'amax': np.maximum}[reduce])",
    .samples =
        [] {
          return Samples()
              .add(t({2, 4}), ints(0, 2, {2, 4}), t({2, 4}), 0, "amin")
              .add(t({2, 3}), ints(0, 3, {1, 2}), t({1, 2}), -1, "amax")
              .add(t({0, 3}), ints(0, 3, {0, 2}), t({0, 2}), 1);
        },
};

const OpDef last_writes_along_op = {
    .schema = "last_writes_along(Tensor index, int axis, int size) -> Tensor",
    .brief =
        "Which elements of index name a place along the axis that no later one names: the writes that last.",
    .infer = [](const args::last_writes_along& a) -> Metas {
      normalise_axis(a.axis, a.index.rank());
      user_check(!known_less(Dim::from_word(a.size), 0), ErrorKind::InvalidArgument,
                 "size is {}; it must not be negative.", a.size);
      return TensorMeta{DType::Bool, a.index.shape()};
    },
    .shard = "...a... -> ...a... ; a@axis whole # a later write anywhere undoes an earlier one",
    .traits = Trait::NoGrad,
    .dtypes = "int",
    .numpy =
        "np.apply_along_axis(lambda l: np.array([q not in l[i + 1:] for i, q in enumerate(l)], bool), axis, index % size)",
    .samples =
        [] { return Samples().add(ints(-3, 3, {3, 4}), 1, 3).add(ints(0, 2, {4, 2}), 0, 2); },
};

// Sizes apart from `axis` broadcast together; at `axis` each keeps its own.
Shape beside(const Tensor& x, const Tensor& other, int64_t axis) {
  user_check(x.rank() == other.rank(), ErrorKind::InvalidArgument,
             "arr has shape {} and indices {}; they need the same rank.", to_string(x.dims()),
             to_string(other.dims()));
  Shape a = x.shape(), b = other.shape();
  const Dim own = a[static_cast<size_t>(axis)];
  a[static_cast<size_t>(axis)] = b[static_cast<size_t>(axis)] = 1;
  Shape shape = broadcast_shapes(a, b);
  shape[static_cast<size_t>(axis)] = own;
  return shape;
}

const OpDef take_along_axis_op = {
    .schema =
        "take_along_axis(Tensor arr, Tensor indices, int axis, bool broadcast = True) -> Tensor",
    .brief =
        "out[i, j, …] = arr[i, indices[i, j, …], …], the indices standing at `axis`; the other axes are broadcast.",
    .decompose = [](const args::take_along_axis& a) -> Made {
      const int64_t axis = normalise_axis(a.axis, a.arr.rank());
      if (!a.broadcast) return take_along(a.arr, a.indices, axis);
      return take_along(broadcast_to(a.arr, beside(a.arr, a.indices, axis)),
                        broadcast_to(a.indices, beside(a.indices, a.arr, axis)), axis);
    },
    .numpy =
        "np.take_along_axis(arr if broadcast else arr[tuple(slice(None if i == axis % arr.ndim else n) "
        "for i, n in enumerate(indices.shape))], indices, axis)",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), ints(-4, 4, {3, 2}), 1)
              .add(t({3, 4}), ints(0, 4, {1, 2}), -1)
              .add(t({1, 4}), ints(0, 4, {3, 2}), 1)
              .add(t({4}), ints(0, 4, {6}), 0)
              .add(t({3, 4, 2}), ints(0, 4, {2, 5, 1}), 1, false);
        },
    .python = "oar Tensor",
    .onnx = "GatherElements",
};

// Neither the sum nor the number of many small numbers may fit a narrow dtype.
Tensor means_along(const Tensor& arr, const Tensor& indices, const Tensor& values, int64_t axis,
                   bool include_self) {
  const bool whole = is_integral(arr.dtype());
  const auto wide = [whole](const Tensor& t) { return whole ? cast(t, DType::Int64) : widened(t); };
  const Tensor from = wide(arr), added = wide(values);
  const Tensor total = put_along(from, indices, added, axis, "add", include_self);
  const Tensor counts =
      put_along(ones_like(from), indices, ones_like(added), axis, "add", include_self);
  if (!whole) return narrowed(total / counts, arr.dtype());
  return cast(floor_divide(total, counts), arr.dtype());
}

// As many elements of each axis as there are indices: values may have more.
Tensor indexed_part(Tensor values, const Tensor& indices) {
  if (values.rank() != indices.rank()) return values;
  for (int i = 0; i < values.rank(); ++i)
    if (known_less(indices.dim(i), values.dim(i)))
      values = slice(values, {i}, {0}, {indices.dim(i).value()});
  return values;
}

const OpDef put_along_axis_op = {
    .schema =
        "put_along_axis(Tensor arr, Tensor indices, Tensor values, int axis, str reduce = 'assign', "
        "bool include_self = True, bool broadcast = True) -> Tensor",
    .brief =
        "A copy of arr with `values` written to, or combined with, the places along an axis that indices name: "
        "reduce is assign, add, mul, mean, amin or amax. Without broadcast, values may have more elements than indices.",
    .infer = infer::same_as_first,
    .decompose = [](const args::put_along_axis& a) -> Made {
      const int64_t axis = normalise_axis(a.axis, a.arr.rank());
      const Tensor indices =
          a.broadcast ? broadcast_to(a.indices, beside(a.indices, a.arr, axis)) : a.indices;
      Tensor values = a.values.dtype() == a.arr.dtype() ? a.values : cast(a.values, a.arr.dtype());
      if (a.broadcast || values.rank() == 0)
        values = broadcast_to(values, indices.dims());
      else
        values = indexed_part(values, indices);
      if (a.reduce == "amin" || a.reduce == "amax")
        return put_along_extreme(a.arr, indices, values, axis, a.reduce, a.include_self);
      if (a.reduce != "mean")
        return put_along(a.arr, indices, values, axis, a.reduce == "multiply" ? "mul" : a.reduce,
                         a.include_self);
      return means_along(a.arr, indices, values, axis, a.include_self);
    },
    .traits = Trait::HasInplace,
    .dtypes = "int float",
    .numpy =
        "(lambda out, idx, val, n, seen, f: ([out.__setitem__(j, f(out[j], val[i]) if include_self or j in seen else "
        "val[i]) or n.__setitem__(j, n[j] + (include_self or j in seen)) or seen.add(j) for i in np.ndindex(idx.shape) "
        "for j in [i[:axis % arr.ndim] + (idx[i] % arr.shape[axis],) + i[axis % arr.ndim + 1:]]], "
        "(out // n if arr.dtype.kind in 'iu' else out / n).astype(arr.dtype) if reduce == 'mean' else out)[1])(arr.copy(), "
        "*np.broadcast_arrays(*[np.broadcast_to(v, [indices.shape[i] if i == axis % arr.ndim else m for i, m in enumerate(arr.shape)]) if "
        "broadcast else v[tuple(map(slice, indices.shape))] if v.ndim == indices.ndim else v for v in (indices, values)]), "
        "np.ones(arr.shape, 'int64'), set(), {'assign': lambda a, b: b, "
        "'add': np.add, 'mean': np.add, 'mul': np.multiply, 'amin': np.minimum, 'amax': np.maximum}[reduce])",
    .samples =
        [] {
          return Samples()
              .add(t({3, 4}), ints(-4, 4, {3, 1}), t({3, 1}), 1)
              .add(t({3, 4}), ints(0, 4, {1, 3}), t({}), 1, "add")
              .add(t({2, 3}), ints(0, 3, {2, 4}), t({2, 4}), -1, "mean")
              .add(t({2, 3}), ints(0, 3, {2, 200}), t({2, 200}), 1, "mean")
              .add(t({3, 4}), ints(0, 4, {1, 3}), t({}), 1, "add", true, false)
              .add(t({2, 3}), ints(0, 2, {2, 3}), t({2, 3}), 0, "amax")
              .add(t({2, 3}), ints(0, 2, {2, 3}), t({3, 4}), 0, "add", true, false);
        },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(along_axis, &take_along_op, &put_along_op, &put_along_extreme_op, &last_writes_along_op,
           &take_along_axis_op, &put_along_axis_op)

}  // namespace oar
