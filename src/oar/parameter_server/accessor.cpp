#include "oar/parameter_server/accessor.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "oar/parameter_server/keys.h"

namespace oar::parameter_server {
namespace {

void apply_adagrad(const RuleOptions& rule, std::span<float> values, const float* gradient,
                   float* moment, float learning_rate) {
  for (size_t i = 0; i < values.size(); ++i) {
    moment[i] += gradient[i] * gradient[i];
    values[i] -= learning_rate * gradient[i] / (std::sqrt(moment[i]) + rule.epsilon);
  }
}

// The state: both moments, then the number of steps.
void apply_adam(const RuleOptions& rule, std::span<float> values, const float* gradient,
                float* state, float learning_rate) {
  const size_t width = values.size();
  float *first = state, *second = state + width, *steps = state + 2 * width;
  *steps += 1.0F;
  const double power1 = std::pow(static_cast<double>(rule.beta1), *steps);
  const double power2 = std::pow(static_cast<double>(rule.beta2), *steps);
  const auto root = static_cast<float>(std::sqrt(1.0 - power2));
  const auto rate = static_cast<float>(learning_rate * root / (1.0 - power1));
  for (size_t i = 0; i < width; ++i) {
    first[i] = rule.beta1 * first[i] + (1.0F - rule.beta1) * gradient[i];
    second[i] = rule.beta2 * second[i] + (1.0F - rule.beta2) * gradient[i] * gradient[i];
    values[i] -= rate * first[i] / (std::sqrt(second[i]) + rule.epsilon * root);
  }
}

float days_since(const Header& header, uint64_t day) {
  return std::max(0.0F, static_cast<float>(day) - header.day);
}

}  // namespace

size_t state_size(const RuleOptions& rule, size_t width) {
  switch (rule.kind) {
    case RuleKind::Adagrad:
      return width;
    case RuleKind::Adam:
      return 2 * width + 1;
    default:
      return 0;
  }
}

void begin_state(const RuleOptions& rule, size_t width, float* state) {
  const float first = rule.kind == RuleKind::Adagrad ? rule.initial_accumulator : 0.0F;
  std::fill_n(state, state_size(rule, width), first);
}

void apply_rule(const RuleOptions& rule, std::span<float> values, const float* gradient,
                float* state, float learning_rate) {
  switch (rule.kind) {
    case RuleKind::Sgd:
      for (size_t i = 0; i < values.size(); ++i) values[i] -= learning_rate * gradient[i];
      break;
    case RuleKind::Sum:
      for (size_t i = 0; i < values.size(); ++i) values[i] += gradient[i];
      break;
    case RuleKind::Adagrad:
      apply_adagrad(rule, values, gradient, state, learning_rate);
      break;
    case RuleKind::Adam:
      apply_adam(rule, values, gradient, state, learning_rate);
      break;
  }
}

void begin_values(const InitialOptions& initial, uint64_t key, std::span<float> values) {
  const auto number = [&](uint64_t i) { return uniform_of(initial.seed, key, i); };
  for (size_t i = 0; i < values.size(); ++i) {
    switch (initial.kind) {
      case InitialKind::Constant:
        values[i] = initial.value;
        break;
      case InitialKind::Uniform:
        values[i] = initial.scale * static_cast<float>(2.0 * number(i) - 1.0);
        break;
      case InitialKind::Gaussian: {  // Box and Muller
        const double radius = std::sqrt(-2.0 * std::log(1.0 - number(2 * i)));
        const double angle = 2.0 * std::numbers::pi * number(2 * i + 1);
        values[i] = initial.scale * static_cast<float>(radius * std::cos(angle));
        break;
      }
    }
  }
}

void count_push(const ScoreOptions& score, const Age& age, float shows, float clicks,
                Header* header) {
  const float kept = std::pow(score.decay, days_since(*header, age.day));
  header->shows = header->shows * kept + shows;
  header->clicks = header->clicks * kept + clicks;
  header->day = static_cast<float>(age.day);
  header->generation = static_cast<float>(age.generation);
}

bool is_stale(const ScoreOptions& score, const Header& header, uint64_t day) {
  const float days = days_since(header, day);
  if (days == 0.0F) return false;
  if (days > static_cast<float>(score.most_unseen)) return true;
  if (!score.counts_shows) return false;
  const float kept = std::pow(score.decay, days);
  const float value = score.show_coefficient * (header.shows - header.clicks) * kept +
                      score.click_coefficient * header.clicks * kept;
  return value < score.least_score;
}

bool is_admitted(const EntryOptions& entry, uint64_t seed, uint64_t key, const Header& header) {
  switch (entry.kind) {
    case EntryKind::Count:
      return header.shows >= entry.threshold;
    case EntryKind::Probability:
      // A new number with each push, so that frequent keys come in sooner or later.
      return uniform_of(~seed, key, static_cast<uint64_t>(header.shows)) < entry.threshold;
    default:
      return true;
  }
}

}  // namespace oar::parameter_server
