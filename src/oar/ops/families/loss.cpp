// Losses. `reduction` is 'mean', 'sum' or 'none'.
#include "oar/ops/gen/loss.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/loss_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/along.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/pointwise_loss.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"

namespace oar {

void check_reduction(std::string_view reduction) {
  user_check(reduction == "mean" || reduction == "sum" || reduction == "none",
             ErrorKind::InvalidArgument, "reduction is '{}'; it can be 'mean', 'sum' or 'none'.",
             reduction);
}

Tensor reduce_loss(const Tensor& loss, std::string_view reduction) {
  check_reduction(reduction);
  if (reduction == "none") return loss;
  return reduction == "mean" ? mean(loss) : sum(loss);
}

namespace {

Samples pair_samples() {
  return Samples()
      .add(t({4, 3}), t({4, 3}))
      .add(t({2, 3}), t({2, 3}), "none")
      .add(t({2, 3}), t({3}), "sum")
      .add(t({}), t({}));
}

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

const OpDef binary_cross_entropy_op = {
    .schema =
        "binary_cross_entropy(Tensor input, Tensor label, Tensor? weight = None, str "
        "reduction = 'mean') -> Tensor",
    .brief =
        "The cross entropy of probabilities and labels in [0, 1], times a weight if one is "
        "given.",
    .decompose = [](const args::binary_cross_entropy& a) -> Made {
      const Tensor label = without_tape(a.label);
      if (!a.weight.defined())
        return pointwise_loss(a.input, label, "bernoulli", 0, 0, a.reduction);
      const Tensor loss = pointwise_loss(a.input, label, "bernoulli", 0, 0, "none");
      return reduce_loss(loss * a.weight, a.reduction);
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else "
        "v.sum())(-(label * np.log(input) + (1 - label) * np.log(1 - input)) * (1 if weight is "
        "None else weight))",
    .samples =
        [] {
          const auto p = [](const Shape& shape) { return uniform_in(0.1, 0.9, shape); };
          return Samples()
              .add(p({4, 3}), fixed(p({4, 3})))
              .add(p({4, 3}), fixed(p({4, 3})), p({3}), "none")
              .add(p({3}), fixed(p({3})), p({3}), "sum");
        },
    .python = "oar.nn.functional",
};

const OpDef binary_cross_entropy_with_logits_op = {
    .schema =
        "binary_cross_entropy_with_logits(Tensor logit, Tensor label, Tensor? weight = "
        "None, str reduction = 'mean', Tensor? pos_weight = None) -> Tensor",
    .brief =
        "The cross entropy of sigmoid(logit) and labels in [0, 1], without overflow; "
        "pos_weight weighs the positive labels.",
    .decompose = [](const args::binary_cross_entropy_with_logits& a) -> Made {
      const Tensor label = without_tape(a.label);
      if (!a.weight.defined() && !a.pos_weight.defined())
        return pointwise_loss(a.logit, label, "binary_entropy", 0, 0, a.reduction);
      // log_sigmoid is exact for large arguments of either sign.
      Tensor logs = -log_sigmoid(a.logit);
      if (a.pos_weight.defined()) logs = logs * (label * (without_tape(a.pos_weight) - 1) + 1);
      const Tensor loss = (1 - label) * a.logit + logs;
      return reduce_loss(a.weight.defined() ? loss * a.weight : loss, a.reduction);
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else "
        "v.sum())(((1 - label) * logit + (np.log1p(np.exp(-np.abs(logit))) + np.maximum(-logit, "
        "0)) * (1 if pos_weight is None else label * (pos_weight - 1) + 1)) * (1 if weight is "
        "None else weight))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), fixed(uniform_in(0, 1, {4, 3})))
              .add(t({4, 3}), fixed(uniform_in(0, 1, {4, 3})), positive({3}), "none")
              .add(t({3}), fixed(uniform_in(0, 1, {3})), std::nullopt, "sum", fixed(positive({3})));
        },
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

const OpDef log_loss_op = {
    .schema = "log_loss(Tensor input, Tensor label, float epsilon = 0.0001) -> Tensor",
    .brief = "-label * log(input + epsilon) - (1 - label) * log(1 - input + epsilon).",
    .decompose = [](const args::log_loss& a) -> Made {
      const Tensor label = without_tape(a.label);
      return -(label * log(a.input + a.epsilon)) - (1 - label) * log(1 - a.input + a.epsilon);
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "-label * np.log(input + epsilon) - (1 - label) * np.log(1 - input + epsilon)",
    .samples =
        [] { return Samples().add(uniform_in(0.1, 0.9, {4, 1}), fixed(uniform_in(0, 1, {4, 1}))); },
    .python = "oar.nn.functional",
};

const OpDef margin_ranking_loss_op = {
    .schema =
        "margin_ranking_loss(Tensor input, Tensor other, Tensor label, float margin = 0.0, "
        "str reduction = 'mean') -> Tensor",
    .brief = "max(0, margin - label * (input - other)).",
    .decompose = [](const args::margin_ranking_loss& a) -> Made {
      return reduce_loss(relu(a.label * (a.other - a.input) + a.margin), a.reduction);
    },
    .dtypes = "float",
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else "
        "v.sum())(np.maximum(label * (other - input) + margin, 0))",
    .samples =
        [] {
          return Samples()
              .add(t({4}), t({4}), t({4}), 0.3)
              .add(t({2, 3}), t({2, 3}), t({2, 3}), 0.1, "none");
        },
    .python = "oar.nn.functional",
};

const OpDef soft_margin_loss_op = {
    .schema = "soft_margin_loss(Tensor input, Tensor label, str reduction = 'mean') -> Tensor",
    .brief = "log(1 + exp(-label * input)) for labels of 1 and -1, without overflow.",
    .decompose = [](const args::soft_margin_loss& a) -> Made {
      return pointwise_loss(a.input, narrowed(a.label, a.input.dtype()), "logistic", 0, 0,
                            a.reduction);
    },
    .dtypes = "float",
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else "
        "v.sum())(np.log1p(np.exp(-label * input)))",
    .samples = pair_samples,
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(loss, &square_error_cost_op, &mse_loss_op, &l1_loss_op, &smooth_l1_loss_op,
           &binary_cross_entropy_op, &binary_cross_entropy_with_logits_op, &kl_div_op, &log_loss_op,
           &margin_ranking_loss_op, &soft_margin_loss_op)

}  // namespace oar
