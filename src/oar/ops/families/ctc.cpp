// Connectionist temporal classification (Graves et al., 2006): the likelihood of a label sequence,
// summed over all alignments with a longer sequence of class probabilities.
#include "oar/ops/gen/ctc.h"

#include <limits>

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
#include "oar/ops/gen/pad.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

// The logarithm of probability 0. Finite, so that differences of two are not NaN.
constexpr double kNever = -1e30;

void check_lengths(const Tensor& lengths, const char* name, Dim batch) {
  user_check(is_integral(lengths.dtype()), ErrorKind::InvalidType,
             "{} has dtype {}; lengths are integers.", name, name_of(lengths.dtype()));
  user_check(lengths.rank() == 1 && assume_same(lengths.dim(0), batch), ErrorKind::InvalidArgument,
             "{} has shape {}; it must hold one length for each of {} sequences.", name,
             to_string(lengths.dims()), batch.str());
}

void check_ctc(const Tensor& log_probs, const Tensor& labels, const Tensor& input_lengths,
               const Tensor& label_lengths, int64_t blank) {
  user_check(log_probs.rank() == 3, ErrorKind::InvalidArgument,
             "log_probs has shape {}; it must be [steps, batch, classes].",
             to_string(log_probs.dims()));
  user_check(is_integral(labels.dtype()), ErrorKind::InvalidType,
             "labels has dtype {}; class numbers are integers.", name_of(labels.dtype()));
  user_check(labels.rank() == 2 && assume_same(labels.dim(0), log_probs.dim(1)),
             ErrorKind::InvalidArgument,
             "labels has shape {}; with log_probs of shape {} it must be [batch, longest label].",
             to_string(labels.dims()), to_string(log_probs.dims()));
  check_lengths(input_lengths, "input_lengths", log_probs.dim(1));
  check_lengths(label_lengths, "label_lengths", log_probs.dim(1));
  const Dim classes = log_probs.dim(2);
  user_check(blank >= 0 && (classes.is_symbolic() || blank < classes.word()), ErrorKind::OutOfRange,
             "blank is {}, but there are {} classes.", blank, classes.str());
}

// x shifted along axis 1 by `by` (back if negative), filled with `value`.
Tensor shifted(const Tensor& x, int64_t by, double value) {
  const int64_t size = x.dim(1).value(), start = by < 0 ? -by : 0;
  const Tensor wide = pad_constant(x, {0, 0, by > 0 ? by : 0, start}, Scalar(value));
  return slice(wide, {1}, {start}, {start + size});
}

Tensor class_number(int64_t i) { return Tensor::scalar(i, DType::Int64, true); }

// The lattice of a batch: states are the labels with blanks around and between them. Everything is
// [batch, states].
struct Lattice {
  Lattice(const Tensor& log_probs, const Tensor& labels, const Tensor& input_lengths,
          const Tensor& label_lengths, int64_t blank);
  Tensor only(const Tensor& condition, const Tensor& value) const {
    return where(condition, value, literal(kNever));
  }
  Tensor in_step(int64_t t) const { return less_than(literal(static_cast<int>(t)), input_length); }
  // Logarithms of the path sums from the start to each state, and from there to the end.
  std::vector<Tensor> forward() const;
  std::vector<Tensor> backward() const;
  Tensor log_likelihood(const Tensor& last) const;

  Tensor classes, place, skips, ends, input_length;
  Tensor too_long;           // [batch, 1]: no alignment of the label has so few steps
  std::vector<Tensor> logs;  // of the probabilities of each step
};

Lattice::Lattice(const Tensor& log_probs, const Tensor& labels, const Tensor& input_lengths,
                 const Tensor& label_lengths, int64_t blank)
    : input_length(unsqueeze(cast(input_lengths, DType::Int64), {1})) {
  const int64_t steps = log_probs.dim(0).value(), longest = labels.dim(1).value();
  const Tensor ids = cast(labels, DType::Int64), blanks = full_like(ids, Scalar(blank));
  const Tensor length = unsqueeze(cast(label_lengths, DType::Int64), {1});
  const auto counted = [](int64_t n) {
    return range(Scalar(int64_t{0}), Scalar(n), Scalar(int64_t{1}), DType::Int64);
  };
  // After the end of a label come blanks, whatever the padding contains.
  const Tensor used = where(less_than(counted(longest), length), ids, class_number(blank));
  const Tensor pairs = reshape(stack({blanks, used}, 2), {labels.dim(0), Dim(longest * 2)});
  classes = pad_constant(pairs, {0, 0, 0, 1}, Scalar(blank));
  place = counted(longest * 2 + 1);
  ends = logical_or(equal(place, length * 2), equal(place, length * 2 - 1));
  // From a label to the next without a blank between them, unless they are equal.
  skips = logical_and(not_equal(classes, class_number(blank)),
                      not_equal(classes, shifted(classes, 2, static_cast<double>(blank))));
  // Between two equal labels there is a blank.
  const Tensor follows = logical_and(less_than(counted(longest), length),
                                     equal(used, shifted(used, 1, static_cast<double>(blank))));
  const Tensor blanks_between = sum(cast(follows, DType::Int64), IntArgs{1}, std::nullopt, true);
  too_long = greater_than(length + blanks_between, input_length);
  for (int64_t t = 0; t < steps; ++t) {
    const Tensor step = squeeze(slice(log_probs, {0}, {t}, {t + 1}), IntArgs{0});
    logs.push_back(maximum(take_along(step, classes, 1), literal(kNever)));
  }
}

std::vector<Tensor> Lattice::forward() const {
  std::vector<Tensor> made{only(less_than(place, literal(2)), logs[0])};
  for (size_t t = 1; t < logs.size(); ++t) {
    const Tensor& before = made.back();
    const Tensor ways =
        stack({before, shifted(before, 1, kNever), only(skips, shifted(before, 2, kNever))}, 0);
    const Tensor next = logsumexp(ways, IntArgs{0}) + logs[t];
    made.push_back(where(in_step(static_cast<int64_t>(t)), next, before));
  }
  return made;
}

std::vector<Tensor> Lattice::backward() const {
  std::vector<Tensor> made(logs.size());
  Tensor after = full_like(logs[0], Scalar(kNever));
  for (size_t t = logs.size(); t-- > 0;) {
    const Tensor ways =
        stack({after, shifted(after, -1, kNever), shifted(only(skips, after), -2, kNever)}, 0);
    const Tensor is_last = equal(input_length, literal(static_cast<int>(t) + 1));
    const Tensor next = where(is_last, only(ends, logs[t]), logsumexp(ways, IntArgs{0}) + logs[t]);
    after = only(in_step(static_cast<int64_t>(t)), maximum(next, literal(kNever)));
    made[t] = after;
  }
  return made;
}

Tensor Lattice::log_likelihood(const Tensor& last) const {
  return logsumexp(only(ends, last), IntArgs{1}, true);
}

constexpr const char* kBruteForce =
    "np.array([-np.log(sum((np.exp(sum(log_probs[k, b, c] for k, c in enumerate(p))) for p in "
    "__import__('itertools').product(range(log_probs.shape[2]), repeat=int(input_lengths[b])) if [c "
    "for k, c in enumerate(p) if c != blank and (k == 0 or p[k - 1] != c)] == [int(v) for v in "
    "labels[b, :int(label_lengths[b])]]), 0.0) or 1.0) for b in range(labels.shape[0])])";

const OpDef ctc_op = {
    .schema =
        "ctc(Tensor log_probs, Tensor labels, Tensor input_lengths, Tensor label_lengths, int "
        "blank = 0) -> Tensor",
    .brief =
        "The negative logarithm of the probability of each label sequence, of all alignments with "
        "[steps, batch, classes] of log-probabilities. 0 if a label is too long for its steps.",
    .infer = [](const args::ctc& a) -> Metas {
      check_ctc(a.log_probs, a.labels, a.input_lengths, a.label_lengths, a.blank);
      return TensorMeta{a.log_probs.dtype(), Shape{a.log_probs.dim(1)}};
    },
    .decompose = [](const args::ctc& a) -> Made {
      const Lattice lattice(widened(a.log_probs), a.labels, a.input_lengths, a.label_lengths,
                            a.blank);
      const Tensor ways = lattice.log_likelihood(lattice.forward().back());
      const Tensor loss = where(less_than(ways, literal(kNever / 10)),
                                literal(std::numeric_limits<double>::infinity()), -ways);
      return narrowed(squeeze(zero_where(lattice.too_long, loss), IntArgs{1}), a.log_probs.dtype());
    },
    .vjp = [](const vjp::ctc& v) -> Grads {
      return {ctc_grad(v.log_probs, v.labels, v.input_lengths, v.label_lengths, v.grad, v.blank),
              Tensor(), Tensor(), Tensor()};
    },
    .saves = "log_probs labels input_lengths label_lengths",
    .shard =
        "tbc, bl, b, b -> b ; t whole ; c whole ; l whole # a path runs through all steps, labels and classes",
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = kBruteForce,
    .samples =
        [] {
          return Samples()
              .add(t({4, 2, 3}), given({1, 2, 1, 1}, {2, 2}), given({4, 4}, {2}),
                   given({2, 2}, {2}))
              .add(t({4, 3, 3}), given({0, 1, 1, 0, 0, 1}, {3, 2}, DType::Int32),
                   given({4, 3, 2}, {3}), given({2, 1, 0}, {3}), 2)
              .add(t({1, 1, 2}), given({1}, {1, 1}), given({1}, {1}), given({1}, {1}))
              .add(t({3, 2, 3}), given({1, 1, 1, 2}, {2, 2}), given({2, 3}, {2}),
                   given({2, 2}, {2}));
        },
};

const OpDef ctc_grad_op = {
    .schema =
        "ctc_grad(Tensor log_probs, Tensor labels, Tensor input_lengths, Tensor label_lengths, "
        "Tensor grad, int blank = 0) -> Tensor",
    .brief =
        "The derivative of ctc: minus the probability of each class at each step, given the label. 0 "
        "if a label is too long.",
    .infer = [](const args::ctc_grad& a) -> Metas {
      check_ctc(a.log_probs, a.labels, a.input_lengths, a.label_lengths, a.blank);
      infer::check_type(a.grad, "grad", {a.log_probs.dtype(), Shape{a.log_probs.dim(1)}});
      return infer::like(a.log_probs);
    },
    .decompose = [](const args::ctc_grad& a) -> Made {
      const Tensor log_probs = widened(a.log_probs);
      const Lattice lattice(log_probs, a.labels, a.input_lengths, a.label_lengths, a.blank);
      const std::vector<Tensor> forward = lattice.forward(), backward = lattice.backward();
      const Tensor ways = lattice.log_likelihood(forward.back());
      const Tensor possible = greater_than(ways, literal(kNever / 10));
      const Tensor factor = -unsqueeze(widened(a.grad), {1});
      const Dim batch = log_probs.dim(1), classes = log_probs.dim(2);
      std::vector<Tensor> made;
      for (size_t t = 0; t < forward.size(); ++t) {
        const Tensor share = exp(forward[t] + backward[t] - lattice.logs[t] - ways);
        const Tensor live = logical_and(possible, lattice.in_step(static_cast<int64_t>(t)));
        made.push_back(put_along(zeros({batch, classes}, log_probs.dtype()), lattice.classes,
                                 zero_unless(live, share) * factor, 1, "add"));
      }
      return narrowed(stack(made, 0), a.log_probs.dtype());
    },
    .shard =
        "tbc, bl, b, b, b -> tbc ; t whole ; c whole ; l whole # a path runs through all steps, labels and classes",
    .dtypes = "float",
    .numpy =
        "np.stack([-grad[b] * sum(w * np.pad(np.eye(log_probs.shape[2])[list(p)], ((0, "
        "log_probs.shape[0] - len(p)), (0, 0))) for p, w in pw) / sum(w for p, w in pw) for b in "
        "range(labels.shape[0]) for pw in [[(p, np.exp(sum(log_probs[k, b, c] for k, c in "
        "enumerate(p)))) for p in __import__('itertools').product(range(log_probs.shape[2]), "
        "repeat=int(input_lengths[b])) if [c for k, c in enumerate(p) if c != blank and (k == 0 or "
        "p[k - 1] != c)] == [int(v) for v in labels[b, :int(label_lengths[b])]]]]], 1)",
    .samples =
        [] {
          return Samples()
              .add(t({4, 2, 3}), given({1, 2, 1, 1}, {2, 2}), given({4, 4}, {2}),
                   given({2, 2}, {2}), t({2}))
              .add(t({3, 2, 3}), given({0, 1, 1, 0}, {2, 2}), given({3, 2}, {2}),
                   given({2, 1}, {2}), t({2}), 2);
        },
};

}  // namespace

OAR_FAMILY(ctc, &ctc_op, &ctc_grad_op)

}  // namespace oar
