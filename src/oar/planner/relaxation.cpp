#include "oar/planner/relaxation.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace oar::planner {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

double least(const std::vector<double>& costs) {
  return *std::min_element(costs.begin(), costs.end());
}

// What no choice exceeds that can be: impossible costs become twice as much, so that sums keep their digits.
double ceiling_of(const Choices& problem) {
  double sum = 0;
  const auto add = [&](const std::vector<double>& costs) {
    double most = 0;
    for (double c : costs)
      if (c < kImpossible) most = std::max(most, std::abs(c));
    sum += most;
  };
  for (const std::vector<double>& costs : problem.costs()) add(costs);
  for (const Choices::Link& l : problem.links()) add(l.cost);
  return 2 * sum;
}

}  // namespace

Relaxation::Relaxation(const Choices& problem)
    : problem_(problem), own_(problem.costs()), links_of_(problem.size()), cost_(kInfinite) {
  const double ceiling = ceiling_of(problem);
  const auto clamp = [&](std::vector<double>& costs) {
    for (double& c : costs) c = c < kImpossible ? c : ceiling;
  };
  for (std::vector<double>& costs : own_) clamp(costs);
  for (const Choices::Link& l : problem.links()) {
    links_of_[static_cast<size_t>(l.a)].push_back(links_.size());
    links_of_[static_cast<size_t>(l.b)].push_back(links_.size());
    links_.push_back({l.a, l.b, problem.options(l.a), problem.options(l.b), l.cost});
    clamp(links_.back().cost);
  }
  bound_ = sum_of_least();
}

void Relaxation::run(double gap) {
  constexpr int kSweeps = 400, kPatience = 5, kDecodeEvery = 8;
  int idle = 0;
  for (int s = 0; s < kSweeps && idle < kPatience && !close(gap); ++s) {
    const double bound = bound_, cost = cost_;
    for (int k = 0; k < kDecodeEvery; ++k) {
      sweep(true);
      sweep(false);
    }
    decode();
    bound_ = std::max(bound_, sum_of_least());
    const bool improved = bound_ - bound > 0.01 * (cost_ - bound_) || cost_ < cost;
    idle = improved ? 0 : idle + 1;
  }
}

double Relaxation::sum_of_least() const {
  double sum = 0;
  for (const std::vector<double>& costs : own_) sum += least(costs);
  for (const Link& l : links_) sum += least(l.cost);
  return sum;
}

void Relaxation::sweep(bool forward) {
  const size_t count = own_.size();
  for (size_t k = 0; k < count; ++k) {
    const size_t v = forward ? k : count - 1 - k;
    collect(v);
    spread(v, forward);
  }
}

// Takes from the variable's links what they cost at least with each of its options.
void Relaxation::collect(size_t variable) {
  std::vector<double>& own = own_[variable];
  for (size_t at : links_of_[variable]) {
    Link& l = links_[at];
    const bool first = static_cast<size_t>(l.a) == variable;
    const size_t step = first ? l.columns : 1, stride = first ? 1 : l.columns,
                 others = first ? l.columns : l.rows;
    for (size_t o = 0; o < own.size(); ++o) {
      double* const costs = l.cost.data() + o * step;
      double moved = kInfinite;
      for (size_t k = 0; k < others; ++k) moved = std::min(moved, costs[k * stride]);
      for (size_t k = 0; k < others; ++k) costs[k * stride] -= moved;
      own[o] += moved;
    }
  }
}

// Gives the variable's costs to the links with those that come next.
void Relaxation::spread(size_t variable, bool forward) {
  const auto is_next = [&](const Link& l) { return (other(variable, l) > variable) == forward; };
  size_t next = 0;
  for (size_t at : links_of_[variable]) next += is_next(links_[at]);
  if (next == 0) return;
  const double share = 1.0 / static_cast<double>(std::max(next, links_of_[variable].size() - next));
  std::vector<double>& own = own_[variable];
  const std::vector<double> before = own;
  for (size_t at : links_of_[variable]) {
    Link& l = links_[at];
    if (!is_next(l)) continue;
    const bool first = static_cast<size_t>(l.a) == variable;
    const size_t step = first ? l.columns : 1, stride = first ? 1 : l.columns,
                 others = first ? l.columns : l.rows;
    for (size_t o = 0; o < own.size(); ++o) {
      const double moved = before[o] * share;
      for (size_t k = 0; k < others; ++k) l.cost[o * step + k * stride] += moved;
      own[o] -= moved;
    }
  }
}

// Each variable takes the option that suits those before it, then any that is better with its neighbours' options.
void Relaxation::decode() {
  std::vector<int> chosen(own_.size(), 0);
  for (size_t v = 0; v < own_.size(); ++v) {
    std::vector<double> costs = own_[v];
    for (size_t at : links_of_[v]) {
      const Link& l = links_[at];
      const size_t n = other(v, l);
      const bool first = static_cast<size_t>(l.a) == v;
      for (size_t o = 0; o < costs.size(); ++o) {
        const auto taken = static_cast<size_t>(chosen[n]);
        double cost = kInfinite;
        if (n < v)
          cost = first ? l.cost[o * l.columns + taken] : l.cost[taken * l.columns + o];
        else
          for (size_t k = 0; k < own_[n].size(); ++k)
            cost = std::min(cost, first ? l.cost[o * l.columns + k] : l.cost[k * l.columns + o]);
        costs[o] += cost;
      }
    }
    chosen[v] = static_cast<int>(std::min_element(costs.begin(), costs.end()) - costs.begin());
  }
  improve(chosen);
  const double cost = problem_.cost_of(chosen);
  if (cost < cost_) {
    cost_ = cost;
    chosen_ = std::move(chosen);
  }
}

void Relaxation::improve(std::vector<int>& chosen) const {
  constexpr int kPasses = 10;
  bool changed = true;
  for (int pass = 0; pass < kPasses && changed; ++pass) {
    changed = false;
    for (size_t v = 0; v < own_.size(); ++v) {
      std::vector<double> costs = problem_.costs()[v];
      for (size_t at : links_of_[v]) {
        const Choices::Link& l = problem_.links()[at];
        const size_t columns = links_[at].columns;
        const auto taken = static_cast<size_t>(chosen[other(v, links_[at])]);
        for (size_t o = 0; o < costs.size(); ++o)
          costs[o] += static_cast<size_t>(l.a) == v ? l.cost[o * columns + taken]
                                                    : l.cost[taken * columns + o];
      }
      const auto best = std::min_element(costs.begin(), costs.end()) - costs.begin();
      if (costs[static_cast<size_t>(best)] < costs[static_cast<size_t>(chosen[v])]) {
        chosen[v] = static_cast<int>(best);
        changed = true;
      }
    }
  }
}

std::vector<std::vector<int>> Relaxation::open_options() const {
  std::vector<std::vector<int>> kept(own_.size());
  const double now = sum_of_least();
  for (size_t v = 0; v < own_.size(); ++v) {
    // With this option, links cost at least the least of its row.
    std::vector<double> costs = own_[v];
    double floor = least(costs);
    for (size_t at : links_of_[v]) {
      const Link& l = links_[at];
      const bool first = static_cast<size_t>(l.a) == v;
      for (size_t o = 0; o < costs.size(); ++o) {
        double row = kInfinite;
        for (size_t k = 0; k < own_[other(v, l)].size(); ++k)
          row = std::min(row, first ? l.cost[o * l.columns + k] : l.cost[k * l.columns + o]);
        costs[o] += row;
      }
      floor += least(l.cost);
    }
    for (size_t o = 0; o < costs.size(); ++o)
      if (now + costs[o] - floor <= cost_ + 1e-9 * std::abs(cost_) ||
          (!chosen_.empty() && chosen_[v] == static_cast<int>(o)))
        kept[v].push_back(static_cast<int>(o));
  }
  return kept;
}

Choices Relaxation::reduced(const std::vector<std::vector<int>>& kept) const {
  Choices small;
  for (size_t v = 0; v < kept.size(); ++v) {
    std::vector<double> costs;
    for (int o : kept[v]) costs.push_back(own_[v][static_cast<size_t>(o)]);
    small.add(std::move(costs));
  }
  for (const Link& l : links_)
    small.link(l.a, l.b, [&](int a, int b) {
      const auto i = static_cast<size_t>(kept[static_cast<size_t>(l.a)][static_cast<size_t>(a)]);
      const auto k = static_cast<size_t>(kept[static_cast<size_t>(l.b)][static_cast<size_t>(b)]);
      return l.cost[i * l.columns + k];
    });
  return small;
}

}  // namespace oar::planner
