// Distances and angles between vectors, and the losses made of them.
#include "oar/ops/gen/distance.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/loss_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/linalg.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/statistics.h"
#include "oar/ops/gen/vecdot.h"

namespace oar {
namespace {

const OpDef pairwise_distance_op = {
    .schema =
        "pairwise_distance(Tensor x, Tensor y, float p = 2.0, float epsilon = 1e-6, bool keepdim = "
        "False) -> Tensor",
    .brief = "The p-norm of x - y + epsilon along the last axis.",
    .decompose = [](const args::pairwise_distance& a) -> Made {
      return p_norm(a.x - a.y + a.epsilon, a.p, IntArgs{-1}, a.keepdim);
    },
    .dtypes = "float",
    .numpy = "np.linalg.norm(x - y + epsilon, p, axis=-1, keepdims=keepdim)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({4, 3}))
              .add(t({4, 3}), t({3}), 1.0, 1e-3, true)
              .add(t({3}), t({3}), 3.0)
              .add(distinct({2, 3}), positive({2, 3}), std::numeric_limits<double>::infinity());
        },
    .python = "oar.nn.functional",
};

const OpDef cosine_similarity_op = {
    .schema = "cosine_similarity(Tensor x1, Tensor x2, int axis = 1, float eps = 1e-8) -> Tensor",
    .brief =
        "The cosine of the angle between vectors along an axis; eps bounds their lengths below.",
    .decompose = [](const args::cosine_similarity& a) -> Made {
      const Tensor product = vecdot(a.x1, a.x2, a.axis);
      const Tensor sizes = vecdot(a.x1, a.x1, a.axis) * vecdot(a.x2, a.x2, a.axis);
      return product / sqrt(clip(sizes, Scalar(a.eps * a.eps)));
    },
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(x1 * x2).sum(axis) / np.sqrt(np.maximum((x1 * x1).sum(axis) * (x2 * x2).sum(axis), eps * "
        "eps))",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({4, 3}))
              .add(t({2, 3, 4}), t({2, 3, 4}), -1, 1e-6)
              .add(t({3, 4}), t({3, 4}), 0);
        },
    .python = "oar.nn.functional",
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
          vecdot(x, y, -1) / sqrt((vecdot(x, x, -1) + kTiny) * (vecdot(y, y, -1) + kTiny));
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

}  // namespace

OAR_FAMILY(distance, &pairwise_distance_op, &cosine_similarity_op, &cosine_embedding_loss_op,
           &triplet_margin_loss_op)

}  // namespace oar
