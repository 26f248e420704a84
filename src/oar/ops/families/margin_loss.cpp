// Losses with a margin: between classes, angles, distances.
#include "oar/ops/gen/margin_loss.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/loss_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/cross_entropy.h"
#include "oar/ops/gen/distance.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/matmul.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/nll_loss.h"
#include "oar/ops/gen/pointwise_loss.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/products.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/relu.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/softmax.h"
#include "oar/ops/gen/trigonometry.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

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
        "v.sum())(np.logaddexp(0, -label * input))",
    .samples = pair_samples,
    .python = "oar.nn.functional",
};

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
        "log(sigmoid(-input)), times a weight if there is one.",
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
      user_check(
          a.input.rank() == 2 && a.label.rank() == 1 && assume_same(a.label.dim(0), a.input.dim(0)),
          ErrorKind::InvalidArgument,
          "input has shape {} and label {}; they must be [batch, classes] and [batch].",
          to_string(a.input.dims()), to_string(a.label.dims()));
      user_check(a.p >= 1, ErrorKind::InvalidArgument, "p is {}; it must be at least 1.", a.p);
      const Dim classes = a.input.dim(1);
      const Tensor input = widened(a.input), label = unsqueeze(cast(a.label, DType::Int64), {1});
      Tensor short_of = relu(input - pick_class(input, label, 1) + a.margin);
      if (a.p != 1) short_of = pow(short_of, literal(static_cast<double>(a.p)));
      // The labelled class is short of itself by the margin, which does not count.
      short_of = put_along(short_of, label, zeros_like(label, input.dtype()), 1, "assign");
      Tensor loss = sum(short_of, IntArgs{1}) / count_of(Dims(&classes, 1), input.dtype());
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

const OpDef margin_softmax_op = {
    .schema =
        "margin_softmax(Tensor logits, Tensor label, float margin1 = 1.0, float margin2 = 0.5, "
        "float margin3 = 0.0, float scale = 64.0) -> (Tensor loss, Tensor softmax)",
    .brief =
        "The cross entropy of cosines of angles, where the labelled class's becomes cos(margin1 * "
        "angle + margin2) - margin3 and all are multiplied by scale; and the probabilities.",
    .decompose = [](const args::margin_softmax& a) -> Made {
      user_check(a.logits.rank() == 2 && a.label.rank() == 2, ErrorKind::InvalidArgument,
                 "logits has shape {} and label {}; they must be [batch, classes] and [batch, 1].",
                 to_string(a.logits.dims()), to_string(a.label.dims()));
      const Tensor logits = widened(a.logits), label = cast(a.label, DType::Int64);
      const Tensor own = pick_class(logits, label, 1);
      const Tensor moved = cos(acos(own) * a.margin1 + a.margin2) - a.margin3;
      const Tensor scores = put_along(logits, label, moved - own, 1, "add") * a.scale;
      const auto [loss, total] = softmax_cross_entropy(scores, label, 1);
      return {narrowed(loss, a.logits.dtype()), narrowed(exp(scores - total), a.logits.dtype())};
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda e: (-np.log(np.take_along_axis(e, label, 1)), e))((lambda z: (lambda w: w / "
        "w.sum(1, keepdims=True))(np.exp(z - z.max(1, keepdims=True))))(scale * np.where("
        "np.arange(logits.shape[1]) == label, np.cos(margin1 * np.arccos(logits) + margin2) - "
        "margin3, logits)))",
    .samples =
        [] {
          return Samples()
              .add(uniform_in(-0.9, 0.9, {4, 3}), ints(0, 3, {4, 1}), 1.0, 0.5, 0.0, 4.0)
              .add(uniform_in(-0.9, 0.9, {2, 5}), ints(0, 5, {2, 1}, DType::Int32), 1.2, 0.3, 0.1,
                   2.0);
        },
};

const OpDef cosine_embedding_loss_op = {
    .schema =
        "cosine_embedding_loss(Tensor input1, Tensor input2, Tensor label, float margin = 0, str "
        "reduction = 'mean') -> Tensor",
    .brief = "1 - cosine of the angle where label is 1, max(0, cosine - margin) where it is -1.",
    .decompose = [](const args::cosine_embedding_loss& a) -> Made {
      check_reduction(a.reduction);
      user_check(same(a.input1.shape(), a.input2.shape()), ErrorKind::InvalidArgument,
                 "input1 has shape {} and input2 {}; they must be equal.",
                 to_string(a.input1.dims()), to_string(a.input2.dims()));
      user_check((a.input1.rank() == 1 || a.input1.rank() == 2) && a.label.rank() == 1,
                 ErrorKind::InvalidArgument,
                 "input1 has shape {} and label {}; they must be [batch, size] or [size], and one "
                 "label for each.",
                 to_string(a.input1.dims()), to_string(a.label.dims()));
      constexpr double kTiny = 1e-11;
      const Tensor x = widened(a.input1), y = widened(a.input2);
      const Tensor cosine =
          vecdot(x, y, -1) / (sqrt(vecdot(x, x, -1) + kTiny) * sqrt(vecdot(y, y, -1) + kTiny));
      const Tensor unlike = zero_unless(equal(a.label, literal(-1)), relu(cosine - a.margin));
      const Tensor loss = where(equal(a.label, literal(1)), 1 - cosine, unlike);
      return narrowed(reduce_loss(loss, a.reduction), a.input1.dtype());
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else v.sum())("
        "(lambda c: np.where(label == 1, 1 - c, np.where(label == -1, np.maximum(c - margin, 0), "
        "0)))((input1 * input2).sum(-1) / np.sqrt(((input1 ** 2).sum(-1) + 1e-11) * ((input2 ** "
        "2).sum(-1) + 1e-11))))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({4, 3}), ints(-1, 2, {4}))
              .add(t({4, 3}), t({4, 3}), ints(-1, 2, {4}, DType::Int32), 0.1, "none")
              .add(t({3}), t({3}), ints(1, 2, {1}), 0.5, "sum");
        },
    .python = "oar.nn.functional",
};

const OpDef triplet_margin_loss_op = {
    .schema =
        "triplet_margin_loss(Tensor input, Tensor positive, Tensor negative, float margin = 1.0, "
        "float p = 2, float epsilon = 1e-6, bool swap = False, str reduction = 'mean') -> Tensor",
    .brief =
        "max(0, distance to the positive - distance to the negative + margin); with swap, the "
        "negative's smaller distance to the input or the positive counts.",
    .decompose = [](const args::triplet_margin_loss& a) -> Made {
      check_reduction(a.reduction);
      user_check(a.margin >= 0, ErrorKind::InvalidArgument,
                 "margin is {}; it must not be negative.", a.margin);
      user_check(
          same(a.input.shape(), a.positive.shape()) && same(a.input.shape(), a.negative.shape()),
          ErrorKind::InvalidArgument,
          "input has shape {}, positive {} and negative {}; they must be equal.",
          to_string(a.input.dims()), to_string(a.positive.dims()), to_string(a.negative.dims()));
      const auto distance = [&](const Tensor& x, const Tensor& y) {
        return pairwise_distance(widened(x), widened(y), a.p, a.epsilon);
      };
      const Tensor near = distance(a.input, a.positive);
      Tensor far = distance(a.input, a.negative);
      if (a.swap) far = minimum(far, distance(a.positive, a.negative));
      return narrowed(reduce_loss(relu(near - far + a.margin), a.reduction), a.input.dtype());
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda v: v if reduction == 'none' else v.mean() if reduction == 'mean' else v.sum())("
        "(lambda d: np.maximum(d(input, positive) - (np.minimum(d(input, negative), d(positive, "
        "negative)) if swap else d(input, negative)) + margin, 0))(lambda x, y: np.linalg.norm(x - "
        "y + epsilon, p, axis=-1)))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({4, 3}), t({4, 3}))
              .add(t({4, 3}), t({4, 3}), t({4, 3}), 0.5, 1.0, 1e-3, true, "none")
              .add(t({3}), t({3}), t({3}), 2.0, 2.0, 1e-6, false, "sum");
        },
    .python = "oar.nn.functional",
};

const OpDef npair_loss_op = {
    .schema =
        "npair_loss(Tensor anchor, Tensor positive, Tensor labels, float l2_reg = 0.002) -> Tensor",
    .brief =
        "The cross entropy of the products of anchors and positives, where pairs of one label "
        "belong together, plus the squares of both times l2_reg / 4.",
    .decompose = [](const args::npair_loss& a) -> Made {
      user_check(a.anchor.rank() == 2 && assume_same(a.anchor.shape(), a.positive.shape()) &&
                     a.labels.rank() == 1 && assume_same(a.labels.dim(0), a.anchor.dim(0)),
                 ErrorKind::InvalidArgument,
                 "anchor has shape {}, positive {} and labels {}; they must be [batch, size] twice "
                 "and [batch].",
                 to_string(a.anchor.dims()), to_string(a.positive.dims()),
                 to_string(a.labels.dims()));
      const Tensor anchor = widened(a.anchor), positive = widened(a.positive);
      const Tensor alike =
          cast(equal(unsqueeze(a.labels, {1}), unsqueeze(a.labels, {0})), anchor.dtype());
      const Tensor share = alike / sum(alike, IntArgs{1}, std::nullopt, true);
      const Tensor squares =
          mean(sum(square(anchor), IntArgs{1})) + mean(sum(square(positive), IntArgs{1}));
      const Tensor scores = matmul(anchor, positive, false, true);
      const Tensor entropy = -sum(share * log_softmax(scores, 1), IntArgs{1}, std::nullopt, true);
      const Tensor loss = mean(sum(share * entropy, IntArgs{0}));
      return narrowed(squares * (0.25 * a.l2_reg) + loss, a.anchor.dtype());
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda q, z: 0.25 * l2_reg * ((anchor ** 2).sum(1).mean() + (positive ** "
        "2).sum(1).mean()) + (q * -(q * (z - np.logaddexp.reduce(z, 1, keepdims=True))).sum(1, "
        "keepdims=True)).sum(0).mean())((lambda e: e / e.sum(1, keepdims=True))((labels[:, None] == "
        "labels[None]).astype('float64')), anchor @ positive.T)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({4, 3}), ints(0, 2, {4}))
              .add(t({3, 2}), t({3, 2}), ints(0, 3, {3}, DType::Int32), 0.1);
        },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(margin_loss, &margin_ranking_loss_op, &soft_margin_loss_op, &hinge_embedding_loss_op,
           &multi_label_soft_margin_loss_op, &multi_margin_loss_op, &margin_softmax_op,
           &cosine_embedding_loss_op, &triplet_margin_loss_op, &npair_loss_op)

}  // namespace oar
