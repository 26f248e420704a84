// Losses of numbers, and likelihoods of distributions. `reduction` is 'mean', 'sum' or 'none'.
#include "oar/ops/gen/regression_loss.h"

#include <cmath>
#include <numbers>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/loss_rules.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/pointwise_loss.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

const OpDef square_error_cost_op = {
    .schema = "square_error_cost(Tensor input, Tensor label) -> Tensor",
    .brief = "(input - label)², element by element.",
    .decompose = [](const args::square_error_cost& a) -> Made { return square(a.input - a.label); },
    .dtypes = "int float",
    .numpy = "(input - label) ** 2",
    .samples = [] { return Samples().add(t({4, 3}), t({4, 3})).add(t({}), t({})); },
    .python = "oar.nn.functional",
};

const OpDef mse_loss_op = {
    .schema = "mse_loss(Tensor input, Tensor label, str reduction = 'mean') -> Tensor",
    .brief = "The squares of the differences, averaged, summed or as they are.",
    .decompose = [](const args::mse_loss& a) -> Made {
      return pointwise_loss(a.input, a.label, "square", 0, 0, a.reduction);
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else "
        "v.sum())((input - label) ** 2)",
    .samples = pair_samples,
    .python = "oar.nn.functional",
};

const OpDef l1_loss_op = {
    .schema = "l1_loss(Tensor input, Tensor label, str reduction = 'mean') -> Tensor",
    .brief = "The magnitudes of the differences, averaged, summed or as they are.",
    .decompose = [](const args::l1_loss& a) -> Made {
      return pointwise_loss(a.input, a.label, "absolute", 0, 0, a.reduction);
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else "
        "v.sum())(np.abs(input - label))",
    .samples = pair_samples,
    .python = "oar.nn.functional",
};

const OpDef smooth_l1_loss_op = {
    .schema =
        "smooth_l1_loss(Tensor input, Tensor label, str reduction = 'mean', float delta = "
        "1.0) -> Tensor",
    .brief = "d² / 2 for differences up to delta, delta * (|d| - delta / 2) beyond (Huber's loss).",
    .decompose = [](const args::smooth_l1_loss& a) -> Made {
      return pointwise_loss(a.input, a.label, "huber", a.delta, 0, a.reduction);
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else "
        "v.sum())((lambda d: np.where(np.abs(d) <= delta, 0.5 * d * d, delta * (np.abs(d) - 0.5 "
        "* delta)))(input - label))",
    .samples = [] { return pair_samples().add(t({4, 3}), t({4, 3}), "none", 0.5); },
    .python = "oar.nn.functional",
};

const OpDef kl_div_op = {
    .schema =
        "kl_div(Tensor input, Tensor label, str reduction = 'mean', bool log_target = "
        "False) -> Tensor",
    .brief =
        "label * (log(label) - input), nothing where label is not positive; with log_target "
        "label holds logarithms already. 'batchmean' divides the sum by the first size.",
    .decompose = [](const args::kl_div& a) -> Made {
      const char* kind = a.log_target ? "divergence_of_log" : "divergence";
      const Tensor label = without_tape(a.label);
      if (a.reduction != "batchmean")
        return pointwise_loss(a.input, label, kind, 0, 0, a.reduction);
      const Tensor total = pointwise_loss(a.input, label, kind, 0, 0, "sum");
      return a.input.rank() == 0 ? total : total / count_of(a.input.dims().first(1), total.dtype());
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else "
        "v.sum() / (v.shape[0] if reduction == 'batchmean' else 1))(np.exp(label) * (label - "
        "input) if log_target else np.where(label > 0, label * (np.log(np.where(label > 0, "
        "label, 1)) - input), 0))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), fixed(positive({4, 3})))
              .add(t({4, 3}), fixed(t({4, 3})), "sum", true)
              .add(t({4, 3}), fixed(positive({4, 3})), "batchmean")
              .add(t({2, 2}), fixed(t({2, 2})), "none");
        },
    .python = "oar.nn.functional",
};

const OpDef poisson_nll_loss_op = {
    .schema =
        "poisson_nll_loss(Tensor input, Tensor label, bool log_input = True, bool full = False, "
        "float epsilon = 1e-8, str reduction = 'mean') -> Tensor",
    .brief =
        "The negative log-likelihood of counts under Poisson distributions with rate exp(input), or "
        "input itself; without the term of the label alone unless full, which is then Stirling's.",
    .decompose = [](const args::poisson_nll_loss& a) -> Made {
      user_check(a.epsilon > 0, ErrorKind::InvalidArgument, "epsilon is {}; it must be positive.",
                 a.epsilon);
      check_alike(a.input, a.label);
      return pointwise_loss(a.input, a.label, a.log_input ? "poisson_of_log" : "poisson",
                            a.full ? 1 : 0, a.epsilon, a.reduction);
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else v.sum())("
        "(np.exp(input) - label * input if log_input else input - label * np.log(input + epsilon)) "
        "+ (np.where(label > 1, label * np.log(np.maximum(label, 1)) - label + 0.5 * np.log(2 * "
        "np.pi * np.maximum(label, 1)), 0) if full else 0))",
    .samples =
        [] {
          const auto y = [](const Shape& shape) { return uniform_in(0.2, 5, shape); };
          return Samples()
              .add(t({4, 3}), y({4, 3}))
              .add(positive({4, 3}), y({4, 3}), false, true, 1e-3, "none")
              .add(t({}), y({}), true, true, 1e-8, "sum");
        },
    .python = "oar.nn.functional",
};

const OpDef gaussian_nll_loss_op = {
    .schema =
        "gaussian_nll_loss(Tensor input, Tensor label, Tensor variance, bool full = False, float "
        "epsilon = 1e-6, str reduction = 'mean') -> Tensor",
    .brief =
        "The negative log-likelihood of labels under normal distributions with mean input and the "
        "variance, which is raised to epsilon at least; with the constant if full.",
    .decompose = [](const args::gaussian_nll_loss& a) -> Made {
      check_reduction(a.reduction);
      user_check(a.epsilon > 0, ErrorKind::InvalidArgument, "epsilon is {}; it must be positive.",
                 a.epsilon);
      Tensor variance = a.variance;
      if (!same(variance.shape(), a.input.shape())) {
        Shape rows = a.input.shape();
        user_check(rows.rank() > 0, ErrorKind::InvalidArgument,
                   "variance has shape {} and input is 0-d.", to_string(variance.dims()));
        rows.back() = 1;
        if (variance.rank() == a.input.rank() - 1) variance = unsqueeze(variance, {-1});
        user_check(same(variance.shape(), rows), ErrorKind::InvalidArgument,
                   "variance has shape {}; with input of shape {} it must have that shape, or 1 in "
                   "place of the last axis, or lack it.",
                   to_string(a.variance.dims()), to_string(a.input.dims()));
      }
      // As in Paddle, the variance is not trained by this loss.
      const Tensor spread = clip(widened(without_tape(variance)), Scalar(a.epsilon));
      Tensor loss = 0.5 * (log(spread) + square(widened(a.input) - widened(a.label)) / spread);
      if (a.full) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
      return narrowed(reduce_loss(loss, a.reduction), a.input.dtype());
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else v.sum())("
        "(lambda s: 0.5 * (np.log(s) + (input - label) ** 2 / s) + (0.5 * np.log(2 * np.pi) if full "
        "else 0))(np.maximum(variance if variance.ndim == input.ndim else variance[..., None], "
        "epsilon)))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({4, 3}), fixed(positive({4, 3})))
              .add(t({4, 3}), t({4, 3}), fixed(positive({4, 1})), true, 1e-6, "none")
              .add(t({4, 3}), t({4, 3}), fixed(positive({4})), false, 1e-6, "sum");
        },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(regression_loss, &square_error_cost_op, &mse_loss_op, &l1_loss_op, &smooth_l1_loss_op,
           &kl_div_op, &poisson_nll_loss_op, &gaussian_nll_loss_op)

}  // namespace oar
