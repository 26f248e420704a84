// The negative log likelihood of labels that are class numbers.
#include "oar/ops/gen/nll_loss.h"

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/blank.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/hard_label.h"
#include "oar/ops/families/loss_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/along_axis.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/gather.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/sharding/rules.h"

namespace oar {
namespace {

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
        "Zeros of a shape with grad at the labelled class along an axis, except where label is "
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
    .localise = sharding::result_shape("shape"),
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

// The sum and the mean of no losses are 0.
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

OAR_FAMILY(nll_loss, &pick_class_op, &pick_class_grad_op, &mean_of_picked_op, &nll_loss_op)

}  // namespace oar
