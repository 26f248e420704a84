// Updates of parameters with steps that past gradients scale: Adagrad, Adadelta, RMSProp. As in
// optimizer_sgd.cpp, many tensors in one call, in place. `weight_decay` times the parameter is added to the
// gradient.
#include "oar/ops/gen/optimizer_adagrad.h"

#include "oar/ops/core/registry.h"
#include "oar/ops/families/optimizer_rules.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

const OpDef adagrad_op = {
    .schema =
        "adagrad_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] moments, Tensor lr, float "
        "epsilon = 1e-6, float weight_decay = 0.0) -> Tensor(a!)[]",
    .brief = "moment += grad²; param -= lr * grad / (sqrt(moment) + epsilon).",
    .infer = [](const args::adagrad_& a) -> Metas {
      return check_update(a.params, {{"grads", a.grads}, {"moments", a.moments}}, a.lr);
    },
    .decompose = [](const args::adagrad_& a) -> Made {
      for (size_t i = 0; i < a.params.size(); ++i) {
        const Tensor& param = a.params[i];
        const Tensor grad = decayed(a.grads[i], param, a.weight_decay);
        const Tensor moment = widened(a.moments[i]) + square(grad);
        copy_into(a.moments[i], moment);
        copy_into(param, widened(param) - a.lr * grad / (sqrt(moment) + a.epsilon));
      }
      return written(a.params);
    },
    .traits = Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "[p - lr * d / (np.sqrt(m + d * d) + epsilon) for p, g, m in zip(params, grads, moments) "
        "for d in [g + weight_decay * p]]",
    .samples =
        [] {
          return Samples()
              .add(two(), two(), two_positive(), scalar())
              .add(two(), two(), two_positive(), scalar(), 1e-2, 0.1);
        },
};

const OpDef adadelta_op = {
    .schema =
        "adadelta_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] square_grads, Tensor(c!)[] "
        "square_updates, Tensor lr, float rho = 0.95, float epsilon = 1e-6, float weight_decay = "
        "0.0) -> Tensor(a!)[]",
    .brief =
        "Steps of the size of former steps: param -= lr * u with u = grad * sqrt((mean of u² + "
        "epsilon) / (mean of grad² + epsilon)).",
    .infer = [](const args::adadelta_& a) -> Metas {
      return check_update(a.params,
                          {{"grads", a.grads},
                           {"square_grads", a.square_grads},
                           {"square_updates", a.square_updates}},
                          a.lr);
    },
    .decompose = [](const args::adadelta_& a) -> Made {
      for (size_t i = 0; i < a.params.size(); ++i) {
        const Tensor& param = a.params[i];
        const Tensor grad = decayed(a.grads[i], param, a.weight_decay);
        const Tensor square_grad = mixed(a.square_grads[i], square(grad), a.rho);
        const Tensor update =
            grad * sqrt((widened(a.square_updates[i]) + a.epsilon) / (square_grad + a.epsilon));
        copy_into(a.square_updates[i], mixed(a.square_updates[i], square(update), a.rho));
        copy_into(a.square_grads[i], square_grad);
        copy_into(param, widened(param) - a.lr * update);
      }
      return written(a.params);
    },
    .traits = Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "[p - lr * d * np.sqrt((u + epsilon) / (rho * s + (1 - rho) * d * d + epsilon)) for p, g, "
        "s, u in zip(params, grads, square_grads, square_updates) for d in [g + weight_decay * p]]",
    .samples =
        [] {
          return Samples()
              .add(two(), two(), two_positive(), two_positive(), scalar())
              .add(two(), two(), two_positive(), two_positive(), scalar(), 0.8, 1e-3, 0.1);
        },
};

const OpDef rmsprop_op = {
    .schema =
        "rmsprop_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] mean_squares, Tensor(c!)[] "
        "mean_grads, Tensor(d!)[] velocities, Tensor lr, float rho = 0.95, float epsilon = 1e-6, "
        "float momentum = 0.0, bool centered = False, float weight_decay = 0.0) -> Tensor(a!)[]",
    .brief =
        "velocity = momentum * velocity + lr * grad / sqrt(mean of grad² + epsilon), where centered "
        "less the square of the mean; param -= velocity.",
    .infer = [](const args::rmsprop_& a) -> Metas {
      return check_update(a.params,
                          {{"grads", a.grads},
                           {"mean_squares", a.mean_squares},
                           {"mean_grads", a.mean_grads},
                           {"velocities", a.velocities}},
                          a.lr);
    },
    .decompose = [](const args::rmsprop_& a) -> Made {
      for (size_t i = 0; i < a.params.size(); ++i) {
        const Tensor& param = a.params[i];
        const Tensor grad = decayed(a.grads[i], param, a.weight_decay);
        const Tensor mean_square = mixed(a.mean_squares[i], square(grad), a.rho);
        copy_into(a.mean_squares[i], mean_square);
        Tensor spread = mean_square;
        if (a.centered) {
          const Tensor mean_grad = mixed(a.mean_grads[i], grad, a.rho);
          copy_into(a.mean_grads[i], mean_grad);
          spread = spread - square(mean_grad);
        }
        const Tensor velocity =
            widened(a.velocities[i]) * a.momentum + a.lr * grad / sqrt(spread + a.epsilon);
        copy_into(a.velocities[i], velocity);
        copy_into(param, widened(param) - velocity);
      }
      return written(a.params);
    },
    .plan = sharding::like_parameters,
    .traits = Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "[p - momentum * v - lr * d / np.sqrt(rho * s + (1 - rho) * d * d - (rho * m + (1 - rho) * "
        "d) ** 2 * centered + epsilon) for p, g, s, m, v in zip(params, grads, mean_squares, "
        "mean_grads, velocities) for d in [g + weight_decay * p]]",
    .samples =
        [] {
          const Specs small{uniform_in(-0.2, 0.2, {4, 3}), uniform_in(-0.2, 0.2, {5})};
          return Samples()
              .add(two(), two(), two_positive(), small, two(), scalar())
              .add(two(), two(), two_positive(), small, two(), scalar(), 0.9, 1e-3, 0.5, true, 0.1);
        },
};

}  // namespace

OAR_FAMILY(optimizer_adagrad, &adagrad_op, &adadelta_op, &rmsprop_op)

}  // namespace oar
