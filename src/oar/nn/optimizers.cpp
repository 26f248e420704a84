// The optimisers: what each remembers of a parameter, and the op that updates.
#include <utility>

#include "oar/base/error.h"
#include "oar/nn/optimizer.h"
#include "oar/nn/optimizer_slot.h"
#include "oar/ops/gen/optimizer_adagrad.h"
#include "oar/ops/gen/optimizer_adam.h"
#include "oar/ops/gen/optimizer_sgd.h"

namespace oar::nn {
namespace {

// A coefficient rounded to float32, as Paddle's updates take it in float64 too.
double single(double coefficient) { return static_cast<double>(static_cast<float>(coefficient)); }

template <class Options>
OptimizerOptions common(const Options& options, const WeightDecay& decay) {
  OptimizerOptions made{.learning_rate = options.learning_rate,
                        .weight_decay = decay,
                        .grad_clip = options.grad_clip};
  if constexpr (requires { options.multi_precision; })
    made.multi_precision = options.multi_precision;
  return made;
}
template <class Options>
OptimizerOptions common(const Options& options) {
  return common(options, options.weight_decay);
}

template <class Options>
std::pair<double, double> betas(const Options& options) {
  for (const double beta : {options.beta1, options.beta2})
    user_check(beta >= 0 && beta < 1, ErrorKind::InvalidArgument,
               "a beta must be in [0, 1), but is {}.", beta);
  user_check(options.epsilon >= 0, ErrorKind::InvalidArgument,
             "epsilon must not be negative, but is {}.", options.epsilon);
  return {options.beta1, options.beta2};
}

}  // namespace

SGD::SGD(Parameters parameters, const SgdOptions& options)
    : Optimizer(std::move(parameters), common(options), {.takes_rows = true}) {}

void SGD::update(const Bucket& b, TensorList grads) { sgd_(b.parameters, grads, b.rate, b.decay); }

Momentum::Momentum(Parameters parameters, MomentumOptions options)
    : Optimizer(std::move(parameters), common(options), {.states = {{"velocity"}}}),
      own_(std::move(options)) {}

void Momentum::update(const Bucket& b, TensorList grads) {
  momentum_(b.parameters, grads, b.states[0], b.rate, single(own_.momentum), own_.use_nesterov,
            single(b.decay));
}

Adam::Adam(Parameters parameters, AdamOptions options)
    : Optimizer(std::move(parameters), common(options),
                {.states = {{"moment1"}, {"moment2"}},
                 .fused_l2 = false,
                 .counted_betas = betas(options)}),
      own_(std::move(options)) {}

void Adam::update(const Bucket& b, TensorList grads) {
  adamw_(b.parameters, grads, b.states[0], b.states[1], b.rate, b.steps, own_.beta1, own_.beta2,
         own_.epsilon, 0.0);
}

AdamW::AdamW(Parameters parameters, AdamWOptions options)
    : Optimizer(std::move(parameters), common(options, options.weight_decay),
                {.states = {{"moment1"}, {"moment2"}},
                 .decoupled = true,
                 .counted_betas = betas(options)}),
      own_(std::move(options)) {}

bool AdamW::decays(const std::string& name) const {
  return !own_.apply_decay_param_fun || own_.apply_decay_param_fun(name);
}

void AdamW::update(const Bucket& b, TensorList grads) {
  adamw_(b.parameters, grads, b.states[0], b.states[1], b.rate, b.steps, own_.beta1, own_.beta2,
         own_.epsilon, single(b.decay));
}

Adamax::Adamax(Parameters parameters, AdamaxOptions options)
    : Optimizer(
          std::move(parameters), common(options),
          {.states = {{"moment"}, {"inf_norm"}, {"beta1_pow_acc", betas(options).first, true}}}),
      own_(std::move(options)) {}

void Adamax::update(const Bucket& b, TensorList grads) {
  adamax_(b.parameters, grads, b.states[0], b.states[1], b.states[2], b.rate, single(own_.beta1),
          single(own_.beta2), single(own_.epsilon), b.decay);
}

Adagrad::Adagrad(Parameters parameters, AdagradOptions options)
    : Optimizer(std::move(parameters), common(options),
                {.states = {{"moment", options.initial_accumulator_value}}}),
      own_(std::move(options)) {}

void Adagrad::update(const Bucket& b, TensorList grads) {
  adagrad_(b.parameters, grads, b.states[0], b.rate, single(own_.epsilon), b.decay);
}

Adadelta::Adadelta(Parameters parameters, AdadeltaOptions options)
    : Optimizer(std::move(parameters), common(options),
                {.states = {{"_avg_squared_grad"}, {"_avg_squared_update"}}}),
      own_(std::move(options)) {}

void Adadelta::update(const Bucket& b, TensorList grads) {
  adadelta_(b.parameters, grads, b.states[0], b.states[1], b.rate, single(own_.rho),
            single(own_.epsilon), b.decay);
}

RMSProp::RMSProp(Parameters parameters, RMSPropOptions options)
    : Optimizer(std::move(parameters), common(options),
                {.states = {{"momentum"}, {"mean_square"}, {"mean_grad"}}}),
      own_(std::move(options)) {}

void RMSProp::update(const Bucket& b, TensorList grads) {
  rmsprop_(b.parameters, grads, b.states[1], b.states[2], b.states[0], b.rate, single(own_.rho),
           single(own_.epsilon), single(own_.momentum), own_.centered, b.decay);
}

Lamb::Lamb(Parameters parameters, LambOptions options)
    : Optimizer(std::move(parameters), common(options, options.lamb_weight_decay),
                {.states = {{"moment1"},
                            {"moment2"},
                            {"beta1_pow_acc", betas(options).first, true},
                            {"beta2_pow_acc", betas(options).second, true}},
                 .decoupled = true}),
      own_(std::move(options)) {}

bool Lamb::decays(const std::string& name) const {
  return !own_.exclude_from_weight_decay_fn || !own_.exclude_from_weight_decay_fn(name);
}

void Lamb::update(const Bucket& b, TensorList grads) {
  lamb_(b.parameters, grads, b.states[0], b.states[1], b.states[2], b.states[3], b.rate,
        single(own_.beta1), single(own_.beta2), single(own_.epsilon), single(b.decay),
        own_.always_adapt);
}

}  // namespace oar::nn
