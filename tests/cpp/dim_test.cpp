#include "oar/tensor/dim.h"

#include <gtest/gtest.h>

#include <functional>
#include <random>

#include "oar/base/error.h"
#include "oar/tensor/dim_assume.h"

namespace oar {
namespace {

using Bindings = std::vector<std::pair<Dim, int64_t>>;

TEST(Dim, KnownNumbersAreTheirWords) {
  constexpr Dim seven = 7;
  static_assert(seven.is_known() && seven.word() == 7);
  EXPECT_EQ((seven + 3).value(), 10);
  EXPECT_EQ((seven - 9).value(), -2);
  EXPECT_EQ((seven * -2).value(), -14);
  EXPECT_EQ(floor_div(seven, 2), Dim(3));
  EXPECT_EQ(floor_div(-7, 2), Dim(-4));
  EXPECT_EQ(floor_mod(-7, 2), Dim(1));
  EXPECT_EQ(ceil_div(seven, 2), Dim(4));
  EXPECT_EQ(min_of(Dim(3), 5), Dim(3));
  EXPECT_EQ(max_of(Dim(3), 5), Dim(5));
  EXPECT_TRUE(seven.symbols().empty());
  EXPECT_EQ(seven.str(), "7");
}

TEST(Dim, SymbolsHaveNameHintAndNoValue) {
  const Dim n = Dim::symbol("n", 12);
  EXPECT_TRUE(n.is_symbolic());
  EXPECT_EQ(n.hint(), 12);
  EXPECT_EQ(n.str(), "n");
  EXPECT_EQ(n.symbols(), std::vector<Dim>{n});
  EXPECT_FALSE(n == Dim::symbol("n", 12)) << "two symbols of one name are two unknowns";
  try {
    static_cast<void>(n.value());
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::Unsupported);
    EXPECT_NE(error.text().find("symbolic dimension n"), std::string::npos);
    EXPECT_FALSE(error.hint().empty());
  }
}

TEST(Dim, EqualExpressionsAreTheSameWord) {
  const Dim a = Dim::symbol("a", 3), b = Dim::symbol("b", 5);
  EXPECT_EQ(a + 0, a);
  EXPECT_EQ(a * 1, a);
  EXPECT_EQ(a * 0, Dim(0));
  EXPECT_EQ(a - a, Dim(0));
  EXPECT_EQ(a + b, b + a);
  EXPECT_EQ(a * b, b * a);
  EXPECT_EQ(2 * a + 3 * a, 5 * a);
  EXPECT_EQ((a + 1) * (a - 1), a * a - 1);
  EXPECT_EQ((a + b) * 2 - 2 * b, a * 2);
  EXPECT_EQ(floor_div(6 * a, 3), 2 * a);
  EXPECT_EQ(floor_div(a * b, b), a);
  EXPECT_EQ(floor_div(4 * a + 2, 2), 2 * a + 1);
  EXPECT_EQ(floor_div(a, 1), a);
  EXPECT_EQ(floor_div(a + 1, 2), floor_div(1 + a, 2));
  EXPECT_EQ(floor_mod(4 * a, 2), Dim(0));
  EXPECT_EQ(floor_mod(a * b, b), Dim(0));
  EXPECT_EQ(min_of(a, a + 1), a);
  EXPECT_EQ(max_of(a, a + 1), a + 1);
  EXPECT_EQ(max_of(a, 0), a) << "a size is never negative";
  EXPECT_EQ(min_of(a, b), min_of(a, b));
  EXPECT_EQ((2 * a + 1).str(), "1 + 2*a");
}

TEST(Dim, BoundsDecideOnlyWhatHoldsForAllValues) {
  const Dim any = Dim::symbol("any", 9), some = Dim::symbol("some", 9, 1);
  EXPECT_EQ(max_of(some, 1), some);
  EXPECT_TRUE(max_of(any, 1).is_symbolic());
  EXPECT_EQ(max_of(any, 1).evaluate(Bindings{{any, 0}}), 1);
  // A quotient of something that can be negative can be negative.
  const Dim windows = floor_div(any - 5, 2);
  EXPECT_EQ(max_of(windows, 0).evaluate(Bindings{{any, 2}}), 0);
  EXPECT_EQ(min_of(windows, 0).evaluate(Bindings{{any, 2}}), -2);
  EXPECT_EQ(max_of(min_of(any, -3), 0).evaluate(Bindings{{any, 2}}), 0);
  EXPECT_EQ(max_of(floor_mod(any, -4), 0).evaluate(Bindings{{any, 3}}), 0);
}

TEST(Dim, EvaluatesAndSubstitutes) {
  const Dim a = Dim::symbol("a", 3), b = Dim::symbol("b", 5), c = Dim::symbol("c", 7);
  const Dim e = floor_div(a * b + 1, 2) + max_of(a, b) - min_of(a - 4, b);
  EXPECT_EQ(e.evaluate(Bindings{{a, 3}, {b, 6}}), 9 + 6 + 1);
  EXPECT_EQ(e.symbols().size(), 2U);
  const std::vector<std::pair<Dim, Dim>> rename{{a, c + 1}};
  EXPECT_EQ((2 * a).substitute(rename), 2 * c + 2);
  EXPECT_EQ(Dim(4).substitute(rename), Dim(4));
  EXPECT_THROW(static_cast<void>(e.evaluate(Bindings{{a, 3}})), Error);
  EXPECT_THROW(static_cast<void>(floor_div(a, b).evaluate(Bindings{{a, 3}, {b, 0}})), Error);
}

// Random expressions: whatever simplification does, the value at every point is that of the
// expression as written.
TEST(Dim, SimplificationKeepsTheValue) {
  std::mt19937_64 random(11);
  const auto below = [&](int64_t n) {
    return static_cast<int64_t>(random() % static_cast<uint64_t>(n));
  };
  const std::vector<Dim> symbols = {Dim::symbol("x", 4), Dim::symbol("y", 6, 1),
                                    Dim::symbol("z", 0)};
  using Eval = std::function<int64_t(const std::vector<int64_t>&)>;
  struct Pair {
    Dim dim;
    Eval eval;
  };
  const std::function<Pair(int)> make = [&](int depth) -> Pair {
    if (depth == 0 || below(5) == 0) {
      if (below(2) == 0) {
        const int64_t k = below(13) - 6;
        return {Dim(k), [k](auto&) { return k; }};
      }
      const auto i = static_cast<size_t>(below(3));
      return {symbols[i], [i](auto& v) { return v[i]; }};
    }
    const Pair l = make(depth - 1), r = make(depth - 1);
    const Eval a = l.eval, b = r.eval;
    switch (below(7)) {
      case 0:
        return {l.dim + r.dim, [=](auto& v) { return a(v) + b(v); }};
      case 1:
        return {l.dim - r.dim, [=](auto& v) { return a(v) - b(v); }};
      case 2:
        return {l.dim * r.dim, [=](auto& v) { return a(v) * b(v); }};
      case 3:
        return {min_of(l.dim, r.dim), [=](auto& v) { return std::min(a(v), b(v)); }};
      case 4:
        return {max_of(l.dim, r.dim), [=](auto& v) { return std::max(a(v), b(v)); }};
      default: {
        const int64_t k = (1 + below(4)) * (below(4) == 0 ? -1 : 1);
        const auto quotient = [k](int64_t n) {
          const int64_t q = n / k;
          return n % k != 0 && ((n < 0) != (k < 0)) ? q - 1 : q;
        };
        if (below(2) == 0) return {floor_div(l.dim, k), [=](auto& v) { return quotient(a(v)); }};
        return {floor_mod(l.dim, k), [=](auto& v) { return a(v) - quotient(a(v)) * k; }};
      }
    }
  };
  for (int i = 0; i < 3000; ++i) {
    const Pair e = make(1 + static_cast<int>(below(4)));
    EXPECT_EQ(e.dim.hint(), e.eval({4, 6, 0})) << e.dim.str();
    for (int k = 0; k < 4; ++k) {
      const std::vector<int64_t> at = {below(20), 1 + below(20), below(3)};
      const Bindings bindings{{symbols[0], at[0]}, {symbols[1], at[1]}, {symbols[2], at[2]}};
      ASSERT_EQ(e.dim.evaluate(bindings), e.eval(at)) << e.dim.str();
    }
  }
}

TEST(Dim, ComparisonsFollowHintsAndAreRecorded) {
  const Dim n = Dim::symbol("n", 4), m = Dim::symbol("m", 4), k = Dim::symbol("k", 9);
  EXPECT_TRUE(same(n, m));
  {
    const DimAssumptions outer;
    EXPECT_TRUE(same(n, n));
    EXPECT_FALSE(same(n, n + 1)) << "decided for all values, so nothing is learnt";
    EXPECT_TRUE(known_less(n, n + 1));
    EXPECT_FALSE(known_less(n, 0));
    EXPECT_TRUE(same(Dim(3), Dim(3)));
    EXPECT_TRUE(outer.learnt().empty());
    {
      const DimAssumptions inner;
      EXPECT_TRUE(same(n, m));
      EXPECT_TRUE(same(n, m));
      EXPECT_FALSE(same(n, k));
      EXPECT_TRUE(known_less(n, k));
      EXPECT_FALSE(known_less(k, m));
      ASSERT_EQ(inner.learnt().size(), 4U);
      EXPECT_EQ(inner.learnt()[0].kind, DimAssumption::Equal);
      EXPECT_EQ(inner.learnt()[1].kind, DimAssumption::NotEqual);
      EXPECT_EQ(inner.learnt()[2].kind, DimAssumption::Less);
      EXPECT_EQ(inner.learnt()[3].kind, DimAssumption::NotLess);
    }
    EXPECT_TRUE(outer.learnt().empty());
    EXPECT_TRUE(same(n, 4));
    EXPECT_EQ(outer.learnt().size(), 1U);
  }
}

TEST(Dim, AnEqualityThatACallNeedsIsAssumedAgainstTheHints) {
  const Dim n = Dim::symbol("n", 4), m = Dim::symbol("m", 9);
  EXPECT_FALSE(assume_same(n, m)) << "nobody would check it";
  const DimAssumptions learnt;
  EXPECT_TRUE(assume_same(n + 1, m));
  EXPECT_TRUE(assume_same(n, n));
  EXPECT_FALSE(assume_same(n, n + 1));
  EXPECT_FALSE(assume_same(Dim(2), Dim(3)));
  ASSERT_EQ(learnt.learnt().size(), 1U);
  EXPECT_EQ(learnt.learnt()[0].kind, DimAssumption::Equal);
}

TEST(Dim, OverflowIsAnErrorAndNeverASymbol) {
  const Dim big = int64_t{1} << 61;
  EXPECT_THROW(static_cast<void>(big * 4), Error);
  EXPECT_THROW(static_cast<void>(big * 2 + big * 2), Error);
  EXPECT_THROW(static_cast<void>(Dim(0) - big - big - big), Error);
  const Dim n = Dim::symbol("n", 2);
  EXPECT_THROW(static_cast<void>(n * (int64_t{1} << 40) * (int64_t{1} << 40)), Error);
  // A number as far below zero as words of symbols are names no symbol.
  EXPECT_THROW(static_cast<void>(Dim(INT64_MIN + (int64_t{1} << 40)).hint()), Error);
  EXPECT_THROW(static_cast<void>(Dim(INT64_MIN + (int64_t{1} << 40)).str()), Error);
}

TEST(Shape, IsAListOfDims) {
  const Dim n = Dim::symbol("n", 2);
  Shape shape{n, 3, 4};
  EXPECT_EQ(shape.rank(), 3);
  EXPECT_EQ(shape.numel(), 12 * n);
  EXPECT_FALSE(shape.is_known());
  EXPECT_EQ(shape.str(), "[n, 3, 4]");
  EXPECT_EQ(Shape().numel(), Dim(1));
  EXPECT_EQ(Shape().str(), "[]");
  EXPECT_EQ(Shape(2, 5), (Shape{5, 5}));
  EXPECT_TRUE(same(shape, Shape{2, 3, 4}));
  EXPECT_FALSE(same(shape, Shape{2, 3}));
  EXPECT_FALSE(shape == (Shape{2, 3, 4}));
  EXPECT_EQ(as_words(Shape{2, 3})[1], 3);
}

}  // namespace
}  // namespace oar
