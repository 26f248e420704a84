// Parameter updates: many tensors in one call, in place. Each is a fused kernel and, for a device
// without one or a program that wants values only, plain ops with the result written back.
#include "oar/ops/gen/optimizer.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/update_rules.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/selected_rows.h"

namespace oar {
namespace {

// Writes an updated parameter, with its master copy if it has one.
void store(TensorList params, TensorList masters, size_t i, const Tensor& value) {
  if (!masters.empty()) copy_into(masters[i], value);
  copy_into(params[i], value);
}
const Tensor& source(TensorList params, TensorList masters, size_t i) {
  return masters.empty() ? params[i] : masters[i];
}

const OpDef sgd_op = {
    .schema =
        "sgd_(Tensor(a!)[] params, Tensor[] grads, Tensor lr, float weight_decay = 0.0) -> "
        "Tensor(a!)[]",
    .brief =
        "param -= lr * (grad + weight_decay * param). Gradients of single rows touch those "
        "rows.",
    .infer = [](const args::sgd_& a) -> Metas {
      check_list(a.params, "params", a.params);
      check_list(a.grads, "grads", a.params);
      check_scalar(a.lr, "lr");
      return like_params(a.params);
    },
    .decompose = [](const args::sgd_& a) -> Made {
      for (size_t i = 0; i < a.params.size(); ++i) {
        const Tensor& param = a.params[i];
        copy_into(param, widened(param) - a.lr * decayed(a.grads[i], param, a.weight_decay));
      }
      return written(a.params);
    },
    .traits = Trait::NoGrad | Trait::SelectedRows,
    .dtypes = "float",
    .numpy = "[p - lr * (g + weight_decay * p) for p, g in zip(params, grads)]",
    .samples =
        [] {
          return Samples()
              .add(Specs{t({4, 3}), t({5})}, Specs{t({4, 3}), t({5})}, scalar())
              .add(Specs{t({2, 3})}, Specs{t({2, 3})}, scalar(), 0.1)
              .add(Specs{t({}), t({0, 2})}, Specs{t({}), t({0, 2})}, scalar());
        },
};

const OpDef momentum_op = {
    .schema =
        "momentum_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] velocities, Tensor "
        "lr, float momentum = 0.9, bool use_nesterov = False, float weight_decay = 0.0) -> "
        "Tensor(a!)[]",
    .brief =
        "velocity = momentum * velocity + grad; param -= lr * velocity, or with Nesterov lr "
        "* (grad + momentum * velocity).",
    .infer = [](const args::momentum_& a) -> Metas {
      check_list(a.params, "params", a.params);
      check_list(a.grads, "grads", a.params);
      check_list(a.velocities, "velocities", a.params);
      check_scalar(a.lr, "lr");
      return like_params(a.params);
    },
    .decompose = [](const args::momentum_& a) -> Made {
      for (size_t i = 0; i < a.params.size(); ++i) {
        const Tensor& param = a.params[i];
        const Tensor grad = decayed(a.grads[i], param, a.weight_decay);
        const Tensor velocity = widened(a.velocities[i]) * a.momentum + grad;
        copy_into(a.velocities[i], velocity);
        const Tensor step = a.use_nesterov ? grad + velocity * a.momentum : velocity;
        copy_into(param, widened(param) - a.lr * step);
      }
      return written(a.params);
    },
    .traits = Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "[p - lr * (w if not use_nesterov else d + momentum * w) for p, g, v in zip(params, "
        "grads, velocities) for d in [g + weight_decay * p] for w in [momentum * v + d]]",
    .samples =
        [] {
          const Specs two{t({4, 3}), t({5})};
          return Samples()
              .add(two, two, two, scalar())
              .add(two, two, two, scalar(), 0.5, true)
              .add(two, two, two, scalar(), 0.9, false, 0.1);
        },
};

const OpDef adamw_op = {
    .schema =
        "adamw_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] moments1, Tensor(c!)[] "
        "moments2, Tensor lr, Tensor(d!) step, float beta1 = 0.9, float beta2 = 0.999, float "
        "epsilon = 1e-8, float weight_decay = 0.01, Tensor(e!)[]? masters = None) -> Tensor(a!)[]",
    .brief =
        "Adam with decoupled weight decay: counts a step, moves the means of the gradient "
        "and of its square, and the parameter by their ratio. Master copies, where given, hold "
        "the parameters in full precision.",
    .infer = [](const args::adamw_& a) -> Metas {
      check_list(a.params, "params", a.params);
      check_list(a.grads, "grads", a.params);
      check_list(a.moments1, "moments1", a.params);
      check_list(a.moments2, "moments2", a.params);
      if (!a.masters.empty()) check_list(a.masters, "masters", a.params);
      check_scalar(a.lr, "lr");
      check_scalar(a.step, "step");
      return like_params(a.params);
    },
    .decompose = [](const args::adamw_& a) -> Made {
      copy_into(a.step, a.step + 1.0);
      for (size_t i = 0; i < a.params.size(); ++i) {
        const Tensor param = widened(source(a.params, a.masters, i)), grad = plain(a.grads[i]);
        const Tensor step = narrowed(a.step, param.dtype()), lr = narrowed(a.lr, param.dtype());
        const Tensor bias1 = 1.0 - pow(literal(a.beta1), step),
                     bias2 = 1.0 - pow(literal(a.beta2), step);
        const Tensor mean = widened(a.moments1[i]) * a.beta1 + grad * (1 - a.beta1);
        const Tensor square_mean = widened(a.moments2[i]) * a.beta2 + square(grad) * (1 - a.beta2);
        copy_into(a.moments1[i], mean);
        copy_into(a.moments2[i], square_mean);
        const Tensor ratio = mean / (sqrt(square_mean / bias2) + a.epsilon);
        const Tensor kept = param * (1.0 - lr * a.weight_decay);
        store(a.params, a.masters, i, kept - lr / bias1 * ratio);
      }
      return written(a.params);
    },
    .traits = Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "[p * (1 - lr * weight_decay) - lr / (1 - beta1 ** (step + 1)) * m / (np.sqrt(v / "
        "(1 - beta2 ** (step + 1))) + epsilon) for p, g, m0, v0 in zip(params if not masters "
        "else masters, grads, moments1, moments2) for m in [beta1 * m0 + (1 - beta1) * g] for v "
        "in [beta2 * v0 + (1 - beta2) * g * g]]",
    .samples =
        [] {
          const Specs two{t({4, 3}), t({5})}, squares{positive({4, 3}), positive({5})};
          return Samples()
              .add(two, two, two, squares, scalar(), count())
              .add(two, two, two, squares, scalar(), count(), 0.8, 0.9, 1e-3, 0.2)
              .add(two, two, two, squares, scalar(), count(), 0.9, 0.99, 1e-8, 0.0, two);
        },
};

}  // namespace

OAR_FAMILY(optimizer, &sgd_op, &momentum_op, &adamw_op)

}  // namespace oar
