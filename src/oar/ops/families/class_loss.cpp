// Losses of classes other than the plain cross entropy: margins between angles, trees of classes,
// overlaps, pairs.
#include "oar/ops/gen/class_loss.h"

#include <bit>
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
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/cross_entropy.h"
#include "oar/ops/gen/embedding.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/join.h"
#include "oar/ops/gen/linalg.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/scan.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/softmax.h"
#include "oar/ops/gen/trigonometry.h"

namespace oar {
namespace {

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

const OpDef dice_loss_op = {
    .schema = "dice_loss(Tensor input, Tensor label, float epsilon = 1e-5) -> Tensor",
    .brief =
        "1 - 2 * overlap / (size of the prediction + size of the label + epsilon), averaged over the "
        "batch. Classes are the last axis of input, where label has one number.",
    .decompose = [](const args::dice_loss& a) -> Made {
      const int rank = a.input.rank();
      Shape expected = a.input.shape();
      if (rank > 0) expected.back() = 1;
      user_check(rank >= 2 && same(a.label.shape(), expected), ErrorKind::InvalidArgument,
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

const OpDef npair_loss_op = {
    .schema =
        "npair_loss(Tensor anchor, Tensor positive, Tensor labels, float l2_reg = 0.002) -> Tensor",
    .brief =
        "The cross entropy of the products of anchors and positives, where pairs of one label "
        "belong together, plus the squares of both times l2_reg / 4.",
    .decompose = [](const args::npair_loss& a) -> Made {
      user_check(a.anchor.rank() == 2 && same(a.anchor.shape(), a.positive.shape()) &&
                     a.labels.rank() == 1 && same(a.labels.dim(0), a.anchor.dim(0)),
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
    .shard = "whole: every anchor is held against every positive",
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda q, z: 0.25 * l2_reg * ((anchor ** 2).sum(1).mean() + (positive ** "
        "2).sum(1).mean()) + (q * -(q * (z - np.log(np.exp(z).sum(1, keepdims=True)))).sum(1, "
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

// The inner nodes of a complete binary tree on the way to a class, and which side the way takes.
// Leaves are numbered from num_classes on, as in a heap, so that the bits of a number are the way.
struct Path {
  Tensor node, side, valid;  // [batch, steps]
};
Path heap_path(const Tensor& label, int64_t num_classes) {
  const auto steps =
      static_cast<int>(std::bit_width(static_cast<uint64_t>(2 * num_classes - 1))) - 1;
  const Tensor leaf = label + Tensor::scalar(num_classes, DType::Int64, true);
  std::vector<Tensor> nodes, sides;
  for (int i = 0; i < steps; ++i) {
    const Tensor power = Tensor::scalar(int64_t{1} << i, DType::Int64, true);
    const Tensor reached = floor_divide(leaf, power);
    nodes.push_back(floor_divide(reached, literal(2)) - 1);
    sides.push_back(remainder(reached, literal(2)));
  }
  const Tensor node = concat(nodes, 1);
  return {node, concat(sides, 1), greater_equal(node, literal(0))};
}

const OpDef hsigmoid_loss_op = {
    .schema =
        "hsigmoid_loss(Tensor input, Tensor label, int num_classes, Tensor weight, Tensor? bias = "
        "None, Tensor? path_table = None, Tensor? path_code = None, bool is_sparse = False) -> "
        "Tensor",
    .brief =
        "The negative log-probability of a class that is reached by yes-or-no decisions from the "
        "root of a binary tree: a complete one, or paths given as nodes and codes, padded by -1. A path "
        "that is shorter than the longest possible one costs log 2 for each step that it lacks.",
    .decompose = [](const args::hsigmoid_loss& a) -> Made {
      user_check(a.num_classes >= 2 && a.num_classes <= INT32_MAX, ErrorKind::InvalidArgument,
                 "num_classes is {}; there must be 2 at least, and {} at most.", a.num_classes,
                 INT32_MAX);
      user_check(
          a.input.rank() == 2 && a.weight.rank() == 2 && same(a.input.dim(1), a.weight.dim(1)),
          ErrorKind::InvalidArgument,
          "input has shape {} and weight {}; they must be [batch, size] and [nodes, size].",
          to_string(a.input.dims()), to_string(a.weight.dims()));
      user_check(a.path_table.defined() == a.path_code.defined(), ErrorKind::InvalidArgument,
                 "path_table and path_code belong together; only one of them is given.");
      Path path;
      if (a.path_table.defined()) {
        const Tensor table = cast(a.path_table, DType::Int64);
        // A path ends at its first negative node.
        const Tensor ended = cumsum(cast(less_than(table, literal(0)), DType::Int64), 1);
        path = {table, cast(a.path_code, DType::Int64), equal(ended, literal(0))};
      } else {
        path = heap_path(reshape(cast(a.label, DType::Int64), {a.input.dim(0), Dim(1)}),
                         a.num_classes);
      }
      const Tensor node = where(path.valid, path.node, literal(0));
      const Tensor input = widened(a.input);
      const Tensor rows = embedding_lookup(node, widened(a.weight), -1, a.is_sparse);
      Tensor score = sum(rows * unsqueeze(input, {1}), IntArgs{2});
      if (a.bias.defined()) score = score + take(reshape(widened(a.bias), {Dim(-1)}), node);
      const Tensor side = cast(path.side, score.dtype());
      // What lies after the end of a path is decided by a score of 0, as in Paddle: it costs log 2.
      const Tensor loss =
          where(path.valid, -log_sigmoid(-score) - side * score, literal(std::numbers::ln2));
      return narrowed(sum(loss, IntArgs{1}, std::nullopt, true), a.input.dtype());
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "np.array([[sum(np.logaddexp(0, s) - c * s for n, c in path for s in [input[i] @ weight[n] + "
        "(0 if bias is None else bias.reshape(-1)[n])]) + (((2 * num_classes - 1).bit_length() - 1 if "
        "path_table is None else path_table.shape[1]) - len(path)) * np.log(2)] for i in "
        "range(len(input)) for path in [[(int(n), int(c)) for n, c in "
        "__import__('itertools').takewhile(lambda q: q[0] >= 0, zip(path_table[i], path_code[i]))] if "
        "path_table is not None else [((k >> (j + 1)) - 1, (k >> j) & 1) for k in "
        "[int(label.reshape(-1)[i]) + num_classes] for j in range(k.bit_length() - 1)]]])",
    .samples =
        [] {
          const auto given = [](std::vector<double> values, Shape shape) {
            return TensorSpec{.shape = std::move(shape),
                              .fill = Fill::Values,
                              .dtype = DType::Int64,
                              .values = std::move(values),
                              .differentiable = false};
          };
          return Samples()
              .add(t({4, 3}), ints(0, 5, {4, 1}), 5, t({4, 3}))
              .add(t({4, 3}), ints(0, 6, {4}), 6, t({5, 3}), t({5, 1}))
              .add(t({2, 3}), ints(0, 3, {2}), 3, t({4, 3}), t({4}), given({0, 2, 3, -1}, {2, 2}),
                   given({1, 0, 1, -1}, {2, 2}));
        },
    .python = "oar.nn.functional",
};

const OpDef label_smooth_op = {
    .schema =
        "label_smooth(Tensor label, Tensor? prior_dist = None, float epsilon = 0.1) -> Tensor",
    .brief =
        "(1 - epsilon) * label + epsilon * prior_dist, or epsilon spread evenly over the last axis.",
    .decompose = [](const args::label_smooth& a) -> Made {
      user_check(a.epsilon >= 0 && a.epsilon <= 1, ErrorKind::InvalidArgument,
                 "epsilon is {}; it must lie between 0 and 1.", a.epsilon);
      user_check(a.label.rank() > 0, ErrorKind::InvalidArgument,
                 "label is 0-d; it needs an axis of classes.");
      const Tensor kept = widened(a.label) * (1 - a.epsilon);
      const Dim classes = a.label.dim(-1);
      const Tensor many = count_of(Dims(&classes, 1), kept.dtype());
      return narrowed(a.prior_dist.defined()
                          ? kept + widened(without_tape(a.prior_dist)) * a.epsilon
                          : (kept * many + a.epsilon) / many,
                      a.label.dtype());
    },
    .dtypes = "float",
    .numpy =
        "(1 - epsilon) * label + epsilon * (1 / label.shape[-1] if prior_dist is None else "
        "prior_dist)",
    .samples =
        [] {
          return Samples()
              .add(positive({4, 3}))
              .add(positive({4, 3}), fixed(positive({1, 3})), 0.3);
        },
    .python = "oar.nn.functional",
};

}  // namespace

OAR_FAMILY(class_loss, &margin_softmax_op, &dice_loss_op, &npair_loss_op, &hsigmoid_loss_op,
           &label_smooth_op)

}  // namespace oar
