// A problem of choices: each variable takes one of its options, an option has a cost, and so has each pair of options of two linked
// variables. Wanted is the choice of least total cost. Where each call of a step is cut is such a problem: options are cuts, and
// links are values that must change their placement between two calls.
//
// Variables are eliminated one by one: what remains of the cost is a table over the neighbours. That is exact, and fast on chains,
// trees and whatever has narrow tables. If tables would grow beyond a limit, costs are first moved
// between variables and links until their least ones make a high bound (relaxation.h), which rules most options out. If tables are
// still too large, some variables are branched on, with a lower bound that ignores how the others depend on them. The result says
// how far from the optimum it may be.
#pragma once

#include <cstddef>
#include <map>
#include <utility>
#include <vector>

#include "oar/base/api.h"

namespace OAR_API oar {
namespace planner {

// Costs from here on mean that an option, or a pair of options, cannot be.
inline constexpr double kImpossible = 1e17;

class Choices {
 public:
  struct Link {
    int a, b;                  // a < b
    std::vector<double> cost;  // by option of a, then of b
  };

  // A new variable; returns its number.
  int add(std::vector<double> cost);
  // Adds to the cost of a variable's options.
  void charge(int variable, const std::vector<double>& cost);
  // Adds to the cost of pairs; cost(option of a, option of b). A link of a variable with itself charges it.
  template <class F>
  void link(int a, int b, F&& cost) {
    std::vector<double> table;
    table.reserve(options(a) * options(b));
    for (size_t i = 0; i < options(a); ++i)
      for (size_t k = 0; k < options(b); ++k)
        table.push_back(cost(static_cast<int>(i), static_cast<int>(k)));
    link_table(a, b, std::move(table));
  }

  size_t size() const { return costs_.size(); }
  size_t options(int variable) const { return costs_[static_cast<size_t>(variable)].size(); }
  const std::vector<std::vector<double>>& costs() const { return costs_; }
  const std::vector<Link>& links() const { return links_; }
  double cost_of(const std::vector<int>& chosen) const;

 private:
  void link_table(int a, int b, std::vector<double> table);

  std::vector<std::vector<double>> costs_;
  std::vector<Link> links_;
  std::map<std::pair<int, int>, size_t> link_of_;
};

struct Chosen {
  std::vector<int> options;  // one per variable
  double cost = 0;
  double bound = 0;  // no choice costs less
  bool exact() const { return bound >= cost; }
};

struct ChooseLimits {
  double table = 1 << 20;  // entries of a table
  int branches = 400;      // bounds that are computed
  double gap = 0;          // a choice that costs this part more than the bound is good enough
};

// `hints` are choices to start from: the result costs no more than any of them.
Chosen choose(const Choices& problem, const std::vector<std::vector<int>>& hints = {},
              const ChooseLimits& limits = {});

}  // namespace planner
}  // namespace oar
