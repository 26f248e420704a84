#include "oar/compiler/capture/builder.h"

#include "capture_util.h"
#include "oar/autograd/engine.h"
#include "oar/compiler/capture/known.h"
#include "oar/compiler/executor.h"
#include "oar/ir/verify.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

Tensor no_content(const std::string&, const ValueType& type, bool) {
  return zeros(type.shape, type.dtype);
}

TEST(Builder, IsRunAndWrittenOn) {
  Builder builder("main");
  Tensor x, y, z;
  {
    const Capture::Scope scope(builder);
    x = builder.input({DType::Float32, {Dim::symbol("B"), 2}, "x"});
    y = x * 2.0;
  }
  Builder::Draft first = builder.draft({y}, no_content);
  EXPECT_EQ(first.inputs, std::vector<std::string>{"x"});
  EXPECT_TRUE(verify(first.program).empty());
  const Tensor value = numbers({3, 2});
  expect_same(Executor(first.program).run({&value, 1})[0], value * 2.0);
  {
    const Capture::Scope scope(builder);
    z = y + full({2}, Scalar(1.0), DType::Float32);
  }
  const Builder::Draft second = builder.draft({z}, no_content);
  expect_same(Executor(second.program).run({&value, 1})[0], value * 2.0 + 1.0);
  EXPECT_EQ(Capture::current(), nullptr);
}

TEST(Builder, StatesLiveWhereTheDraftSays) {
  Builder builder("main");
  {
    const Capture::Scope scope(builder);
    const Tensor w = builder.state({DType::Float32, {2}, {}}, "w");
    EXPECT_EQ(builder.state({DType::Float32, {2}, {}}, "w").impl(), w.impl());
    copy_into(w, w + 1.0);
  }
  const Tensor here = zeros({2}, DType::Float32), there = zeros({2}, DType::Float32);
  for (const Tensor& home : {here, here, there}) {
    const Builder::Draft draft =
        builder.draft({}, [&](const std::string& name, const ValueType&, bool read) {
          EXPECT_EQ(name, "w");
          EXPECT_TRUE(read);
          return home;
        });
    Executor(draft.program).run({});
  }
  EXPECT_EQ(here.to_vector<double>(), (std::vector<double>{2, 2}));
  EXPECT_EQ(there.to_vector<double>(), (std::vector<double>{1, 1}));
}

TEST(Builder, ACopyForInferenceLeavesTrainingOut) {
  Builder builder("main");
  Tensor x, trained;
  {
    const Capture::Scope scope(builder);
    x = builder.input({DType::Float32, {2}, "x"});
    const Tensor w = builder.state({DType::Float32, {2}, {}}, "w");
    const Tensor plain = x + w;
    builder.begin(Role::Training);
    trained = plain * 10.0;
    copy_into(w, w + 1.0);
    builder.end();
    builder.alternative(trained, plain);
  }
  const std::shared_ptr<Builder> twin = builder.clone(true);
  Tensor home = zeros({2}, DType::Float32);
  const Tensor value = numbers({2});
  const auto contents = [&](const std::string&, const ValueType&, bool) { return home; };
  expect_same(Executor(builder.draft({trained}, contents).program).run({&value, 1})[0],
              value * 10.0);
  EXPECT_EQ(home.to_vector<double>()[0], 1);
  expect_same(Executor(twin->draft({trained}, contents).program).run({&value, 1})[0], value + 1.0);
  EXPECT_EQ(home.to_vector<double>()[0], 1);
}

TEST(Builder, WhatDependsOnConstantsIsKnown) {
  Builder builder("main");
  Tensor fixed, sizes, drawn;
  {
    const Capture::Scope scope(builder);
    const Tensor x = builder.input({DType::Float32, {Dim::symbol("B"), 3}, "x"});
    fixed =
        full({2}, Scalar(int64_t{4}), DType::Int64) + full({2}, Scalar(int64_t{1}), DType::Int64);
    sizes = concat({reshape(product_of(x.dims(), DType::Int64), {1}), fixed}, 0);
    drawn = uniform({2}, DType::Float32, 0.0, 1.0);
    EXPECT_FALSE(constant_part(builder, x).has_value());
  }
  EXPECT_FALSE(constant_part(builder, drawn).has_value());
  const std::optional<Program> part = constant_part(builder, sizes);
  ASSERT_TRUE(part.has_value());
  const std::optional<std::vector<Dim>> elements = as_sizes(*part);
  ASSERT_TRUE(elements.has_value());
  EXPECT_EQ(elements->size(), 3u);
  EXPECT_TRUE((*elements)[0].is_symbolic());
  EXPECT_EQ((*elements)[1], Dim(5));
}

}  // namespace
}  // namespace oar
