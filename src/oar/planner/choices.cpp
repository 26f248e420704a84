#include "oar/planner/choices.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>

#include "oar/base/error.h"
#include "oar/planner/relaxation.h"

namespace oar::planner {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// A cost that depends on the variables of its scope; the last one varies fastest.
struct Factor {
  std::vector<int> scope;  // ascending
  std::vector<double> table;
};

// How a variable that has been eliminated follows from its neighbours.
struct Eliminated {
  int variable = 0;
  std::vector<int> scope;
  std::vector<int> best;
};

class Elimination {
 public:
  Elimination(const Choices& problem, std::vector<Factor> factors, double constant)
      : problem_(problem), factors_(std::move(factors)), cost_(constant) {
    of_.resize(problem.size());
    for (size_t f = 0; f < factors_.size(); ++f)
      for (int v : factors_[f].scope) of_[static_cast<size_t>(v)].push_back(f);
  }

  void eliminate(int v) {
    std::set<int> around;
    std::vector<size_t> used;
    for (size_t f : of_[static_cast<size_t>(v)])
      if (!gone_.contains(f)) {
        used.push_back(f);
        around.insert(factors_[f].scope.begin(), factors_[f].scope.end());
      }
    around.erase(v);
    Factor made{{around.begin(), around.end()}, {}};
    std::vector<int> best;
    tabulate(v, used, made, best);
    for (size_t f : used) {
      gone_.insert(f);
      factors_[f].table = {};
    }
    trail_.push_back({v, made.scope, std::move(best)});
    if (made.scope.empty()) {
      cost_ += made.table[0];
      return;
    }
    for (int n : made.scope) of_[static_cast<size_t>(n)].push_back(factors_.size());
    factors_.push_back(std::move(made));
  }

  double cost() const { return cost_; }
  // Completes a choice of the variables that were not eliminated.
  void complete(std::vector<int>& chosen) const {
    for (auto it = trail_.rbegin(); it != trail_.rend(); ++it) {
      size_t index = 0;
      for (int n : it->scope)
        index = index * problem_.options(n) + static_cast<size_t>(chosen[static_cast<size_t>(n)]);
      chosen[static_cast<size_t>(it->variable)] = it->best[index];
    }
  }

 private:
  // For each choice of the neighbours: the least cost over the options of v, and which option has it.
  void tabulate(int v, const std::vector<size_t>& used, Factor& made,
                std::vector<int>& best) const {
    const size_t rank = made.scope.size(), options = problem_.options(v);
    size_t entries = 1;
    for (int n : made.scope) entries *= problem_.options(n);
    made.table.resize(entries);
    best.resize(entries);
    std::vector<std::vector<size_t>> strides(used.size(), std::vector<size_t>(rank, 0));
    std::vector<size_t> own(used.size(), 0), at(used.size(), 0);
    for (size_t f = 0; f < used.size(); ++f) {
      size_t stride = 1;
      const std::vector<int>& scope = factors_[used[f]].scope;
      for (size_t k = scope.size(); k-- > 0; stride *= problem_.options(scope[k])) {
        if (scope[k] == v) {
          own[f] = stride;
          continue;
        }
        const auto place = std::lower_bound(made.scope.begin(), made.scope.end(), scope[k]);
        strides[f][static_cast<size_t>(place - made.scope.begin())] = stride;
      }
    }
    std::vector<size_t> digits(rank, 0);
    for (size_t entry = 0; entry < entries; ++entry) {
      double least = kInfinite;
      int chosen = 0;
      for (size_t o = 0; o < options; ++o) {
        double sum = 0;
        for (size_t f = 0; f < used.size(); ++f) sum += factors_[used[f]].table[at[f] + o * own[f]];
        if (sum < least) {
          least = sum;
          chosen = static_cast<int>(o);
        }
      }
      made.table[entry] = least;
      best[entry] = chosen;
      for (size_t k = rank; k-- > 0;) {
        const size_t count = problem_.options(made.scope[k]);
        const bool wraps = ++digits[k] == count;
        for (size_t f = 0; f < used.size(); ++f)
          at[f] += wraps ? strides[f][k] - count * strides[f][k] : strides[f][k];
        if (!wraps) break;
        digits[k] = 0;
      }
    }
  }

  const Choices& problem_;
  std::vector<Factor> factors_;
  std::vector<std::vector<size_t>> of_;
  std::set<size_t> gone_;
  std::vector<Eliminated> trail_;
  double cost_ = 0;
};

// Which variables are eliminated, in this order, and which are branched on because tables would get too large.
struct Order {
  std::vector<int> eliminated, branched;
};

Order order_of(const Choices& problem, double limit) {
  std::vector<std::set<int>> around(problem.size());
  for (const Choices::Link& l : problem.links()) {
    around[static_cast<size_t>(l.a)].insert(l.b);
    around[static_cast<size_t>(l.b)].insert(l.a);
  }
  const auto width = [&](int v) {
    auto entries = static_cast<double>(problem.options(v));
    for (int n : around[static_cast<size_t>(v)]) entries *= static_cast<double>(problem.options(n));
    return entries;
  };
  std::set<std::pair<double, int>> queue;
  std::vector<double> known(problem.size());
  for (size_t v = 0; v < problem.size(); ++v)
    queue.emplace(known[v] = width(static_cast<int>(v)), static_cast<int>(v));
  const auto update = [&](int v) {
    queue.erase({known[static_cast<size_t>(v)], v});
    queue.emplace(known[static_cast<size_t>(v)] = width(v), v);
  };
  Order order;
  while (!queue.empty()) {
    auto at = queue.begin();
    const bool branch = at->first > limit;
    if (branch)  // the variable with most neighbours
      at = std::max_element(queue.begin(), queue.end(), [&](const auto& a, const auto& b) {
        return around[static_cast<size_t>(a.second)].size() <
               around[static_cast<size_t>(b.second)].size();
      });
    const int v = at->second;
    queue.erase(at);
    (branch ? order.branched : order.eliminated).push_back(v);
    const std::set<int> neighbours = std::move(around[static_cast<size_t>(v)]);
    for (int n : neighbours) {
      around[static_cast<size_t>(n)].erase(v);
      if (!branch)
        for (int m : neighbours)
          if (m != n) around[static_cast<size_t>(n)].insert(m);
    }
    for (int n : neighbours) update(n);
  }
  return order;
}

// Branch and bound over the variables that are not eliminated.
class Search {
 public:
  Search(const Choices& problem, Order order, const ChooseLimits& limits)
      : problem_(problem),
        order_(std::move(order)),
        branches_(limits.branches),
        gap_(limits.gap),
        branched_(problem.size(), false) {
    for (int v : order_.branched) branched_[static_cast<size_t>(v)] = true;
  }

  void offer(std::vector<int> chosen) {
    const double cost = problem_.cost_of(chosen);
    if (best_.options.empty() || cost < best_.cost) best_ = {std::move(chosen), cost, 0};
  }

  Chosen run() {
    std::vector<int> chosen(problem_.size(), -1);
    best_.bound = kInfinite;  // from now on: the least bound that was not followed
    open_ = kInfinite;
    branch(chosen, 0, -kInfinite);
    best_.bound = std::min(best_.cost, open_);
    return std::move(best_);
  }

 private:
  // The least cost with these choices; variables that are branched on and have none yet count as if every link could take its
  // own option of them.
  double bound(std::vector<int>& chosen) const {
    double constant = 0;
    std::vector<Factor> factors;
    const auto least = [](const std::vector<double>& c) {
      return *std::min_element(c.begin(), c.end());
    };
    const auto fixed = [&](int v) { return chosen[static_cast<size_t>(v)]; };
    for (size_t v = 0; v < problem_.size(); ++v) {
      const std::vector<double>& cost = problem_.costs()[v];
      if (!branched_[v])
        factors.push_back({{static_cast<int>(v)}, cost});
      else
        constant +=
            fixed(static_cast<int>(v)) < 0 ? least(cost) : cost[static_cast<size_t>(chosen[v])];
    }
    for (const Choices::Link& l : problem_.links()) add_link(l, fixed, factors, constant);
    Elimination elimination(problem_, std::move(factors), constant);
    for (int v : order_.eliminated) elimination.eliminate(v);
    elimination.complete(chosen);
    return elimination.cost();
  }

  template <class F>
  void add_link(const Choices::Link& l, const F& fixed, std::vector<Factor>& factors,
                double& constant) const {
    const bool a = branched_[static_cast<size_t>(l.a)], b = branched_[static_cast<size_t>(l.b)];
    if (!a && !b) return factors.push_back({{l.a, l.b}, l.cost});
    const size_t rows = problem_.options(l.a), columns = problem_.options(l.b);
    Factor factor{{}, {}};
    if (!a) factor = {{l.a}, std::vector<double>(rows, kInfinite)};
    if (!b) factor = {{l.b}, std::vector<double>(columns, kInfinite)};
    double least = kInfinite;
    for (size_t i = 0; i < rows; ++i)
      for (size_t k = 0; k < columns; ++k) {
        if (a && fixed(l.a) >= 0 && fixed(l.a) != static_cast<int>(i)) continue;
        if (b && fixed(l.b) >= 0 && fixed(l.b) != static_cast<int>(k)) continue;
        const double cost = l.cost[i * columns + k];
        least = std::min(least, cost);
        if (!a) factor.table[i] = std::min(factor.table[i], cost);
        if (!b) factor.table[k] = std::min(factor.table[k], cost);
      }
    if (a && b)
      constant += least;
    else
      factors.push_back(std::move(factor));
  }

  void branch(std::vector<int>& chosen, size_t depth, double above) {
    if (branches_-- <= 0 && !best_.options.empty()) {
      open_ = std::min(open_, above);
      return;
    }
    std::vector<int> tried = chosen;
    const double bound_here = bound(tried);
    if (!best_.options.empty() && bound_here >= best_.cost - gap_ * std::abs(best_.cost)) {
      open_ = std::min(open_, bound_here);
      return;
    }
    // Any completion is a choice, too.
    for (int v : order_.branched)
      if (int& option = tried[static_cast<size_t>(v)]; option < 0) option = likely(v, tried);
    offer(tried);
    if (depth == order_.branched.size()) return;
    const int v = order_.branched[depth];
    std::vector<int> options(problem_.options(v));
    for (size_t o = 0; o < options.size(); ++o) options[o] = static_cast<int>(o);
    std::stable_partition(options.begin(), options.end(),
                          [&](int o) { return o == tried[static_cast<size_t>(v)]; });
    for (int o : options) {
      chosen[static_cast<size_t>(v)] = o;
      branch(chosen, depth + 1, std::max(above, bound_here));
    }
    chosen[static_cast<size_t>(v)] = -1;
  }

  // The option that suits the choices of the neighbours.
  int likely(int v, const std::vector<int>& chosen) const {
    std::vector<double> cost = problem_.costs()[static_cast<size_t>(v)];
    for (const Choices::Link& l : problem_.links()) {
      if (l.a != v && l.b != v) continue;
      const int other = chosen[static_cast<size_t>(l.a == v ? l.b : l.a)];
      if (other < 0) continue;
      const size_t columns = problem_.options(l.b);
      for (size_t o = 0; o < cost.size(); ++o)
        cost[o] += l.a == v ? l.cost[o * columns + static_cast<size_t>(other)]
                            : l.cost[static_cast<size_t>(other) * columns + o];
    }
    return static_cast<int>(std::min_element(cost.begin(), cost.end()) - cost.begin());
  }

  const Choices& problem_;
  const Order order_;
  int branches_;
  const double gap_;
  std::vector<bool> branched_;
  Chosen best_;
  double open_ = kInfinite;
};

// The options that may be part of the best choice: not those that another one beats whatever the neighbours choose.
class Pruning {
 public:
  explicit Pruning(const Choices& problem) : problem_(problem), links_of_(problem.size()) {
    for (size_t v = 0; v < problem.size(); ++v) {
      kept_.emplace_back(problem.options(static_cast<int>(v)));
      std::iota(kept_.back().begin(), kept_.back().end(), 0);
    }
    for (size_t l = 0; l < problem.links().size(); ++l) {
      links_of_[static_cast<size_t>(problem.links()[l].a)].push_back(l);
      links_of_[static_cast<size_t>(problem.links()[l].b)].push_back(l);
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (size_t v = 0; v < problem.size(); ++v)
        changed |= drop_impossible(static_cast<int>(v)) || prune(static_cast<int>(v));
    }
  }

  Choices reduced() const {
    Choices small;
    for (size_t v = 0; v < kept_.size(); ++v) {
      std::vector<double> cost;
      for (int o : kept_[v]) cost.push_back(problem_.costs()[v][static_cast<size_t>(o)]);
      small.add(std::move(cost));
    }
    for (const Choices::Link& l : problem_.links())
      small.link(l.a, l.b, [&](int a, int b) {
        return cost(l, kept_[static_cast<size_t>(l.a)][static_cast<size_t>(a)],
                    kept_[static_cast<size_t>(l.b)][static_cast<size_t>(b)]);
      });
    return small;
  }
  std::vector<int> original(std::vector<int> options) const {
    for (size_t v = 0; v < options.size(); ++v)
      options[v] = kept_[v][static_cast<size_t>(options[v])];
    return options;
  }

 private:
  double cost(const Choices::Link& l, int a, int b) const {
    return l.cost[static_cast<size_t>(a) * problem_.options(l.b) + static_cast<size_t>(b)];
  }

  bool drop_impossible(int v) {
    std::vector<int>& kept = kept_[static_cast<size_t>(v)];
    const auto first = std::stable_partition(kept.begin(), kept.end(),
                                             [&](int option) { return possible(v, option); });
    if (first == kept.end() || first == kept.begin()) return false;
    kept.erase(first, kept.end());
    return true;
  }
  bool possible(int v, int option) const {
    if (problem_.costs()[static_cast<size_t>(v)][static_cast<size_t>(option)] >= kImpossible)
      return false;
    const auto agrees = [&](size_t at) {
      const Choices::Link& l = problem_.links()[at];
      const std::vector<int>& others = kept_[static_cast<size_t>(l.a == v ? l.b : l.a)];
      return std::any_of(others.begin(), others.end(), [&](int o) {
        return (l.a == v ? cost(l, option, o) : cost(l, o, option)) < kImpossible;
      });
    };
    const std::vector<size_t>& links = links_of_[static_cast<size_t>(v)];
    return std::all_of(links.begin(), links.end(), agrees);
  }

  bool prune(int v) {
    std::vector<int>& kept = kept_[static_cast<size_t>(v)];
    for (size_t k = 0; k < kept.size() && kept.size() > 1; ++k)
      for (size_t other = 0; other < kept.size(); ++other)
        if (other != k && beats(v, kept[other], kept[k])) {
          kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(k));
          return true;
        }
    return false;
  }

  // Is `better` never dearer than `worse`?
  bool beats(int v, int better, int worse) const {
    const std::vector<double>& own = problem_.costs()[static_cast<size_t>(v)];
    double gain = own[static_cast<size_t>(worse)] - own[static_cast<size_t>(better)];
    for (size_t at : links_of_[static_cast<size_t>(v)]) {
      const Choices::Link& l = problem_.links()[at];
      double least = kInfinite;
      for (int o : kept_[static_cast<size_t>(l.a == v ? l.b : l.a)])
        least = std::min(least, l.a == v ? cost(l, worse, o) - cost(l, better, o)
                                         : cost(l, o, worse) - cost(l, o, better));
      gain += least;
    }
    return gain >= 0;
  }

  const Choices& problem_;
  std::vector<std::vector<size_t>> links_of_;
  std::vector<std::vector<int>> kept_;
};

// Relaxes the problem first, and searches what that leaves open.
Chosen choose_relaxed(const Choices& problem, const ChooseLimits& limits) {
  Relaxation relaxation(problem);
  relaxation.run(limits.gap);
  Chosen best{relaxation.chosen(), relaxation.cost(),
              std::min(relaxation.bound(), relaxation.cost())};
  if (limits.gap > 0 && relaxation.close(limits.gap)) return best;
  const std::vector<std::vector<int>> kept = relaxation.open_options();
  const Choices open = relaxation.reduced(kept);
  const Pruning pruning(open);
  const Choices small = pruning.reduced();
  Chosen found = Search(small, order_of(small, limits.table), limits).run();
  found.options = pruning.original(std::move(found.options));
  for (size_t v = 0; v < kept.size(); ++v)
    found.options[v] = kept[v][static_cast<size_t>(found.options[v])];
  found.cost = problem.cost_of(found.options);
  // What was ruled out costs no less than the relaxation's choice.
  best.bound = std::max(best.bound, std::min(found.bound, best.cost));
  if (found.cost < best.cost) {
    best.options = std::move(found.options);
    best.cost = found.cost;
  }
  best.bound = std::min(best.bound, best.cost);
  return best;
}

}  // namespace

int Choices::add(std::vector<double> cost) {
  internal_check(!cost.empty(), "a variable without options");
  costs_.push_back(std::move(cost));
  return static_cast<int>(costs_.size()) - 1;
}

void Choices::charge(int variable, const std::vector<double>& cost) {
  std::vector<double>& own = costs_[static_cast<size_t>(variable)];
  for (size_t o = 0; o < own.size(); ++o) own[o] += cost[o];
}

void Choices::link_table(int a, int b, std::vector<double> table) {
  const size_t rows = options(a), columns = options(b);
  if (a == b) {
    for (size_t o = 0; o < rows; ++o) costs_[static_cast<size_t>(a)][o] += table[o * columns + o];
    return;
  }
  if (a > b) {
    std::vector<double> turned(table.size());
    for (size_t i = 0; i < rows; ++i)
      for (size_t k = 0; k < columns; ++k) turned[k * rows + i] = table[i * columns + k];
    std::swap(a, b);
    table = std::move(turned);
  }
  const auto [found, is_new] = link_of_.try_emplace({a, b}, links_.size());
  if (is_new) return links_.push_back({a, b, std::move(table)});
  std::vector<double>& cost = links_[found->second].cost;
  for (size_t i = 0; i < cost.size(); ++i) cost[i] += table[i];
}

double Choices::cost_of(const std::vector<int>& chosen) const {
  double sum = 0;
  for (size_t v = 0; v < costs_.size(); ++v) sum += costs_[v][static_cast<size_t>(chosen[v])];
  for (const Link& l : links_)
    sum += l.cost[static_cast<size_t>(chosen[static_cast<size_t>(l.a)]) * options(l.b) +
                  static_cast<size_t>(chosen[static_cast<size_t>(l.b)])];
  return sum;
}

Chosen choose(const Choices& problem, const std::vector<std::vector<int>>& hints,
              const ChooseLimits& limits) {
  const Pruning pruning(problem);
  const Choices small = pruning.reduced();
  Order order = order_of(small, limits.table);
  Chosen best = order.branched.empty() ? Search(small, std::move(order), limits).run()
                                       : choose_relaxed(small, limits);
  best.options = pruning.original(std::move(best.options));
  for (const std::vector<int>& hint : hints)
    if (const double cost = problem.cost_of(hint); cost < best.cost) {
      best.options = hint;
      best.cost = cost;
    }
  return best;
}

}  // namespace oar::planner
