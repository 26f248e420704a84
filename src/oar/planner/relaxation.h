// A lower bound of a problem of choices, and a good choice. Costs move between variables and links so that every total stays the
// same (a reparametrisation), while the sum of the least costs of all variables and links grows. That sum is the bound. Options
// that would exceed a known choice even so are ruled out.
#pragma once

#include <vector>

#include "oar/planner/choices.h"

namespace oar::planner {

class Relaxation {
 public:
  explicit Relaxation(const Choices& problem);

  // Improves the bound and the choice, until they are as near as `gap`, a part of the cost, or nothing improves.
  void run(double gap);

  double bound() const { return bound_; }
  double cost() const { return cost_; }
  const std::vector<int>& chosen() const { return chosen_; }
  bool close(double gap) const { return cost_ < kImpossible && cost_ - bound_ <= gap * cost_; }

  // By variable: the options that may still be part of a better choice, and those chosen.
  std::vector<std::vector<int>> open_options() const;
  // The problem of these options, with costs as they have been moved.
  Choices reduced(const std::vector<std::vector<int>>& kept) const;

 private:
  struct Link {
    int a, b;
    size_t rows, columns;
    std::vector<double> cost;
  };

  size_t other(size_t variable, const Link& l) const {
    return static_cast<size_t>(static_cast<size_t>(l.a) == variable ? l.b : l.a);
  }
  void sweep(bool forward);
  void collect(size_t variable);
  void spread(size_t variable, bool forward);
  void decode();
  void improve(std::vector<int>& chosen) const;
  double sum_of_least() const;

  const Choices& problem_;
  std::vector<std::vector<double>> own_;
  std::vector<Link> links_;
  std::vector<std::vector<size_t>> links_of_;
  double bound_ = 0, cost_ = 0;
  std::vector<int> chosen_;
};

}  // namespace oar::planner
