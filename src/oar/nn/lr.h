// Learning-rate schedules. Names, arguments, defaults and numbers are those of oar.optimizer.lr.
//
//   auto rate = std::make_shared<nn::lr::CosineAnnealingDecay>(0.1, 100);
//   nn::SGD optimizer(net.parameters(), {.learning_rate = rate});
//   for (...) { ...; optimizer.step(); rate->step(); }
#pragma once

#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "oar/base/api.h"
#include "oar/formats/pickle.h"

namespace OAR_API oar {
namespace nn {

class Optimizer;

namespace lr {

class LRScheduler {
 public:
  virtual ~LRScheduler() = default;
  LRScheduler(const LRScheduler&) = delete;
  LRScheduler& operator=(const LRScheduler&) = delete;

  // The rate now.
  double operator()() const { return last_lr; }
  // To the next epoch (or step), or to the one given.
  virtual void step();
  virtual void step(int64_t epoch);

  // "last_epoch" and "last_lr", and what else a schedule remembers.
  virtual StateTree state_dict() const;
  virtual void load_state_dict(const StateTree& state);

  double base_lr, last_lr;
  int64_t last_epoch;

 protected:
  LRScheduler(double learning_rate, int64_t last_epoch);
  virtual double rate() = 0;  // at last_epoch
  virtual double closed_form_rate() { return rate(); }
  // Tells the optimisers that the rate has changed.
  void announce();

 private:
  friend class nn::Optimizer;
  std::vector<Optimizer*> listeners_;
};

class NoamDecay : public LRScheduler {
 public:
  NoamDecay(int64_t d_model, int64_t warmup_steps, double learning_rate = 1,
            int64_t last_epoch = -1);

 protected:
  double rate() override;

 private:
  double d_model_, warmup_steps_;
};

class PiecewiseDecay : public LRScheduler {
 public:
  PiecewiseDecay(std::vector<int64_t> boundaries, std::vector<double> values,
                 int64_t last_epoch = -1);

 protected:
  double rate() override;

 private:
  std::vector<int64_t> boundaries_;
  std::vector<double> values_;
};

class NaturalExpDecay : public LRScheduler {
 public:
  NaturalExpDecay(double learning_rate, double gamma, int64_t last_epoch = -1);

 protected:
  double rate() override;

 private:
  double gamma_;
};

class InverseTimeDecay : public LRScheduler {
 public:
  InverseTimeDecay(double learning_rate, double gamma, int64_t last_epoch = -1);

 protected:
  double rate() override;

 private:
  double gamma_;
};

class ExponentialDecay : public LRScheduler {
 public:
  ExponentialDecay(double learning_rate, double gamma, int64_t last_epoch = -1);

 protected:
  double rate() override;

 private:
  double gamma_;
};

class PolynomialDecay : public LRScheduler {
 public:
  PolynomialDecay(double learning_rate, int64_t decay_steps, double end_lr = 0.0001,
                  double power = 1, bool cycle = false, int64_t last_epoch = -1);

 protected:
  double rate() override;

 private:
  int64_t decay_steps_;
  double end_lr_, power_;
  bool cycle_;
};

class StepDecay : public LRScheduler {
 public:
  StepDecay(double learning_rate, int64_t step_size, double gamma = 0.1, int64_t last_epoch = -1);

 protected:
  double rate() override;

 private:
  int64_t step_size_;
  double gamma_;
};

class MultiStepDecay : public LRScheduler {
 public:
  MultiStepDecay(double learning_rate, std::vector<int64_t> milestones, double gamma = 0.1,
                 int64_t last_epoch = -1);

 protected:
  double rate() override;

 private:
  std::vector<int64_t> milestones_;
  double gamma_;
};

using RateFunction = std::function<double(int64_t epoch)>;

class LambdaDecay : public LRScheduler {
 public:
  LambdaDecay(double learning_rate, RateFunction lr_lambda, int64_t last_epoch = -1);

 protected:
  double rate() override;

 private:
  RateFunction lr_lambda_;
};

class MultiplicativeDecay : public LRScheduler {
 public:
  MultiplicativeDecay(double learning_rate, RateFunction lr_lambda, int64_t last_epoch = -1);

 protected:
  double rate() override;

 private:
  RateFunction lr_lambda_;
};

// From start_lr to end_lr in warmup_steps, then a number or another schedule.
class LinearWarmup : public LRScheduler {
 public:
  LinearWarmup(double learning_rate, int64_t warmup_steps, double start_lr, double end_lr,
               int64_t last_epoch = -1);
  LinearWarmup(std::shared_ptr<LRScheduler> after, int64_t warmup_steps, double start_lr,
               double end_lr, int64_t last_epoch = -1);
  StateTree state_dict() const override;
  void load_state_dict(const StateTree& state) override;

 protected:
  double rate() override;

 private:
  LinearWarmup(double learning_rate, std::shared_ptr<LRScheduler> after, int64_t warmup_steps,
               double start_lr, double end_lr, int64_t last_epoch);
  double learning_rate_;
  std::shared_ptr<LRScheduler> after_;
  int64_t warmup_steps_;
  double start_lr_, end_lr_;
};

class CosineAnnealingDecay : public LRScheduler {
 public:
  CosineAnnealingDecay(double learning_rate, int64_t T_max, double eta_min = 0,
                       int64_t last_epoch = -1);

 protected:
  double rate() override;
  double closed_form_rate() override;

 private:
  int64_t T_max_;
  double eta_min_;
};

class CosineAnnealingWarmRestarts : public LRScheduler {
 public:
  CosineAnnealingWarmRestarts(double learning_rate, int64_t T_0, int64_t T_mult = 1,
                              double eta_min = 0, int64_t last_epoch = -1);
  void step() override;
  void step(int64_t epoch) override;
  void load_state_dict(const StateTree& state) override;

 protected:
  double rate() override;

 private:
  void jump_to(int64_t epoch);
  int64_t T_0_;
  double T_i_;
  int64_t T_mult_;
  double eta_min_, T_cur_;
};

struct OneCycleOptions {
  double divide_factor = 25;
  double end_learning_rate = 0.0001;
  double phase_pct = 0.3;
  std::string anneal_strategy = "cos";  // or "linear"
  bool three_phase = false;
  int64_t last_epoch = -1;
};

class OneCycleLR : public LRScheduler {
 public:
  OneCycleLR(double max_learning_rate, int64_t total_steps, const OneCycleOptions& options = {});

 protected:
  double rate() override;

 private:
  int64_t total_steps_;
  bool linear_;
  std::vector<std::pair<double, double>> corners_;  // steps, and the rates there
};

struct CyclicOptions {
  std::optional<int64_t> step_size_down = std::nullopt;  // default: step_size_up
  std::string mode = "triangular";                       // or "triangular2", "exp_range"
  double exp_gamma = 1;
  std::function<double(double)> scale_fn = nullptr;  // in place of a mode
  std::string scale_mode = "cycle";                  // or "iterations"
  int64_t last_epoch = -1;
};

class CyclicLR : public LRScheduler {
 public:
  CyclicLR(double base_learning_rate, double max_learning_rate, int64_t step_size_up,
           CyclicOptions options = {});

 protected:
  double rate() override;

 private:
  double scale(double x) const;
  double cycle_size_, step_up_pct_, amplitude_;
  CyclicOptions options_;
};

class LinearLR : public LRScheduler {
 public:
  LinearLR(double learning_rate, int64_t total_steps, double start_factor = 1.0 / 3,
           double end_factor = 1, int64_t last_epoch = -1);

 protected:
  double rate() override;

 private:
  int64_t total_steps_;
  double start_factor_, end_factor_;
};

struct PlateauOptions {
  std::string mode = "min";  // or "max"
  double factor = 0.1;
  int64_t patience = 10;
  double threshold = 1e-4;
  std::string threshold_mode = "rel";  // or "abs"
  int64_t cooldown = 0;
  double min_lr = 0;
  double epsilon = 1e-8;
};

// Reduces the rate when a metric has stopped getting better.
class ReduceOnPlateau : public LRScheduler {
 public:
  explicit ReduceOnPlateau(double learning_rate, PlateauOptions options = {});
  void observe(double metric);
  StateTree state_dict() const override;
  void load_state_dict(const StateTree& state) override;

 protected:
  double rate() override { return last_lr; }

 private:
  bool is_better(double metric) const;
  PlateauOptions options_;
  std::optional<double> best_;
  int64_t bad_epochs_ = 0, cooling_ = 0;
};

}  // namespace lr
}  // namespace nn
}  // namespace oar
