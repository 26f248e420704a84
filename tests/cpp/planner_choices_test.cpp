// The search for the choice of least cost, against trying every choice.
#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "oar/planner/choices.h"

namespace oar::planner {
namespace {

struct Random {
  std::mt19937 bits;
  explicit Random(unsigned seed) : bits(seed) {}
  size_t below(size_t n) { return bits() % n; }
  double cost() { return static_cast<double>(bits() % 1000) / 10; }
};

Choices random_problem(Random& random, size_t variables, size_t links) {
  Choices problem;
  for (size_t v = 0; v < variables; ++v) {
    std::vector<double> cost(2 + random.below(2));
    for (double& c : cost) c = random.cost();
    problem.add(cost);
  }
  for (size_t l = 0; l < links; ++l) {
    const int a = static_cast<int>(random.below(variables)),
              b = static_cast<int>(random.below(variables));
    problem.link(a, b, [&](int, int) { return random.cost(); });
  }
  return problem;
}

double least_cost(const Choices& problem) {
  std::vector<int> chosen(problem.size(), 0);
  double least = std::numeric_limits<double>::infinity();
  while (true) {
    least = std::min(least, problem.cost_of(chosen));
    size_t v = 0;
    while (v < chosen.size() &&
           ++chosen[v] == static_cast<int>(problem.options(static_cast<int>(v))))
      chosen[v++] = 0;
    if (v == chosen.size()) return least;
  }
}

TEST(PlannerChoices, EliminationIsOptimal) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const Choices problem = random_problem(random, 8, 4 + seed % 14);
    const Chosen chosen = choose(problem);
    EXPECT_NEAR(chosen.cost, least_cost(problem), 1e-9) << "seed " << seed;
    EXPECT_NEAR(problem.cost_of(chosen.options), chosen.cost, 1e-9);
    EXPECT_NEAR(chosen.bound, chosen.cost, 1e-9);
  }
}

TEST(PlannerChoices, BranchingIsOptimalWhereTablesMustStaySmall) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    Random random(seed);
    const Choices problem = random_problem(random, 8, 20);
    const Chosen chosen = choose(problem, {}, {.table = 12, .branches = 1 << 20});
    EXPECT_NEAR(chosen.cost, least_cost(problem), 1e-9) << "seed " << seed;
    EXPECT_TRUE(chosen.bound >= chosen.cost - 1e-9);
  }
}

TEST(PlannerChoices, ASearchThatStopsEarlyKnowsItsBound) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    Random random(seed);
    const Choices problem = random_problem(random, 9, 30);
    const Chosen chosen = choose(problem, {}, {.table = 6, .branches = 3});
    const double least = least_cost(problem);
    EXPECT_LE(chosen.bound, least + 1e-9) << "seed " << seed;
    EXPECT_GE(chosen.cost, least - 1e-9) << "seed " << seed;
  }
}

TEST(PlannerChoices, ImpossibleOptionsAreNotTaken) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    Random random(seed);
    Choices problem = random_problem(random, 8, 16);
    for (int v = 0; v + 1 < 8; ++v)
      problem.link(v, v + 1, [&](int a, int b) {
        return a != b && random.below(2) == 0 ? 10 * kImpossible : 0.0;
      });
    const Chosen chosen = choose(problem, {}, {.table = 6, .branches = 1 << 20});
    EXPECT_NEAR(chosen.cost, least_cost(problem), 1e-6) << "seed " << seed;
  }
}

TEST(PlannerChoices, AGapIsKept) {
  for (unsigned seed = 0; seed < 40; ++seed) {
    Random random(seed);
    const Choices problem = random_problem(random, 9, 20);
    const Chosen chosen = choose(problem, {}, {.table = 6, .branches = 1 << 20, .gap = 0.05});
    const double least = least_cost(problem);
    EXPECT_LE(chosen.bound, least + 1e-9) << "seed " << seed;
    EXPECT_LE(chosen.cost, chosen.bound / (1 - 0.05) + 1e-9) << "seed " << seed;
    EXPECT_NEAR(problem.cost_of(chosen.options), chosen.cost, 1e-9);
  }
}

TEST(PlannerChoices, NeverWorseThanAHint) {
  Random random(5);
  const Choices problem = random_problem(random, 9, 30);
  const Chosen best = choose(problem);
  const Chosen hinted = choose(problem, {best.options}, {.table = 6, .branches = 1});
  EXPECT_NEAR(hinted.cost, best.cost, 1e-9);
}

TEST(PlannerChoices, LongChainsAreFast) {
  Random random(1);
  Choices problem;
  for (int v = 0; v < 20000; ++v) {
    problem.add({random.cost(), random.cost(), random.cost()});
    if (v > 0) problem.link(v - 1, v, [&](int a, int b) { return a == b ? 0.0 : random.cost(); });
  }
  const Chosen chosen = choose(problem);
  EXPECT_TRUE(chosen.exact());
  EXPECT_NEAR(problem.cost_of(chosen.options), chosen.cost, 1e-6 * chosen.cost);
}

}  // namespace
}  // namespace oar::planner
