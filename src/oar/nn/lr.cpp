#include "oar/nn/lr.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "oar/base/error.h"
#include "oar/nn/optimizer.h"

namespace oar::nn::lr {
namespace {

constexpr double kPi = std::numbers::pi;

int64_t positive(int64_t value, const char* name) {
  user_check(value > 0, ErrorKind::InvalidArgument, "{} must be a positive integer, but is {}.",
             name, value);
  return value;
}

double shrinking(double gamma) {
  user_check(gamma < 1, ErrorKind::InvalidArgument, "gamma should be below 1, but is {}.", gamma);
  return gamma;
}

double real(int64_t value) { return static_cast<double>(value); }

// A product that is rounded before it is added to something. Compilers fuse the two; Python does not, and rates are to be the same.
double rounded(double product) {
  const volatile double kept = product;
  return kept;
}

}  // namespace

LRScheduler::LRScheduler(double learning_rate, int64_t epoch)
    : base_lr(learning_rate), last_lr(learning_rate), last_epoch(epoch) {
  user_check(std::isfinite(learning_rate) && learning_rate >= 0, ErrorKind::InvalidArgument,
             "the learning rate must be a number of at least 0, but is {}.", learning_rate);
}

void LRScheduler::step() {
  ++last_epoch;
  last_lr = rate();
  announce();
}

void LRScheduler::step(int64_t epoch) {
  last_epoch = epoch;
  last_lr = closed_form_rate();
  announce();
}

void LRScheduler::announce() {
  for (Optimizer* optimizer : listeners_) optimizer->refresh_rate();
}

StateTree LRScheduler::state_dict() const {
  StateTree state;
  state.set("last_epoch", last_epoch);
  state.set("last_lr", last_lr);
  return state;
}

void LRScheduler::load_state_dict(const StateTree& state) {
  const int64_t epoch = state.at("last_epoch").integer();
  last_lr = state.at("last_lr").number();
  last_epoch = epoch;
  announce();
}

NoamDecay::NoamDecay(int64_t d_model, int64_t warmup_steps, double learning_rate, int64_t epoch)
    : LRScheduler(learning_rate, epoch),
      d_model_(real(positive(d_model, "d_model"))),
      warmup_steps_(real(warmup_steps)) {
  NoamDecay::step();
}

double NoamDecay::rate() {
  const double step = real(last_epoch);
  const double falling = last_epoch == 0 ? 1 : std::pow(step, -0.5);
  return base_lr * std::pow(d_model_, -0.5) *
         std::min(falling, step * std::pow(warmup_steps_, -1.5));
}

PiecewiseDecay::PiecewiseDecay(std::vector<int64_t> boundaries, std::vector<double> values,
                               int64_t epoch)
    : LRScheduler(0.1, epoch), boundaries_(std::move(boundaries)), values_(std::move(values)) {
  user_check(!boundaries_.empty() && values_.size() > boundaries_.size(),
             ErrorKind::InvalidArgument,
             "there should be one value more than boundaries, but there are {} values and {} "
             "boundaries.",
             values_.size(), boundaries_.size());
  PiecewiseDecay::step();
}

double PiecewiseDecay::rate() {
  for (size_t i = 0; i < boundaries_.size(); ++i)
    if (last_epoch < boundaries_[i]) return values_[i];
  return values_.back();
}

NaturalExpDecay::NaturalExpDecay(double learning_rate, double gamma, int64_t epoch)
    : LRScheduler(learning_rate, epoch), gamma_(gamma) {
  user_check(gamma > 0, ErrorKind::InvalidArgument, "gamma must be positive, but is {}.", gamma);
  NaturalExpDecay::step();
}

double NaturalExpDecay::rate() { return base_lr * std::exp(-gamma_ * real(last_epoch)); }

InverseTimeDecay::InverseTimeDecay(double learning_rate, double gamma, int64_t epoch)
    : LRScheduler(learning_rate, epoch), gamma_(gamma) {
  InverseTimeDecay::step();
}

double InverseTimeDecay::rate() { return base_lr / (1 + rounded(gamma_ * real(last_epoch))); }

ExponentialDecay::ExponentialDecay(double learning_rate, double gamma, int64_t epoch)
    : LRScheduler(learning_rate, epoch), gamma_(gamma) {
  user_check(gamma > 0 && gamma < 1, ErrorKind::InvalidArgument,
             "gamma must be between 0 and 1, but is {}.", gamma);
  ExponentialDecay::step();
}

double ExponentialDecay::rate() { return base_lr * std::pow(gamma_, real(last_epoch)); }

PolynomialDecay::PolynomialDecay(double learning_rate, int64_t decay_steps, double end_lr,
                                 double power, bool cycle, int64_t epoch)
    : LRScheduler(learning_rate, epoch),
      decay_steps_(positive(decay_steps, "decay_steps")),
      end_lr_(end_lr),
      power_(power),
      cycle_(cycle) {
  user_check(power > 0, ErrorKind::InvalidArgument, "power must be positive, but is {}.", power);
  PolynomialDecay::step();
}

double PolynomialDecay::rate() {
  double done = real(std::min(last_epoch, decay_steps_)), total = real(decay_steps_);
  if (cycle_) {
    done = real(last_epoch);
    total *= std::max(std::ceil(done / total), 1.0);
  }
  return rounded((base_lr - end_lr_) * std::pow(1 - done / total, power_)) + end_lr_;
}

StepDecay::StepDecay(double learning_rate, int64_t step_size, double gamma, int64_t epoch)
    : LRScheduler(learning_rate, epoch),
      step_size_(positive(step_size, "step_size")),
      gamma_(shrinking(gamma)) {
  StepDecay::step();
}

double StepDecay::rate() { return base_lr * std::pow(gamma_, real(last_epoch / step_size_)); }

MultiStepDecay::MultiStepDecay(double learning_rate, std::vector<int64_t> milestones, double gamma,
                               int64_t epoch)
    : LRScheduler(learning_rate, epoch),
      milestones_(std::move(milestones)),
      gamma_(shrinking(gamma)) {
  for (size_t i = 1; i < milestones_.size(); ++i)
    user_check(milestones_[i] > milestones_[i - 1], ErrorKind::InvalidArgument,
               "the milestones must increase, but {} follows {}.", milestones_[i],
               milestones_[i - 1]);
  MultiStepDecay::step();
}

double MultiStepDecay::rate() {
  const auto passed = std::count_if(milestones_.begin(), milestones_.end(),
                                    [&](int64_t milestone) { return last_epoch >= milestone; });
  return base_lr * std::pow(gamma_, static_cast<double>(passed));
}

LambdaDecay::LambdaDecay(double learning_rate, RateFunction lr_lambda, int64_t epoch)
    : LRScheduler(learning_rate, epoch), lr_lambda_(std::move(lr_lambda)) {
  LambdaDecay::step();
}

double LambdaDecay::rate() { return base_lr * lr_lambda_(last_epoch); }

MultiplicativeDecay::MultiplicativeDecay(double learning_rate, RateFunction lr_lambda,
                                         int64_t epoch)
    : LRScheduler(learning_rate, epoch), lr_lambda_(std::move(lr_lambda)) {
  MultiplicativeDecay::step();
}

double MultiplicativeDecay::rate() {
  double made = base_lr;
  for (int64_t epoch = 1; epoch <= last_epoch; ++epoch) made *= lr_lambda_(epoch);
  return made;
}

LinearWarmup::LinearWarmup(double learning_rate, int64_t warmup_steps, double start_lr,
                           double end_lr, int64_t epoch)
    : LinearWarmup(learning_rate, nullptr, warmup_steps, start_lr, end_lr, epoch) {}

LinearWarmup::LinearWarmup(std::shared_ptr<LRScheduler> after, int64_t warmup_steps,
                           double start_lr, double end_lr, int64_t epoch)
    : LinearWarmup(0, std::move(after), warmup_steps, start_lr, end_lr, epoch) {}

LinearWarmup::LinearWarmup(double learning_rate, std::shared_ptr<LRScheduler> after,
                           int64_t warmup_steps, double start_lr, double end_lr, int64_t epoch)
    : LRScheduler(start_lr, epoch),
      learning_rate_(learning_rate),
      after_(std::move(after)),
      warmup_steps_(positive(warmup_steps, "warmup_steps")),
      start_lr_(start_lr),
      end_lr_(end_lr) {
  user_check(end_lr > start_lr, ErrorKind::InvalidArgument,
             "end_lr {} must be greater than start_lr {}.", end_lr, start_lr);
  LinearWarmup::step();
}

double LinearWarmup::rate() {
  if (last_epoch < warmup_steps_)
    return rounded((end_lr_ - start_lr_) * real(last_epoch)) / real(warmup_steps_) + start_lr_;
  if (!after_) return learning_rate_;
  after_->step(last_epoch - warmup_steps_);
  return (*after_)();
}

StateTree LinearWarmup::state_dict() const {
  StateTree state = LRScheduler::state_dict();
  if (after_) state.set("LinearWarmup_LR", after_->state_dict());
  return state;
}

void LinearWarmup::load_state_dict(const StateTree& state) {
  if (after_) after_->load_state_dict(state.at("LinearWarmup_LR"));
  LRScheduler::load_state_dict(state);
}

CosineAnnealingDecay::CosineAnnealingDecay(double learning_rate, int64_t T_max, double eta_min,
                                           int64_t epoch)
    : LRScheduler(learning_rate, epoch), T_max_(positive(T_max, "T_max")), eta_min_(eta_min) {
  CosineAnnealingDecay::step();
}

double CosineAnnealingDecay::rate() {
  const double half = real(T_max_);
  if (last_epoch == 0) return base_lr;
  if ((last_epoch - 1 - T_max_) % (2 * T_max_) == 0)
    return last_lr + rounded((base_lr - eta_min_) * (1 - std::cos(kPi / half))) / 2;
  const double now = 1 + std::cos(kPi * real(last_epoch) / half);
  const double before = 1 + std::cos(kPi * real(last_epoch - 1) / half);
  return rounded(now / before * (last_lr - eta_min_)) + eta_min_;
}

double CosineAnnealingDecay::closed_form_rate() {
  const double swing = 1 + std::cos(kPi * real(last_epoch) / real(T_max_));
  return eta_min_ + rounded((base_lr - eta_min_) * swing) / 2;
}

CosineAnnealingWarmRestarts::CosineAnnealingWarmRestarts(double learning_rate, int64_t T_0,
                                                         int64_t T_mult, double eta_min,
                                                         int64_t epoch)
    : LRScheduler(learning_rate, epoch),
      T_0_(positive(T_0, "T_0")),
      T_i_(real(T_0)),
      T_mult_(positive(T_mult, "T_mult")),
      eta_min_(eta_min),
      T_cur_(real(epoch)) {
  CosineAnnealingWarmRestarts::step();
}

double CosineAnnealingWarmRestarts::rate() {
  return eta_min_ + rounded((base_lr - eta_min_) * (1 + std::cos(kPi * T_cur_ / T_i_))) / 2;
}

void CosineAnnealingWarmRestarts::step() {
  if (last_epoch < 0) return step(0);
  T_cur_ += 1;
  if (T_cur_ >= T_i_) {
    T_cur_ -= T_i_;
    T_i_ *= real(T_mult_);
  }
  ++last_epoch;
  last_lr = rate();
  announce();
}

void CosineAnnealingWarmRestarts::step(int64_t epoch) {
  user_check(epoch >= 0, ErrorKind::InvalidArgument, "the epoch must not be negative, but is {}.",
             epoch);
  jump_to(epoch);
  last_epoch = epoch;
  last_lr = rate();
  announce();
}

void CosineAnnealingWarmRestarts::jump_to(int64_t epoch) {
  T_cur_ = real(epoch);
  T_i_ = real(T_0_);
  for (; T_cur_ >= T_i_; T_i_ *= real(T_mult_)) T_cur_ -= T_i_;
}

// Paddle's states do not say where in a cycle they are; the epoch does.
void CosineAnnealingWarmRestarts::load_state_dict(const StateTree& state) {
  LRScheduler::load_state_dict(state);
  jump_to(last_epoch);
}

OneCycleLR::OneCycleLR(double max_learning_rate, int64_t total_steps,
                       const OneCycleOptions& options)
    : LRScheduler(max_learning_rate / options.divide_factor, options.last_epoch),
      total_steps_(positive(total_steps, "total_steps")),
      linear_(options.anneal_strategy == "linear") {
  user_check(linear_ || options.anneal_strategy == "cos", ErrorKind::InvalidArgument,
             "anneal_strategy is '{}'.\nhint: Pass cos or linear.", options.anneal_strategy);
  user_check(options.phase_pct >= 0 && options.phase_pct <= (options.three_phase ? 0.5 : 1.0),
             ErrorKind::InvalidArgument, "phase_pct {} is out of range.", options.phase_pct);
  const double turn = rounded(options.phase_pct * real(total_steps));
  corners_ = {{0, base_lr}, {turn - 1, max_learning_rate}};
  if (options.three_phase) corners_.emplace_back(2 * turn - 2, base_lr);
  corners_.emplace_back(real(total_steps - 1), options.end_learning_rate);
  OneCycleLR::step();
}

double OneCycleLR::rate() {
  const double step = real(last_epoch);
  user_check(last_epoch <= total_steps_, ErrorKind::OutOfRange,
             "the schedule ends after {} steps, but this is step {}.", total_steps_, last_epoch);
  size_t phase = 1;
  while (phase + 1 < corners_.size() && step > corners_[phase].first) ++phase;
  const auto& [start, low] = corners_[phase - 1];
  const auto& [end, high] = corners_[phase];
  const double share = (step - start) / (end - start);
  if (linear_) return rounded((high - low) * share) + low;
  return high + rounded((low - high) / 2.0 * (std::cos(kPi * share) + 1));
}

CyclicLR::CyclicLR(double base_learning_rate, double max_learning_rate, int64_t step_size_up,
                   CyclicOptions options)
    : LRScheduler(base_learning_rate, options.last_epoch),
      amplitude_(max_learning_rate - base_learning_rate),
      options_(std::move(options)) {
  const double up = real(positive(step_size_up, "step_size_up"));
  const double down =
      options_.step_size_down ? real(positive(*options_.step_size_down, "step_size_down")) : up;
  cycle_size_ = up + down;
  step_up_pct_ = up / cycle_size_;
  const std::string& mode = options_.mode;
  user_check(
      options_.scale_fn || mode == "triangular" || mode == "triangular2" || mode == "exp_range",
      ErrorKind::InvalidArgument,
      "mode is '{}'.\nhint: Pass triangular, triangular2, exp_range, or a scale_fn.", mode);
  if (!options_.scale_fn) options_.scale_mode = mode == "exp_range" ? "iterations" : "cycle";
  CyclicLR::step();
}

double CyclicLR::scale(double x) const {
  if (options_.scale_fn) return options_.scale_fn(x);
  if (options_.mode == "exp_range") return std::pow(options_.exp_gamma, x);
  return options_.mode == "triangular2" ? std::pow(0.5, x - 1) : 1.0;
}

double CyclicLR::rate() {
  const double iterations = real(last_epoch);
  const double cycle = 1 + std::floor(iterations / cycle_size_);
  const double done = 1.0 + iterations / cycle_size_ - cycle;
  const double height =
      done <= step_up_pct_ ? done / step_up_pct_ : (1 - done) / (1 - step_up_pct_);
  return base_lr +
         rounded(amplitude_ * height * scale(options_.scale_mode == "cycle" ? cycle : iterations));
}

LinearLR::LinearLR(double learning_rate, int64_t total_steps, double start_factor,
                   double end_factor, int64_t epoch)
    : LRScheduler(learning_rate, epoch),
      total_steps_(positive(total_steps, "total_steps")),
      start_factor_(start_factor),
      end_factor_(end_factor) {
  user_check(start_factor > 0 && start_factor <= 1 && end_factor >= 0 && end_factor <= 1,
             ErrorKind::InvalidArgument, "the factors {} and {} must be between 0 and 1.",
             start_factor, end_factor);
  LinearLR::step();
}

double LinearLR::rate() {
  if (last_epoch == 0) return base_lr * start_factor_;
  if (last_epoch > total_steps_) return last_lr;
  const double rise = end_factor_ - start_factor_;
  const double before =
      rounded(real(total_steps_) * start_factor_) + rounded(real(last_epoch - 1) * rise);
  return last_lr * (1.0 + rise / before);
}

ReduceOnPlateau::ReduceOnPlateau(double learning_rate, PlateauOptions options)
    : LRScheduler(learning_rate, 0), options_(std::move(options)) {
  user_check(options_.factor < 1, ErrorKind::InvalidArgument,
             "factor should be below 1, so that the rate falls, but is {}.", options_.factor);
  user_check(options_.mode == "min" || options_.mode == "max", ErrorKind::InvalidArgument,
             "mode is '{}'.\nhint: Pass min or max.", options_.mode);
  user_check(options_.threshold_mode == "rel" || options_.threshold_mode == "abs",
             ErrorKind::InvalidArgument, "threshold_mode is '{}'.\nhint: Pass rel or abs.",
             options_.threshold_mode);
}

bool ReduceOnPlateau::is_better(double metric) const {
  if (!best_) return true;
  const double margin =
      options_.threshold_mode == "rel" ? rounded(*best_ * options_.threshold) : options_.threshold;
  return options_.mode == "min" ? metric < *best_ - margin : metric > *best_ + margin;
}

void ReduceOnPlateau::observe(double metric) {
  ++last_epoch;
  if (cooling_ > 0) {
    --cooling_;
    return;
  }
  if (is_better(metric)) {
    best_ = metric;
    bad_epochs_ = 0;
  } else {
    ++bad_epochs_;
  }
  if (bad_epochs_ <= options_.patience) return;
  cooling_ = options_.cooldown;
  bad_epochs_ = 0;
  const double reduced = std::max(last_lr * options_.factor, options_.min_lr);
  if (last_lr - reduced <= options_.epsilon) return;
  last_lr = reduced;
  announce();
}

StateTree ReduceOnPlateau::state_dict() const {
  StateTree state;
  state.set("cooldown_counter", cooling_);
  state.set("best", best_ ? StateTree(*best_) : StateTree());
  state.set("num_bad_epochs", bad_epochs_);
  state.set("last_epoch", last_epoch);
  state.set("last_lr", last_lr);
  return state;
}

void ReduceOnPlateau::load_state_dict(const StateTree& state) {
  cooling_ = state.at("cooldown_counter").integer();
  const StateTree& best = state.at("best");
  best_ = best.is_none() ? std::nullopt : std::optional(best.number());
  bad_epochs_ = state.at("num_bad_epochs").integer();
  LRScheduler::load_state_dict(state);
}

}  // namespace oar::nn::lr
