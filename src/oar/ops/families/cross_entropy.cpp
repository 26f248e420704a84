// The cross entropy of class scores and labels: class numbers or probabilities.
#include "oar/ops/gen/cross_entropy.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/last_use.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/blank.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/hard_label.h"
#include "oar/ops/families/loss_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/families/norm_rules.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/nll_loss.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/softmax.h"

namespace oar {
namespace {

const OpDef softmax_cross_entropy_op = {
    .schema =
        "softmax_cross_entropy(Tensor logits, Tensor label, int axis = -1, int "
        "ignore_index = -100) -> (Tensor loss, Tensor log_total)",
    .brief =
        "log(sum(exp(logits))) - logits[label] along an axis, 0 where label is "
        "ignore_index; and the first of the two terms.",
    .infer = [](const args::softmax_cross_entropy& a) -> Metas {
      check_hard_label(a.logits, a.label, normalise_axis(a.axis, a.logits.rank()));
      const DType dtype = a.logits.dtype();
      return {TensorMeta{dtype, a.label.shape()},
              TensorMeta{size_of(dtype) < 4 ? DType::Float32 : dtype, a.label.shape()}};
    },
    .decompose = [](const args::softmax_cross_entropy& a) -> Made {
      const Tensor logits = widened(a.logits);
      const HardLabel label(a.label, a.ignore_index);
      const Tensor total = logsumexp(logits, IntArgs{a.axis}, true);
      const Tensor loss = zero_unless(label.valid, total - take_along(logits, label.safe, a.axis));
      return {narrowed(loss, a.logits.dtype()), total};
    },
    .vjp = [](const vjp::softmax_cross_entropy& v) -> Grads {
      // Scores are often the largest tensor of a step.
      const auto grad =
          may_overwrite(v.logits) ? softmax_cross_entropy_grad_ : softmax_cross_entropy_grad;
      return {grad(v.logits, v.label, v.log_total, v.grad_loss, v.grad_log_total, v.axis,
                   v.ignore_index),
              Tensor()};
    },
    .saves = "logits label log_total",
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda m: (lambda z: (np.where(label == ignore_index, 0, z - "
        "np.take_along_axis(logits, np.where(label == ignore_index, 0, label), axis)), "
        "z.astype('float64')))(m + np.log(np.sum(np.exp(logits - np.where(np.isinf(m), 0, m)), axis, "
        "keepdims=True))))(np.max(logits, axis, keepdims=True))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 5}), ints(0, 5, {4, 1}))
              .add(t({2, 3, 4}), ints(0, 3, {2, 1, 4}, DType::Int32), 1)
              .add(t({4, 3}), ints(0, 3, {4, 1}), -1, 1)
              .add(t({3}), ints(0, 3, {1}), 0);
        },
};

const OpDef softmax_cross_entropy_grad_op = {
    .schema =
        "softmax_cross_entropy_grad(Tensor logits, Tensor label, Tensor log_total, Tensor "
        "grad_loss, Tensor grad_log_total, int axis = -1, int ignore_index = -100) -> Tensor",
    .brief =
        "The derivative of softmax_cross_entropy: softmax(logits) less the labelled class, "
        "times the gradient.",
    .infer = [](const args::softmax_cross_entropy_grad& a) -> Metas {
      check_hard_label(a.logits, a.label, normalise_axis(a.axis, a.logits.rank()));
      const TensorMeta loss{a.logits.dtype(), a.label.shape()};
      check_statistic(a.log_total, "log_total", loss.shape, loss.dtype);
      infer::check_type(a.grad_loss, "grad_loss", loss);
      check_statistic(a.grad_log_total, "grad_log_total", loss.shape, loss.dtype);
      return infer::like(a.logits);
    },
    .decompose = [](const args::softmax_cross_entropy_grad& a) -> Made {
      const Tensor logits = widened(a.logits);
      const HardLabel label(a.label, a.ignore_index);
      const Tensor grad = zero_unless(label.valid, widened(a.grad_loss));
      const Tensor all = exp(logits - a.log_total) * (grad + a.grad_log_total);
      const Tensor one =
          put_along(blank(logits.dims(), grad.dtype()), label.safe, grad, a.axis, "add");
      return narrowed(all - one, a.logits.dtype());
    },
    .traits = Trait::Rowwise | Trait::HasInplace,
    .dtypes = "float",
    .numpy =
        "(lambda g: np.exp(logits - log_total) * (g + grad_log_total) - g * "
        "(np.arange(logits.shape[axis]).reshape([-1 if i == axis % logits.ndim else 1 for i in "
        "range(logits.ndim)]) == label))(np.where(label == ignore_index, 0, grad_loss))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 5}), ints(0, 5, {4, 1}), t({4, 1}), t({4, 1}), t({4, 1}))
              .add(t({2, 3, 4}), ints(0, 3, {2, 1, 4}), t({2, 1, 4}), t({2, 1, 4}), t({2, 1, 4}), 1,
                   2);
        },
};

void check_soft_label(const Tensor& logits, const Tensor& label) {
  user_check(same(logits.shape(), label.shape()), ErrorKind::InvalidArgument,
             "label has shape {} and input {}; with soft labels they must be equal.",
             to_string(label.dims()), to_string(logits.dims()));
}

Metas losses_of(const Tensor& logits, int64_t axis) {
  Shape shape = logits.shape();
  shape[static_cast<size_t>(normalise_axis(axis, logits.rank()))] = 1;
  return {TensorMeta{logits.dtype(), shape}, TensorMeta{wide_type(logits.dtype()), shape}};
}

const OpDef soft_cross_entropy_op = {
    .schema =
        "soft_cross_entropy(Tensor logits, Tensor label, int axis = -1) -> (Tensor loss, Tensor "
        "log_total)",
    .brief =
        "The sum of label * (log(sum(exp(logits))) - logits) along an axis; and the logarithm in "
        "it.",
    .infer = [](const args::soft_cross_entropy& a) -> Metas {
      check_soft_label(a.logits, a.label);
      return losses_of(a.logits, a.axis);
    },
    .decompose = [](const args::soft_cross_entropy& a) -> Made {
      const Tensor logits = widened(a.logits);
      const Tensor total = logsumexp(logits, IntArgs{a.axis}, true);
      const Tensor loss =
          sum(widened(a.label) * (total - logits), IntArgs{a.axis}, std::nullopt, true);
      return {narrowed(loss, a.logits.dtype()), total};
    },
    .vjp = [](const vjp::soft_cross_entropy& v) -> Grads {
      const Tensor of_logits = soft_cross_entropy_grad(v.logits, v.label, v.log_total, v.grad_loss,
                                                       v.grad_log_total, v.axis);
      if (!v.needs(1)) return {of_logits, Tensor()};
      const Tensor distance = v.log_total - widened(v.logits);
      return {of_logits, narrowed(widened(v.grad_loss) * distance, v.label.dtype())};
    },
    .saves = "logits label log_total",
    .shard =
        "...a..., ...a... -> ...b..., ...b... ; a@axis whole ; b@axis whole # each loss needs the sum over all classes first",
    .traits = Trait::Promote,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda z: ((label * (z - logits)).sum(axis, keepdims=True), z.astype('float64')))"
        "((lambda m: m + np.log(np.sum(np.exp(logits - np.where(np.isinf(m), 0, m)), axis, keepdims=True)))(np.max(logits, axis, "
        "keepdims=True)))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 5}), positive({4, 5}))
              .add(t({2, 3, 4}), positive({2, 3, 4}), 1)
              .add(t({3}), positive({3}), 0);
        },
};

const OpDef soft_cross_entropy_grad_op = {
    .schema =
        "soft_cross_entropy_grad(Tensor logits, Tensor label, Tensor log_total, Tensor grad_loss, "
        "Tensor grad_log_total, int axis = -1) -> Tensor",
    .brief =
        "The derivative of soft_cross_entropy: softmax(logits) times the sum of the labels, less "
        "the labels, times the gradient.",
    .infer = [](const args::soft_cross_entropy_grad& a) -> Metas {
      check_soft_label(a.logits, a.label);
      infer::check_dtype(a.label, "label", a.logits.dtype());
      const TensorMeta loss = losses_of(a.logits, a.axis)[0];
      check_statistic(a.log_total, "log_total", loss.shape, loss.dtype);
      infer::check_type(a.grad_loss, "grad_loss", loss);
      check_statistic(a.grad_log_total, "grad_log_total", loss.shape, loss.dtype);
      return infer::like(a.logits);
    },
    .decompose = [](const args::soft_cross_entropy_grad& a) -> Made {
      const Tensor label = widened(a.label), grad = widened(a.grad_loss);
      const Tensor all = grad * sum(label, IntArgs{a.axis}, std::nullopt, true) + a.grad_log_total;
      const Tensor shares = exp(widened(a.logits) - a.log_total);
      return narrowed(shares * all - grad * label, a.logits.dtype());
    },
    .dtypes = "float",
    .numpy =
        "np.exp(logits - log_total) * (grad_loss * label.sum(axis, keepdims=True) + "
        "grad_log_total) - grad_loss * label",
    .samples =
        [] {
          return Samples()
              .add(t({4, 5}), positive({4, 5}), t({4, 1}), t({4, 1}), t({4, 1}))
              .add(t({2, 3, 4}), positive({2, 3, 4}), t({2, 1, 4}), t({2, 1, 4}), t({2, 1, 4}), 1);
        },
};

// What a cross entropy needs to know besides the scores.
struct Options {
  int64_t axis, ignore_index;
  bool use_softmax;
  double smoothing;
};

// Logarithms of the probabilities; bounded if probabilities are given, so that a certain mistake stays finite.
Tensor log_probabilities(const Tensor& input, const Options& o) {
  if (o.use_softmax) return log_softmax(input, o.axis);
  return maximum(log(input), literal(-1e20));
}

Weighted hard_cross_entropy(const Tensor& input, const Tensor& label, const Tensor& weight,
                            const Options& o) {
  const Tensor index = is_integral(label.dtype()) ? label : cast(label, DType::Int64);
  const bool plain = o.use_softmax && o.smoothing == 0;
  if (plain && !weight.defined() && o.ignore_index < 0)
    return {.loss = std::get<0>(softmax_cross_entropy(input, index, o.axis, o.ignore_index))};
  const HardLabel hard(index, o.ignore_index);
  Weighted w{.valid = hard.valid};
  if (plain) {
    w.loss = std::get<0>(softmax_cross_entropy(input, index, o.axis, o.ignore_index));
  } else {
    const Tensor logs = log_probabilities(input, o);
    w.loss = -pick_class(logs, index, o.axis, o.ignore_index);
    // The smoothed label is a mixture of the labelled class and the uniform distribution.
    if (o.smoothing > 0)
      w.loss = (1 - o.smoothing) * w.loss - o.smoothing * mean(logs, IntArgs{o.axis}, true);
    w.loss = zero_unless(hard.valid, w.loss);
  }
  if (weight.defined()) {
    Tensor of_class = take(weight, hard.safe);
    if (o.smoothing > 0) of_class = (1 - o.smoothing) * of_class + o.smoothing * mean(weight);
    w.weight = zero_unless(hard.valid, of_class);
  }
  return w;
}

Weighted with_soft_label(const Tensor& input, const Tensor& label, const Tensor& weight,
                         const Options& o) {
  user_check(same(input.shape(), label.shape()), ErrorKind::InvalidArgument,
             "label has shape {} and input {}; with soft labels they must be equal.",
             to_string(label.dims()), to_string(input.dims()));
  Tensor share = narrowed(label, input.dtype());
  const Dim classes = input.dim(o.axis);
  if (o.smoothing > 0)
    share = (1 - o.smoothing) * share + o.smoothing / count_of(Dims(&classes, 1), input.dtype());
  const Tensor given = without_tape(share);
  Weighted w;
  if (o.use_softmax)
    w.loss = std::get<0>(soft_cross_entropy(input, given, o.axis));
  else
    w.loss = -sum(given * log_probabilities(input, o), IntArgs{o.axis}, std::nullopt, true);
  if (weight.defined()) {
    Shape along(static_cast<size_t>(input.rank()), 1);
    along[static_cast<size_t>(o.axis)] = classes;
    w.weight = sum(share * reshape(weight, along), IntArgs{o.axis}, std::nullopt, true);
  }
  return w;
}

constexpr const char* kCrossEntropy =
    "[(o if reduction == 'none' else o.sum() if reduction == 'sum' else o.mean() if weight is "
    "None and (soft or ignore_index < 0) else o.sum() / ((v * w).sum() or 1)) "
    "for ax in [axis % input.ndim] for n in [input.shape[ax]] for soft in [label.ndim == "
    "input.ndim and label.shape[ax] != 1] "
    "for lab in [label if label.ndim == input.ndim else np.expand_dims(label, ax)] "
    "for cls in [np.arange(n).reshape([-1 if i == ax else 1 for i in range(input.ndim)])] "
    "for q0 in [lab if soft else (lab == cls).astype('float64')] "
    "for q in [q0 * (1 - label_smoothing) + label_smoothing / n] "
    "for m in [np.max(input, ax, keepdims=True)] "
    "for lp in [input - m - np.log(np.sum(np.exp(input - np.where(np.isinf(m), 0, m)), ax, keepdims=True)) if use_softmax "
    "else np.log(input)] "
    "for v in [np.ones_like(lp.sum(ax, keepdims=True)) if soft else (lab != "
    "ignore_index).astype(lp.dtype)] "
    "for w in [np.ones_like(v) if weight is None else np.sum(q * np.expand_dims(weight, [i for i "
    "in range(input.ndim) if i != ax]), ax, keepdims=True)] "
    "for e in [-np.sum(q * lp, ax, keepdims=True) * v * w] "
    "for o in [np.squeeze(e, ax) if reduction == 'none' and label.ndim < input.ndim and not "
    "label_smoothing else e]][0]";

const OpDef cross_entropy_op = {
    .schema =
        "cross_entropy(Tensor input, Tensor label, Tensor? weight = None, int ignore_index "
        "= -100, str reduction = 'mean', bool soft_label = False, int axis = -1, bool "
        "use_softmax = True, float label_smoothing = 0.0) -> Tensor",
    .brief =
        "The cross entropy of class scores (or, without use_softmax, probabilities) and "
        "labels: class numbers, with or without an axis of size 1, or probabilities if "
        "soft_label. A weighted mean is divided by the sum of the weights.",
    .decompose = [](const args::cross_entropy& a) -> Made {
      check_reduction(a.reduction);
      user_check(a.input.rank() > 0, ErrorKind::InvalidArgument,
                 "input is 0-d; it needs an axis of classes.");
      user_check(a.label_smoothing >= 0 && a.label_smoothing <= 1, ErrorKind::InvalidArgument,
                 "label_smoothing is {}; it must be between 0 and 1.", a.label_smoothing);
      const bool given_axis = a.label.rank() == a.input.rank();
      user_check(given_axis || a.label.rank() == a.input.rank() - 1, ErrorKind::InvalidArgument,
                 "label has shape {} and input {}; label must have as many axes or one less.",
                 to_string(a.label.dims()), to_string(a.input.dims()));
      user_check(!(a.ignore_index > 0 && a.soft_label), ErrorKind::InvalidArgument,
                 "ignore_index is {}, but soft labels have no class numbers that could be ignored."
                 "\nhint: Leave ignore_index out.",
                 a.ignore_index);
      const Options o{normalise_axis(a.axis, a.input.rank()), a.ignore_index, a.use_softmax,
                      a.label_smoothing};
      check_weight(a.weight, a.input.dim(o.axis));
      const bool smooth = a.label_smoothing > 0;
      const bool class_numbers = !given_axis || a.label.dim(o.axis) == Dim(1);
      const bool soft = smooth ? !class_numbers : a.soft_label;
      const Tensor label = given_axis ? a.label : unsqueeze(a.label, {o.axis});
      const Weighted w = soft ? with_soft_label(a.input, label, a.weight, o)
                              : hard_cross_entropy(a.input, label, a.weight, o);
      const Tensor loss = reduce_weighted(w, a.reduction, !soft && a.ignore_index >= 0);
      const bool squeezes = a.reduction == "none" && !given_axis && !smooth;
      return squeezes ? squeeze(loss, IntArgs{o.axis}) : loss;
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = kCrossEntropy,
    .samples =
        [] {
          const auto none = std::nullopt;
          return Samples()
              .add(t({4, 3}), ints(0, 3, {4}))
              .add(t({4, 3}), ints(0, 3, {4, 1}), positive({3}), 1)
              .add(t({4, 3}), ints(0, 3, {4}), none, 2, "none")
              .add(t({2, 3, 2}), ints(0, 3, {2, 2}), positive({3}), -100, "mean", false, 1)
              .add(t({4, 3}), fixed(positive({4, 3})), positive({3}), -100, "mean", true)
              .add(t({4, 3}), fixed(positive({4, 3})), none, -100, "none", true)
              .add(positive({4, 3}), ints(0, 3, {4}), none, -100, "sum", false, -1, false)
              .add(t({4, 3}), ints(0, 3, {4}), positive({3}), -100, "mean", false, -1, true, 0.1)
              .add(t({4, 3}), ints(0, 3, {4}), none, -100, "none", false, -1, true, 0.1);
        },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(cross_entropy, &softmax_cross_entropy_op, &softmax_cross_entropy_grad_op,
           &soft_cross_entropy_op, &soft_cross_entropy_grad_op, &cross_entropy_op)

}  // namespace oar
