// The transducer's loss (Graves, 2012): the likelihood of a label sequence, summed over all ways to
// emit it while stepping through a sequence of inputs.
#include "oar/ops/gen/rnnt.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/label_samples.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

// The logarithm of probability 0. Finite, so that differences of two are not NaN.
constexpr double kNever = -1e30;

void check_rnnt(const Tensor& log_probs, const Tensor& labels, const Tensor& input_lengths,
                const Tensor& label_lengths, int64_t blank) {
  user_check(log_probs.rank() == 4, ErrorKind::InvalidArgument,
             "input has shape {}; it must be [batch, steps, longest label + 1, classes].",
             to_string(log_probs.dims()));
  const Dim batch = log_probs.dim(0), classes = log_probs.dim(3);
  user_check(
      labels.rank() == 2 && same(labels.dim(0), batch) && same(labels.dim(1) + 1, log_probs.dim(2)),
      ErrorKind::InvalidArgument,
      "label has shape {}; with input of shape {} it must be [batch, longest label].",
      to_string(labels.dims()), to_string(log_probs.dims()));
  for (const Tensor* t : {&labels, &input_lengths, &label_lengths})
    user_check(is_integral(t->dtype()), ErrorKind::InvalidType,
               "label and the lengths are integers, but one has dtype {}.", name_of(t->dtype()));
  for (const Tensor* t : {&input_lengths, &label_lengths})
    user_check(t->rank() == 1 && assume_same(t->dim(0), batch), ErrorKind::InvalidArgument,
               "lengths have shape {}; there must be one for each of {} sequences.",
               to_string(t->dims()), batch.str());
  user_check(blank >= 0 && (classes.is_symbolic() || blank < classes.word()), ErrorKind::OutOfRange,
             "blank is {}, but there are {} classes.", blank, classes.str());
}

// The cells (t, u) of all sequences, [batch] each: at step t, u labels have been emitted.
struct Cells {
  Cells(const Tensor& log_probs, const Tensor& labels, const Tensor& input_lengths,
        const Tensor& label_lengths, int64_t blank);
  size_t index(int64_t t, int64_t u) const { return static_cast<size_t>(t * columns + u); }
  Tensor is_last_step(int64_t t) const { return equal(steps_of, literal(static_cast<int>(t) + 1)); }
  Tensor is_done(int64_t u) const { return equal(labels_of, literal(static_cast<int>(u))); }
  static Tensor either(const Tensor& a, const Tensor& b) {
    return logsumexp(stack({a, b}, 0), IntArgs{0});
  }
  std::vector<Tensor> forward() const;
  std::vector<Tensor> backward() const;
  // The logarithm of the whole likelihood, from the path sums to each cell.
  Tensor finish(const std::vector<Tensor>& ways) const;

  int64_t steps, columns;
  Tensor steps_of, labels_of;
  std::vector<Tensor> pauses, emits;    // logarithms, by cell
  std::vector<Tensor> emitted_classes;  // [batch, 1], by column
};

Cells::Cells(const Tensor& log_probs, const Tensor& labels, const Tensor& input_lengths,
             const Tensor& label_lengths, int64_t blank)
    : steps(log_probs.dim(1).value()),
      columns(log_probs.dim(2).value()),
      steps_of(cast(input_lengths, DType::Int64)),
      labels_of(cast(label_lengths, DType::Int64)) {
  const Tensor ids = cast(labels, DType::Int64);
  for (int64_t u = 0; u + 1 < columns; ++u) {
    const Tensor column = slice(ids, {1}, {u}, {u + 1});
    const Tensor used = unsqueeze(greater_than(labels_of, literal(static_cast<int>(u))), {1});
    emitted_classes.push_back(where(used, column, literal(0)));
  }
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t u = 0; u < columns; ++u) {
      const Tensor cell = squeeze(slice(log_probs, {1, 2}, {t, u}, {t + 1, u + 1}), IntArgs{1, 2});
      pauses.push_back(squeeze(slice(cell, {1}, {blank}, {blank + 1}), IntArgs{1}));
      emits.push_back(
          u + 1 < columns
              ? squeeze(take_along(cell, emitted_classes[static_cast<size_t>(u)], 1), IntArgs{1})
              : Tensor());
    }
}

std::vector<Tensor> Cells::forward() const {
  std::vector<Tensor> made;
  for (int64_t t = 0; t < steps; ++t)
    for (int64_t u = 0; u < columns; ++u) {
      Tensor below, left;
      if (t > 0) below = made[index(t - 1, u)] + pauses[index(t - 1, u)];
      if (u > 0) left = made[index(t, u - 1)] + emits[index(t, u - 1)];
      if (t == 0 && u == 0)
        made.push_back(zeros_like(pauses[0]));
      else
        made.push_back(t == 0 ? left : u == 0 ? below : either(below, left));
    }
  return made;
}

std::vector<Tensor> Cells::backward() const {
  std::vector<Tensor> made(pauses.size());
  const Tensor never = full_like(pauses[0], Scalar(kNever));
  for (int64_t t = steps - 1; t >= 0; --t)
    for (int64_t u = columns - 1; u >= 0; --u) {
      const size_t here = index(t, u);
      const Tensor on = t + 1 < steps ? made[index(t + 1, u)] + pauses[here] : never;
      const Tensor end = where(is_done(u), pauses[here], never);
      const Tensor above = where(is_last_step(t), end, on);
      const Tensor right =
          u + 1 < columns ? where(is_done(u), never, made[index(t, u + 1)] + emits[here]) : never;
      made[here] = maximum(either(above, right), never);
    }
  return made;
}

Tensor Cells::finish(const std::vector<Tensor>& ways) const {
  std::vector<Tensor> ends;
  for (size_t i = 0; i < ways.size(); ++i) ends.push_back(ways[i] + pauses[i]);
  const Tensor columns_tensor = Tensor::scalar(columns, DType::Int64, true);
  const Tensor place = unsqueeze((steps_of - 1) * columns_tensor + labels_of, {1});
  return squeeze(take_along(stack(ends, 1), place, 1), IntArgs{1});
}

// The reference enumerates every path: an order of pauses and emissions that ends with a pause.
const OpDef rnnt_op = {
    .schema =
        "rnnt(Tensor log_probs, Tensor labels, Tensor input_lengths, Tensor label_lengths, int "
        "blank = 0, float fastemit_lambda = 0.0) -> Tensor",
    .brief =
        "The negative logarithm of the probability of each label sequence under [batch, steps, "
        "labels so far, classes] of log-probabilities. fastemit_lambda makes the gradient of "
        "emissions larger by that share.",
    .infer = [](const args::rnnt& a) -> Metas {
      check_rnnt(a.log_probs, a.labels, a.input_lengths, a.label_lengths, a.blank);
      return TensorMeta{a.log_probs.dtype(), Shape{a.log_probs.dim(0)}};
    },
    .decompose = [](const args::rnnt& a) -> Made {
      const Cells cells(widened(a.log_probs), a.labels, a.input_lengths, a.label_lengths, a.blank);
      return narrowed(-cells.finish(cells.forward()), a.log_probs.dtype());
    },
    .vjp = [](const vjp::rnnt& v) -> Grads {
      return {rnnt_grad(v.log_probs, v.labels, v.input_lengths, v.label_lengths, v.grad, v.blank,
                        v.fastemit_lambda),
              Tensor(), Tensor(), Tensor()};
    },
    .saves = "log_probs labels input_lengths label_lengths",
    .shard =
        "btuc, bl, b, b -> b ; t whole ; u whole ; c whole ; l whole # a path runs through all steps, labels and classes",
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy =
        "np.array([-np.log(sum(w for w, p in ways)) for ways in [[(w, p) for s in "
        "__import__('itertools').combinations(range(T + U - 1), U) for p in [[(sum(1 for j in "
        "range(i) if j not in s), sum(1 for j in range(i) if j in s), int(labels[b, sum(1 for j in "
        "range(i) if j in s)]) if i in s else blank) for i in range(T + U)]] for w in "
        "[np.exp(sum(log_probs[b, t, u, c] for t, u, c in p))]] for b in range(len(labels)) for T, "
        "U in [(int(input_lengths[b]), int(label_lengths[b]))]]])",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 3, 3}), given({1, 2, 1, 1}, {2, 2}), given({3, 3}, {2}),
                   given({2, 2}, {2}))
              .add(t({2, 2, 3, 3}), given({0, 1, 1, 0}, {2, 2}, DType::Int32), given({2, 1}, {2}),
                   given({2, 1}, {2}), 2);
        },
};

const OpDef rnnt_grad_op = {
    .schema =
        "rnnt_grad(Tensor log_probs, Tensor labels, Tensor input_lengths, Tensor label_lengths, "
        "Tensor grad, int blank = 0, float fastemit_lambda = 0.0) -> Tensor",
    .brief =
        "The derivative of rnnt: minus the probability of each pause and emission, given the label.",
    .infer = [](const args::rnnt_grad& a) -> Metas {
      check_rnnt(a.log_probs, a.labels, a.input_lengths, a.label_lengths, a.blank);
      infer::check_type(a.grad, "grad", {a.log_probs.dtype(), Shape{a.log_probs.dim(0)}});
      return infer::like(a.log_probs);
    },
    .decompose = [](const args::rnnt_grad& a) -> Made {
      const Tensor log_probs = widened(a.log_probs);
      const Cells cells(log_probs, a.labels, a.input_lengths, a.label_lengths, a.blank);
      const std::vector<Tensor> ahead = cells.forward(), back = cells.backward();
      const Tensor all = cells.finish(ahead), factor = -widened(a.grad);
      const Tensor nothing = zeros({log_probs.dim(0), log_probs.dim(3)}, log_probs.dtype());
      const Tensor of_blank = full({log_probs.dim(0), Dim(1)}, Scalar(a.blank), DType::Int64);
      std::vector<Tensor> made;
      for (int64_t t = 0; t < cells.steps; ++t)
        for (int64_t u = 0; u < cells.columns; ++u) {
          const size_t here = cells.index(t, u);
          const Tensor in_reach =
              logical_and(greater_than(cells.steps_of, literal(static_cast<int>(t))),
                          greater_equal(cells.labels_of, literal(static_cast<int>(u))));
          const Tensor ends = logical_and(cells.is_last_step(t), cells.is_done(u));
          const Tensor on =
              t + 1 < cells.steps ? back[cells.index(t + 1, u)] : full_like(all, Scalar(kNever));
          const Tensor rest =
              where(ends, literal(0.0), where(cells.is_last_step(t), literal(kNever), on));
          const Tensor pause =
              zero_unless(in_reach, exp(ahead[here] + cells.pauses[here] + rest - all)) * factor;
          Tensor line = put_along(nothing, of_blank, unsqueeze(pause, {1}), 1, "add");
          if (u + 1 < cells.columns) {
            const Tensor goes =
                logical_and(in_reach, greater_than(cells.labels_of, literal(static_cast<int>(u))));
            const Tensor emit =
                exp(ahead[here] + cells.emits[here] + back[cells.index(t, u + 1)] - all);
            line = put_along(
                line, cells.emitted_classes[static_cast<size_t>(u)],
                unsqueeze(zero_unless(goes, emit) * factor * (1 + a.fastemit_lambda), {1}), 1,
                "add");
          }
          made.push_back(line);
        }
      return narrowed(reshape(stack(made, 1), log_probs.dims()), a.log_probs.dtype());
    },
    .shard =
        "btuc, bl, b, b, b -> btuc ; t whole ; u whole ; c whole ; l whole # a path runs through all steps, labels and classes",
    .dtypes = "float",
    .numpy =
        "np.stack([-grad[b] * sum(w * e for w, e in ways) / sum(w for w, e in ways) for b, ways in "
        "enumerate([[(w, sum((np.eye(log_probs[b].size)[np.ravel_multi_index(q, "
        "log_probs[b].shape)] * (1 if q[2] == blank else 1 + fastemit_lambda) for q in p)).reshape("
        "log_probs[b].shape)) for s in __import__('itertools').combinations(range(T + U - 1), U) "
        "for p in [[(sum(1 for j in range(i) if j not in s), sum(1 for j in range(i) if j in s), "
        "int(labels[b, sum(1 for j in range(i) if j in s)]) if i in s else blank) for i in range(T "
        "+ U)]] for w in [np.exp(sum(log_probs[b, t, u, c] for t, u, c in p))]] for b in "
        "range(len(labels)) for T, U in [(int(input_lengths[b]), int(label_lengths[b]))]])])",
    .samples =
        [] {
          return Samples()
              .add(t({2, 3, 3, 3}), given({1, 2, 1, 1}, {2, 2}), given({3, 3}, {2}),
                   given({2, 2}, {2}), t({2}))
              .add(t({2, 2, 3, 3}), given({0, 1, 1, 0}, {2, 2}), given({2, 1}, {2}),
                   given({2, 1}, {2}), t({2}), 2, 0.5);
        },
};

}  // namespace

OAR_FAMILY(rnnt, &rnnt_op, &rnnt_grad_op)

}  // namespace oar
