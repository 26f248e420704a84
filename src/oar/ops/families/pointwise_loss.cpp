// Losses of pairs of elements, reduced in the same pass. A loss is a row of `kLosses`: its value
// and its derivatives in plain ops, which define it and differentiate it again. Kernels fuse them.
#include "oar/ops/gen/pointwise_loss.h"

#include <array>
#include <numbers>

#include "oar/ops/core/infer.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/core/registry.h"
#include "oar/ops/families/count.h"
#include "oar/ops/families/loss_rules.h"
#include "oar/ops/families/masks.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/compare.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/logic.h"
#include "oar/ops/gen/masking.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/powers.h"
#include "oar/ops/gen/relu.h"

namespace oar {
namespace {

// The operands of a loss: the pair, and two settings whose meaning depends on the loss.
struct Pair {
  Tensor x, y;
  double a, b;
};
using Formula = Tensor (*)(const Pair&);

struct PointwiseLoss {
  std::string_view kind;
  Formula value, x_slope, y_slope;
};

Tensor softplus_exact(const Tensor& x) { return -log_sigmoid(-x); }
Tensor only(const Tensor& condition, const Pair& p, double value) {
  return where(condition, full_like(p.x, Scalar(value)), literal(0));
}

// log, but not below -100: a certain but wrong prediction has a large, finite cost.
Tensor bounded_log(const Tensor& x) { return maximum(log(x), literal(-100.0)); }

Tensor focal_miss(const Pair& p, const Tensor& chance) { return chance + p.y - 2 * chance * p.y; }
Tensor focal_weight(const Pair& p) { return p.a * p.y + (1 - p.a) * (1 - p.y); }
Tensor binary_entropy(const Pair& p) { return (1 - p.y) * p.x + softplus_exact(-p.x); }

Tensor focal_x_slope(const Pair& p) {
  const Tensor chance = sigmoid(p.x), miss = focal_miss(p, chance);
  Tensor made = pow(miss, literal(p.b)) * (chance - p.y);
  if (p.b != 0)
    made = made + p.b * pow(miss, literal(p.b - 1)) * (1 - 2 * p.y) * chance * (1 - chance) *
                      binary_entropy(p);
  return focal_weight(p) * made;
}
// Labels get the gradient of the two factors before the entropy and none of the entropy, as in Paddle.
Tensor focal_y_slope(const Pair& p) {
  const Tensor chance = sigmoid(p.x), miss = focal_miss(p, chance), entropy = binary_entropy(p);
  Tensor made = (2 * p.a - 1) * pow(miss, literal(p.b)) * entropy;
  if (p.b != 0)
    made = made + focal_weight(p) * p.b * pow(miss, literal(p.b - 1)) * (1 - 2 * chance) * entropy;
  return made;
}

// Stirling's approximation of log(y!) and its derivative, where y > 1.
Tensor with_stirling(const Pair& p, const Tensor& loss) {
  if (p.a == 0) return loss;
  const Tensor many = greater_than(p.y, literal(1)), y = where(many, p.y, literal(1));
  const Tensor term = y * log(y) - y + 0.5 * log(y * (2 * std::numbers::pi));
  return loss + zero_unless(many, term);
}
Tensor with_stirling_slope(const Pair& p, const Tensor& slope) {
  if (p.a == 0) return slope;
  const Tensor many = greater_than(p.y, literal(1)), y = where(many, p.y, literal(1));
  return slope + zero_unless(many, log(y) + 0.5 / y);
}

Tensor positive_label(const Pair& p) { return greater_than(p.y, literal(0)); }
Tensor safe_log_label(const Pair& p) { return log(where(positive_label(p), p.y, literal(1))); }

const std::array<PointwiseLoss, 12> kLosses{{
    {"square", [](const Pair& p) { return square(p.x - p.y); },
     [](const Pair& p) { return 2 * (p.x - p.y); }, [](const Pair& p) { return 2 * (p.y - p.x); }},
    {"absolute", [](const Pair& p) { return abs(p.x - p.y); },
     [](const Pair& p) { return sign(p.x - p.y); }, [](const Pair& p) { return sign(p.y - p.x); }},
    {"huber",
     [](const Pair& p) {
       const Tensor d = p.x - p.y, size = abs(d);
       return where(less_equal(size, literal(p.a)), 0.5 * square(d), p.a * (size - 0.5 * p.a));
     },
     [](const Pair& p) { return clip(p.x - p.y, Scalar(-p.a), Scalar(p.a)); },
     [](const Pair& p) { return clip(p.y - p.x, Scalar(-p.a), Scalar(p.a)); }},
    {"logistic", [](const Pair& p) { return softplus_exact(-(p.x * p.y)); },
     [](const Pair& p) { return -(p.y * sigmoid(-(p.x * p.y))); },
     [](const Pair& p) { return -(p.x * sigmoid(-(p.x * p.y))); }},
    {"binary_entropy", binary_entropy, [](const Pair& p) { return sigmoid(p.x) - p.y; },
     [](const Pair& p) { return -p.x; }},
    {"bernoulli",
     [](const Pair& p) { return (p.y - 1) * bounded_log(1 - p.x) - p.y * bounded_log(p.x); },
     [](const Pair& p) { return (p.x - p.y) / maximum((1 - p.x) * p.x, literal(1e-12)); },
     [](const Pair& p) { return bounded_log(1 - p.x) - bounded_log(p.x); }},
    {"focal",
     [](const Pair& p) {
       return focal_weight(p) * pow(focal_miss(p, sigmoid(p.x)), literal(p.b)) * binary_entropy(p);
     },
     focal_x_slope, focal_y_slope},
    {"hinge_embedding",
     [](const Pair& p) {
       const Tensor unlike = zero_unless(equal(p.y, literal(-1)), relu(p.a - p.x));
       return where(equal(p.y, literal(1)), p.x, unlike);
     },
     [](const Pair& p) {
       const Tensor close = logical_and(equal(p.y, literal(-1)), less_than(p.x, literal(p.a)));
       return where(equal(p.y, literal(1)), full_like(p.x, Scalar(1.0)), only(close, p, -1));
     },
     [](const Pair& p) { return zeros_like(p.x); }},
    {"poisson_of_log", [](const Pair& p) { return with_stirling(p, exp(p.x) - p.y * p.x); },
     [](const Pair& p) { return exp(p.x) - p.y; },
     [](const Pair& p) { return with_stirling_slope(p, -p.x); }},
    {"poisson", [](const Pair& p) { return with_stirling(p, p.x - p.y * log(p.x + p.b)); },
     [](const Pair& p) { return 1 - p.y / (p.x + p.b); },
     [](const Pair& p) { return with_stirling_slope(p, -log(p.x + p.b)); }},
    {"divergence",
     [](const Pair& p) { return zero_unless(positive_label(p), p.y * (safe_log_label(p) - p.x)); },
     [](const Pair& p) { return zero_unless(positive_label(p), -p.y); },
     [](const Pair& p) { return zero_unless(positive_label(p), safe_log_label(p) + 1 - p.x); }},
    {"divergence_of_log", [](const Pair& p) { return exp(p.y) * (p.y - p.x); },
     [](const Pair& p) { return -exp(p.y); },
     [](const Pair& p) { return exp(p.y) * (p.y - p.x + 1); }},
}};

const PointwiseLoss& loss_of(std::string_view kind) {
  for (const PointwiseLoss& loss : kLosses)
    if (loss.kind == kind) return loss;
  fail(ErrorKind::InvalidArgument, "there is no pointwise loss '{}'.", kind);
}

Pair wide_pair(const Tensor& x, const Tensor& y, double a, double b) {
  return {widened(x), widened(y), a, b};
}

// The gradient of a reduced loss, as one factor for all elements.
Tensor share_of(const Tensor& grad, const Tensor& x, std::string_view reduction) {
  return reduction == "mean" ? grad / count_of(x.dims(), grad.dtype()) : grad;
}

constexpr const char* kNumpy =
    "[v if reduction == 'none' else v.mean() if reduction == 'mean' else v.sum() for s in [lambda "
    "z: 1 / (1 + np.exp(-z))] for sp_ in [lambda z: np.logaddexp(0, z)] for st in [lambda q: "
    "np.where(q > 1, q * np.log(np.maximum(q, 1)) - q + 0.5 * np.log(2 * np.pi * np.maximum(q, "
    "1)), 0) if a else 0] for v in [{'square': lambda x, y: (x - y) ** 2, 'absolute': lambda x, y: "
    "np.abs(x - y), 'huber': lambda x, y: np.where(np.abs(x - y) <= a, 0.5 * (x - y) ** 2, a * "
    "(np.abs(x - y) - 0.5 * a)), 'logistic': lambda x, y: sp_(-x * y), 'binary_entropy': lambda x, "
    "y: (1 - y) * x + sp_(-x), 'bernoulli': lambda x, y: (y - 1) * np.log(1 - x) - y * np.log(x), "
    "'focal': lambda x, y: (a * y + (1 - a) * (1 - y)) * (s(x) + y - 2 * "
    "s(x) * y) ** b * ((1 - y) * x + sp_(-x)), 'hinge_embedding': lambda x, y: np.where(y == 1, x, "
    "np.where(y == -1, np.maximum(a - x, 0), 0)), 'poisson_of_log': lambda x, y: np.exp(x) - y * x "
    "+ st(y), 'poisson': lambda x, y: x - y * np.log(x + b) + st(y), 'divergence': lambda x, y: "
    "np.where(y > 0, y * (np.log(np.where(y > 0, y, 1)) - x), 0), 'divergence_of_log': lambda x, "
    "y: np.exp(y) * (y - x)}[kind](input, label)]][0]";

const OpDef pointwise_loss_op = {
    .schema =
        "pointwise_loss(Tensor input, Tensor label, str kind, float a = 0.0, float b = 0.0, str "
        "reduction = 'mean') -> Tensor",
    .brief =
        "A loss of pairs of elements, averaged, summed or as it is: 'square', 'absolute', 'huber' "
        "(width a), 'logistic', 'binary_entropy' of scores, 'bernoulli' of probabilities, "
        "'focal' (alpha a, gamma b), 'hinge_embedding' (margin a), 'poisson_of_log' and 'poisson' "
        "(with Stirling's term if a; b added to the rate), 'divergence', 'divergence_of_log'.",
    .infer = [](const args::pointwise_loss& a) -> Metas {
      loss_of(a.kind);
      check_reduction(a.reduction);
      return TensorMeta{a.input.dtype(), a.reduction == "none" ? a.input.shape() : Shape{}};
    },
    .decompose = [](const args::pointwise_loss& a) -> Made {
      const Tensor loss = loss_of(a.kind).value(wide_pair(a.input, a.label, a.a, a.b));
      return narrowed(reduce_loss(loss, a.reduction), a.input.dtype());
    },
    .vjp = [](const vjp::pointwise_loss& v) -> Grads {
      Tensor on_label;
      if (v.needs(1)) {
        const Tensor slope = loss_of(v.kind).y_slope(wide_pair(v.input, v.label, v.a, v.b));
        on_label =
            narrowed(slope * share_of(widened(v.grad), v.input, v.reduction), v.label.dtype());
      }
      return {v.needs(0)
                  ? pointwise_loss_grad(v.input, v.label, v.grad, v.kind, v.a, v.b, v.reduction)
                  : Tensor(),
              on_label};
    },
    .saves = "input label",
    .traits = Trait::Broadcast | Trait::Promote,
    .dtypes = "float",
    .amp = Amp::Full,
    .numpy = kNumpy,
    .samples =
        [] {
          const auto p = [](const Shape& shape) { return positive(shape); };
          const auto label = [](const Shape& shape) { return uniform_in(0.1, 0.9, shape); };
          return Samples()
              .add(t({4, 3}), t({4, 3}), "square")
              .add(t({2, 3}), t({3}), "square", 0.0, 0.0, "sum")
              .add(t({}), t({}), "square", 0.0, 0.0, "none")
              .add(t({300, 7}), t({300, 7}), "square")
              .add(t({4, 3}), t({4, 3}), "absolute", 0.0, 0.0, "none")
              .add(t({4, 3}), t({4, 3}), "huber", 0.7)
              .add(t({4, 3}), t({4, 3}), "logistic", 0.0, 0.0, "sum")
              .add(t({4, 3}), label({4, 3}), "binary_entropy")
              .add(label({4, 3}), label({4, 3}), "bernoulli")
              .add(label({0, 3}), label({3}), "bernoulli", 0.0, 0.0, "none")
              .add(t({4, 3}), fixed(label({4, 3})), "focal", 0.25, 2.0, "sum")
              .add(t({4}), fixed(label({4})), "focal", 0.4, 0.0, "none")
              .add(t({6}), ints(-1, 2, {6}), "hinge_embedding", 0.8)
              .add(t({4, 3}), uniform_in(0.2, 5, {4, 3}), "poisson_of_log", 1.0)
              .add(p({4, 3}), uniform_in(0.2, 5, {4, 3}), "poisson", 1.0, 1e-3, "none")
              .add(t({4, 3}), p({4, 3}), "divergence", 0.0, 0.0, "sum")
              .add(t({3}), t({3}), "divergence_of_log")
              .add(t({0, 3}), t({0, 3}), "square", 0.0, 0.0, "sum");
        },
};

const OpDef pointwise_loss_grad_op = {
    .schema =
        "pointwise_loss_grad(Tensor input, Tensor label, Tensor grad, str kind, float a = 0.0, "
        "float b = 0.0, str reduction = 'mean') -> Tensor",
    .brief = "The derivative of pointwise_loss in its input, times the gradient of the loss.",
    .infer = [](const args::pointwise_loss_grad& a) -> Metas {
      loss_of(a.kind);
      check_reduction(a.reduction);
      check_alike(a.input, a.label);
      const Shape expected = a.reduction == "none" ? a.input.shape() : Shape{};
      user_check(same(a.grad.shape(), expected), ErrorKind::InvalidArgument,
                 "grad has shape {}; that of the loss is {}.", to_string(a.grad.dims()),
                 expected.str());
      return infer::like(a.input);
    },
    .decompose = [](const args::pointwise_loss_grad& a) -> Made {
      const Tensor slope = loss_of(a.kind).x_slope(wide_pair(a.input, a.label, a.a, a.b));
      return narrowed(slope * share_of(widened(a.grad), a.input, a.reduction), a.input.dtype());
    },
    .dtypes = "float",
    .numpy =
        "[g * (1 / input.size if reduction == 'mean' else 1) * k for g in [grad] for k in "
        "[{'square': lambda x, y: 2 * (x - y), 'huber': lambda x, y: np.clip(x - y, -a, a), "
        "'binary_entropy': lambda x, y: 1 / (1 + np.exp(-x)) - y}[kind](input, label)]][0]",
    .samples =
        [] {
          return Samples()
              .add(t({4, 3}), t({4, 3}), t({}), "square")
              .add(t({4, 3}), t({4, 3}), t({4, 3}), "huber", 0.7, 0.0, "none")
              .add(t({5}), t({5}), t({}), "binary_entropy", 0.0, 0.0, "sum");
        },
};

}  // namespace

OAR_FAMILY(pointwise_loss, &pointwise_loss_op, &pointwise_loss_grad_op)

}  // namespace oar
