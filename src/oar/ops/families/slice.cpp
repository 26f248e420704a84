// Basic indexing: slices, integers, new axes. ops/core/view.h describes the index.
#include "oar/ops/gen/slice.h"

#include <algorithm>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/families/blank.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

// The same index after a batch.
SliceIndex behind_batch(Ints index) {
  SliceIndex shifted;
  shifted.all();
  for (int64_t word : index) shifted.push_back(word);
  return shifted;
}

// Where the axes of a slice come from: axes of x, or -1 for new ones and shortened ones. An axis that
// is taken whole stays so on a piece.
SmallVector<int, 6> kept_axes(Dims x, Ints index) {
  SmallVector<int, 6> from;
  const Shape shape = sliced_shape(x, index);
  size_t axis = 0, named = 0;
  for (size_t i = 0; i < index.size(); i += 4)
    named += index[i] == kSliceItem || index[i] == kIntegerItem;
  const auto keep = [&](bool forward) {
    const bool whole = forward && shape[from.size()] == x[axis];
    from.push_back(whole ? static_cast<int>(axis) : -1);
    ++axis;
  };
  bool rest = false;
  for (size_t i = 0; i < index.size(); i += 4) {
    if (index[i] == kSliceItem) keep(index[i + 3] == 1);
    if (index[i] == kIntegerItem) ++axis;
    if (index[i] == kNewAxisItem) from.push_back(-1);
    if (index[i] != kEllipsisItem) continue;
    rest = true;
    for (size_t k = named; k < x.size(); ++k) keep(true);
  }
  while (!rest && axis < x.size()) keep(true);
  return from;
}

void plan_slice(const PlanCall& c) {
  const bool puts = c.plan.operands.size() == 2;
  const auto from = kept_axes(c.args[0].as_tensor().dims(), c.args[puts ? 2 : 1].as_ints());
  PlanTensor &x = c.plan.operands[0], &out = c.plan.results[0];
  for (size_t i = 0; i < from.size(); ++i) {
    if (from[i] < 0) continue;
    const auto axis = static_cast<size_t>(from[i]);
    c.plan.pass(x, axis, out, puts ? axis : i);
    const size_t from_end = from.size() - i;
    if (!puts || from_end > c.plan.operands[1].axes.size() || x.axes[axis].factor < 0) continue;
    PlanTensor& value = c.plan.operands[1];
    c.plan.put(value, value.axes.size() - from_end, x.axes[axis].factor);
  }
}

const OpDef slice_view_op = {
    .schema = "slice_view(Tensor(a) x, int[] index) -> Tensor(a)",
    .brief =
        "x[index] for slices, integers, None and `...`, given as (kind, start, stop, step) each. A view.",
    .infer = [](const args::slice_view& a) -> Metas {
      return TensorMeta{a.x.dtype(), sliced_shape(a.x.dims(), a.index)};
    },
    .view = [](const args::slice_view& a) -> std::optional<ViewSpec> {
      std::optional<ViewSpec> spec(std::in_place);
      sliced_view(as_words(a.x.dims()), a.x.strides(), a.index, *spec);
      return spec;
    },
    .vjp = [](const vjp::slice_view& v) -> Grads {
      return slice_put(blank(v.x.dims(), v.grad.dtype()), v.grad, v.index);
    },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::slice_view a(c.args);
      return slice_view(a.x, behind_batch(a.index));
    },
    .plan = plan_slice,
    .traits = Trait::Linear,
    .numpy =
        "x[tuple(slice(a, b, c) if k == 0 else a if k == 1 else None if k == 2 else Ellipsis "
        "for k, a, b, c in zip(*[iter(index)] * 4))].copy()",
    .samples =
        [] {
          return Samples()
              .add(t({4, 7}), SliceIndex().range(1, kOpenHigh))
              .add(t({4, 7}), SliceIndex().all().range(0, -1))
              .add(t({5, 3}), SliceIndex().reversed().at(-1))
              .add(t({2, 3, 8}), SliceIndex().rest().fresh().range(1, 7, 3))
              .add(t({2, 3, 4}), SliceIndex().fresh().at(1).rest().range(-2, kOpenHigh))
              .add(t({6}), SliceIndex().range(-2, 0, -2))
              .add(t({6}), SliceIndex().range(4, 2))
              .add(t({6}), SliceIndex().range(2, 100, 3))
              .add(t({}), SliceIndex().fresh().rest())
              .add(t({0, 3}), SliceIndex().range(1, kOpenHigh).at(0));
        },
};

Metas infer_slice_put(const Tensor& x, const Tensor& value, Ints index) {
  static_cast<void>(broadcast_target(value, sliced_shape(x.dims(), index)));
  return infer::like(x);
}

// The gradient of what was written: the view's part, undone of broadcasting and the cast.
Tensor written_part(const Tensor& grad, const Tensor& value, Ints index) {
  const Tensor part = sum_to(slice_view(grad, index), value.dims());
  return part.dtype() == value.dtype() ? part : cast(part, value.dtype());
}

template <class Call>
Grads slice_put_vjp(const Call& v) {
  return {v.needs(0) ? slice_put(v.grad, zeros({}, v.grad.dtype()), v.index) : Tensor(),
          v.needs(1) ? written_part(v.grad, v.value, v.index) : Tensor()};
}

const OpDef slice_put_op = {
    .schema = "slice_put(Tensor x, Tensor value, int[] index) -> Tensor",
    .brief =
        "A copy of x in which the part that slice_view returns holds `value`, broadcast and cast.",
    .infer = [](const args::slice_put& a) { return infer_slice_put(a.x, a.value, a.index); },
    .vjp = slice_put_vjp<vjp::slice_put>,
    .saves = "x:shape value:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::slice_put a(c.args);
      const Tensor x = with_batch(c, 0);
      const SliceIndex index = behind_batch(a.index);
      return slice_put(
          x, c.batched[1] ? with_batch(c, 1, sliced_shape(x.dims(), index).rank() - 1) : a.value,
          index);
    },
    .plan = plan_slice,
    .traits = Trait::Linear,
    .numpy =
        "(lambda out: (out.__setitem__(tuple(slice(a, b, c) if k == 0 else a if k == 1 else None if k == 2 else Ellipsis "
        "for k, a, b, c in zip(*[iter(index)] * 4)), value), out)[1])(x.copy())",
    .samples =
        [] {
          return Samples()
              .add(t({4, 5}), t({5}), SliceIndex().range(1, 3))
              .add(t({4, 5}), t({}), SliceIndex().rest().at(2))
              .add(t({6}), t({3}), SliceIndex().range(-1, kOpenLow, -2))
              .add(t({2, 3}), t({2, 1, 3}), SliceIndex().all().fresh())
              .add(t({}), t({}), SliceIndex().rest())
              .add(t({0, 3}), t({3}), SliceIndex().all());
        },
};

const OpDef slice_put_inplace_op = {
    .schema = "slice_put_(Tensor(a!) x, Tensor value, int[] index) -> Tensor(a!)",
    .brief = "Writes `value`, broadcast and cast, to the part of x that slice_view returns.",
    .infer = [](const args::slice_put_& a) { return infer_slice_put(a.x, a.value, a.index); },
    .vjp = slice_put_vjp<vjp::slice_put_>,
    .saves = "x:shape value:shape",
    .plan = plan_slice,
    .traits = Trait::Linear,
    .numpy = slice_put_op.numpy,
    .samples = slice_put_op.samples,
};

// Quadruples from Paddle's lists per axis.
SliceIndex index_of_axes(const Tensor& x, Ints axes, Ints starts, Ints ends,
                         std::optional<Ints> strides) {
  user_check(axes.size() == starts.size() && axes.size() == ends.size() &&
                 (!strides || strides->size() == axes.size()),
             ErrorKind::InvalidArgument,
             "axes {}, starts {} and ends {} (and strides) must have one number per axis.",
             to_string(axes), to_string(starts), to_string(ends));
  SliceIndex index;
  index.skip(x.rank());
  SmallVector<int64_t, 6> seen;
  for (size_t i = 0; i < axes.size(); ++i) {
    const int64_t axis = normalise_axis(axes[i], x.rank(), "axes");
    user_check(std::find(seen.begin(), seen.end(), axis) == seen.end(), ErrorKind::InvalidArgument,
               "axes {} names axis {} twice.", to_string(axes), axis);
    seen.push_back(axis);
    const int64_t step = strides ? (*strides)[i] : 1;
    int64_t* item = index.data() + 4 * axis;
    item[1] = starts[i];
    item[2] = ends[i];
    item[3] = step;
  }
  return index;
}

const OpDef slice_op = {
    .schema = "slice(Tensor(a) input, int[] axes, int[] starts, int[] ends) -> Tensor(a)",
    .brief = "input[…, start:end, …] on each of the given axes. A view.",
    .decompose = [](const args::slice& a) -> Made {
      return slice_view(a.input, index_of_axes(a.input, a.axes, a.starts, a.ends, std::nullopt));
    },
    .traits = Trait::Linear | Trait::Packed,
    .numpy =
        "input[tuple(slice(starts[axes.index(i)], ends[axes.index(i)]) if i in axes else "
        "slice(starts[axes.index(i - input.ndim)], ends[axes.index(i - input.ndim)]) if i - input.ndim in axes "
        "else slice(None) for i in range(input.ndim))].copy()",
    .samples =
        [] {
          return Samples()
              .add(t({4, 5, 6}), IntVector{0, 2}, IntVector{1, -4}, IntVector{3, 100})
              .add(t({4, 5}), IntVector{-1}, IntVector{-100}, IntVector{-1})
              .add(t({0, 3}), IntVector{0}, IntVector{0}, IntVector{1});
        },
    .python = "oar Tensor",
    .onnx = "Slice",
};

const OpDef strided_slice_op = {
    .schema =
        "strided_slice(Tensor(a) x, int[] axes, int[] starts, int[] ends, int[] strides) -> Tensor(a)",
    .brief =
        "x[…, start:end:stride, …] on each of the given axes, negative numbers from the end; with a "
        "negative stride an end below -size means up to the first element. A view.",
    .decompose = [](const args::strided_slice& a) -> Made {
      return slice_view(a.x, index_of_axes(a.x, a.axes, a.starts, a.ends, a.strides));
    },
    .traits = Trait::Linear,
    .numpy =
        "(lambda on: x[tuple(slice(starts[on.index(i)], ends[on.index(i)], strides[on.index(i)]) if i in on "
        "else slice(None) for i in range(x.ndim))].copy())([a % x.ndim for a in axes])",
    .samples =
        [] {
          return Samples()
              .add(t({4, 9}), IntVector{0, 1}, IntVector{0, 1}, IntVector{4, 8}, IntVector{2, 3})
              .add(t({3, 7}), IntVector{-1}, IntVector{5}, IntVector{-8}, IntVector{-2})
              .add(t({3, 7}), IntVector{1}, IntVector{5}, IntVector{-8}, IntVector{-2})
              .add(t({3, 7}), IntVector{1}, IntVector{5}, IntVector{-1}, IntVector{-2})
              .add(t({7}), IntVector{0}, IntVector{-1}, IntVector{-6}, IntVector{-1});
        },
    .python = "oar Tensor",
};

const OpDef crop_op = {
    .schema = "crop(Tensor(a) x, shape? shape = None, int[]? offsets = None) -> Tensor(a)",
    .brief =
        "The part of x with the given shape that starts at `offsets` (default 0); -1 takes the rest "
        "of an axis. A view.",
    .decompose = [](const args::crop& a) -> Made {
      const auto rank = static_cast<size_t>(a.x.rank());
      user_check((!a.shape || a.shape->size() == rank) && (!a.offsets || a.offsets->size() == rank),
                 ErrorKind::InvalidArgument,
                 "shape and offsets need one number for each of the {} axes of x.", rank);
      SliceIndex index;
      for (size_t i = 0; i < rank; ++i) {
        const Dim start = a.offsets ? Dim::from_word((*a.offsets)[i]) : Dim(0);
        const Dim size = a.shape ? (*a.shape)[i] : Dim(-1);
        const Dim stop = size == Dim(-1) ? a.x.dims()[i] : start + size;
        if (start == Dim(0) && stop == a.x.dims()[i]) {
          index.all();
          continue;
        }
        user_check(
            !known_less(start, 0) && !known_less(stop, start) && !known_less(a.x.dims()[i], stop),
            ErrorKind::InvalidArgument, "axis {} of x has size {} and no elements from {} to {}.",
            i, a.x.dims()[i].str(), start.str(), stop.str());
        index.range(start, stop);
      }
      return slice_view(a.x, index);
    },
    .localise =
        [](const PieceCall& piece) {
          if (!piece.frame[1].is_none()) sharding::result_shape("shape")(piece);
        },
    .traits = Trait::Linear,
    .numpy =
        "x[tuple(slice(o, None if s == -1 else o + s) for o, s in zip(offsets or [0] * x.ndim, shape or [-1] * x.ndim))].copy()",
    .samples =
        [] {
          return Samples()
              .add(t({4, 5}), IntVector{2, -1}, IntVector{1, 2})
              .add(t({4, 5}), IntVector{4, 3})
              .add(t({3}), IntVector{2})
              .add(t({0, 3}), IntVector{0, 1});
        },
    .python = "oar",
};

const OpDef slice_scatter_op = {
    .schema =
        "slice_scatter(Tensor x, Tensor value, int[] axes, int[] starts, int[] ends, int[] strides) -> Tensor",
    .brief = "A copy of x in which the part that strided_slice returns holds `value`.",
    .decompose = [](const args::slice_scatter& a) -> Made {
      return slice_put(a.x, a.value, index_of_axes(a.x, a.axes, a.starts, a.ends, a.strides));
    },
    .traits = Trait::Linear,
    .numpy =
        "(lambda out: (out.__setitem__(tuple(slice(starts[axes.index(i)], ends[axes.index(i)], strides[axes.index(i)]) "
        "if i in axes else slice(None) for i in range(x.ndim)), value), out)[1])(x.copy())",
    .samples =
        [] {
          return Samples()
              .add(t({4, 9}), t({2, 9}), IntVector{0}, IntVector{0}, IntVector{4}, IntVector{2})
              .add(t({3, 7}), t({3, 1}), IntVector{1}, IntVector{2}, IntVector{6}, IntVector{2});
        },
    .python = "oar Tensor",
};

const OpDef select_scatter_op = {
    .schema = "select_scatter(Tensor x, Tensor values, int axis, int index) -> Tensor",
    .brief = "A copy of x in which the slice at one index of an axis holds `values`.",
    .decompose = [](const args::select_scatter& a) -> Made {
      const int64_t axis = normalise_axis(a.axis, a.x.rank());
      return slice_put(a.x, a.values, SliceIndex().skip(axis).at(Dim::from_word(a.index)));
    },
    .traits = Trait::Linear,
    .numpy =
        "(lambda out: (out.__setitem__((slice(None),) * (axis % x.ndim) + (index,), values), out)[1])(x.copy())",
    .samples =
        [] {
          return Samples()
              .add(t({4, 5}), t({5}), 0, 2)
              .add(t({2, 3, 4}), t({2, 3}), -1, -1)
              .add(t({3}), t({}), 0, 1);
        },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(slice, &slice_view_op, &slice_put_op, &slice_put_inplace_op, &slice_op,
           &strided_slice_op, &crop_op, &slice_scatter_op, &select_scatter_op)

}  // namespace oar
