// What the derivative of a function recomputes if memory is short.
#include "capture_util.h"
#include "oar/base/flags.h"
#include "oar/base/scope_guard.h"
#include "oar/compiler/capture/joint.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/parse.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

template <class F>
auto with_limit(int mib, F&& body) {
  set_flag("backward_memory_mb", std::to_string(mib));
  const ScopeGuard back([] { set_flag("backward_memory_mb", "0"); });
  return body();
}

std::string lines_of(const Program& program) {
  const std::string text = to_text(program);
  std::string out;
  for (std::string_view line : split(text, '\n'))
    if (line.starts_with("  ")) out += std::string(trim(line)) + "\n";
  return out;
}

// A value of the type is 2 MiB.
const std::string kType = " : float32[512, 1024]\n";
std::string line(const std::string& to, const std::string& call) {
  return to + " = " + call + kType;
}
std::string program_of(const std::string& body) {
  return "program f(%x: float32[512, 1024], %g: float32[512, 1024]) -> (%y, %d) {\n" +
         line("%late", "in_backward(%g)") + body + "}\n";
}

void expect_recomputed(int limit, const std::string& before, const std::string& after) {
  Program program = parse_program(program_of(before));
  const bool changed =
      with_limit(limit, [&] { return run_pass(pass_named("recompute"), program); });
  expect_sound(program);
  EXPECT_EQ(changed, before != after);
  Program wanted = parse_program(program_of(after));
  program.renumber();
  wanted.renumber();
  // Names of recomputed values are left to the numbering.
  EXPECT_EQ(lines_of(program), lines_of(wanted));
  const Tensors in{numbers({512, 1024}), numbers({512, 1024}, 0.8)};
  const Tensors a = Executor(parse_program(program_of(before))).run(in),
                b = Executor(program).run(in);
  for (size_t i = 0; i < a.size(); ++i) expect_same(b[i], a[i]);
}

const std::string kChain = line("%a", "sin(%x)") + line("%b", "exp(%a)") + line("%y", "sqrt(%b)");
const std::string kReads = line("%e", "multiply(%late, %b)");

TEST(Recompute, WhatIsCheapInFrontOfItsFirstReader) {
  const std::string before = kChain + kReads + line("%d", "multiply(%e, %y)");
  expect_recomputed(0, before, before);
  expect_recomputed(4, before, before);
  // sqrt's result is computed from exp's, which is saved.
  expect_recomputed(2, before,
                    kChain + kReads + line("%1", "in_backward(%b)") + line("%2", "sqrt(%1)") +
                        line("%d", "multiply(%e, %2)"));
  // All of it, from the input: that is the caller's.
  expect_recomputed(1, before,
                    kChain + line("%1", "in_backward(%x)") + line("%2", "sin(%1)") +
                        line("%3", "exp(%2)") + line("%e", "multiply(%late, %3)") +
                        line("%4", "sqrt(%3)") + line("%d", "multiply(%e, %4)"));
}

TEST(Recompute, ViewsOfWhatIsMadeAgain) {
  const std::string flat = "%f = reshape(%b, shape=[1024, 512]) : float32[1024, 512]\n";
  const std::string late =
      "%h = reshape(%late, shape=[1024, 512]) : float32[1024, 512]\n"
      "%i = multiply(%h, %f) : float32[1024, 512]\n" +
      line("%d", "reshape(%i, shape=[512, 1024])");
  expect_recomputed(
      1, kChain + flat + late,
      kChain + flat + "%h = reshape(%late, shape=[1024, 512]) : float32[1024, 512]\n" +
          line("%1", "in_backward(%x)") + line("%2", "sin(%1)") + line("%3", "exp(%2)") +
          "%4 = reshape(%3, shape=[1024, 512]) : float32[1024, 512]\n"
          "%i = multiply(%h, %4) : float32[1024, 512]\n" +
          line("%d", "reshape(%i, shape=[512, 1024])"));
}

TEST(Recompute, NotWhatIsDearOrRandom) {
  for (const std::string made :
       {"cumsum(%x, axis=1)", "uniform(shape=[512, 1024], dtype=float32, min=0.0, max=1.0)"}) {
    Program program = parse_program(
        program_of(line("%a", made) + line("%y", "neg(%a)") + line("%d", "multiply(%late, %a)")));
    EXPECT_FALSE(with_limit(1, [&] { return run_pass(pass_named("recompute"), program); })) << made;
  }
}

TEST(Recompute, CanBeSwitchedOff) {
  Program program = parse_program(program_of(kChain + kReads + line("%d", "multiply(%e, %y)")));
  const std::string before = to_text(program);
  set_flag("passes_off", "recompute");
  with_limit(1, [&] {
    prepare_cut(program);
    return 0;
  });
  set_flag("passes_off", "");
  EXPECT_EQ(to_text(program), before);
}

// What cutting hands over, and the gradients that both halves give.
struct Halved {
  int64_t kept = 0;
  Tensors gradients;
};

Halved run_halves(const JointProgram& joint, int limit, const Tensors& inputs) {
  const Halves halves = with_limit(limit, [&] { return cut(joint); });
  expect_sound(halves.forward);
  expect_sound(halves.backward);
  Tensors given = Executor(halves.forward).run(inputs);
  given.erase(given.begin(), given.begin() + static_cast<std::ptrdiff_t>(joint.outputs));
  Halved made;
  for (const Tensor& t : given) made.kept += t->numel * static_cast<int64_t>(size_of(t.dtype()));
  given.push_back(full({}, Scalar(1.0), DType::Float32));
  made.gradients = Executor(halves.backward).run(given);
  return made;
}

TEST(Recompute, HalvesOfAFunctionThatKeepLess) {
  const Tensor w = numbers({6, 1024}, 0.7), v = numbers({1024, 2}, 0.2);
  set_stop_gradient(w, false);
  set_stop_gradient(v, false);
  const JointProgram joint = capture_joint(
      [&](const Tensors& in) {
        return Tensors{sum(matmul(gelu(matmul(in[0], w)), v), std::nullopt)};
      },
      {{DType::Float32, {Dim::symbol("B", 512), 6}, "x"}}, "net");
  const Tensors inputs{numbers({512, 6}, 0.1)};
  const Halved all = run_halves(joint, 0, inputs), little = run_halves(joint, 1, inputs),
               enough = run_halves(joint, 4, inputs);
  EXPECT_EQ(enough.kept, all.kept) << "within the limit nothing is recomputed";
  EXPECT_EQ(little.kept, all.kept - 512 * 1024 * 4) << "gelu's result is made of what gelu's "
                                                       "gradient reads anyway";
  ASSERT_EQ(little.gradients.size(), all.gradients.size());
  for (size_t i = 0; i < all.gradients.size(); ++i)
    expect_same(little.gradients[i], all.gradients[i]);
}

}  // namespace
}  // namespace oar
