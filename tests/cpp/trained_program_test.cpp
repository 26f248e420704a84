// Captured functions on the tape: values and gradients as in eager mode.
#include "oar/compiler/trained_program.h"

#include "capture_util.h"
#include "oar/autograd/engine.h"
#include "oar/autograd/transform.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

class Trained : public testing::Test {
 protected:
  Trained() {
    set_stop_gradient(w, false);
    set_stop_gradient(b, false);
  }
  Tensors net(const Tensors& in) const {
    const Tensor h = tanh(matmul(in[0], w) + b);
    return {sum(h * h), h, argmax(h, 1)};
  }
  TrainedProgram program(bool input_gradient) const {
    const Dim batch = Dim::symbol("B", 4);
    return TrainedProgram(capture_joint([this](const Tensors& in) { return net(in); },
                                        {{DType::Float32, {batch, 3}, "x", !input_gradient}},
                                        "net"));
  }

  Tensor w = numbers({3, 2}, 0.7), b = numbers({2}, 0.2);
};

TEST_F(Trained, GivesValuesAndGradientsOfEagerMode) {
  const TrainedProgram p = program(true);
  expect_sound(p.program());
  expect_sound(p.forward());
  expect_sound(p.backward());
  for (const int64_t batch : {2, 5, 2}) {
    const Tensor x = numbers({batch, 3}, 0.1), y = numbers({batch, 3}, 0.1);
    set_stop_gradient(x, false);
    set_stop_gradient(y, false);
    const Tensors got = p.run({{x}}), wanted = net({y});
    for (size_t i = 0; i < 3; ++i) expect_same(detach(got[i]), detach(wanted[i]));
    EXPECT_TRUE(stop_gradient(got[2]));
    const Tensors a = grad(Tensors{got[0], got[1]}, Tensors{x, w, b}),
                  e = grad(Tensors{wanted[0], wanted[1]}, Tensors{y, w, b});
    for (size_t i = 0; i < 3; ++i) expect_same(a[i], e[i]);
  }
}

TEST_F(Trained, OutputsWithoutACotangentCountAsZeros) {
  const TrainedProgram p = program(false);
  const Tensor x = numbers({2, 3}, 0.1);
  const Tensors got = p.run({{x}});
  expect_same(grad(Tensors{got[1]}, Tensors{w})[0], grad(Tensors{net({x})[1]}, Tensors{w})[0]);
}

TEST_F(Trained, DerivativesOfDerivatives) {
  const TrainedProgram p = program(true);
  const Tensor x = numbers({2, 3}, 0.1);
  set_stop_gradient(x, false);
  const auto second = [&](const Tensor& loss) {
    const Tensor g = grad(Tensors{loss}, Tensors{x}, {}, {.create_graph = true})[0];
    return grad(Tensors{sum(g * g)}, Tensors{w})[0];
  };
  expect_near(second(p.run({{x}})[0]), second(net({x})[0]));
}

TEST_F(Trained, NothingIsKeptWithoutGradients) {
  const TrainedProgram p = program(true);
  const NoGrad off;
  const Tensors got = p.run({{numbers({2, 3})}});
  EXPECT_TRUE(stop_gradient(got[0]));
  EXPECT_EQ(got.size(), 3u);
  EXPECT_EQ(p.program().outputs.size(), 3u);
  EXPECT_GT(p.forward().outputs.size(), 3u);
}

TEST_F(Trained, AChangedParameterIsNoticed) {
  const TrainedProgram p = program(true);
  const Tensor loss = p.run({{numbers({2, 3})}})[0];
  {
    const NoGrad off;
    add_(w, w);
  }
  EXPECT_NE(error_of([&] { backward(Tensors{loss}); }).find("changed in place since it ran"),
            std::string::npos);
}

TEST_F(Trained, TakesPartInACapture) {
  const TrainedProgram p = program(true);
  const Tensor x = numbers({3, 3}, 0.5);
  expect_captures([&](const Tensors& in) { return Tensors{p.run(in)[0]}; },
                  {{DType::Float32, {3, 3}, "x"}}, {{x}});
}

TEST(TrainedProgram, DropoutUsesOneMaskForBothDirections) {
  const TrainedProgram p(
      capture_joint([](const Tensors& in) { return Tensors{dropout(in[0], 0.5)}; },
                    {{DType::Float32, {64}, "x", false}}, "drop"));
  const Tensor x = full({64}, Scalar(1.0), DType::Float32);
  set_stop_gradient(x, false);
  const Tensor y = p.run({{x}})[0];
  expect_same(grad(Tensors{y}, Tensors{x})[0], detach(y));
}

TEST(TrainedProgram, StatesAreWrittenForwardsOnly) {
  const Tensor count = zeros({1}), w = numbers({1});
  set_stop_gradient(w, false);
  const TrainedProgram p(capture_joint(
      [&](const Tensors& in) {
        const Tensor y = in[0] * w * assign(count);
        add_(count, full({1}, Scalar(1.0), DType::Float32));
        return Tensors{y};
      },
      {{DType::Float32, {1}, "x"}}, "counting"));
  const Tensor x = full({1}, Scalar(2.0), DType::Float32);
  for (int i = 0; i < 3; ++i) {
    const Tensor y = p.run({{x}})[0];
    EXPECT_EQ(count.to_vector<double>()[0], i + 1);
    EXPECT_EQ(grad(Tensors{y}, Tensors{w})[0].to_vector<double>()[0], 2.0 * i);
    EXPECT_EQ(count.to_vector<double>()[0], i + 1);
  }
}

TEST_F(Trained, AFunctionThatRunsBackwardItselfLeavesItsGradients) {
  const auto step = [this](const Tensors& in) {
    const Tensor loss = net(in)[0];
    backward(Tensors{loss});
    return Tensors{loss};
  };
  const InputSpec spec{DType::Float32, {2, 3}, "x"};
  const Tensor x = numbers({2, 3}, 0.1);
  const Tensor wanted = grad(Tensors{net({x})[0]}, Tensors{w})[0];
  const TrainedProgram first(capture_joint(step, {spec}, "step"));
  EXPECT_TRUE(first.writes());
  EXPECT_EQ(first.misfit({{x}}), "");
  EXPECT_FALSE(maybe_history(w)->grad.defined());
  EXPECT_TRUE(stop_gradient(first.run({{x}})[0]));
  expect_same(history_of(w).grad.get(), wanted);
  EXPECT_NE(first.misfit({{x}}).find("has a gradient now"), std::string::npos);

  const TrainedProgram second(capture_joint(step, {spec}, "step"));
  history_of(w).grad.set(assign(wanted));  // another tensor than at capture
  second.run({{x}});
  expect_near(history_of(w).grad.get(), wanted + wanted);
}

TEST_F(Trained, SaysWhyItDoesNotFit) {
  const TrainedProgram p = program(true);
  EXPECT_EQ(p.kept(), 0);
  EXPECT_FALSE(p.writes());
  EXPECT_EQ(p.misfit({{numbers({5, 3})}}), "");
  EXPECT_NE(p.misfit({{numbers({5, 4})}}).find("axis 1 should be 3"), std::string::npos);
  set_stop_gradient(w, true);
  EXPECT_NE(p.misfit({{numbers({5, 3})}}).find("stop_gradient"), std::string::npos);
}

TEST(TrainedProgram, TensorsOutsideAreReadAtEveryRun) {
  const Tensor scale = full({1}, Scalar(2.0), DType::Float32);
  const TrainedProgram p(capture_joint([&](const Tensors& in) { return Tensors{in[0] * scale}; },
                                       {{DType::Float32, {1}, "x"}}, "scaled"));
  add_(scale, scale);
  EXPECT_EQ(p.run({{full({1}, Scalar(3.0), DType::Float32)}})[0].to_vector<double>()[0], 12.0);
}

TEST(TrainedProgram, ContentThatWasLookedAtMustStay) {
  const Tensor count = full({1}, Scalar(2.0), DType::Float32);
  const TrainedProgram p(capture_joint(
      [&](const Tensors& in) {
        return Tensors{in[0] * full({1}, Scalar(count.item_double()), DType::Float32)};
      },
      {{DType::Float32, {1}, "x"}}, "counted"));
  const Tensor x = numbers({1});
  EXPECT_EQ(p.misfit({{x}}), "");
  add_(count, count);
  EXPECT_NE(p.misfit({{x}}).find("has changed"), std::string::npos);
}

TEST(TrainedProgram, TensorsThatAreKeptAreCounted) {
  Tensor kept;
  const TrainedProgram p(capture_joint(
      [&](const Tensors& in) {
        kept = in[0] + in[0];
        return Tensors{kept * in[0]};
      },
      {{DType::Float32, {2}, "x"}}, "keeping"));
  EXPECT_GT(p.kept(), 0);
  kept = Tensor();
  EXPECT_EQ(p.kept(), 0);
}

TEST(TrainedProgram, WritesToInputsAreRefused) {
  const auto writing = [](const Tensors& in) {
    add_(in[0], in[0]);
    return in;
  };
  EXPECT_NE(error_of([&] {
              capture_joint(writing, {{DType::Float32, {2}, "x"}}, "writing");
            }).find("writes to one of its inputs"),
            std::string::npos);
}

TEST(TrainedProgram, AGradientOfASparseEmbeddingHoldsTheRowsThatWereLookedUp) {
  const Tensor table = numbers({50, 3}, 0.7);
  set_stop_gradient(table, false);
  const auto net = [&](const Tensors& in) {
    const Tensor rows = embedding_lookup(in[0], table, -1, true);
    return Tensors{sum(rows * rows, std::nullopt)};
  };
  const TrainedProgram p(capture_joint(net, {{DType::Int64, {4}, "i"}}, "net"));
  const Tensor i = Tensor::from_vector<int64_t>({3, 9, 3, 0}, Shape{4}, DType::Int64);
  const Tensor got = grad(p.run({{i}}), Tensors{table})[0],
               wanted = grad(net({i}), Tensors{table})[0];
  EXPECT_EQ(wanted.kind(), Kind::SelectedRows);
  ASSERT_EQ(got.kind(), Kind::SelectedRows);
  expect_same(selected_rows_rows(got), selected_rows_rows(wanted));
  expect_same(selected_rows_values(got), selected_rows_values(wanted));
}

TEST(TrainedProgram, KnowsWhereTheFunctionCutsTheTape) {
  const auto cut = [](const Tensors& in) {
    return Tensors{sum(detach(in[0]) * in[0] * in[0] * detach(sin(in[0])))};
  };
  const TrainedProgram p(capture_joint(cut, {{DType::Float32, {4}, "x", false}}, "cut"));
  expect_sound(p.program());
  EXPECT_EQ(to_text(p.program()).find("without_gradient"), std::string::npos);
  EXPECT_EQ(to_text(p.backward()).find("without_gradient"), std::string::npos);
  const Tensor x = numbers({4});
  set_stop_gradient(x, false);
  const auto second = [&](const Tensor& loss) {
    const Tensor g = grad(Tensors{loss}, Tensors{x}, {}, {.create_graph = true})[0];
    return grad(Tensors{sum(g * g)}, Tensors{x})[0];
  };
  expect_near(second(p.run({{x}})[0]), second(cut({x})[0]));
  const auto tangent = [&](const TensorFunction& f) {
    const Tensor one = ones_like(x);
    return jvp(f, {&x, 1}, {&one, 1}).second[0];
  };
  expect_near(detach(tangent([&](const Tensors& in) { return p.run(in); })), detach(tangent(cut)));
}

TEST(TrainedProgram, AnArgumentInMemoryThatTheFunctionWritesIsRefused) {
  const Tensor buffer = zeros({4});
  const auto add_to_buffer = [&](const Tensors& in) {
    add_(buffer, in[0]);
    return Tensors{in[0] * buffer};
  };
  const InputSpec spec{DType::Float32, {2}, "x"};
  const Tensor part = slice(buffer, {0}, {0}, {2}), apart = numbers({4}), beside = zeros({4});
  const TrainedProgram p(
      capture_joint(add_to_buffer, {{DType::Float32, {4}, "x"}}, "add_to_buffer"));
  EXPECT_EQ(p.misfit({{apart}}), "");
  EXPECT_EQ(p.misfit({{beside}}), "");
  EXPECT_NE(p.misfit({{buffer}}).find("argument %x shares memory with"), std::string::npos);
  EXPECT_NE(error_of([&] { p.run({{buffer}}); }).find("shares memory with"), std::string::npos);
  EXPECT_EQ(buffer.to_vector<double>(), std::vector<double>(4, 0.0));
  InputSpec given{DType::Float32, {4}, "x"};
  given.given = buffer;
  EXPECT_NE(error_of([&] {
              capture_joint(add_to_buffer, {given}, "f");
            }).find("is also one of its arguments"),
            std::string::npos);
  given.given = apart;
  capture_joint(add_to_buffer, {given}, "f");
  const auto write_part = [&](const Tensors& in) {
    add_(buffer, full({4}, Scalar(1.0), DType::Float32));
    return Tensors{in[0] * 2.0};
  };
  InputSpec view = spec;
  view.given = part;
  EXPECT_NE(
      error_of([&] { capture_joint(write_part, {view}, "f"); }).find("shares memory with one"),
      std::string::npos);
}

}  // namespace
}  // namespace oar
