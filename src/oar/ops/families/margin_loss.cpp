// Losses with a margin, of several labels at once, and likelihoods of other distributions.
#include "oar/ops/gen/margin_loss.h"

#include <cmath>
#include <numbers>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/loss_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/along.h"
#include "oar/ops/gen/cross_entropy.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/pointwise_loss.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

void check_alike(const Tensor& input, const Tensor& label) {
  user_check(same(input.shape(), label.shape()), ErrorKind::InvalidArgument,
             "input has shape {} and label {}; they must be equal.", to_string(input.dims()),
             to_string(label.dims()));
}

const OpDef hinge_embedding_loss_op = {
    .schema =
        "hinge_embedding_loss(Tensor input, Tensor label, float margin = 1.0, str reduction = "
        "'mean') -> Tensor",
    .brief = "input where label is 1, max(0, margin - input) where it is -1.",
    .decompose = [](const args::hinge_embedding_loss& a) -> Made {
      return pointwise_loss(a.input, without_tape(a.label), "hinge_embedding", a.margin, 0,
                            a.reduction);
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else "
        "v.sum())(np.where(label == 1, input, np.where(label == -1, np.maximum(margin - input, 0), "
        "0)))",
    .samples =
        [] {
          return Samples()
              .add(t({6}), ints(-1, 2, {6}))
              .add(t({2, 3}), ints(-1, 2, {2, 3}), 0.4, "none")
              .add(t({}), ints(-1, 2, {}), 0.4, "sum");
        },
    .python = "oar.nn.functional",
};

const OpDef multi_label_soft_margin_loss_op = {
    .schema =
        "multi_label_soft_margin_loss(Tensor input, Tensor label, Tensor? weight = None, str "
        "reduction = 'mean') -> Tensor",
    .brief =
        "The mean over the last axis of -label * log(sigmoid(input)) - (1 - label) * "
        "log(sigmoid(-input)), times a weight if one is given.",
    .decompose = [](const args::multi_label_soft_margin_loss& a) -> Made {
      check_reduction(a.reduction);
      check_alike(a.input, a.label);
      user_check(a.input.rank() > 0, ErrorKind::InvalidArgument,
                 "input is 0-d; it needs an axis of classes.");
      // The mean of means of equal length is the mean.
      if (!a.weight.defined() && a.reduction == "mean")
        return pointwise_loss(a.input, a.label, "binary_entropy", 0, 0, "mean");
      Tensor loss = pointwise_loss(a.input, a.label, "binary_entropy", 0, 0, "none");
      if (a.weight.defined()) loss = loss * a.weight;
      return reduce_loss(mean(loss, IntArgs{-1}), a.reduction);
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else v.sum())((((1 "
        "- label) * input + np.logaddexp(0, -input)) * (1 if weight is None else "
        "weight)).mean(-1))",
    .samples =
        [] {
          const auto y = [](const Shape& shape) { return uniform_in(0, 1, shape); };
          return Samples()
              .add(t({4, 3}), y({4, 3}))
              .add(t({4, 3}), y({4, 3}), positive({3}), "none")
              .add(t({3}), y({3}), std::nullopt, "sum");
        },
    .python = "oar.nn.functional",
};

const OpDef multi_margin_loss_op = {
    .schema =
        "multi_margin_loss(Tensor input, Tensor label, int p = 1, float margin = 1.0, Tensor? "
        "weight = None, str reduction = 'mean') -> Tensor",
    .brief =
        "The sum over the other classes of max(0, margin - input[label] + input)^p, times the "
        "labelled class's weight if there is one, divided by the number of classes.",
    .decompose = [](const args::multi_margin_loss& a) -> Made {
      check_reduction(a.reduction);
      user_check(a.input.rank() == 2 && a.label.rank() == 1 && same(a.label.dim(0), a.input.dim(0)),
                 ErrorKind::InvalidArgument,
                 "input has shape {} and label {}; they must be [batch, classes] and [batch].",
                 to_string(a.input.dims()), to_string(a.label.dims()));
      user_check(a.p >= 1, ErrorKind::InvalidArgument, "p is {}; it must be at least 1.", a.p);
      const Dim classes = a.input.dim(1);
      const Tensor input = widened(a.input), label = unsqueeze(a.label, {1});
      Tensor short_of = relu(input - pick_class(input, label, 1) + a.margin);
      if (a.p != 1) short_of = pow(short_of, literal(static_cast<double>(a.p)));
      // The labelled class itself is short by the margin, which does not count.
      const double own = a.margin > 0 ? std::pow(a.margin, static_cast<double>(a.p)) : 0.0;
      Tensor loss = (sum(short_of, IntArgs{1}) - own) / count_of(Dims(&classes, 1), input.dtype());
      if (a.weight.defined()) {
        user_check(a.weight.rank() == 1 && same(a.weight.dim(0), classes),
                   ErrorKind::InvalidArgument,
                   "weight has shape {}; it must hold one number for each of the {} classes.",
                   to_string(a.weight.dims()), classes.str());
        loss = loss * take(a.weight, a.label);
      }
      return narrowed(reduce_loss(loss, a.reduction), a.input.dtype());
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else v.sum())("
        "(np.where(np.arange(input.shape[1]) == label[:, None], 0, np.maximum(margin - "
        "np.take_along_axis(input, label[:, None], 1) + input, 0) ** p).sum(1) / input.shape[1]) * "
        "(1 if weight is None else weight[label]))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), ints(0, 3, {4}))
              .add(t({4, 3}), ints(0, 3, {4}), 2, 0.7, positive({3}), "none")
              .add(t({2, 5}), ints(0, 5, {2}, DType::Int32), 1, 0.5, std::nullopt, "sum");
        },
    .python = "oar.nn.functional",
};

const OpDef sigmoid_focal_loss_op = {
    .schema =
        "sigmoid_focal_loss(Tensor logit, Tensor label, Tensor? normalizer = None, float alpha = "
        "0.25, float gamma = 2.0, str reduction = 'sum') -> Tensor",
    .brief =
        "The cross entropy of sigmoid(logit) and labels in [0, 1], weighed by alpha for positive "
        "ones and 1 - alpha for negative ones, and faded by (1 - probability of the label)^gamma; "
        "divided by the normalizer.",
    .decompose = [](const args::sigmoid_focal_loss& a) -> Made {
      user_check(!a.normalizer.defined() || a.normalizer.rank() <= 1, ErrorKind::InvalidArgument,
                 "normalizer has shape {}; it must be one number.", to_string(a.normalizer.dims()));
      const Tensor loss = pointwise_loss(a.logit, a.label, "focal", a.alpha, a.gamma, a.reduction);
      if (!a.normalizer.defined()) return loss;
      return loss / reshape(a.normalizer, Dims());
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else v.sum())("
        "(lambda s: (alpha * label + (1 - alpha) * (1 - label)) * (s + label - 2 * s * label) ** "
        "gamma * ((1 - label) * logit + np.logaddexp(0, -logit)) / (1 if normalizer is None else "
        "normalizer))(1 / (1 + np.exp(-logit))))",
    .samples =
        [] {
          const auto y = [](const Shape& shape) { return uniform_in(0, 1, shape); };
          return Samples()
              .add(t({4, 3}), fixed(y({4, 3})))
              .add(t({4, 3}), fixed(y({4, 3})), positive({1}), 0.4, 1.5, "mean")
              .add(t({3}), fixed(y({3})), positive({}), 0.25, 2.0, "none");
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

OAR_FAMILY(margin_loss, &hinge_embedding_loss_op, &multi_label_soft_margin_loss_op,
           &multi_margin_loss_op, &sigmoid_focal_loss_op, &poisson_nll_loss_op,
           &gaussian_nll_loss_op)

}  // namespace oar
