// Updates with adaptive steps: Adagrad, Adadelta, Adamax, RMSProp, Lamb, NAdam, RAdam; averaged and
// sign-based ones: ASGD, Rprop. As in optimizer.cpp, many tensors in one call, in place.
// `weight_decay` times the parameter is added to the gradient, except in Lamb.
#include "oar/ops/gen/updates.h"

#include <cmath>

#include "oar/ops/core/registry.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/families/update_rules.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

Specs two() { return {t({4, 3}), t({5})}; }
Specs two_positive() { return {positive({4, 3}), positive({5})}; }
Specs two_numbers(double value) { return {number(value), number(value)}; }

// The running mean of something: keeps `rate` of the old one.
Tensor mixed(const Tensor& old, const Tensor& value, double rate) {
  return widened(old) * rate + value * (1 - rate);
}

struct NamedList {
  const char* name;
  TensorList list;
};
Metas check_update(TensorList params, std::initializer_list<NamedList> like_params_lists,
                   const Tensor& lr) {
  check_list(params, "params", params);
  for (const NamedList& l : like_params_lists) check_list(l.list, l.name, params);
  check_scalar(lr, "lr");
  return like_params(params);
}

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
        copy_into(a.decay_powers[i], a.decay_powers[i] * kNadamFade);
        copy_into(a.powers2[i], a.powers2[i] * a.beta2);
        const Tensor fade = pow(number_for(a.decay_powers[i], param), literal(a.momentum_decay));
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
        const Tensor spread = square_mean / (1 - number_for(a.powers2[i], param));
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
        copy_into(a.powers1[i], a.powers1[i] * a.beta1);
        copy_into(a.powers2[i], a.powers2[i] * a.beta2);
        const Tensor power2 = number_for(a.powers2[i], param);
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
        const Tensor rate = narrowed(a.lr, param.dtype()) / (1 - number_for(a.powers1[i], param));
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

const OpDef asgd_op = {
    .schema =
        "asgd_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] totals, Tensor(c!)[] histories, "
        "Tensor(d!)[] counts, Tensor lr, float weight_decay = 0.0) -> Tensor(a!)[]",
    .brief =
        "Steps along the average of the last gradients, one from each of n batches: `histories` "
        "hold them, `totals` their sum, `counts` the steps so far.",
    .infer = [](const args::asgd_& a) -> Metas {
      check_numbers(a.counts, "counts", a.params);
      user_check(a.histories.size() == a.params.size(), ErrorKind::InvalidArgument,
                 "histories has {} tensors and params {}; there must be one for each.",
                 a.histories.size(), a.params.size());
      for (size_t i = 0; i < a.params.size(); ++i) {
        const Tensor &history = a.histories[i], &param = a.params[i];
        user_check(history.rank() == param.rank() + 1 && !(history.dim(0) == Dim(0)) &&
                       same(Shape(history.dims().subspan(1)), param.shape()),
                   ErrorKind::InvalidArgument,
                   "histories[{}] has shape {}; it must be one place or more for each of the "
                   "parameter's shape {}.",
                   i, to_string(history.dims()), to_string(param.dims()));
        user_check(is_integral(a.counts[i].dtype()), ErrorKind::InvalidType,
                   "counts[{}] has dtype {}; it must be an integer.", i,
                   name_of(a.counts[i].dtype()));
      }
      return check_update(a.params, {{"grads", a.grads}, {"totals", a.totals}}, a.lr);
    },
    .decompose = [](const args::asgd_& a) -> Made {
      for (size_t i = 0; i < a.params.size(); ++i) {
        const Tensor& param = a.params[i];
        const Tensor grad = decayed(a.grads[i], param, a.weight_decay);
        const Dim slots = a.histories[i].dim(0);
        const Tensor many = cast(count_of(Dims(&slots, 1), DType::Float64), DType::Int64);
        const Tensor place = remainder(a.counts[i], many);
        const Tensor old = reshape(index_select(widened(a.histories[i]), place, 0), param.dims());
        const Tensor total = widened(a.totals[i]) - old + grad;
        copy_into(a.totals[i], total);
        const Tensor change = unsqueeze(grad - old, {0});
        copy_into(a.histories[i], index_add(widened(a.histories[i]), place, 0, change));
        copy_into(a.counts[i], a.counts[i] + 1);
        const Tensor used = number_for(minimum(a.counts[i], many), total);
        copy_into(param, widened(param) - narrowed(a.lr, total.dtype()) / used * total);
      }
      return written(a.params);
    },
    .traits = Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "[p - lr / min(c[0] + 1, len(h)) * (t - h[c[0] % len(h)] + g + weight_decay * p) for p, g, "
        "t, h, c in zip(params, grads, totals, histories, counts)]",
    .samples =
        [] {
          const auto counts = [](double value) {
            TensorSpec spec = of_dtype(number(value), DType::Int64);
            return Specs{spec, spec};
          };
          const Specs histories{t({3, 4, 3}), t({3, 5})};
          return Samples()
              .add(two(), two(), two(), histories, counts(1), scalar())
              .add(two(), two(), two(), histories, counts(7), scalar(), 0.1);
        },
};

const OpDef rprop_op = {
    .schema =
        "rprop_(Tensor(a!)[] params, Tensor[] grads, Tensor(b!)[] previous, Tensor(c!)[] rates, "
        "float smallest = 1e-5, float largest = 50.0, float shrink = 0.5, float grow = 1.2) -> "
        "Tensor(a!)[]",
    .brief =
        "Steps by the sign of the gradient. Each element has its own rate, which grows while the "
        "sign stays and shrinks where it changes; there the element rests for a step.",
    .infer = [](const args::rprop_& a) -> Metas {
      check_list(a.params, "params", a.params);
      check_list(a.grads, "grads", a.params);
      check_list(a.previous, "previous", a.params);
      check_list(a.rates, "rates", a.params);
      return like_params(a.params);
    },
    .decompose = [](const args::rprop_& a) -> Made {
      for (size_t i = 0; i < a.params.size(); ++i) {
        const Tensor agrees = plain(a.grads[i]) * widened(a.previous[i]);
        const Tensor turned = less_than(agrees, literal(0));
        const Tensor grad = zero_where(turned, plain(a.grads[i]));
        const Tensor factor =
            where(turned, literal(a.shrink),
                  where(greater_than(agrees, literal(0)), literal(a.grow), literal(1.0)));
        const Tensor rate = clip(widened(a.rates[i]) * narrowed(factor, grad.dtype()),
                                 Scalar(a.smallest), Scalar(a.largest));
        copy_into(a.previous[i], grad);
        copy_into(a.rates[i], rate);
        copy_into(a.params[i], widened(a.params[i]) - sign(grad) * rate);
      }
      return written(a.params);
    },
    .traits = Trait::NoGrad,
    .dtypes = "float",
    .numpy =
        "[p - np.sign(np.where(g * b < 0, 0, g)) * np.clip(r * np.where(g * b < 0, shrink, "
        "np.where(g * b > 0, grow, 1)), smallest, largest) for p, g, b, r in zip(params, grads, "
        "previous, rates)]",
    .samples =
        [] {
          return Samples()
              .add(two(), two(), two(), two_positive())
              .add(two(), two(), two(), two_positive(), 0.7, 1.0, 0.4, 1.5);
        },
};

}  // namespace

OAR_FAMILY(updates, &adagrad_op, &adadelta_op, &adamax_op, &rmsprop_op, &lamb_op, &nadam_op,
           &radam_op, &asgd_op, &rprop_op)

}  // namespace oar
