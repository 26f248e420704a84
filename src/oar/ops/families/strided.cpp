// Views by strides: as_strided and ops in terms of it. Strides count elements in the
// tensor's row-major order, whatever its layout in memory.
#include "oar/ops/gen/strided.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/core/view.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/sharding/rules.h"
#include "oar/tensor/byte_count.h"

namespace oar {
namespace {

// The words of dims as an op's list of numbers.
IntArgs words(const Shape& dims) { return IntArgs(as_words(dims)); }

// Strides after a batch of tensors with that many elements.
Shape batch_strides(Dim numel, Ints stride) { return behind_batch(numel, as_dims(stride)); }

const OpDef as_strided_op = {
    .schema = "as_strided(Tensor(a) x, shape shape, int[] stride, int offset = 0) -> Tensor(a)",
    .brief =
        "Element (i, j, …) of the result is element offset + i * stride[0] + j * stride[1] + … of x, "
        "counted in row-major order. A view if x is contiguous.",
    .infer = [](const args::as_strided& a) -> Metas {
      check_strided_bounds(a.shape, a.stride, a.offset, a.x.numel());
      return TensorMeta{a.x.dtype(), Shape(a.shape)};
    },
    .view = [](const args::as_strided& a) -> std::optional<ViewSpec> {
      check_strided_bounds(a.shape, a.stride, a.offset, a.x.numel());
      if (!a.x.is_contiguous()) return std::nullopt;
      return ViewSpec{Shape(a.shape), {a.stride.begin(), a.stride.end()}, a.offset};
    },
    .vjp = [](const vjp::as_strided& v) -> Grads {
      return as_strided_grad(v.grad, v.x.dims(), v.stride, v.offset);
    },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::as_strided a(c.args);
      const Shape strides = batch_strides(Shape(a.x.dims().subspan(1)).numel(), a.stride);
      return as_strided(a.x, behind_batch(c.size, a.shape), words(strides), a.offset);
    },
    .shard = "whole: the strides lie across all of the memory",
    .traits = Trait::Linear,
    .numpy =
        "x.ravel()[offset + sum((np.arange(n).reshape([-1] + [1] * (len(shape) - 1 - i)) * stride[i] "
        "for i, n in enumerate(shape)), np.zeros([1] * len(shape), 'int64')).reshape(shape)]",
    .samples =
        [] {
          return Samples()
              .add(t({12}), IntVector{3, 2}, IntVector{4, 1})
              .add(t({3, 4}), IntVector{2, 3}, IntVector{1, 2}, 3)
              .add(t({8}), IntVector{3, 4}, IntVector{2, 1})
              .add(t({2, 3}), IntVector{}, IntVector{}, 4)
              .add(t({5}), IntVector{0, 2}, IntVector{1, 1})
              .add(t({5}), IntVector{5}, IntVector{-1}, 4)
              .add(t({3}), IntVector{2, 3}, IntVector{0, 1});
        },
    .python = "oar Tensor",
};

const OpDef as_strided_grad_op = {
    .schema = "as_strided_grad(Tensor value, shape shape, int[] stride, int offset = 0) -> Tensor",
    .brief =
        "The reverse of as_strided: adds each element of `value` to the place it was read from, in a "
        "tensor of zeros of the given shape.",
    .infer = [](const args::as_strided_grad& a) -> Metas {
      check_strided_bounds(a.value.dims(), a.stride, a.offset, Shape(a.shape).numel());
      return TensorMeta{a.value.dtype(), Shape(a.shape)};
    },
    .vjp = [](const vjp::as_strided_grad& v) -> Grads {
      return as_strided(v.grad, v.value.dims(), v.stride, v.offset);
    },
    .saves = "value:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::as_strided_grad a(c.args);
      const Shape strides = batch_strides(Shape(a.shape).numel(), a.stride);
      return as_strided_grad(a.value, behind_batch(c.size, a.shape), words(strides), a.offset);
    },
    .shard = "whole: the strides lie across all of the memory",
    .traits = Trait::Linear,
    .dtypes = "int float complex",
    .numpy =
        "(lambda out, at: (np.add.at(out, at.ravel(), value.ravel()), out.reshape(shape))[1])("
        "np.zeros(int(np.prod(shape)), value.dtype), offset + sum((np.arange(n).reshape([-1] + "
        "[1] * (value.ndim - 1 - i)) * stride[i] for i, n in enumerate(value.shape)), "
        "np.zeros(value.shape, 'int64')))",
    .samples =
        [] {
          return Samples()
              .add(t({3, 2}), IntVector{12}, IntVector{4, 1})
              .add(t({2, 3}), IntVector{3, 4}, IntVector{1, 2}, 3)
              .add(t({3, 4}), IntVector{8}, IntVector{2, 1})
              .add(t({}), IntVector{2, 3}, IntVector{}, 4)
              .add(t({0, 2}), IntVector{5}, IntVector{1, 1})
              .add(t({2, 3}), IntVector{3}, IntVector{0, 1});
        },
};

Dim window_count(const Tensor& x, int64_t axis, int64_t size, int64_t step) {
  user_check(size >= 0 && step > 0, ErrorKind::InvalidArgument,
             "size {} must not be negative and step {} must be positive.", size, step);
  user_check(!known_less(x.dim(axis), size), ErrorKind::InvalidArgument,
             "size {} is larger than axis {} of x, which has shape {}.", size, axis,
             to_string(x.dims()));
  return floor_div(x.dim(axis) - size, step) + 1;
}

const OpDef unfold_op = {
    .schema = "unfold(Tensor(a) x, int axis, int size, int step) -> Tensor(a)",
    .brief =
        "Every window of `size` elements along an axis, `step` apart, as a new last axis. A view.",
    .infer = [](const args::unfold& a) -> Metas {
      const int64_t axis = normalise_axis(a.axis, a.x.rank());
      Shape shape = a.x.shape();
      shape[static_cast<size_t>(axis)] = window_count(a.x, axis, a.size, a.step);
      shape.push_back(a.size);
      return TensorMeta{a.x.dtype(), shape};
    },
    .view = [](const args::unfold& a) -> std::optional<ViewSpec> {
      const auto axis = static_cast<size_t>(normalise_axis(a.axis, a.x.rank()));
      ViewSpec spec{a.x.shape(), {a.x.strides().begin(), a.x.strides().end()}, 0};
      spec.shape[axis] = window_count(a.x, a.axis, a.size, a.step);
      spec.shape.push_back(a.size);
      spec.strides.push_back(spec.strides[axis]);
      spec.strides[axis] = (Count(spec.strides[axis]) * a.step).value();
      return spec;
    },
    .vjp = [](const vjp::unfold& v) -> Grads {
      const auto axis = static_cast<size_t>(normalise_axis(v.axis, v.x.rank()));
      Shape strides = logical_strides(v.x.dims());
      strides.push_back(strides[axis]);
      strides[axis] = strides[axis] * v.step;
      return as_strided_grad(v.grad, v.x.dims(), words(strides));
    },
    .saves = "x:shape",
    .batch = [](const BatchCall& c) -> Made {
      const args::unfold a(c.args);
      return unfold(a.x, behind_batch(a.axis, a.x.rank() - 1), a.size, a.step);
    },
    .plan =
        [](const PlanCall& c) {
          const args::unfold a(c.args);
          const int64_t axis = normalise_axis(a.axis, a.x.rank());
          sharding::keep_axes(c.plan, Ints(&axis, 1));
        },
    .traits = Trait::Linear,
    .numpy =
        "np.take(np.lib.stride_tricks.sliding_window_view(x, size, axis), "
        "range(0, x.shape[axis] - size + 1, step), axis if axis >= 0 else axis - 1)",
    .samples =
        [] {
          return Samples()
              .add(t({9}), 0, 2, 4)
              .add(t({3, 7}), 1, 3, 2)
              .add(t({5, 2}), -2, 2, 1)
              .add(t({0, 4}), 1, 2, 2);
        },
    .python = "oar Tensor",
};

}  // namespace

OAR_FAMILY(strided, &as_strided_op, &as_strided_grad_op, &unfold_op)

}  // namespace oar
