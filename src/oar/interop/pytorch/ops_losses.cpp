// Losses and distances.
#include <cmath>

#include "oar/interop/pytorch/call.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar::pytorch {
namespace {

const char* reduction_of(const Call& c) {
  constexpr const char* names[] = {"none", "mean", "sum"};
  const int64_t given = c.integer("reduction");
  if (given < 0 || given > 2) c.refuse(format("its reduction is {}", given));
  return names[given];
}
Tensor reduced(const Call& c, const Tensor& each) {
  const std::string_view how = reduction_of(c);
  return how == "none" ? each : how == "mean" ? mean(each) : sum(each);
}
Tensor below_zero_cut(const Tensor& x) { return maximum(x, zeros_like(x)); }

// Classes are on the second axis, or on the only one.
int64_t class_axis(const Tensor& x) { return x.rank() == 1 ? 0 : 1; }

Tensor picked_losses(const Tensor& log_probabilities, const Tensor& target, const Tensor& weight,
                     int64_t ignored, Tensor& weights) {
  const int64_t axis = class_axis(log_probabilities);
  const Tensor counts = not_equal(target, full_like(target, Scalar(ignored)));
  const Tensor place = where(counts, target, zeros_like(target));
  const Tensor at = unsqueeze(place, {axis});
  const Tensor picked = squeeze(take_along(log_probabilities, at, axis), IntArgs({axis}));
  weights = cast(counts, log_probabilities.dtype());
  if (weight.defined())
    weights = weights * reshape(index_select(weight, reshape(place, {-1}), 0), place.shape());
  return neg(picked) * weights;
}
Tensor class_loss(const Call& c, const Tensor& log_probabilities, Tensor* total = nullptr) {
  Tensor weights;
  const Tensor each = picked_losses(log_probabilities, c.tensor("target"), c.maybe("weight"),
                                    c.integer("ignore_index"), weights);
  if (total) *total = sum(weights);
  const std::string_view how = reduction_of(c);
  return how == "none" ? each : how == "sum" ? sum(each) : sum(each) / sum(weights);
}
Value negative_log(const Call& c) { return class_loss(c, c.tensor("self")); }
Value core_negative_log(const Call& c) {
  Tensor total;
  const Tensor made = class_loss(c, c.tensor("self"), &total);
  return c.tuple({made, total});
}

// Probabilities as targets.
Tensor soft_class_loss(const Call& c, const Tensor& x, double smoothing) {
  const int64_t axis = class_axis(x);
  const auto classes = static_cast<double>(x.dim(axis).value());
  Tensor target = c.tensor("target");
  if (smoothing > 0) target = target * (1 - smoothing) + smoothing / classes;
  Tensor each = log_softmax(x, axis) * target;
  if (c.has("weight")) {
    std::vector<Dim> shape(static_cast<size_t>(x.rank()), 1);
    shape[static_cast<size_t>(axis)] = x.dim(axis);
    each = each * reshape(c.tensor("weight"), shape);
  }
  Tensor losses = neg(sum(each, IntArgs({axis})));
  const std::string_view how = reduction_of(c);
  if (how == "none") return losses;
  if (how == "sum") return sum(losses);
  return sum(losses) / static_cast<double>(losses.numel().value());
}
Value cross_entropy_of(const Call& c) {
  const Tensor &x = c.tensor("self"), &target = c.tensor("target");
  const double smoothing = c.number("label_smoothing");
  if (is_floating(target.dtype())) return soft_class_loss(c, x, smoothing);
  const int64_t axis = class_axis(x);
  const Tensor log_probabilities = log_softmax(x, axis);
  const Tensor hard = class_loss(c, log_probabilities);
  if (smoothing == 0) return hard;
  const auto classes = static_cast<double>(x.dim(axis).value());
  if (c.has("weight")) c.refuse("it has both weights and smoothed labels");
  Tensor weights;
  picked_losses(log_probabilities, target, {}, c.integer("ignore_index"), weights);
  const Tensor each = neg(sum(log_probabilities, IntArgs({axis}))) * weights;
  const std::string_view how = reduction_of(c);
  const Tensor smooth = how == "none" ? each : how == "sum" ? sum(each) : sum(each) / sum(weights);
  return hard * (1 - smoothing) + smooth * (smoothing / classes);
}

// ---- of numbers --------------------------------------------------------------------------------

Tensor apart(const Call& c) { return c.tensor("self") - c.tensor("target"); }
Value squares(const Call& c) { return reduced(c, square(apart(c))); }
Value distances(const Call& c) { return reduced(c, abs(apart(c))); }
Value smooth_distances(const Call& c) {
  const double beta = c.number("beta");
  const Tensor far = abs(apart(c));
  if (beta == 0) return reduced(c, far);
  return reduced(c, where(less_than(far, full_like(far, Scalar(beta))), square(far) * (0.5 / beta),
                          far - 0.5 * beta));
}
Value huber(const Call& c) {
  const double delta = c.number("delta");
  const Tensor far = abs(apart(c));
  return reduced(c, where(less_equal(far, full_like(far, Scalar(delta))), square(far) * 0.5,
                          (far - 0.5 * delta) * delta));
}
Tensor weighted(const Call& c, const Tensor& each) {
  return c.has("weight") ? each * c.tensor("weight") : each;
}
Value binary_entropy(const Call& c) {
  const Tensor &x = c.tensor("self"), &target = c.tensor("target");
  const Tensor lowest = full_like(x, Scalar(-100.0));
  const Tensor yes = maximum(log(x), lowest), no = maximum(log1p(neg(x)), lowest);
  return reduced(c, weighted(c, (target - 1.0) * no - target * yes));
}
Value binary_entropy_of_logits(const Call& c) {
  const Tensor &x = c.tensor("self"), &target = c.tensor("target");
  const Tensor tail = log1p(exp(neg(abs(x)))) + below_zero_cut(neg(x));
  const Tensor each =
      c.has("pos_weight")
          ? (1.0 - target) * x + ((c.tensor("pos_weight") - 1.0) * target + 1.0) * tail
          : (1.0 - target) * x + tail;
  return reduced(c, weighted(c, each));
}
Value divergence(const Call& c) {
  const Tensor &x = c.tensor("self"), &target = c.tensor("target");
  if (c.flag("log_target")) return reduced(c, exp(target) * (target - x));
  const Tensor own =
      where(greater_than(target, zeros_like(target)), target * log(target), zeros_like(target));
  return reduced(c, own - target * x);
}
Value soft_margin(const Call& c) {
  return reduced(c, log1p(exp(neg(c.tensor("target")) * c.tensor("self"))));
}
Value ranking(const Call& c) {
  const Tensor each =
      neg(c.tensor("target")) * (c.tensor("input1") - c.tensor("input2")) + c.number("margin");
  return reduced(c, below_zero_cut(each));
}
Value hinge(const Call& c) {
  const Tensor &x = c.tensor("self"), &target = c.tensor("target");
  const Tensor zero = zeros_like(x), one = ones_like(target);
  const Tensor near = where(not_equal(target, one), below_zero_cut(c.number("margin") - x), zero);
  const Tensor own = where(not_equal(target, neg(one)), x, zero);
  return reduced(c, near + own);
}
Value poisson_loss(const Call& c) {
  const Tensor &x = c.tensor("input"), &target = c.tensor("target");
  const double eps = c.number("eps");
  Tensor each = c.flag("log_input") ? exp(x) - target * x : x - target * log(x + eps);
  if (c.flag("full")) {
    const Tensor term = target * log(target) - target + log(target * (2 * M_PI)) * 0.5;
    each = each + where(greater_than(target, ones_like(target)), term, zeros_like(target));
  }
  return reduced(c, each);
}

// ---- distances ---------------------------------------------------------------------------------

Tensor length_along(const Tensor& x, int64_t axis) {
  return sqrt(sum(square(x), IntArgs({axis}), std::nullopt, true));
}
Tensor cosine(const Tensor& x, const Tensor& y, int64_t axis, double eps) {
  const auto unit = [&](const Tensor& t) {
    const Tensor length = length_along(t, axis);
    return t / maximum(length, full_like(length, Scalar(eps)));
  };
  return sum(unit(x) * unit(y), IntArgs({axis}));
}
Value cosine_of(const Call& c) {
  const Tensor &x = c.tensor("x1"), &y = c.tensor("x2");
  const auto both = broadcast_tensors(std::vector<Tensor>{x, y});
  return cosine(both[0], both[1], c.axis("dim", both[0].rank()), c.number("eps"));
}
Value cosine_loss(const Call& c) {
  const Tensor &x = c.tensor("input1"), &y = c.tensor("input2"), &target = c.tensor("target");
  const int64_t axis = x.rank() - 1;
  const double eps = 1e-12;
  const auto dots = [&](const Tensor& a, const Tensor& b) { return sum(a * b, IntArgs({axis})); };
  const Tensor near = dots(x, y) / sqrt((dots(x, x) + eps) * (dots(y, y) + eps));
  const Tensor zero = zeros_like(near), one = ones_like(target);
  const Tensor apart_loss =
      where(equal(target, neg(one)), below_zero_cut(near - c.number("margin")), zero);
  return reduced(c, where(equal(target, one), 1.0 - near, zero) + apart_loss);
}
Tensor pair_distance(const Tensor& x, const Tensor& y, double p, double eps, bool keep) {
  const Tensor far = abs(x - y + eps);
  if (p == 2) return sqrt(sum(square(far), IntArgs({-1}), std::nullopt, keep));
  if (p == 1) return sum(far, IntArgs({-1}), std::nullopt, keep);
  return pow(sum(pow(far, literal(p)), IntArgs({-1}), std::nullopt, keep), literal(1 / p));
}
Value pair_distance_of(const Call& c) {
  return pair_distance(c.tensor("x1"), c.tensor("x2"), c.number("p"), c.number("eps"),
                       c.flag("keepdim"));
}
Value triplet(const Call& c) {
  const Tensor &a = c.tensor("anchor"), &near = c.tensor("positive"), &far = c.tensor("negative");
  const double p = c.number("p"), eps = c.number("eps");
  Tensor away = pair_distance(a, far, p, eps, false);
  if (c.flag("swap")) away = minimum(away, pair_distance(near, far, p, eps, false));
  return reduced(c,
                 below_zero_cut(pair_distance(a, near, p, eps, false) - away + c.number("margin")));
}
Value all_distances(const Call& c) {
  return cdist(c.tensor("x1"), c.tensor("x2"), c.has("p") ? c.number("p") : 2.0);
}

constexpr Converter kConverters[] = {
    {"cross_entropy_loss(self, target, weight=None, reduction=1, ignore_index=-100, label_smoothing=0.0)",
     cross_entropy_of},
    {"nll_loss(self, target, weight=None, reduction=1, ignore_index=-100)", negative_log},
    {"nll_loss2d(self, target, weight=None, reduction=1, ignore_index=-100)", negative_log},
    {"nll_loss_nd(self, target, weight=None, reduction=1, ignore_index=-100)", negative_log},
    {"nll_loss_forward(self, target, weight, reduction, ignore_index)", core_negative_log},
    {"nll_loss2d_forward(self, target, weight, reduction, ignore_index)", core_negative_log},
    {"mse_loss(self, target, reduction=1)", squares},
    {"l1_loss(self, target, reduction=1)", distances},
    {"smooth_l1_loss(self, target, reduction=1, beta=1.0)", smooth_distances},
    {"huber_loss(self, target, reduction=1, delta=1.0)", huber},
    {"binary_cross_entropy(self, target, weight=None, reduction=1)", binary_entropy},
    {"binary_cross_entropy_with_logits(self, target, weight=None, pos_weight=None, reduction=1)",
     binary_entropy_of_logits},
    {"kl_div(self, target, reduction=1, log_target=False)", divergence},
    {"soft_margin_loss(self, target, reduction=1)", soft_margin},
    {"margin_ranking_loss(input1, input2, target, margin=0.0, reduction=1)", ranking},
    {"hinge_embedding_loss(self, target, margin=1.0, reduction=1)", hinge},
    {"poisson_nll_loss(input, target, log_input, full, eps, reduction)", poisson_loss},
    {"cosine_similarity(x1, x2, dim=1, eps=1e-08)", cosine_of},
    {"cosine_embedding_loss(input1, input2, target, margin=0.0, reduction=1)", cosine_loss},
    {"pairwise_distance(x1, x2, p=2, eps=1e-06, keepdim=False)", pair_distance_of},
    {"triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-06, swap=False, reduction=1)",
     triplet},
    {"cdist(x1, x2, p=2, compute_mode=None)", all_distances},
    {"_cdist_forward(x1, x2, p, compute_mode)", all_distances},
};

}  // namespace

std::span<const Converter> loss_converters() { return kConverters; }

}  // namespace oar::pytorch
