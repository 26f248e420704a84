// Activations in which one half of the input gates the other, or the largest part wins.
#include "oar/ops/gen/gates.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/batching.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/split.h"

namespace oar {
namespace {

// The shape of one half of x along an axis.
Shape half_shape(const Tensor& x, int64_t axis) {
  user_check(x.rank() > 0, ErrorKind::InvalidArgument,
             "x is 0-d; it has no axis to cut in halves.");
  axis = normalise_axis(axis, x.rank());
  const Dim size = x.dim(axis);
  user_check(same(floor_mod(size, 2), 0), ErrorKind::InvalidArgument,
             "x has {} elements along axis {}; splitting them into halves needs an even number.",
             size.str(), axis);
  Shape shape = x.shape();
  shape[static_cast<size_t>(axis)] = floor_div(size, 2);
  return shape;
}

const OpDef glu_op = {
    .schema = "glu(Tensor x, int axis = -1) -> Tensor",
    .brief = "The first half of x along an axis, times the sigmoid of the second.",
    .infer = [](const args::glu& a) -> Metas {
      return TensorMeta{a.x.dtype(), half_shape(a.x, a.axis)};
    },
    .decompose = [](const args::glu& a) -> Made {
      const auto parts = chunk(a.x, 2, a.axis);
      return parts[0] * sigmoid(parts[1]);
    },
    .vjp = [](const vjp::glu& v) -> Grads { return glu_grad(v.x, v.grad, v.axis); },
    .saves = "x",
    .shard = "...a... -> ...b... ; a@axis whole ; b@axis whole # the two halves of the axis meet",
    .dtypes = "float",
    .numpy = "(lambda v: v[0] / (1 + np.exp(-v[1])))(np.split(x, 2, axis))",
    .samples =
        [] { return Samples().add(t({4, 6})).add(t({2, 4, 3}), 1).add(t({2}), 0).add(t({0, 4})); },
    .python = "oar.nn.functional",
};

const OpDef glu_grad_op = {
    .schema = "glu_grad(Tensor x, Tensor grad, int axis = -1) -> Tensor",
    .brief = "The derivative of glu at x, times grad.",
    .infer = [](const args::glu_grad& a) -> Metas {
      const Shape expected = half_shape(a.x, a.axis);
      user_check(same(a.grad.shape(), expected), ErrorKind::InvalidArgument,
                 "grad has shape {}; for x of shape {} it must be {}.", to_string(a.grad.dims()),
                 to_string(a.x.dims()), expected.str());
      return infer::like(a.x);
    },
    .decompose = [](const args::glu_grad& a) -> Made {
      const auto parts = chunk(a.x, 2, a.axis);
      const Tensor open = sigmoid(parts[1]), passed = a.grad * open;
      return concat({passed, passed * (1 - open) * parts[0]}, a.axis);
    },
    .batch = [](const BatchCall& c) -> Made {
      const Tensor x = with_batch(c, 0);
      return glu_grad(x, with_batch(c, 1), behind_batch(c.args[2].as_int(), x.rank() - 1));
    },
    .shard =
        "...a..., ...b... -> ...a... ; a@axis whole ; b@axis whole # the two halves of the axis meet",
    .traits = Trait::Promote,
    .dtypes = "float",
    .numpy =
        "(lambda v, s: np.concatenate([grad * s, grad * s * (1 - s) * v[0]], "
        "axis))(np.split(x, 2, axis), 1 / (1 + np.exp(-np.split(x, 2, axis)[1])))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 6}), t({4, 3}))
              .add(t({2, 4, 3}), t({2, 2, 3}), 1)
              .add(t({0, 4}), t({0, 2}));
        },
};

const OpDef gated_silu_op = {
    .schema = "gated_silu(Tensor x, Tensor y) -> Tensor",
    .brief = "silu(x) * y.",
    .infer = infer::same_as_first,
    .decompose = [](const args::gated_silu& a) -> Made { return silu(a.x) * a.y; },
    .scalar = "x / (1 + exp(-x)) * y",
    .vjp = [](const vjp::gated_silu& v) -> Grads {
      const auto [on_x, on_y] = gated_silu_grad(v.x, v.y, v.grad);
      return {on_x, on_y};
    },
    .saves = "x y",
    .shard = "..., ... -> ...",
    .traits = Trait::Elementwise | Trait::Promote,
    .dtypes = "float",
    .numpy = "x / (1 + np.exp(-x)) * y",
    .samples = samples::binary,
};

const OpDef gated_silu_grad_op = {
    .schema = "gated_silu_grad(Tensor x, Tensor y, Tensor grad) -> (Tensor x_grad, Tensor y_grad)",
    .brief = "The derivatives of gated_silu in x and y, times grad.",
    .infer = [](const args::gated_silu_grad& a) -> Metas {
      return {infer::like(a.x), infer::like(a.x)};
    },
    .decompose = [](const args::gated_silu_grad& a) -> Made {
      const Tensor s = sigmoid(a.x);
      return {a.grad * a.y * s * (1 + a.x * (1 - s)), a.grad * a.x * s};
    },
    .scalar = "s = 1 / (1 + exp(-x)); grad * y * s * (1 + x * (1 - s)), grad * x * s",
    .shard = "..., ..., ... -> ..., ...",
    .traits = Trait::Elementwise | Trait::Promote,
    .dtypes = "float",
    .numpy = "(lambda s: (grad * y * s * (1 + x * (1 - s)), grad * x * s))(1 / (1 + np.exp(-x)))",
    .samples =
        [] { return Samples().add(t({4, 7}), t({4, 7}), t({4, 7})).add(t({}), t({}), t({})); },
};

const OpDef swiglu_op = {
    .schema = "swiglu(Tensor x, Tensor? y = None) -> Tensor",
    .brief = "silu(x) * y; without y, x and y are the halves of x along its last axis.",
    .decompose = [](const args::swiglu& a) -> Made {
      if (a.y.defined()) return gated_silu(a.x, a.y);
      half_shape(a.x, -1);
      const auto parts = chunk(a.x, 2, -1);
      return gated_silu(parts[0], parts[1]);
    },
    .dtypes = "float",
    .numpy =
        "(lambda v: v[0] / (1 + np.exp(-v[0])) * v[1])(np.split(x, 2, -1) if y is None else [x, y])",
    .samples = [] { return Samples().add(t({4, 6})).add(t({2, 3}), t({2, 3})).add(t({}), t({})); },
    .python = "oar.nn.functional",
};

const OpDef maxout_op = {
    .schema = "maxout(Tensor x, int groups, int axis = 1) -> Tensor",
    .brief =
        "The largest of every `groups` neighbouring channels along an axis; the first of equal ones "
        "does not get the whole gradient, they share it.",
    .decompose = [](const args::maxout& a) -> Made {
      const int rank = a.x.rank();
      user_check(a.groups > 1, ErrorKind::InvalidArgument,
                 "groups is {}; it must be larger than 1.", a.groups);
      const int64_t axis = normalise_axis(a.axis, rank);
      const Dim channels = a.x.dim(axis);
      user_check(same(floor_mod(channels, a.groups), 0), ErrorKind::InvalidArgument,
                 "x has {} channels along axis {}, which groups of {} do not fill.", channels.str(),
                 axis, a.groups);
      Shape split;
      for (int i = 0; i < rank; ++i) {
        split.push_back(i == axis ? floor_div(channels, a.groups) : a.x.dim(i));
        if (i == axis) split.push_back(a.groups);
      }
      return max(reshape(a.x, split), IntArgs{axis + 1});
    },
    .dtypes = "float",
    .numpy =
        "x.reshape(x.shape[:axis % x.ndim] + (-1, groups) + x.shape[axis % x.ndim + "
        "1:]).max(axis % x.ndim + 1)",
    .samples = [] { return Samples().add(distinct({2, 6, 3}), 2).add(distinct({2, 3, 6}), 3, -1); },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(gates, &glu_op, &glu_grad_op, &gated_silu_op, &gated_silu_grad_op, &swiglu_op,
           &maxout_op)

}  // namespace oar
