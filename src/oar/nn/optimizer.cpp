#include "oar/nn/optimizer.h"

#include <cmath>

#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/ops/families/transfer.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/optimizer_adam.h"
#include "oar/ops/gen/optimizer_sgd.h"

namespace oar::nn {
namespace {

std::vector<Tensor> pick(const std::vector<Tensor>& from, const std::vector<size_t>& which) {
  std::vector<Tensor> picked;
  for (const size_t i : which) picked.push_back(from[i]);
  return picked;
}

}  // namespace

Optimizer::Optimizer(std::vector<Tensor> parameters, double learning_rate)
    : parameters_(std::move(parameters)), rate_(Tensor::scalar(0.0, DType::Float32)) {
  user_check(!parameters_.empty(), ErrorKind::InvalidArgument,
             "there are no parameters to optimise.\nhint: Pass module.parameters().");
  for (const Tensor& parameter : parameters_)
    user_check(parameter.defined() && is_floating(parameter.dtype()), ErrorKind::InvalidArgument,
               "{} cannot be optimised.\nhint: Parameters are float tensors.",
               parameter.describe());
  set_learning_rate(learning_rate);
}

void Optimizer::step() {
  const NoGrad off;
  std::vector<size_t> which;
  std::vector<Tensor> grads;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    History* history = maybe_history(parameters_[i]);
    if (stop_gradient(parameters_[i]) || !history || !history->grad.defined()) continue;
    which.push_back(i);
    grads.push_back(history->grad.get());
  }
  if (!which.empty()) update(which, pick(parameters_, which), grads);
}

void Optimizer::zero_grad() {
  for (const Tensor& parameter : parameters_)
    if (History* history = maybe_history(parameter)) history->grad.set(Tensor());
}

double Optimizer::learning_rate() const { return rate_.item_double(); }

void Optimizer::set_learning_rate(double rate) {
  user_check(std::isfinite(rate) && rate >= 0, ErrorKind::InvalidArgument,
             "the learning rate must be a number of at least 0, but is {}.", rate);
  copy_into(rate_, Tensor::scalar(rate, DType::Float32));
}

std::vector<Tensor> Optimizer::make_state() const {
  std::vector<Tensor> state;
  for (const Tensor& parameter : parameters_) state.push_back(zeros_like(parameter));
  return state;
}

SGD::SGD(std::vector<Tensor> parameters, SgdOptions options)
    : Optimizer(std::move(parameters), options.learning_rate), options_(options) {}

void SGD::update(const std::vector<size_t>&, TensorList parameters, TensorList grads) {
  sgd_(parameters, grads, rate(), options_.weight_decay);
}

Momentum::Momentum(std::vector<Tensor> parameters, MomentumOptions options)
    : Optimizer(std::move(parameters), options.learning_rate),
      options_(options),
      velocities_(make_state()) {}

void Momentum::update(const std::vector<size_t>& which, TensorList parameters, TensorList grads) {
  momentum_(parameters, grads, pick(velocities_, which), rate(), options_.momentum,
            options_.use_nesterov, options_.weight_decay);
}

AdamW::AdamW(std::vector<Tensor> parameters, AdamWOptions options)
    : Optimizer(std::move(parameters), options.learning_rate),
      options_(options),
      moments1_(make_state()),
      moments2_(make_state()),
      steps_(to_device(Tensor::scalar(0.0, DType::Float32), this->parameters()[0].device())) {}

void AdamW::update(const std::vector<size_t>& which, TensorList parameters, TensorList grads) {
  adamw_(parameters, grads, pick(moments1_, which), pick(moments2_, which), rate(), steps_,
         options_.beta1, options_.beta2, options_.epsilon, options_.weight_decay);
}

}  // namespace oar::nn
