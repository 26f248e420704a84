// Branches and loops: eagerly, captured, differentiated, as text.
#include "oar/compiler/capture/control_flow.h"

#include <atomic>
#include <thread>

#include "capture_util.h"
#include "oar/autograd/engine.h"
#include "oar/autograd/transform.h"
#include "oar/base/flags.h"
#include "oar/compiler/capture/replay.h"
#include "oar/compiler/passes/pass.h"
#include "oar/compiler/trained_program.h"
#include "oar/ir/parse.h"
#include "oar/ir/region.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

using Function = std::function<std::vector<Tensor>(const std::vector<Tensor>&)>;

Tensor vector_of(const std::vector<double>& values) {
  const auto n = static_cast<int64_t>(values.size());
  return Tensor::from_vector(values, Shape{n}, DType::Float64);
}

Tensor one(double v) { return Tensor::scalar(v, DType::Float64); }
Tensor above(const Tensor& t, double limit) { return greater_than(t, one(limit)); }
Tensor under(const Tensor& t, double limit) { return less_than(t, one(limit)); }

std::vector<InputSpec> specs_like(const std::vector<Tensor>& inputs, bool stop_gradient = true) {
  std::vector<InputSpec> specs;
  for (const Tensor& t : inputs) specs.push_back({t.dtype(), t.shape(), "", stop_gradient});
  return specs;
}

// A loop without rounds does not look at what its body reads.
std::vector<Tensor> gradients_of(const Tensor& y, const std::vector<Tensor>& sources, bool again) {
  std::vector<Tensor> found = grad({&y, 1}, sources, {}, {.create_graph = again}, true);
  for (size_t i = 0; i < found.size(); ++i)
    if (!found[i].defined()) found[i] = zeros_like(sources[i]);
  return found;
}

// The captured function gives what the function gives, verified, read back from its text, and run from
// both; so do its gradients and theirs, and directional derivatives.
void check(const Function& f, const std::vector<Tensor>& inputs, size_t wanted) {
  const std::vector<Tensor> eager = f(inputs);
  const Program program = capture(f, specs_like(inputs), "f");
  EXPECT_EQ(verify(program), std::vector<std::string>()) << to_text(program);
  const Executor executor(program);
  const std::vector<Tensor> made = executor.run(inputs);
  ASSERT_EQ(made.size(), eager.size());
  for (size_t i = 0; i < made.size(); ++i) expect_near(made[i], eager[i]);

  const std::string text = to_text(program, {.largest_constant = 1 << 20});
  const Program again = parse_program(text);
  EXPECT_EQ(to_text(again, {.largest_constant = 1 << 20}), text);
  const std::vector<Tensor> reread = Executor(again).run(inputs);
  for (size_t i = 0; i < made.size(); ++i) expect_near(reread[i], eager[i]);

  Program optimal = program;
  optimise(optimal);
  EXPECT_EQ(verify(optimal), std::vector<std::string>()) << to_text(optimal);
  const std::vector<Tensor> faster = Executor(optimal).run(inputs);
  for (size_t i = 0; i < made.size(); ++i) expect_near(faster[i], eager[i]);

  // d sum(grad^2): a derivative of second order.
  const auto second = [&](const Function& g) {
    std::vector<Tensor> given, sources;
    for (size_t i = 0; i < inputs.size(); ++i) {
      given.push_back(detach(inputs[i]));
      if (i < wanted) {
        set_stop_gradient(given.back(), false);
        sources.push_back(given.back());
      }
    }
    const Tensor loss = sum(exp(g(given)[0] * 0.1));
    const std::vector<Tensor> first = gradients_of(loss, sources, true);
    Tensor total = sum(first[0] * first[0]);
    for (size_t i = 1; i < first.size(); ++i) total = total + sum(first[i] * first[i]);
    std::vector<Tensor> all = gradients_of(total, sources, false);
    for (const Tensor& t : first) all.push_back(detach(t));
    return all;
  };
  const Function replayed = [&](const std::vector<Tensor>& given) {
    return replay(program, given);
  };
  const std::vector<Tensor> by_hand = second(f), by_program = second(replayed);
  for (size_t i = 0; i < by_hand.size(); ++i) expect_near(by_program[i], by_hand[i], 1e-7);

  // … the gradient inside the capture.
  const Function step = [&](const std::vector<Tensor>& given) {
    const Tensor loss = sum(f(given)[0]);
    std::vector<Tensor> sources(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(wanted));
    return gradients_of(loss, sources, false);
  };
  std::vector<InputSpec> specs = specs_like(inputs);
  for (size_t i = 0; i < wanted; ++i) specs[i].stop_gradient = false;
  const Program with_gradient = capture(step, specs, "f_grad");
  EXPECT_EQ(verify(with_gradient), std::vector<std::string>()) << to_text(with_gradient);
  const std::vector<Tensor> gradients = Executor(with_gradient).run(inputs);
  std::vector<Tensor> leaves;
  for (size_t i = 0; i < inputs.size(); ++i) {
    leaves.push_back(detach(inputs[i]));
    if (i < wanted) set_stop_gradient(leaves.back(), false);
  }
  const std::vector<Tensor> expected = step(leaves);
  for (size_t i = 0; i < wanted; ++i) expect_near(gradients[i], expected[i]);

  std::vector<Tensor> directions(inputs.size());
  for (size_t i = 0; i < wanted; ++i) directions[i] = cos(inputs[i] * 3.0);
  const auto d1 = jvp(f, inputs, directions), d2 = jvp(replayed, inputs, directions);
  for (size_t i = 0; i < d1.second.size(); ++i) expect_near(d2.second[i], d1.second[i]);
}

TEST(ControlFlow, CondAgreesWithEagerMode) {
  const Function f = [](const std::vector<Tensor>& x) {
    return cond(
        above(sum(x[0]), 0), [&] { return std::vector<Tensor>{x[0] * x[1], x[0]}; },
        [&] { return std::vector<Tensor>{exp(x[1]) - x[0] * x[0], x[1]}; });
  };
  check(f, {vector_of({1, 2, -0.5}), vector_of({0.3, -1, 2})}, 2);
  check(f, {vector_of({-1, -2, -0.5}), vector_of({0.3, -1, 2})}, 2);
}

TEST(ControlFlow, BranchesMayGiveOtherSizes) {
  const Function f = [](const std::vector<Tensor>& x) {
    const std::vector<Tensor> made = cond(
        above(sum(x[0]), 0), [&] { return std::vector<Tensor>{concat({x[0], x[1] * x[0]}, 0)}; },
        [&] { return std::vector<Tensor>{exp(x[1])}; });
    return std::vector<Tensor>{made[0] * made[0] + 1.0, sum(made[0])};
  };
  check(f, {vector_of({1, 2, -0.5}), vector_of({0.3, -1, 2})}, 2);
  check(f, {vector_of({-1, -2, -0.5}), vector_of({0.3, -1, 2})}, 2);
}

TEST(ControlFlow, ABranchMayGiveASizeThatDependsOnValues) {
  const Function f = [](const std::vector<Tensor>& x) {
    return cond(
        above(sum(x[0]), 0),
        [&] { return std::vector<Tensor>{masked_select(x[0] * x[1], above(x[2], 0))}; },
        [&] { return std::vector<Tensor>{x[1] * x[1]}; });
  };
  const Tensor mask = vector_of({1, 2, -0.5});
  check(f, {vector_of({1, 2, -0.5}), vector_of({0.3, -1, 2}), mask}, 2);
  check(f, {vector_of({-1, -2, -0.5}), vector_of({0.3, -1, 2}), mask}, 2);
}

TEST(ControlFlow, ABranchOfAnotherSizeInALoop) {
  const Function f = [](const std::vector<Tensor>& x) {
    return while_loop([](const std::vector<Tensor>& v) { return under(v[1], 3); },
                      [&](const std::vector<Tensor>& v) {
                        const Tensor part = cond(
                            above(v[1], 0.5), [&] { return std::vector<Tensor>{v[0] * x[1]}; },
                            [&] { return std::vector<Tensor>{concat({v[0], x[1]}, 0)}; })[0];
                        return std::vector<Tensor>{v[0] + sum(part * part), v[1] + 1.0};
                      },
                      {x[0], one(0) * sum(x[0])});
  };
  check(f, {vector_of({0.5, 0.4}), vector_of({0.3, -0.2})}, 2);
}

TEST(ControlFlow, SwitchTakesTheLastBranchForOtherNumbers) {
  const Function f = [](const std::vector<Tensor>& x) {
    return switch_case(x[1], {[&] { return std::vector<Tensor>{x[0] * 2.0}; },
                              [&] { return std::vector<Tensor>{sin(x[0])}; },
                              [&] { return std::vector<Tensor>{x[0] * x[0] * x[0]}; }});
  };
  for (int64_t index : {0, 1, 2, 7, -1})
    check(f, {vector_of({0.5, 2}), Tensor::scalar(index, DType::Int64)}, 1);
}

// x -> x * w until the sum is large; the number of rounds depends on x.
std::vector<Tensor> grow(const std::vector<Tensor>& x) {
  return while_loop([](const std::vector<Tensor>& v) { return under(sum(v[0]), 20); },
                    [&](const std::vector<Tensor>& v) {
                      return std::vector<Tensor>{v[0] * x[1] + sin(v[0]), v[1] + 1.0};
                    },
                    {x[0], x[2]});
}

TEST(ControlFlow, WhileLoopAgreesWithEagerMode) {
  for (double start : {1.0, 5.0, 30.0})  // the last one has no iteration
    check(grow, {vector_of({start, 0.5}), vector_of({1.5, 1.2}), one(0)}, 2);
}

// A row more in every round, and a sum over all of them.
TEST(ControlFlow, VariablesMayGrow) {
  const Function f = [](const std::vector<Tensor>& x) {
    return while_loop([](const std::vector<Tensor>& v) { return under(sum(v[1]), 6); },
                      [&](const std::vector<Tensor>& v) {
                        const Tensor row = tanh(sum(v[0], {{0}}, std::nullopt, true) * x[1]);
                        return std::vector<Tensor>{concat({v[0], row}, 0),
                                                   v[1] + sum(v[0] * v[0]) + 1.0};
                      },
                      {x[0], x[2]});
  };
  const Tensor rows =
      Tensor::from_vector(std::vector<double>{0.1, -0.4, 0.7, 0.2}, Shape{2, 2}, DType::Float64);
  for (double start : {0.0, 4.0, 30.0})  // the last one has no iteration
    check(f, {rows, vector_of({0.5, 1.2}), one(start)}, 3);
}

TEST(ControlFlow, VariablesMayGrowTogetherAndShrink) {
  const Function f = [](const std::vector<Tensor>& x) {
    return while_loop([](const std::vector<Tensor>& v) { return under(v[2], 4); },
                      [&](const std::vector<Tensor>& v) {
                        return std::vector<Tensor>{concat({v[0] * v[1], v[0]}, 0),
                                                   concat({v[1], v[1] * x[1]}, 0), v[2] + 1.0};
                      },
                      {x[0], x[0] * x[0], one(0) * sum(x[0])});
  };
  check(f, {vector_of({0.5, -0.3}), one(0.7)}, 2);
  const Function halves = [](const std::vector<Tensor>& x) {
    return while_loop([](const std::vector<Tensor>& v) { return above(sum(v[0]), 1); },
                      [&](const std::vector<Tensor>& v) {
                        return std::vector<Tensor>{masked_select(v[0], above(v[0], 0.8)) * 0.7};
                      },
                      {x[0]});
  };
  check(halves, {vector_of({1, 2, 0.3, 0.9})}, 1);
}

TEST(ControlFlow, AGrowingVariableInScan) {
  const Function f = [](const std::vector<Tensor>& x) {
    return scan(
        [&](const std::vector<Tensor>& v) {
          return std::vector<Tensor>{concat({v[0], v[1] * sum(v[0])}, 0), sum(v[0] * v[0])};
        },
        {x[0]}, {x[1]});
  };
  const Tensor rows = Tensor::from_vector(std::vector<double>{0.1, -0.4, 0.7, 0.2, 0.9, -0.3},
                                          Shape{3, 2}, DType::Float64);
  check(f, {vector_of({0.2, -0.1, 0.4}), rows}, 2);
}

TEST(ControlFlow, ScanAgreesWithEagerMode) {
  for (const bool reverse : {false, true}) {
    const Function f = [reverse](const std::vector<Tensor>& x) {
      return scan(
          [&](const std::vector<Tensor>& v) {
            const Tensor h = tanh(v[0] * x[2] + v[1]);
            return std::vector<Tensor>{h, h * v[1]};
          },
          {x[0]}, {x[1]}, reverse);
    };
    const Tensor rows = Tensor::from_vector(std::vector<double>{0.1, -0.4, 0.7, 0.2, 0.9, -0.3},
                                            Shape{3, 2}, DType::Float64);
    check(f, {vector_of({0.2, -0.1}), rows, vector_of({0.8, 1.1})}, 3);
  }
}

TEST(ControlFlow, NestsInAnyOrder) {
  const Function f = [](const std::vector<Tensor>& x) {
    return while_loop([](const std::vector<Tensor>& v) { return under(v[1], 3); },
                      [&](const std::vector<Tensor>& v) {
                        const Tensor next = cond(
                            above(sum(v[0]), 2),
                            [&] { return std::vector<Tensor>{v[0] * 0.5 + x[1]}; },
                            [&] {
                              return scan(
                                  [&](const std::vector<Tensor>& s) {
                                    return std::vector<Tensor>{s[0] * s[1] + x[1]};
                                  },
                                  {v[0]}, {x[2]});
                            })[0];
                        return std::vector<Tensor>{next, v[1] + 1.0};
                      },
                      {x[0], one(0) * sum(x[0])});
  };
  const Tensor rows =
      Tensor::from_vector(std::vector<double>{1.1, 0.9, 1.3, 0.8}, Shape{2, 2}, DType::Float64);
  check(f, {vector_of({0.5, 0.4}), vector_of({0.3, -0.2}), rows}, 3);
}

TEST(ControlFlow, DetachedPathsStayWithoutGradient) {
  const Function f = [](const std::vector<Tensor>& x) {
    return cond(
        above(sum(x[0]), 0),
        [&] {
          const Tensor frozen = detach(x[0]);
          Tensor half;
          {
            const GradMode off(false);
            half = x[0] * 0.5;
          }
          return std::vector<Tensor>{frozen * x[0] + half * x[0] + frozen};
        },
        [&] { return std::vector<Tensor>{x[0]}; });
  };
  const Function step = [&](const std::vector<Tensor>& given) {
    const Tensor loss = sum(f(given)[0]);
    return grad({&loss, 1}, {given.data(), 1});
  };
  const Tensor x = vector_of({1, 2, 3});
  std::vector<InputSpec> specs = specs_like({x}, false);
  const Program program = capture(step, specs, "f");
  expect_near(Executor(program).run({&x, 1})[0], x * 1.5);
}

TEST(ControlFlow, WritesHappenInTheBranchThatIsTaken) {
  const Tensor state = vector_of({1, 1});
  const Function f = [&](const std::vector<Tensor>& x) {
    cond(above(sum(x[0]), 0), [&] {
      copy_into(state, state + x[0]);
      return std::vector<Tensor>();
    });
    return std::vector<Tensor>{state * 2.0};
  };
  const Program program = capture(f, specs_like({vector_of({0, 0})}), "f");
  EXPECT_EQ(verify(program), std::vector<std::string>());
  const Executor executor(program);
  expect_near(state, vector_of({1, 1}));
  expect_near(executor({vector_of({2, 3})})[0], vector_of({6, 8}));
  expect_near(state, vector_of({3, 4}));
  expect_near(executor({vector_of({-2, -3})})[0], vector_of({6, 8}));
  expect_near(state, vector_of({3, 4}));
}

TEST(ControlFlow, ALoopMayWriteOutside) {
  const Tensor count = vector_of({0});
  const Function f = [&](const std::vector<Tensor>& x) {
    return while_loop([](const std::vector<Tensor>& v) { return under(sum(v[0]), 10); },
                      [&](const std::vector<Tensor>& v) {
                        copy_into(count, count + 1.0);
                        return std::vector<Tensor>{v[0] + count};
                      },
                      {x[0]});
  };
  const Executor executor(capture(f, specs_like({vector_of({0})}), "f"));
  expect_near(executor({vector_of({0})})[0], vector_of({10}));  // 1 + 2 + 3 + 4
  expect_near(count, vector_of({4}));
}

TEST(ControlFlow, OpenSizesReachTheRegions) {
  const Function f = [](const std::vector<Tensor>& x) {
    return cond(
        above(sum(x[0]), 0),
        [&] { return std::vector<Tensor>{x[0] + ones({x[0].dims()[0], Dim(2)}, DType::Float64)}; },
        [&] { return std::vector<Tensor>{zeros_like(x[0])}; });
  };
  const Program program = capture(f, {{DType::Float64, Shape{Dim::symbol("B", 4), 2}, "x"}}, "f");
  EXPECT_EQ(verify(program), std::vector<std::string>());
  const Executor executor(program);
  for (int64_t n : {1, 3, 5}) {
    const Tensor x = ones({n, 2}, DType::Float64);
    expect_near(executor({x})[0], x * 2.0);
    expect_near(executor({x * -1.0})[0], x * 0.0);
  }
}

TEST(ControlFlow, SeveralThreadsRunOneLoop) {
  const Executor executor(
      capture(grow, specs_like({vector_of({1, 0.5}), vector_of({1.5, 1.2}), one(0)}), "f"));
  const std::vector<Tensor> inputs{vector_of({1, 0.5}), vector_of({1.5, 1.2}), one(0)};
  const Tensor expected = grow(inputs)[0];
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int k = 0; k < 50; ++k)
        if (executor.run(inputs)[0].to_vector<double>() != expected.to_vector<double>()) ++wrong;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ControlFlow, MistakesAreNamed) {
  const auto captured = [](const Function& f) {
    return error_of([&] { capture(f, specs_like({vector_of({1, 2})}), "f"); });
  };
  EXPECT_NE(captured([](const std::vector<Tensor>& x) {
              return cond(
                  above(sum(x[0]), 0), [&] { return std::vector<Tensor>{x[0]}; },
                  [&] { return std::vector<Tensor>{cast(x[0], DType::Float32)}; });
            }).find("float32[2]"),
            std::string::npos);
  EXPECT_NE(captured([](const std::vector<Tensor>& x) {
              return while_loop([](const std::vector<Tensor>& v) { return above(sum(v[0]), 0); },
                                [](const std::vector<Tensor>& v) {
                                  return std::vector<Tensor>{stack({v[0], v[0]}, 0)};
                                },
                                {x[0]});
            }).find("keep their dtype and number of axes"),
            std::string::npos);
  EXPECT_NE(captured([](const std::vector<Tensor>& x) {
              return while_loop(
                  [](const std::vector<Tensor>& v) { return above(sum(v[0]), 0); },
                  [](const std::vector<Tensor>& v) { return std::vector<Tensor>{v[0], v[0]}; },
                  {x[0]});
            }).find("2 tensors for its 1"),
            std::string::npos);
}

TEST(ControlFlow, AKnownBranchTakesThePlaceOfItsChoice) {
  Program program = parse_program(R"(program f(%x: float32[2]) -> (%3: float32[2]) {
    const %c: bool[] = 1
    %3 = switch_case(%c, [%x], branches=[
      program no(%a: float32[2]) -> (%a: float32[2]) {
      },
      program yes(%a: float32[2]) -> (%1: float32[2]) {
        %1 = exp(%a) : float32[2]
      }
    ]) : float32[2]
  })");
  optimise(program);
  ASSERT_EQ(program.body.instructions.size(), 1u) << to_text(program);
  EXPECT_EQ(program.body.instructions[0].op->name(), "exp");
}

// Not again in each round of every outer level.
TEST(ControlFlow, PassesGoOnceThroughEachLevel) {
  std::string inner =
      "%y = neg(%x) : float32[2]\n%z = neg(%y) : float32[2]\n%r = exp(%z) : float32[2]\n";
  for (int level = 0; level < 8; ++level)
    inner = format(
        "%d = exp(%x) : float32[2]\n%r = switch_case(%p, [%p, %x], branches=[\n"
        "program a(%p: bool[], %x: float32[2]) -> (%x: float32[2]) {{}},\n"
        "program {}(%p: bool[], %x: float32[2]) -> (%r: float32[2]) {{\n{}}}]) : float32[2]\n",
        level == 0 ? "innermost" : "b", inner);
  Program program = parse_program("program f(%p: bool[], %x: float32[2]) -> (%r: float32[2]) {\n" +
                                  inner + "}\n");
  set_flag("trace", "passes");
  testing::internal::CaptureStderr();
  EXPECT_TRUE(optimise(program));
  const std::string told = testing::internal::GetCapturedStderr();
  set_flag("trace", "");
  expect_sound(program);
  EXPECT_EQ(to_text(program).find("neg"), std::string::npos);
  size_t rounds = 0;
  for (size_t at = 0; (at = told.find("innermost: canonicalise", at)) != std::string::npos; ++at)
    ++rounds;
  // Operands that it does not read are dropped from it once, after which it is looked at again.
  EXPECT_LE(rounds, 4u);
}

TEST(ControlFlow, HostileTextIsRefused) {
  std::string deep = "program f(%x: float32[2]) -> (%x: float32[2]) {\n";
  for (int i = 0; i < 5000; ++i)
    deep +=
        "%y = switch_case(%x, [%x], branches=[ program f(%x: float32[2]) -> (%x: float32[2]) {\n";
  EXPECT_NE(error_of([&] { parse_program(deep); }).find("nested too deeply"), std::string::npos);
  const auto with_region = [](const std::string& region) {
    return error_of([&] {
      parse_program(
          "program f(%p: bool[], %x: float32[2]) -> (%1: float32[2]) {\n"
          "%1 = switch_case(%p, [%x], branches=[" +
          region + "]) : float32[2]\n}\n");
    });
  };
  EXPECT_EQ(with_region("program a(%x: float32[2]) -> (%x: float32[2]) {}"), "no error");
  EXPECT_NE(with_region("program a(state %x: float32[2]) -> (%x: float32[2]) {}").find("state"),
            std::string::npos);
  EXPECT_NE(with_region("program a(%x: float32[3]) -> (%x: float32[3]) {}").find("float32[3]"),
            std::string::npos);
  EXPECT_NE(with_region("program a() -> () {}").find("takes 0"), std::string::npos);
  EXPECT_NE(with_region("3").find("program"), std::string::npos);
  EXPECT_NE(with_region("").find("no branch"), std::string::npos);
}

}  // namespace
}  // namespace oar
