// Losses of two classes. `reduction` is 'mean', 'sum' or 'none'.
#include "oar/ops/gen/binary_loss.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/loss_rules.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/nll_loss.h"
#include "oar/ops/gen/pointwise_loss.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

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

const OpDef log_loss_op = {
    .schema = "log_loss(Tensor input, Tensor label, float epsilon = 0.0001) -> Tensor",
    .brief = "-label * log(input + epsilon) - (1 - label) * log(1 - input + epsilon).",
    .decompose = [](const args::log_loss& a) -> Made {
      const Tensor label = widened(without_tape(a.label)), input = widened(a.input);
      const Tensor loss =
          -(label * log(input + a.epsilon)) - (1 - label) * log(1 - input + a.epsilon);
      return narrowed(loss, a.input.dtype());
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = "-label * np.log(input + epsilon) - (1 - label) * np.log(1 - input + epsilon)",
    .samples =
        [] { return Samples().add(uniform_in(0.1, 0.9, {4, 1}), fixed(uniform_in(0, 1, {4, 1}))); },
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
      const auto loss = [&](const Tensor& logit, const Tensor& label) {
        return pointwise_loss(logit, label, "focal", a.alpha, a.gamma, a.reduction);
      };
      if (!a.normalizer.defined()) return loss(a.logit, a.label);
      // A sum that float16 does not hold may fit when it is divided.
      const DType dtype = promote(a.logit.dtype(), a.normalizer.dtype());
      return narrowed(
          loss(widened(a.logit), widened(a.label)) / reshape(widened(a.normalizer), Dims()), dtype);
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

const OpDef dice_loss_op = {
    .schema = "dice_loss(Tensor input, Tensor label, float epsilon = 1e-5) -> Tensor",
    .brief =
        "1 - 2 * overlap / (size of the prediction + size of the label + epsilon), averaged over the "
        "batch. Classes are the last axis of input, where label has one number.",
    .decompose = [](const args::dice_loss& a) -> Made {
      const int rank = a.input.rank();
      Shape expected = a.input.shape();
      if (rank > 0) expected.back() = 1;
      user_check(rank >= 2 && assume_same(a.label.shape(), expected), ErrorKind::InvalidArgument,
                 "input has shape {} and label {}; they must be [batch, ..., classes] and [batch, "
                 "..., 1].",
                 to_string(a.input.dims()), to_string(a.label.dims()));
      SmallVector<int64_t, 6> inner;
      for (int i = 1; i < rank; ++i) inner.push_back(i);
      const Tensor input = widened(a.input);
      const Tensor overlap =
          sum(pick_class(input, cast(a.label, DType::Int64), -1), IntArgs{inner});
      const Tensor size = sum(input, IntArgs{inner});
      const Tensor label_size =
          count_of(expected.empty() ? Dims() : Dims(expected).subspan(1), input.dtype());
      return narrowed(mean(1 - 2 * overlap / (size + label_size + a.epsilon)), a.input.dtype());
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda q, ax: np.mean(1 - 2 * (input * q).sum(ax) / (input.sum(ax) + q.sum(ax) + "
        "epsilon)))(np.arange(input.shape[-1]) == label, tuple(range(1, input.ndim)))",
    .samples =
        [] {
          return Samples()
              .add(positive({4, 3}), ints(0, 3, {4, 1}))
              .add(positive({2, 3, 2, 4}), ints(0, 4, {2, 3, 2, 1}), 0.1);
        },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(binary_loss, &binary_cross_entropy_op, &binary_cross_entropy_with_logits_op,
           &log_loss_op, &sigmoid_focal_loss_op, &dice_loss_op)

}  // namespace oar
