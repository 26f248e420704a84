// Small integer tensors that are computed from sizes alone, while a program is captured.
#include <gtest/gtest.h>

#include "oar/compiler/capture/capture.h"
#include "oar/compiler/capture/known.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/arithmetic.h"
#include "oar/ops/gen/broadcast.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"
#include "oar/ops/gen/exp_log.h"
#include "oar/ops/gen/flip.h"
#include "oar/ops/gen/min_max.h"
#include "oar/ops/gen/reduction.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"

namespace oar {
namespace {

constexpr int64_t kHint = 6;

// What the function computes from the open size n, whose hint is 6.
template <class F>
std::optional<std::vector<Dim>> sizes_of(F&& function) {
  const Program program = capture(
      [&](const std::vector<Tensor>& in) {
        return std::vector<Tensor>{function(in[0].dim(0), in[0])};
      },
      {InputSpec{.shape = {Dim::symbol("n", kHint), 4}}});
  return as_sizes(program);
}

std::vector<int64_t> hints(const std::optional<std::vector<Dim>>& sizes) {
  std::vector<int64_t> list;
  for (Dim d : sizes.value_or(std::vector<Dim>())) list.push_back(d.hint());
  return list;
}

using Hints = std::vector<int64_t>;

Tensor number(Dim n) { return product_of({n}, DType::Int64); }
Tensor line(Dim n) { return reshape(number(n), {1}); }
Tensor three(Dim n) {
  return concat({line(n), reshape(product_of({n, 2}, DType::Int64), {1}),
                 full({1}, Scalar(7), DType::Int64)});
}

TEST(KnownSizes, ElementsAreMoved) {
  const auto joined = sizes_of([](Dim n, const Tensor&) { return three(n); });
  EXPECT_EQ(hints(joined), (Hints{6, 12, 7}));
  EXPECT_TRUE((*joined)[0].is_symbolic() && (*joined)[1].is_symbolic() &&
              !(*joined)[2].is_symbolic());
  EXPECT_EQ(hints(sizes_of([](Dim n, const Tensor&) { return flip(three(n), {0}); })),
            (Hints{7, 12, 6}));
  EXPECT_EQ(hints(sizes_of([](Dim n, const Tensor&) { return stack({number(n), number(n * 3)}); })),
            (Hints{6, 18}));
  EXPECT_EQ(hints(sizes_of([](Dim n, const Tensor&) { return broadcast_to(line(n), {3}); })),
            (Hints{6, 6, 6}));
  EXPECT_EQ(
      hints(sizes_of([](Dim n, const Tensor&) { return slice_view(three(n), {0, 1, 3, 1}); })),
      (Hints{12, 7}));
  EXPECT_EQ(hints(sizes_of([](Dim n, const Tensor&) {
              return reshape(transpose(reshape(concat({three(n), three(n)}), {2, 3}), {1, 0}), {6});
            })),
            (Hints{6, 6, 12, 12, 7, 7}));
}

TEST(KnownSizes, ElementsAreComputedByScalarBodies) {
  const auto computed = [](auto function) {
    return hints(
        sizes_of([&](Dim n, const Tensor&) { return function(number(n), number(n + 4)); }));
  };
  EXPECT_EQ(computed([](const Tensor& a, const Tensor& b) { return a + b; }), Hints{16});
  EXPECT_EQ(computed([](const Tensor& a, const Tensor& b) { return b - a * 2; }), Hints{-2});
  EXPECT_EQ(computed([](const Tensor& a, const Tensor& b) { return floor_divide(b, a); }),
            Hints{1});
  EXPECT_EQ(computed([](const Tensor& a, const Tensor& b) { return remainder(b, a); }), Hints{4});
  EXPECT_EQ(computed([](const Tensor& a, const Tensor& b) { return minimum(a, b); }), Hints{6});
  EXPECT_EQ(computed([](const Tensor& a, const Tensor& b) { return maximum(a, b); }), Hints{10});
  EXPECT_EQ(computed([](const Tensor& a, const Tensor&) { return cast(a, DType::Int32); }),
            Hints{6});
  EXPECT_EQ(computed([](const Tensor& a, const Tensor&) { return assign(a); }), Hints{6});
}

TEST(KnownSizes, WhatDependsOnMoreIsNotKnown) {
  EXPECT_FALSE(sizes_of([](Dim, const Tensor& x) { return cast(sum(x), DType::Int64); }));
  EXPECT_FALSE(sizes_of([](Dim n, const Tensor&) { return cast(exp(number(n)), DType::Int64); }));
  EXPECT_FALSE(sizes_of([](Dim n, const Tensor&) { return abs(number(n)); }));
}

}  // namespace
}  // namespace oar
