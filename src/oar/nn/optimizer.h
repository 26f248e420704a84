// Optimisers change parameters in place by the gradients that backward stored in them. One fused
// call updates all parameters that are treated alike. Names, defaults, arithmetic and the names of
// states are those of oar.optimizer.
//
//   nn::AdamW optimizer(net.parameters(), {.learning_rate = 1e-3});
//   for (...) {
//     optimizer.zero_grad();
//     backward(loss);
//     optimizer.step();
//   }
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/nn/clip.h"
#include "oar/nn/lr.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {
namespace nn {

// A number, or a schedule.
class LearningRate {
 public:
  LearningRate(double value) : value_(value) {}
  template <std::derived_from<lr::LRScheduler> S>
  LearningRate(std::shared_ptr<S> schedule) : schedule_(std::move(schedule)) {}

  double now() const { return schedule_ ? (*schedule_)() : value_; }
  const std::shared_ptr<lr::LRScheduler>& schedule() const { return schedule_; }

 private:
  double value_ = 0;
  std::shared_ptr<lr::LRScheduler> schedule_;
};

// A penalty on large parameters: an L2 one if it is a number.
class WeightDecay {
 public:
  WeightDecay(double coefficient) : coefficient_(coefficient) {}
  static WeightDecay l1(double coefficient) {
    WeightDecay made(coefficient);
    made.is_l1_ = true;
    return made;
  }
  double coefficient() const { return coefficient_; }
  bool is_l1() const { return is_l1_; }

 private:
  double coefficient_;
  bool is_l1_ = false;
};

using ClipPtr = std::shared_ptr<const GradClip>;

// Parameters with settings of their own.
struct ParameterGroup {
  std::vector<Tensor> parameters;
  double learning_rate = 1;                                // a factor on the optimiser's
  std::optional<WeightDecay> weight_decay = std::nullopt;  // default: the optimiser's
  ClipPtr grad_clip = nullptr;                             // default: the optimiser's
};

// What an optimiser updates: tensors, or groups of them.
class Parameters {
 public:
  Parameters() = default;
  Parameters(std::vector<Tensor> all) : groups_{{.parameters = std::move(all)}} {}
  Parameters(std::initializer_list<Tensor> all) : Parameters(std::vector<Tensor>(all)) {}
  Parameters(std::vector<ParameterGroup> groups) : groups_(std::move(groups)) {}
  Parameters(std::initializer_list<ParameterGroup> groups) : groups_(groups) {}
  std::vector<ParameterGroup>& groups() { return groups_; }

 private:
  std::vector<ParameterGroup> groups_;
};

// What all optimisers have.
struct OptimizerOptions {
  LearningRate learning_rate;
  WeightDecay weight_decay = 0;
  ClipPtr grad_clip = nullptr;
  // Keep float32 copies of parameters in 16-bit floats, and update those.
  bool multi_precision = false;
};

class Optimizer {
 public:
  virtual ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;

  // Updates the parameters that have a gradient.
  void step();
  // Clears the gradients.
  void zero_grad();

  double learning_rate() const { return options_.learning_rate.now(); }
  // Not for an optimiser with a schedule.
  void set_learning_rate(double rate);
  const std::vector<Tensor>& parameters() const { return parameters_; }

  // The states by name, such as "linear_0.w_0_moment1_0", with the schedule's under "LR_Scheduler" and copies in float32 under
  // "master_weights": what Python's optimisers save. They share memory with the optimiser.
  StateTree state_dict() const;
  // Everything that does not fit is listed in one error, and nothing is loaded.
  void load_state_dict(const StateTree& state);
  void check_state_dict(const StateTree& state) const;

 protected:
  // A state of each parameter: in its shape, or one number.
  struct StateSpec {
    std::string name;
    double initial = 0;
    bool is_number = false;
  };
  // Parameters that one call updates.
  struct Bucket {
    std::vector<size_t> which;                // in the list of parameters
    std::vector<Tensor> parameters;           // or their copies in float32
    std::vector<std::vector<Tensor>> states;  // by the order of the specs
    double decay = 0;                         // for the op
    std::optional<WeightDecay> penalty;       // added to the gradients before it
    Tensor rate;
    Tensor steps;  // how often they have been updated, if the optimiser counts that
    bool has_masters = false;
  };
  struct Traits {
    std::vector<StateSpec> states;
    bool fused_l2 = true;     // the op takes an L2 coefficient
    bool takes_rows = false;  // … and gradients that hold some rows only
    bool decoupled = false;   // the decay never enters the gradient
    std::optional<std::pair<double, double>>
        counted_betas;  // counts steps; files have their powers
  };
  Optimizer(Parameters parameters, OptimizerOptions options, Traits traits);
  virtual void update(const Bucket& bucket, TensorList grads) = 0;
  // Whether a parameter decays at all.
  virtual bool decays(const std::string&) const { return true; }

 private:
  friend class lr::LRScheduler;
  struct Clock;
  struct Slot;  // what is kept for a parameter

  void refresh_rate();
  Tensor rate_tensor(double factor);
  std::vector<Tensor> gradients();
  void clip(std::vector<Tensor>& grads) const;
  void build_buckets(const std::vector<bool>& present);
  void create_states(size_t i);
  void share_clock(Bucket& bucket);
  std::string name_of_slot(size_t i) const;
  std::string state_name(size_t i, const std::string& state) const;
  const ParameterGroup& group_of(size_t i) const;
  bool has_master(size_t i) const;
  struct Fit;
  Fit fit_of(const StateTree& state) const;

  OptimizerOptions options_;
  Traits traits_;
  std::vector<ParameterGroup> groups_;
  std::vector<Tensor> parameters_;
  std::vector<Slot> slots_;
  std::map<double, Tensor>
      rates_;  // by the factor; 0-d, as in Python: a step rounds the same in both
  double rate_now_ = -1;
  std::vector<bool> present_;
  std::vector<Bucket> buckets_;
};

struct SgdOptions {
  LearningRate learning_rate = 0.001;
  WeightDecay weight_decay = 0;
  ClipPtr grad_clip = nullptr;
  bool multi_precision = false;
};

// parameter -= rate * gradient
class SGD : public Optimizer {
 public:
  explicit SGD(Parameters parameters, const SgdOptions& options = {});

 protected:
  void update(const Bucket& bucket, TensorList grads) override;
};

struct MomentumOptions {
  LearningRate learning_rate = 0.001;
  double momentum = 0.9;
  bool use_nesterov = false;
  WeightDecay weight_decay = 0;
  ClipPtr grad_clip = nullptr;
  bool multi_precision = false;
};

// velocity = momentum * velocity + gradient; parameter -= rate * velocity
class Momentum : public Optimizer {
 public:
  explicit Momentum(Parameters parameters, MomentumOptions options = {});

 protected:
  void update(const Bucket& bucket, TensorList grads) override;

 private:
  MomentumOptions own_;
};

struct AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  WeightDecay weight_decay = 0;
  ClipPtr grad_clip = nullptr;
  bool multi_precision = false;
};

// Steps scaled by running means of the gradient and of its square, after Kingma and Ba.
class Adam : public Optimizer {
 public:
  explicit Adam(Parameters parameters, AdamOptions options = {});

 protected:
  void update(const Bucket& bucket, TensorList grads) override;

 private:
  AdamOptions own_;
};

struct AdamWOptions {
  LearningRate learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;
  std::function<bool(const std::string& name)> apply_decay_param_fun =
      nullptr;  // default: all decay
  ClipPtr grad_clip = nullptr;
  bool multi_precision = false;
};

// Adam with decoupled weight decay, after Loshchilov and Hutter.
class AdamW : public Optimizer {
 public:
  explicit AdamW(Parameters parameters, AdamWOptions options = {});

 protected:
  void update(const Bucket& bucket, TensorList grads) override;
  bool decays(const std::string& name) const override;

 private:
  AdamWOptions own_;
};

struct AdamaxOptions {
  LearningRate learning_rate = 0.001;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  WeightDecay weight_decay = 0;
  ClipPtr grad_clip = nullptr;
};

// Adam with the largest gradient, fading, in place of the mean square.
class Adamax : public Optimizer {
 public:
  explicit Adamax(Parameters parameters, AdamaxOptions options = {});

 protected:
  void update(const Bucket& bucket, TensorList grads) override;

 private:
  AdamaxOptions own_;
};

struct AdagradOptions {
  LearningRate learning_rate = 0.001;
  double epsilon = 1e-6;
  WeightDecay weight_decay = 0;
  ClipPtr grad_clip = nullptr;
  double initial_accumulator_value = 0;
};

// moment += gradient²; parameter -= rate * gradient / (sqrt(moment) + epsilon)
class Adagrad : public Optimizer {
 public:
  explicit Adagrad(Parameters parameters, AdagradOptions options = {});

 protected:
  void update(const Bucket& bucket, TensorList grads) override;

 private:
  AdagradOptions own_;
};

struct AdadeltaOptions {
  LearningRate learning_rate = 0.001;
  double epsilon = 1e-6;
  double rho = 0.95;
  WeightDecay weight_decay = 0;
  ClipPtr grad_clip = nullptr;
};

// Steps of the size of former steps, after Zeiler.
class Adadelta : public Optimizer {
 public:
  explicit Adadelta(Parameters parameters, AdadeltaOptions options = {});

 protected:
  void update(const Bucket& bucket, TensorList grads) override;

 private:
  AdadeltaOptions own_;
};

struct RMSPropOptions {
  LearningRate learning_rate = 0.001;
  double rho = 0.95;
  double epsilon = 1e-6;
  double momentum = 0;
  bool centered = false;
  WeightDecay weight_decay = 0;
  ClipPtr grad_clip = nullptr;
};

// Steps divided by the root of a mean of squared gradients, with momentum.
class RMSProp : public Optimizer {
 public:
  explicit RMSProp(Parameters parameters, RMSPropOptions options = {});

 protected:
  void update(const Bucket& bucket, TensorList grads) override;

 private:
  RMSPropOptions own_;
};

struct LambOptions {
  LearningRate learning_rate = 0.001;
  double lamb_weight_decay = 0.01;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-6;
  std::function<bool(const std::string& name)> exclude_from_weight_decay_fn = nullptr;
  ClipPtr grad_clip = nullptr;
  bool multi_precision = false;
  bool always_adapt = false;
};

// Adam's step, scaled for each tensor by the ratio of its norm to the step's, after You and others.
class Lamb : public Optimizer {
 public:
  explicit Lamb(Parameters parameters, LambOptions options = {});

 protected:
  void update(const Bucket& bucket, TensorList grads) override;
  bool decays(const std::string& name) const override;

 private:
  LambOptions own_;
};

}  // namespace nn
}  // namespace oar
