// Updates of parameters along the gradient: SGD, momentum, averaged SGD, Rprop. Many tensors in one call, in
// place. Each is a fused kernel and, for a device without one or a program that needs values only, plain ops
// with the result written back.
#include "oar/ops/gen/optimizer_sgd.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/families/optimizer_rules.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

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

OAR_FAMILY(optimizer_sgd, &sgd_op, &momentum_op, &asgd_op, &rprop_op)

}  // namespace oar
