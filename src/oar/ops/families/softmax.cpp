// Softmax and its logarithm along an axis.
#include "oar/ops/gen/softmax.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/reduction.h"

namespace oar {
namespace {

Metas infer_softmax(const Tensor& x, int64_t axis, std::optional<DType> dtype) {
  // A 0-d tensor counts as a line of one element.
  normalise_axis(axis, std::max(x.rank(), 1));
  const DType type = dtype.value_or(x.dtype());
  user_check(is_floating(type), ErrorKind::InvalidType, "dtype is {}; it must be a float.",
             name_of(type));
  return TensorMeta{type, x.shape()};
}

void check_alike(const Tensor& out, const Tensor& grad, int64_t axis) {
  normalise_axis(axis, std::max(out.rank(), 1));
  user_check(same(out.shape(), grad.shape()) && out.dtype() == grad.dtype(),
             ErrorKind::InvalidArgument, "out is {} and grad {}; they must match.", out.describe(),
             grad.describe());
}

// x less its largest element along the axis, which changes no ratio and keeps exp from overflowing.
Tensor lowered(const Tensor& x, std::optional<DType> dtype, int64_t axis) {
  const Tensor wide = widened(narrowed(x, dtype.value_or(x.dtype())));
  return wide - max(wide, IntArgs{axis}, true);
}

Samples softmax_samples() {
  return Samples()
      .add(t({4, 7}))
      .add(t({2, 3, 5}), 1)
      .add(t({3, 4}), 0)
      .add(t({}))
      .add(t({0, 3}))
      .add(t({2, 3}), -1, DType::Float64);
}
Samples grad_samples() {
  return Samples()
      .add(t({4, 7}), t({4, 7}), -1)
      .add(t({2, 3, 5}), t({2, 3, 5}), 1)
      .add(t({}), t({}), 0)
      .add(t({0, 3}), t({0, 3}), 1);
}

const OpDef softmax_op = {
    .schema = "softmax(Tensor x, int axis = -1, dtype? dtype = None) -> Tensor",
    .brief =
        "exp(x) / sum(exp(x)) along an axis, without overflow. With a dtype, x is cast to "
        "it first.",
    .infer = [](const args::softmax& a) { return infer_softmax(a.x, a.axis, a.dtype); },
    .decompose = [](const args::softmax& a) -> Made {
      const Tensor e = exp(lowered(a.x, a.dtype, a.axis));
      return narrowed(e / sum(e, IntArgs{a.axis}, std::nullopt, true),
                      a.dtype.value_or(a.x.dtype()));
    },
    .vjp = [](const vjp::softmax& v) -> Grads {
      return narrowed(softmax_grad(v.out, v.grad, v.axis), v.x.dtype());
    },
    .saves = "x:shape out",
    .shard = "...a... -> ...a... ; a@axis whole # an element needs the sum over all first",
    .traits = Trait::Rowwise | Trait::FloatMath,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda y: (lambda e: e / np.sum(e, axis, keepdims=True))(np.exp(y - np.max(y, "
        "axis, keepdims=True))) if y.size and y.ndim else np.ones_like(y))(x.astype(dtype or "
        "x.dtype))",
    .samples = softmax_samples,
    .python = "oar.nn.functional",
    .onnx = "Softmax",
};

const OpDef softmax_grad_op = {
    .schema = "softmax_grad(Tensor out, Tensor grad, int axis = -1) -> Tensor",
    .brief = "(grad - sum(grad * out)) * out along an axis: the derivative of softmax.",
    .infer = [](const args::softmax_grad& a) -> Metas {
      check_alike(a.out, a.grad, a.axis);
      return infer::like(a.out);
    },
    .decompose = [](const args::softmax_grad& a) -> Made {
      const Tensor out = widened(a.out), grad = widened(a.grad);
      const Tensor total = sum(grad * out, IntArgs{a.axis}, std::nullopt, true);
      return narrowed((grad - total) * out, a.out.dtype());
    },
    .shard = "...a..., ...a... -> ...a... ; a@axis whole # an element needs the sum over all first",
    .traits = Trait::Rowwise,
    .dtypes = "float",
    .numpy = "(grad - np.sum(grad * out, axis if out.ndim else None, keepdims=True)) * out",
    .samples = grad_samples,
};

const OpDef log_softmax_op = {
    .schema = "log_softmax(Tensor x, int axis = -1, dtype? dtype = None) -> Tensor",
    .brief =
        "x - log(sum(exp(x))) along an axis, without overflow. With a dtype, x is cast to "
        "it first.",
    .infer = [](const args::log_softmax& a) { return infer_softmax(a.x, a.axis, a.dtype); },
    .decompose = [](const args::log_softmax& a) -> Made {
      const Tensor low = lowered(a.x, a.dtype, a.axis);
      const Tensor total = log(sum(exp(low), IntArgs{a.axis}, std::nullopt, true));
      return narrowed(low - total, a.dtype.value_or(a.x.dtype()));
    },
    .vjp = [](const vjp::log_softmax& v) -> Grads {
      return narrowed(log_softmax_grad(v.out, v.grad, v.axis), v.x.dtype());
    },
    .saves = "x:shape out",
    .shard = "...a... -> ...a... ; a@axis whole # an element needs the sum over all first",
    .traits = Trait::Rowwise | Trait::FloatMath,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda y: (lambda z: z - np.log(np.sum(np.exp(z), axis, keepdims=True)))(y - "
        "np.max(y, axis, keepdims=True)) if y.size and y.ndim else "
        "np.zeros_like(y))(x.astype(dtype or x.dtype))",
    .samples = softmax_samples,
    .python = "oar.nn.functional",
    .onnx = "LogSoftmax",
};

const OpDef log_softmax_grad_op = {
    .schema = "log_softmax_grad(Tensor out, Tensor grad, int axis = -1) -> Tensor",
    .brief = "grad - exp(out) * sum(grad) along an axis: the derivative of log_softmax.",
    .infer = [](const args::log_softmax_grad& a) -> Metas {
      check_alike(a.out, a.grad, a.axis);
      return infer::like(a.out);
    },
    .decompose = [](const args::log_softmax_grad& a) -> Made {
      const Tensor grad = widened(a.grad);
      const Tensor total = sum(grad, IntArgs{a.axis}, std::nullopt, true);
      return narrowed(grad - exp(widened(a.out)) * total, a.out.dtype());
    },
    .shard = "...a..., ...a... -> ...a... ; a@axis whole # an element needs the sum over all first",
    .traits = Trait::Rowwise,
    .dtypes = "float",
    .numpy = "grad - np.exp(out) * np.sum(grad, axis if out.ndim else None, keepdims=True)",
    .samples = grad_samples,
};

}  // namespace

OAR_FAMILY(softmax, &softmax_op, &softmax_grad_op, &log_softmax_op, &log_softmax_grad_op)

}  // namespace oar
