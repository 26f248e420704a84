// The cross entropy of class scores and labels.
#include "oar/ops/gen/cross_entropy.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/blank.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/loss_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/families/norm_rules.h"
#include "oar/ops/gen/along.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/soft_cross_entropy.h"
#include "oar/ops/gen/softmax.h"
#include "oar/ops/gen/statistics.h"

namespace oar {
namespace {

// `shape` is the label's, with the axis of classes.
void check_hard_label(const Tensor& logits, const Tensor& label, const Shape& shape, int64_t axis) {
  user_check(is_integral(label.dtype()), ErrorKind::InvalidType,
             "label has dtype {}; class numbers are integers.\nhint: Cast it with "
             "label.astype('int64'), or pass soft_label=True for probabilities.",
             name_of(label.dtype()));
  Shape expected = logits.shape();
  expected[static_cast<size_t>(axis)] = 1;
  user_check(shape.rank() == logits.rank() && same(shape, expected), ErrorKind::InvalidArgument,
             "label has shape {}; with scores of shape {} and classes along axis {} it must be {}.",
             to_string(label.dims()), to_string(logits.dims()), axis, expected.str());
}
void check_hard_label(const Tensor& logits, const Tensor& label, int64_t axis) {
  check_hard_label(logits, label, label.shape(), axis);
}

// Labels with those to be ignored replaced by class 0, and which ones count.
struct HardLabel {
  HardLabel(const Tensor& label, int64_t ignore_index)
      : valid(not_equal(label, literal_index(ignore_index))),
        safe(where(valid, label, literal(0))) {}
  static Tensor literal_index(int64_t i) { return Tensor::scalar(i, DType::Int64, true); }
  Tensor valid, safe;
};

// take_along would count a negative class from the end; here it is a mistake.
const OpDef pick_class_op = {
    .schema =
        "pick_class(Tensor x, Tensor label, int axis = -1, int ignore_index = -100) -> "
        "Tensor",
    .brief = "The score of the labelled class along an axis; 0 where label is ignore_index.",
    .infer = [](const args::pick_class& a) -> Metas {
      check_hard_label(a.x, a.label, normalise_axis(a.axis, a.x.rank()));
      return TensorMeta{a.x.dtype(), a.label.shape()};
    },
    .decompose = [](const args::pick_class& a) -> Made {
      const HardLabel label(a.label, a.ignore_index);
      return zero_unless(label.valid, take_along(a.x, label.safe, a.axis));
    },
    .vjp = [](const vjp::pick_class& v) -> Grads {
      return {pick_class_grad(v.grad, v.label, v.x.dims(), v.axis, v.ignore_index), Tensor()};
    },
    .saves = "x:shape label",
    .dtypes = "float",
    .numpy =
        "np.where(label == ignore_index, 0, np.take_along_axis(x, np.where(label == "
        "ignore_index, 0, label), axis)).astype(x.dtype)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 5}), ints(0, 5, {4, 1}))
              .add(t({2, 3, 4}), ints(0, 3, {2, 1, 4}, DType::Int32), 1, 2)
              .add(t({3}), ints(0, 3, {1}), 0);
        },
};

const OpDef pick_class_grad_op = {
    .schema =
        "pick_class_grad(Tensor grad, Tensor label, shape shape, int axis = -1, int ignore_index = "
        "-100) -> Tensor",
    .brief =
        "Zeros of a shape with grad at the labelled class along an axis, but where label is "
        "ignore_index: the derivative of pick_class.",
    .infer = [](const args::pick_class_grad& a) -> Metas {
      const Tensor like = Tensor::meta(a.shape, a.grad.dtype());
      check_hard_label(like, a.label, normalise_axis(a.axis, like.rank()));
      user_check(same(a.grad.shape(), a.label.shape()), ErrorKind::InvalidArgument,
                 "grad has shape {} and label {}; they must be equal.", to_string(a.grad.dims()),
                 to_string(a.label.dims()));
      return TensorMeta{a.grad.dtype(), Shape(a.shape)};
    },
    .decompose = [](const args::pick_class_grad& a) -> Made {
      const HardLabel label(a.label, a.ignore_index);
      return put_along(zeros(a.shape, a.grad.dtype()), label.safe, zero_unless(label.valid, a.grad),
                       a.axis, "add");
    },
    .vjp = [](const vjp::pick_class_grad& v) -> Grads {
      return {pick_class(v.grad, v.label, v.axis, v.ignore_index), Tensor()};
    },
    .saves = "label",
    .shard = "whole: the shape that is filled is an attribute",
    .dtypes = "float",
    .numpy =
        "np.where(np.arange(shape[axis]).reshape([-1 if i == axis % len(shape) else 1 for i in "
        "range(len(shape))]) == np.where(label == ignore_index, -1, label), grad, 0)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 1}), ints(0, 5, {4, 1}), IntVector{4, 5})
              .add(t({2, 1, 4}), ints(0, 3, {2, 1, 4}, DType::Int32), IntVector{2, 3, 4}, 1, 2)
              .add(t({1}), ints(0, 3, {1}), IntVector{3}, 0)
              .add(t({0, 1}), ints(0, 3, {0, 1}), IntVector{0, 3});
        },
};

// The sum of no losses is 0, and its mean is too.
const OpDef mean_of_picked_op = {
    .schema =
        "mean_of_picked(Tensor x, Tensor label, int axis = -1, int ignore_index = -100) -> (Tensor "
        "mean, Tensor count)",
    .brief =
        "The mean score of the labelled classes along an axis, without those whose label is "
        "ignore_index; and how many there are.",
    .infer = [](const args::mean_of_picked& a) -> Metas {
      check_hard_label(a.x, a.label, normalise_axis(a.axis, a.x.rank()));
      const DType dtype = a.x.dtype();
      return {TensorMeta{dtype, Shape{}},
              TensorMeta{size_of(dtype) < 4 ? DType::Float32 : dtype, Shape{}}};
    },
    .decompose = [](const args::mean_of_picked& a) -> Made {
      const HardLabel label(a.label, a.ignore_index);
      const Tensor picked = widened(pick_class(a.x, a.label, a.axis, a.ignore_index));
      const Tensor count = cast(sum(label.valid), picked.dtype());
      return {narrowed(sum(picked) / maximum(count, literal(1)), a.x.dtype()), count};
    },
    .vjp = [](const vjp::mean_of_picked& v) -> Grads {
      const Tensor share =
          narrowed(widened(v.grad_mean) / maximum(v.count, literal(1)), v.grad_mean.dtype());
      return {pick_class_grad(expand(share, v.label.dims()), v.label, v.x.dims(), v.axis,
                              v.ignore_index),
              Tensor()};
    },
    .saves = "x:shape label count",
    .shard = "whole: a mean over those that count needs their number",
    .dtypes = "float",
    .numpy =
        "[(np.sum(np.take_along_axis(x, np.where(v, label, 0), axis) * v) / max(v.sum(), 1), "
        "np.asarray(v.sum(), 'float64')) for v in [label != ignore_index]][0]",
    .samples =
        [] {
          return Samples()
              .add(t({4, 5}), ints(0, 5, {4, 1}))
              .add(t({2, 3, 4}), ints(0, 3, {2, 1, 4}, DType::Int32), 1, 2)
              .add(t({3}), ints(0, 3, {1}), 0)
              .add(t({0, 3}), ints(0, 3, {0, 1}));
        },
};

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
      return {softmax_cross_entropy_grad(v.logits, v.label, v.log_total, v.grad_loss,
                                         v.grad_log_total, v.axis, v.ignore_index),
              Tensor()};
    },
    .saves = "logits label log_total",
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda m: (lambda z: (np.where(label == ignore_index, 0, z - "
        "np.take_along_axis(logits, np.where(label == ignore_index, 0, label), axis)), "
        "z.astype('float64')))(m + np.log(np.sum(np.exp(logits - m), axis, "
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

// What a cross entropy needs to know besides the scores.
struct Options {
  int64_t axis, ignore_index;
  bool use_softmax;
  double smoothing;
};

// Logarithms of the probabilities; of given ones bounded, so that a certain mistake stays finite.
Tensor log_probabilities(const Tensor& input, const Options& o) {
  if (o.use_softmax) return log_softmax(input, o.axis);
  return maximum(log(input), literal(-1e20));
}

struct Weighted {
  Tensor loss;    // of each sample, before its weight
  Tensor weight;  // of each sample; undefined where classes have none
  Tensor valid;   // which samples count; undefined: all
};

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
    // The smoothed label is a mixture of the labelled class and all classes alike.
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

// A sum of weights as a divisor: 1 where nothing counts, since the loss is then 0.
Tensor divisor(const Tensor& total) { return where(equal(total, literal(0)), literal(1), total); }

Tensor reduce_weighted(const Weighted& w, std::string_view reduction, bool count_valid) {
  Tensor loss = w.weight.defined() ? w.loss * w.weight : w.loss;
  if (reduction == "none") return loss;
  if (reduction == "sum") return sum(loss);
  if (!w.weight.defined() && !count_valid) return mean(loss);
  const Tensor wide = widened(loss);
  const Tensor total =
      w.weight.defined() ? sum(widened(w.weight)) : cast(sum(w.valid), wide.dtype());
  return narrowed(sum(wide) / divisor(total), loss.dtype());
}

void check_weight(const Tensor& weight, Dim classes) {
  if (!weight.defined()) return;
  user_check(weight.rank() == 1 && same(weight.dim(0), classes), ErrorKind::InvalidArgument,
             "weight has shape {}; it must hold one number for each of the {} classes.",
             to_string(weight.dims()), classes.str());
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
    "for lp in [input - np.log(np.sum(np.exp(input), ax, keepdims=True)) if use_softmax else "
    "np.log(input)] "
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
                 "label_smoothing is {}; it must lie between 0 and 1.", a.label_smoothing);
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

void check_nll(const args::nll_loss& a) {
  check_reduction(a.reduction);
  user_check(a.input.rank() >= 2, ErrorKind::InvalidArgument,
             "input has shape {}; it needs a batch and an axis of classes.",
             to_string(a.input.dims()));
  const bool given_axis = a.label.rank() == a.input.rank();
  user_check(given_axis || a.label.rank() == a.input.rank() - 1, ErrorKind::InvalidArgument,
             "label has shape {} and input {}; label must have as many axes or one less.",
             to_string(a.label.dims()), to_string(a.input.dims()));
  check_weight(a.weight, a.input.dim(1));
  Shape shape = a.label.shape();
  if (!given_axis) shape.insert(shape.begin() + 1, Dim(1));
  check_hard_label(a.input, a.label, shape, 1);
}

const OpDef nll_loss_op = {
    .schema =
        "nll_loss(Tensor input, Tensor label, Tensor? weight = None, int ignore_index = "
        "-100, str reduction = 'mean') -> Tensor",
    .brief =
        "-input[label] along axis 1 of log-probabilities. The mean is divided by the sum of "
        "the weights of those that are not ignored.",
    .infer = [](const args::nll_loss& a) -> Metas {
      check_nll(a);
      if (a.reduction != "none") return TensorMeta{a.input.dtype(), Shape{}};
      Shape shape = a.input.shape();
      shape.erase(shape.begin() + 1);
      return TensorMeta{a.input.dtype(), shape};
    },
    .decompose = [](const args::nll_loss& a) -> Made {
      check_nll(a);
      const Tensor label = a.label.rank() == a.input.rank() ? a.label : unsqueeze(a.label, {1});
      if (a.reduction == "mean" && !a.weight.defined())
        return -std::get<0>(mean_of_picked(a.input, label, 1, a.ignore_index));
      const Tensor picked = pick_class(a.input, label, 1, a.ignore_index);
      const HardLabel hard(label, a.ignore_index);
      Weighted w{.loss = -picked, .valid = hard.valid};
      if (a.weight.defined())
        w.weight = zero_unless(hard.valid, take(without_tape(a.weight), hard.safe));
      const Tensor loss = reduce_weighted(w, a.reduction, true);
      return a.reduction == "none" ? squeeze(loss, IntArgs{1}) : loss;
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "[(e if reduction == 'none' else e.sum() if reduction == 'sum' else e.sum() / ((v * "
        "w).sum() or 1)) for lab in [label if label.ndim < input.ndim else np.squeeze(label, 1)] "
        "for v in [(lab != ignore_index).astype(input.dtype)] for s in [np.where(lab == "
        "ignore_index, 0, lab)] for w in [np.ones_like(v) if weight is None else weight[s]] for "
        "e in [-np.squeeze(np.take_along_axis(input, np.expand_dims(s, 1), 1), 1) * w * v]][0]",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), ints(0, 3, {4}))
              .add(t({4, 3}), ints(0, 3, {4}), fixed(positive({3})), 1)
              .add(t({2, 3, 4}), ints(0, 3, {2, 4}), std::nullopt, -100, "none")
              .add(t({2, 3, 2, 2}), ints(0, 3, {2, 2, 2}), fixed(positive({3})), -100, "sum");
        },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(cross_entropy, &pick_class_op, &pick_class_grad_op, &mean_of_picked_op,
           &softmax_cross_entropy_op, &softmax_cross_entropy_grad_op, &cross_entropy_op,
           &nll_loss_op)

}  // namespace oar
