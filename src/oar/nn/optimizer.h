// Optimisers change parameters in place by the gradients that backward stored in them. One fused
// call updates all parameters.
//
//   nn::AdamW optimizer(net.parameters(), {.learning_rate = 1e-3});
//   for (...) {
//     optimizer.zero_grad();
//     backward(loss);
//     optimizer.step();
//   }
#pragma once

#include <vector>

#include "oar/base/api.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {
namespace nn {

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates the parameters that have a gradient.
  void step();
  // Clears the gradients.
  void zero_grad();

  double learning_rate() const;
  void set_learning_rate(double rate);
  const std::vector<Tensor>& parameters() const { return parameters_; }

 protected:
  Optimizer(std::vector<Tensor> parameters, double learning_rate);
  // `which` are the indices of the parameters in the list.
  virtual void update(const std::vector<size_t>& which, TensorList parameters,
                      TensorList grads) = 0;

  const Tensor& rate() const { return rate_; }
  // Zeros, one tensor for each parameter.
  std::vector<Tensor> make_state() const;

 private:
  std::vector<Tensor> parameters_;
  Tensor rate_;  // 0-d float32, as in Python: a step rounds the same in both
};

struct SgdOptions {
  double learning_rate = 0.001;
  double weight_decay = 0;
};

// parameter -= rate * gradient
class SGD : public Optimizer {
 public:
  explicit SGD(std::vector<Tensor> parameters, SgdOptions options = {});

 protected:
  void update(const std::vector<size_t>& which, TensorList parameters, TensorList grads) override;

 private:
  SgdOptions options_;
};

struct MomentumOptions {
  double learning_rate = 0.001;
  double momentum = 0.9;
  bool use_nesterov = false;
  double weight_decay = 0;
};

// velocity = momentum * velocity + gradient; parameter -= rate * velocity
class Momentum : public Optimizer {
 public:
  explicit Momentum(std::vector<Tensor> parameters, MomentumOptions options = {});

 protected:
  void update(const std::vector<size_t>& which, TensorList parameters, TensorList grads) override;

 private:
  MomentumOptions options_;
  std::vector<Tensor> velocities_;
};

struct AdamWOptions {
  double learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
};

// Adam with decoupled weight decay, after Loshchilov and Hutter. Steps are counted for all
// parameters together.
class AdamW : public Optimizer {
 public:
  explicit AdamW(std::vector<Tensor> parameters, AdamWOptions options = {});

 protected:
  void update(const std::vector<size_t>& which, TensorList parameters, TensorList grads) override;

 private:
  AdamWOptions options_;
  std::vector<Tensor> moments1_, moments2_;
  Tensor steps_;
};

}  // namespace nn
}  // namespace oar
