#include "oar/nn/optimizer.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/nn/module.h"
#include "oar/nn/optimizer_slot.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/families/transfer.h"
#include "oar/ops/gen/activation.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/rounding.h"
#include "oar/ops/gen/selected_rows.h"

namespace oar::nn {
namespace {

bool is_half(const Tensor& t) { return size_of(t.dtype()) < 4; }
DType number_dtype(const Tensor& t) {
  return t.dtype() == DType::Float64 ? DType::Float64 : DType::Float32;
}

// State that lives on from step to step: not a part of a program that is being captured.
struct Lasting {
  NoGrad no_grad;
  LayersOff off{kFunctionalise | kCapture};
};

Tensor filled_on(Device device, Dims shape, DType dtype, double value) {
  return to_device(full(shape, Scalar(value), dtype), device);
}

void check_rate(double rate) {
  user_check(std::isfinite(rate) && rate >= 0, ErrorKind::InvalidArgument,
             "the learning rate must be a number of at least 0, but is {}.", rate);
}

}  // namespace

Optimizer::Optimizer(Parameters parameters, OptimizerOptions options, Traits traits)
    : options_(std::move(options)),
      traits_(std::move(traits)),
      groups_(std::move(parameters.groups())) {
  std::set<const TensorImpl*> seen;
  for (size_t group = 0; group < groups_.size(); ++group)
    for (const Tensor& parameter : groups_[group].parameters) {
      user_check(parameter.defined() && is_floating(parameter.dtype()), ErrorKind::InvalidArgument,
                 "{} cannot be optimised.\nhint: Parameters are float tensors.",
                 parameter.describe());
      user_check(seen.insert(parameter.impl()).second, ErrorKind::InvalidArgument,
                 "the parameter '{}' is listed twice.", name_of_parameter(parameter));
      parameters_.push_back(parameter);
      slots_.emplace_back().group = group;
    }
  user_check(!parameters_.empty(), ErrorKind::InvalidArgument,
             "there are no parameters to optimise.\nhint: Pass module.parameters().");
  check_rate(learning_rate());
  if (const auto& schedule = options_.learning_rate.schedule())
    schedule->listeners_.push_back(this);
}

Optimizer::~Optimizer() {
  if (const auto& schedule = options_.learning_rate.schedule())
    std::erase(schedule->listeners_, this);
}

void Optimizer::set_learning_rate(double rate) {
  check_rate(rate);
  user_check(!options_.learning_rate.schedule(), ErrorKind::InvalidArgument,
             "a schedule sets the learning rate of this optimiser.");
  options_.learning_rate = rate;
  refresh_rate();
}

// Programs that were captured read these tensors, so they are written when the rate changes.
void Optimizer::refresh_rate() {
  const double rate = learning_rate();
  if (rate == rate_now_) return;
  rate_now_ = rate;
  const Lasting lasting;
  for (const auto& [factor, tensor] : rates_)
    copy_into(tensor, Tensor::scalar(rate * factor, tensor.dtype()));
}

Tensor Optimizer::rate_tensor(double factor) {
  Tensor& tensor = rates_[factor];
  if (!tensor.defined()) {
    const bool wide = std::any_of(parameters_.begin(), parameters_.end(),
                                  [](const Tensor& t) { return t.dtype() == DType::Float64; });
    tensor = Tensor::scalar(learning_rate() * factor, wide ? DType::Float64 : DType::Float32);
  }
  return tensor;
}

const ParameterGroup& Optimizer::group_of(size_t i) const { return groups_[slots_[i].group]; }

bool Optimizer::has_master(size_t i) const {
  return options_.multi_precision && is_half(parameters_[i]);
}

std::vector<Tensor> Optimizer::gradients() {
  std::vector<Tensor> grads;
  for (const Tensor& parameter : parameters_) {
    History* history = maybe_history(parameter);
    const bool has = !stop_gradient(parameter) && history && history->grad.defined();
    grads.push_back(has ? history->grad.get() : Tensor());
  }
  return grads;
}

void Optimizer::clip(std::vector<Tensor>& grads) const {
  for (size_t group = 0; group < groups_.size(); ++group) {
    const ClipPtr& clip = groups_[group].grad_clip ? groups_[group].grad_clip : options_.grad_clip;
    if (!clip) continue;
    std::vector<size_t> places;
    std::vector<Tensor> own;
    for (size_t i = 0; i < grads.size(); ++i)
      if (slots_[i].group == group && grads[i].defined()) {
        places.push_back(i);
        own.push_back(grads[i].kind() == Kind::SelectedRows ? selected_rows_to_dense(grads[i])
                                                            : grads[i]);
      }
    const std::vector<Tensor> clipped = clip->clip(own);
    for (size_t i = 0; i < places.size(); ++i) grads[places[i]] = clipped[i];
  }
}

void Optimizer::step() {
  refresh_rate();
  const NoGrad off;
  std::vector<Tensor> grads = gradients();
  std::vector<bool> present;
  for (const Tensor& grad : grads) present.push_back(grad.defined());
  if (present != present_) build_buckets(present);
  clip(grads);
  for (const Bucket& bucket : buckets_) {
    std::vector<Tensor> own;
    for (size_t k = 0; k < bucket.which.size(); ++k) {
      Tensor grad = grads[bucket.which[k]];
      const Tensor& parameter = bucket.parameters[k];
      if (grad.kind() == Kind::SelectedRows && (!traits_.takes_rows || bucket.penalty))
        grad = selected_rows_to_dense(grad);
      if (grad.dtype() != parameter.dtype()) grad = cast(grad, parameter.dtype());
      if (bucket.penalty)
        grad = grad + (bucket.penalty->is_l1() ? sign(parameter) : parameter) *
                          bucket.penalty->coefficient();
      own.push_back(std::move(grad));
    }
    update(bucket, own);
    if (!bucket.has_masters) continue;
    for (size_t k = 0; k < bucket.which.size(); ++k) {
      const Tensor& parameter = parameters_[bucket.which[k]];
      copy_into(parameter, cast(bucket.parameters[k], parameter.dtype()));
    }
  }
}

void Optimizer::zero_grad() {
  for (const Tensor& parameter : parameters_)
    if (History* history = maybe_history(parameter)) history->grad.set(Tensor());
}

void Optimizer::create_states(size_t i) {
  Slot& slot = slots_[i];
  if (slot.created) return;
  const Tensor& parameter = parameters_[i];
  const Device device = parameter.device();
  if (has_master(i) && !slot.master.defined())
    slot.master = cast(detach(parameter), DType::Float32);
  const DType wide = is_half(parameter) ? DType::Float32 : parameter.dtype();
  for (const StateSpec& spec : traits_.states)
    slot.states.push_back(spec.is_number
                              ? filled_on(device, Shape{1}, number_dtype(parameter), spec.initial)
                              : filled_on(device, parameter.dims(), wide, spec.initial));
  slot.created = true;
}

// Parameters that have been updated equally often share a counter, which the op moves.
void Optimizer::share_clock(Bucket& bucket) {
  const std::shared_ptr<Clock> first = slots_[bucket.which[0]].clock;
  const std::set<size_t> own(bucket.which.begin(), bucket.which.end());
  bool shared = first != nullptr;
  for (size_t i = 0; shared && i < slots_.size(); ++i)
    shared = (slots_[i].clock == first) == own.contains(i);
  if (!shared) {
    const auto clock = std::make_shared<Clock>();
    clock->steps = filled_on(parameters_[bucket.which[0]].device(), Shape{}, DType::Float32,
                             static_cast<double>(slots_[bucket.which[0]].count()));
    for (const size_t i : bucket.which) slots_[i].clock = clock;
  }
  bucket.steps = slots_[bucket.which[0]].clock->steps;
}

void Optimizer::build_buckets(const std::vector<bool>& present) {
  const Lasting lasting;
  struct Key {
    size_t group;
    double decay;
    DType dtype;
    int64_t count;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, size_t> places;
  buckets_.clear();
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!present[i]) continue;
    create_states(i);
    const WeightDecay decay = group_of(i).weight_decay.value_or(options_.weight_decay);
    const double coefficient = decays(name_of_slot(i)) ? decay.coefficient() : 0;
    const Key key{slots_[i].group, coefficient, parameters_[i].dtype(),
                  traits_.counted_betas ? slots_[i].count() : 0};
    const auto [place, is_new] = places.try_emplace(key, buckets_.size());
    if (is_new) {
      Bucket& bucket = buckets_.emplace_back();
      bucket.states.resize(traits_.states.size());
      bucket.rate = rate_tensor(group_of(i).learning_rate);
      bucket.has_masters = has_master(i);
      const bool fused = traits_.decoupled || (traits_.fused_l2 && !decay.is_l1());
      if (fused)
        bucket.decay = coefficient;
      else if (coefficient != 0)
        bucket.penalty = decay;
    }
    Bucket& bucket = buckets_[place->second];
    bucket.which.push_back(i);
    bucket.parameters.push_back(bucket.has_masters ? slots_[i].master : parameters_[i]);
    for (size_t k = 0; k < traits_.states.size(); ++k)
      bucket.states[k].push_back(slots_[i].states[k]);
  }
  if (traits_.counted_betas)
    for (Bucket& bucket : buckets_) share_clock(bucket);
  present_ = present;
}

}  // namespace oar::nn
