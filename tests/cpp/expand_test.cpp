// The pass `expand`: what is left has kernels, and a runtime without a compiler runs it.
#include "capture_util.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/parse.h"
#include "oar/ir/verify.h"
#include "oar/ops/gen/all.h"
#include "oar/runtime/runner.h"

namespace oar {
namespace {

size_t calls_of(const Program& program, std::string_view op) {
  size_t count = 0;
  for (const Instruction& call : program.body.instructions) count += call.op->name() == op;
  return count;
}

Program expanded(const std::string& text) {
  Program program = parse_program(text);
  EXPECT_TRUE(run_pass(pass_named("expand"), program));
  EXPECT_EQ(verify(program), std::vector<std::string>());
  return program;
}

constexpr const char* kVecdots =
    R"(program f(%x: float32[4, 8]) -> (%b: float32[4], %a: float32[4]) {
  %a = vecdot(%x, %x, axis=1) : float32[4]
  %t = transpose(%x, perm=[1, 0]) : float32[8, 4]
  %b = vecdot(%t, %t, axis=0) : float32[4]
})";

TEST(Expand, LeavesCallsThatKernelsTake) {
  const Program program = expanded(kVecdots);
  EXPECT_EQ(calls_of(program, "vecdot"), 0u);
  const Tensor x = numbers({4, 8});
  const Tensors wanted = Executor(parse_program(kVecdots)).run({{x}});
  // A runner prepares nothing: it takes the program as it is.
  const Tensors got = Runner(program).run({{x}});
  for (size_t i = 0; i < 2; ++i) expect_same(got[i], wanted[i]);
}

TEST(Expand, ASecondTimeFindsNothing) {
  Program program = expanded(kVecdots);
  EXPECT_FALSE(run_pass(pass_named("expand"), program));
}

TEST(Expand, LeavesKernelsAndViewsAlone) {
  const std::string text = R"(program f(%x: float32[4, 8]) -> (%b: float32[8, 4]) {
  %a = exp(%x) : float32[4, 8]
  %b = transpose(%a, perm=[1, 0]) : float32[8, 4]
})";
  Program program = parse_program(text);
  EXPECT_FALSE(run_pass(pass_named("expand"), program));
  EXPECT_EQ(program.body.instructions.size(), 2u);
}

TEST(Expand, WaitsForOpenSizes) {
  Program program = parse_program(R"(program f<N ~ 4>(%x: float32[N, 8]) -> (%a: float32[N]) {
  %a = vecdot(%x, %x, axis=1) : float32[N]
})");
  EXPECT_FALSE(run_pass(pass_named("expand"), program));
  EXPECT_EQ(calls_of(program, "vecdot"), 1u);
}

// A runner that has no compiler still computes what was not expanded: it calls the op.
TEST(Expand, ARunnerAloneCallsWhatHasNoKernel) {
  const Tensor x = numbers({4, 8});
  const Tensors wanted = Executor(parse_program(kVecdots)).run({{x}});
  const Tensors got = Runner(parse_program(kVecdots)).run({{x}});
  for (size_t i = 0; i < 2; ++i) expect_same(got[i], wanted[i]);
}

TEST(Expand, DropsPartsThatNobodyReads) {
  const Program program = expanded(R"(program f(%x: float32[4, 8]) -> (%v: float32[4]) {
  %v, %m = var_mean(%x, axis=[1]) : float32[4], float32[4]
})");
  for (const Instruction& call : program.body.instructions)
    for (ValueId id : call.results) {
      size_t reads = std::count(program.outputs.begin(), program.outputs.end(), id);
      for (const Instruction& other : program.body.instructions)
        for_each_operand(other, [&](ValueId read) { reads += read == id; });
      EXPECT_GT(reads, 0u) << call.op->name();
    }
}

}  // namespace
}  // namespace oar
