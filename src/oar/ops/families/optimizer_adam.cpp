// Updates of parameters by two moments of the gradient: AdamW and its variants. As in optimizer_sgd.cpp, many
// tensors in one call, in place. `weight_decay` times the parameter is added to the gradient, except in AdamW
// and Lamb.
#include "oar/ops/gen/optimizer_adam.h"

#include <cmath>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/families/optimizer_rules.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"

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

const OpDef adamw_op = {
    .schema =
        "adamw_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] moments1, Tensor(c!)[] "
        "moments2, Tensor lr, Tensor(d!) step, float beta1 = 0.9, float beta2 = 0.999, float "
        "epsilon = 1e-8, float weight_decay = 0.01, Tensor(e!)[]? masters = None) -> Tensor(a!)[]",
    .brief =
        "Adam with decoupled weight decay: counts a step, moves the means of the gradient "
        "and of its square, and the parameter by their ratio. Master copies, if passed, hold "
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

const OpDef adamax_op = {
    .schema =
        "adamax_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] moments, Tensor(c!)[] norms, "
        "Tensor(d!)[] powers, Tensor lr, float beta1 = 0.9, float beta2 = 0.999, float epsilon = "
        "1e-8, float weight_decay = 0.0) -> Tensor(a!)[]",
    .brief =
        "Adam with the largest gradient, fading, in place of the mean square: norm = max(|grad|, "
        "beta2 * norm + epsilon). `powers` hold beta1 to the number of this step.",
    .infer = [](const args::adamax_& a) -> Metas {
      check_numbers(a.powers, "powers", a.params);
      return check_update(a.params,
                          {{"grads", a.grads}, {"moments", a.moments}, {"norms", a.norms}}, a.lr);
    },
    .decompose = [](const args::adamax_& a) -> Made {
      for (size_t i = 0; i < a.params.size(); ++i) {
        const Tensor& param = a.params[i];
        const Tensor wide = widened(param), power = number_for(a.powers[i], wide);
        const Tensor grad = decayed(a.grads[i], param, a.weight_decay);
        const Tensor moment = mixed(a.moments[i], grad, a.beta1);
        const Tensor norm = maximum(abs(grad), widened(a.norms[i]) * a.beta2 + a.epsilon);
        copy_into(a.moments[i], moment);
        copy_into(a.norms[i], norm);
        copy_into(param, wide - narrowed(a.lr, wide.dtype()) / (1 - power) * (moment / norm));
        copy_into(a.powers[i], a.powers[i] * a.beta1);
      }
      return written(a.params);
    },
    .traits = Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "[p - lr / (1 - q[0]) * (beta1 * m + (1 - beta1) * d) / np.maximum(np.abs(d), beta2 * n + "
        "epsilon) for p, g, m, n, q in zip(params, grads, moments, norms, powers) for d in [g + "
        "weight_decay * p]]",
    .samples =
        [] {
          return Samples()
              .add(two(), two(), two(), two_positive(), two_numbers(0.5), scalar())
              .add(two(), two(), two(), two_positive(), two_numbers(0.8), scalar(), 0.8, 0.9, 1e-3,
                   0.1);
        },
};

constexpr double kNadamFade = 0.96;

const OpDef nadam_op = {
    .schema =
        "nadam_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] moments1, Tensor(c!)[] moments2, "
        "Tensor(d!)[] decay_powers, Tensor(e!)[] powers2, Tensor(f!)[] products, Tensor lr, float "
        "beta1 = 0.9, float beta2 = 0.999, float epsilon = 1e-8, float momentum_decay = 0.004, "
        "float weight_decay = 0.0) -> Tensor(a!)[]",
    .brief =
        "Adam with Nesterov's momentum, whose share grows from step to step: beta1 * (1 - 0.96 ^ "
        "(step * momentum_decay) / 2). `decay_powers` hold 0.96 and `powers2` beta2 to the number "
        "of steps so far, `products` the product of the shares.",
    .infer = [](const args::nadam_& a) -> Metas {
      check_numbers(a.decay_powers, "decay_powers", a.params);
      check_numbers(a.powers2, "powers2", a.params);
      check_numbers(a.products, "products", a.params);
      return check_update(
          a.params, {{"grads", a.grads}, {"moments1", a.moments1}, {"moments2", a.moments2}}, a.lr);
    },
    .decompose = [](const args::nadam_& a) -> Made {
      for (size_t i = 0; i < a.params.size(); ++i) {
        const Tensor param = widened(a.params[i]);
        const Tensor grad = decayed(a.grads[i], a.params[i], a.weight_decay);
        const Tensor faded = number_for(a.decay_powers[i], param) * kNadamFade,
                     power2 = number_for(a.powers2[i], param) * a.beta2;
        copy_into(a.decay_powers[i], reshape(faded, {1}));
        copy_into(a.powers2[i], reshape(power2, {1}));
        const Tensor fade = pow(faded, literal(a.momentum_decay));
        const Tensor share = a.beta1 * (1 - 0.5 * fade),
                     next = a.beta1 * (1 - fade * (0.5 * std::pow(kNadamFade, a.momentum_decay)));
        const Tensor product = number_for(a.products[i], param) * share;
        copy_into(a.products[i], reshape(product, {1}));
        const Tensor mean = mixed(a.moments1[i], grad, a.beta1);
        const Tensor square_mean = mixed(a.moments2[i], square(grad), a.beta2);
        copy_into(a.moments1[i], mean);
        copy_into(a.moments2[i], square_mean);
        const Tensor ahead =
            mean * (next / (1 - product * next)) + grad * ((1 - share) / (1 - product));
        const Tensor spread = square_mean / (1 - power2);
        copy_into(a.params[i],
                  param - narrowed(a.lr, param.dtype()) * ahead / (sqrt(spread) + a.epsilon));
      }
      return written(a.params);
    },
    .traits = Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "[p - lr * (n * (beta1 * m + (1 - beta1) * d) / (1 - u * n) + (1 - s) * d / (1 - u)) / "
        "(np.sqrt((beta2 * v + (1 - beta2) * d * d) / (1 - q[0] * beta2)) + epsilon) for p, g, m, "
        "v, w, q, z in zip(params, grads, moments1, moments2, decay_powers, powers2, products) for "
        "d in [g + weight_decay * p] for f in [(w[0] * 0.96) ** momentum_decay] for s in [beta1 * "
        "(1 - 0.5 * f)] for n in [beta1 * (1 - 0.5 * f * 0.96 ** momentum_decay)] for u in [z[0] * "
        "s]]",
    .samples =
        [] {
          return Samples()
              .add(two(), two(), two(), two_positive(), two_numbers(0.9), two_numbers(0.8),
                   two_numbers(0.5), scalar())
              .add(two(), two(), two(), two_positive(), two_numbers(0.9), two_numbers(0.8),
                   two_numbers(0.5), scalar(), 0.8, 0.9, 1e-3, 0.01, 0.1);
        },
};

const OpDef radam_op = {
    .schema =
        "radam_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] moments1, Tensor(c!)[] moments2, "
        "Tensor(d!)[] powers1, Tensor(e!)[] powers2, Tensor(f!)[] rhos, Tensor lr, float beta1 = "
        "0.9, float beta2 = 0.999, float epsilon = 1e-8, float weight_decay = 0.0) -> Tensor(a!)[]",
    .brief =
        "Adam that begins without its divisor and rectifies the step while the mean of squares is "
        "of few gradients. `powers` hold the betas to the number of steps so far, `rhos` steps * "
        "beta2 ^ steps / (1 - beta2 ^ steps).",
    .infer = [](const args::radam_& a) -> Metas {
      check_numbers(a.powers1, "powers1", a.params);
      check_numbers(a.powers2, "powers2", a.params);
      check_numbers(a.rhos, "rhos", a.params);
      return check_update(
          a.params, {{"grads", a.grads}, {"moments1", a.moments1}, {"moments2", a.moments2}}, a.lr);
    },
    .decompose = [](const args::radam_& a) -> Made {
      const double longest = 2 / (1 - a.beta2) - 1;
      for (size_t i = 0; i < a.params.size(); ++i) {
        const Tensor param = widened(a.params[i]);
        const Tensor grad = decayed(a.grads[i], a.params[i], a.weight_decay);
        const Tensor power1 = number_for(a.powers1[i], param) * a.beta1,
                     power2 = number_for(a.powers2[i], param) * a.beta2;
        copy_into(a.powers1[i], reshape(power1, {1}));
        copy_into(a.powers2[i], reshape(power2, {1}));
        const Tensor rho =
            (number_for(a.rhos[i], param) * (a.beta2 - power2) + power2) / (1 - power2);
        copy_into(a.rhos[i], reshape(rho, {1}));
        const Tensor mean = mixed(a.moments1[i], grad, a.beta1);
        const Tensor square_mean = mixed(a.moments2[i], square(grad), a.beta2);
        copy_into(a.moments1[i], mean);
        copy_into(a.moments2[i], square_mean);
        const Tensor length = longest - 2 * rho, enough = greater_than(length, literal(5));
        const Tensor safe = where(enough, length, literal(6));
        const Tensor rectified =
            sqrt((safe - 4) * (safe - 2) * longest / (safe * ((longest - 4) * (longest - 2))));
        const Tensor divided = sqrt(1 - power2) / (sqrt(square_mean) + a.epsilon);
        const Tensor rate = narrowed(a.lr, param.dtype()) / (1 - power1);
        copy_into(a.params[i],
                  param - rate * mean * where(enough, rectified * divided, literal(1)));
      }
      return written(a.params);
    },
    .traits = Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "[p - lr * (beta1 * m + (1 - beta1) * d) / (1 - q1[0] * beta1) * (np.sqrt((l - 4) * (l - 2) "
        "* L / (l * (L - 4) * (L - 2))) * np.sqrt(1 - b) / (np.sqrt(beta2 * v + (1 - beta2) * d * d)"
        " + epsilon) if l > 5 else 1) for p, g, m, v, q1, q2, r in zip(params, grads, moments1, "
        "moments2, powers1, powers2, rhos) for d in [g + weight_decay * p] for L in [2 / (1 - "
        "beta2) - 1] for b in [q2[0] * beta2] for l in [L - 2 * (r[0] * (beta2 - b) + b) / (1 - "
        "b)]]",
    .samples =
        [] {
          return Samples()
              .add(two(), two(), two(), two_positive(), two_numbers(1.0), two_numbers(1.0),
                   two_numbers(1.0), scalar())
              .add(two(), two(), two(), two_positive(), two_numbers(0.3), two_numbers(0.4),
                   two_numbers(3.5), scalar(), 0.8, 0.95, 1e-3, 0.1);
        },
};

const OpDef lamb_op = {
    .schema =
        "lamb_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] moments1, Tensor(c!)[] moments2, "
        "Tensor(d!)[] powers1, Tensor(e!)[] powers2, Tensor lr, float beta1 = 0.9, float beta2 = "
        "0.999, float epsilon = 1e-6, float weight_decay = 0.01, bool always_adapt = False) -> "
        "Tensor(a!)[]",
    .brief =
        "Adam's step with decay, scaled for each tensor by the ratio of the parameter's norm to the "
        "step's, if there is decay or always_adapt. `powers` hold the betas to the number of this "
        "step.",
    .infer = [](const args::lamb_& a) -> Metas {
      check_numbers(a.powers1, "powers1", a.params);
      check_numbers(a.powers2, "powers2", a.params);
      return check_update(
          a.params, {{"grads", a.grads}, {"moments1", a.moments1}, {"moments2", a.moments2}}, a.lr);
    },
    .decompose = [](const args::lamb_& a) -> Made {
      for (size_t i = 0; i < a.params.size(); ++i) {
        const Tensor param = widened(a.params[i]), grad = plain(a.grads[i]);
        const Tensor mean = mixed(a.moments1[i], grad, a.beta1);
        const Tensor square_mean = mixed(a.moments2[i], square(grad), a.beta2);
        copy_into(a.moments1[i], mean);
        copy_into(a.moments2[i], square_mean);
        const Tensor bias1 = 1 - number_for(a.powers1[i], param),
                     bias2 = 1 - number_for(a.powers2[i], param);
        const Tensor step =
            mean / bias1 / (sqrt(square_mean / bias2) + a.epsilon) + param * a.weight_decay;
        Tensor rate = narrowed(a.lr, param.dtype());
        if (a.weight_decay > 0 || a.always_adapt) {
          const Tensor size = sqrt(sum(square(param))), step_size = sqrt(sum(square(step)));
          const Tensor both =
              logical_and(greater_than(size, literal(0)), greater_than(step_size, literal(0)));
          rate = rate * where(both, size / where(both, step_size, literal(1)), literal(1));
        }
        copy_into(a.params[i], param - rate * step);
        copy_into(a.powers1[i], a.powers1[i] * a.beta1);
        copy_into(a.powers2[i], a.powers2[i] * a.beta2);
      }
      return written(a.params);
    },
    .traits = Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "[p - lr * (np.linalg.norm(p) / np.linalg.norm(s) if (weight_decay > 0 or always_adapt) and "
        "np.linalg.norm(p) > 0 else 1) * s for p, g, m, v, q1, q2 in zip(params, grads, moments1, "
        "moments2, powers1, powers2) for s in [(beta1 * m + (1 - beta1) * g) / (1 - q1[0]) / "
        "(np.sqrt((beta2 * v + (1 - beta2) * g * g) / (1 - q2[0])) + epsilon) + weight_decay * p]]",
    .samples =
        [] {
          return Samples()
              .add(two(), two(), two(), two_positive(), two_numbers(0.5), two_numbers(0.9),
                   scalar())
              .add(two(), two(), two(), two_positive(), two_numbers(0.5), two_numbers(0.9),
                   scalar(), 0.8, 0.9, 1e-3, 0.0)
              .add(two(), two(), two(), two_positive(), two_numbers(0.5), two_numbers(0.9),
                   scalar(), 0.8, 0.9, 1e-3, 0.0, true);
        },
};

}  // namespace

OAR_FAMILY(optimizer_adam, &adamw_op, &adamax_op, &nadam_op, &radam_op, &lamb_op)

}  // namespace oar
