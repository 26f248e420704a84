// The cross entropy of class scores and labels that are probabilities.
#include "oar/ops/gen/soft_cross_entropy.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/norm_rules.h"
#include "oar/ops/gen/elementwise.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/statistics.h"

namespace oar {
namespace {

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
    .shard = "...a..., ...a... -> ...b..., ...b... ; a@axis whole ; b@axis whole",
    .traits = Trait::Promote,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "(lambda z: ((label * (z - logits)).sum(axis, keepdims=True), z.astype('float64')))"
        "(np.log(np.sum(np.exp(logits), axis, keepdims=True)))",
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

}  // namespace

OAR_FAMILY(soft_cross_entropy, &soft_cross_entropy_op, &soft_cross_entropy_grad_op)

}  // namespace oar
