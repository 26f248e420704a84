#include "oar/compiler/segments/segments.h"

#include <gtest/gtest.h>

#include <thread>

#include "oar/autograd/engine.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"
#include "oar/tensor/exposed.h"

namespace oar {
namespace {

Tensor row(const std::vector<double>& values) {
  const auto n = static_cast<int64_t>(values.size());
  return Tensor::from_vector(values, as_dims(Ints(&n, 1)), DType::Float32);
}

TEST(Segments, RunWhenAValueIsAskedFor) {
  const Tensor x = row({1, 2, 3});
  const SegmentCounts before = segment_counts();
  SegmentScope scope;
  const Tensor y = x * 2.0 + 1.0;
  EXPECT_EQ(segment_counts().segments, before.segments);
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{3, 5, 7}));
  EXPECT_EQ(segment_counts().segments, before.segments + 1);
  const Tensor z = y * y;
  scope.finish();
  EXPECT_EQ(z.to_vector<double>(), (std::vector<double>{9, 25, 49}));
}

TEST(Segments, AreProgramsWhenMetAgain) {
  for (int round = 0; round < 3; ++round) {
    const Tensor x = row({1, 2, double(round)});
    const SegmentCounts before = segment_counts();
    SegmentScope scope;
    const Tensor y = exp(x * 2.0 - 1.0) + x;
    scope.finish();
    EXPECT_EQ(segment_counts().programs - before.programs, round == 0 ? 0u : 1u);
    const Tensor want = exp(x * 2.0 - 1.0) + x;
    EXPECT_EQ(y.to_vector<double>(), want.to_vector<double>());
  }
}

TEST(Segments, ViewsShareTheirMemory) {
  for (int round = 0; round < 3; ++round) {
    SegmentScope scope;
    const Tensor y = row({1, 2, 3, 4}) * 2.0;
    const Tensor view = reshape(y, {2, 2});
    add_(y, row({1, 1, 1, 1}));
    const Tensor sum = view + view;
    scope.finish();
    EXPECT_EQ(view->storage, y->storage);
    EXPECT_EQ(view.to_vector<double>(), (std::vector<double>{3, 5, 7, 9}));
    EXPECT_EQ(sum.to_vector<double>(), (std::vector<double>{6, 10, 14, 18}));
  }
}

TEST(Segments, AWriteOutsideComesBehindItsReaders) {
  const Tensor x = row({1, 2});
  SegmentScope scope;
  const Tensor y = x * 10.0;
  add_(x, row({1, 1}));
  scope.finish();
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{10, 20}));
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{2, 3}));
}

TEST(Segments, MemoryThatOthersWriteIsReadAtOnce) {
  const Tensor x = row({1, 2});
  expose(x->storage->data());
  SegmentScope scope;
  const Tensor y = x * 10.0;
  x.data<float>()[0] = 7;
  scope.finish();
  conceal(x->storage->data());
  EXPECT_EQ(y.to_vector<double>(), (std::vector<double>{10, 20}));
}

TEST(Segments, TheTapeIsTheUsualOne) {
  const Tensor x = row({0.5, -1});
  set_stop_gradient(x, false);
  SegmentScope scope;
  const Tensor loss = sum(exp(x) * x);
  backward({&loss, 1});
  const Tensor grad = history_of(x).grad.get();
  scope.finish();
  for (int i = 0; i < 2; ++i)
    EXPECT_NEAR(grad.to_vector<double>()[static_cast<size_t>(i)],
                std::exp(x.data<float>()[i]) * (1 + x.data<float>()[i]), 1e-6);
}

TEST(Segments, ALostTensorSaysWhy) {
  SegmentScope scope;
  const Tensor x = row({1, 2}) * 2.0;
  const Tensor bad = gather(x, Tensor::scalar(int64_t{9}, DType::Int64));
  EXPECT_THROW(bad.to_vector<double>(), LateError);
  EXPECT_THROW(bad + 1.0, LateError);
  EXPECT_EQ(x.to_vector<double>(), (std::vector<double>{2, 4}));
  EXPECT_THROW(scope.finish(), LateError);
}

TEST(Segments, AnotherThreadFindsTheContent) {
  SegmentScope scope;
  const Tensor y = row({1, 2}) * 2.0;
  std::vector<double> seen;
  std::thread([&] { seen = (y + 1.0).to_vector<double>(); }).join();
  EXPECT_EQ(seen, (std::vector<double>{3, 5}));
}

}  // namespace
}  // namespace oar
