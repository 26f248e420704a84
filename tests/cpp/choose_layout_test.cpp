// Layouts: calls between convolutions work on images with their channels last.
#include <algorithm>

#include "capture_util.h"
#include "oar/autograd/engine.h"
#include "oar/base/flags.h"
#include "oar/compiler/passes/edit.h"
#include "oar/compiler/passes/pass.h"
#include "oar/compiler/trained_program.h"
#include "oar/ir/parse.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

constexpr const char* kConv = "stride=[1, 1], padding=[1, 1, 1, 1], dilation=[1, 1], groups=1";

std::string program_of(const std::string& body) {
  return "program f<N ~ 2>(%x: float32[N, 16, 6, 5], %w: float32[16, 16, 3, 3], %s: float32[16]) -> (%y) {\n" +
         body + "}\n";
}
std::string conv(const std::string& to, const std::string& from) {
  return to + " = conv(" + from + ", %w, None, " + kConv + ") : float32[N, 16, 6, 5]\n";
}

Program laid_out(const std::string& text) {
  Program program = parse_program(text);
  set_flag("passes_off", "fuse_epilogues");
  tune(program);
  set_flag("passes_off", "");
  expect_sound(program);
  return program;
}

std::vector<std::string> ops_of(const Program& program) {
  std::vector<std::string> names;
  for (const Instruction& call : program.body.instructions) names.push_back(call.op->name());
  return names;
}

void expect_equal_runs(const std::string& text) {
  const Tensor x = numbers({2, 16, 6, 5}), w = numbers({16, 16, 3, 3}), s = numbers({16});
  const Executor plain(parse_program(text)), turned(laid_out(text));
  set_flag("passes_off", "choose_layout");
  const Tensors wanted = plain.run({{x, w, s}});
  set_flag("passes_off", "");
  const Tensors got = turned.run({{x, w, s}});
  for (size_t i = 0; i < wanted.size(); ++i) expect_near(got[i], wanted[i]);
}

// A program, and the ops that are left of it.
struct Case {
  const char* name;
  std::string body;
  std::vector<std::string> ops;
};
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }
class ChooseLayout : public testing::TestWithParam<Case> {};

TEST_P(ChooseLayout, TurnsOnlyAtTheEnds) {
  const std::string text = program_of(GetParam().body);
  EXPECT_EQ(ops_of(laid_out(text)), GetParam().ops);
  expect_equal_runs(text);
}

// For files of other frameworks: the same calls with their channels first, and no transposition is left of what the layout brought.
TEST_P(ChooseLayout, AndBack) {
  const std::string text = program_of(GetParam().body);
  Program program = laid_out(text);
  const Tensor x = numbers({2, 16, 6, 5}), w = numbers({16, 16, 3, 3}), s = numbers({16});
  const Tensors wanted = Executor(program).run({{x, w, s}});
  EXPECT_TRUE(put_channels_first(program));
  expect_sound(program);
  for (const Instruction& call : program.body.instructions)
    EXPECT_FALSE(is_set(call, "channels_last")) << call.op->name();
  const std::vector<std::string> before = ops_of(parse_program(text)), after = ops_of(program);
  EXPECT_LE(std::count(after.begin(), after.end(), "transpose"),
            std::count(before.begin(), before.end(), "transpose"));
  const Tensors got = Executor(program).run({{x, w, s}});
  for (size_t i = 0; i < wanted.size(); ++i) expect_near(got[i], wanted[i]);
  EXPECT_FALSE(put_channels_first(program));
}

INSTANTIATE_TEST_SUITE_P(
    Chains, ChooseLayout,
    testing::Values(
        Case{"Elementwise",
             conv("%a", "%x") + "%b = relu(%a) : float32[N, 16, 6, 5]\n" +
                 "%c = add(%b, %x) : float32[N, 16, 6, 5]\n" + conv("%y", "%c"),
             {"transpose", "conv", "relu", "add", "conv", "transpose"}},
        Case{"NormsAndPools",
             conv("%a", "%x") +
                 "%b, %m, %v = batch_norm_train(%a, %s, %s, epsilon=1e-05, channel_axis=1) : "
                 "float32[N, 16, 6, 5], float32[16], float32[16]\n"
                 "%p, %k = max_pool(%b, kernel_size=[2, 2], stride=[1, 1], padding=[0, 0, 0, 0]) : "
                 "float32[N, 16, 5, 4], int32[N, 16, 5, 4]\n"
                 "%q = channel_affine(%p, %s, %s, channel_axis=1) : float32[N, 16, 5, 4]\n"
                 "%y = adaptive_avg_pool(%q, output_size=[1, 1]) : float32[N, 16, 1, 1]\n",
             {"transpose", "conv", "batch_norm_train", "max_pool", "channel_affine",
              "adaptive_avg_pool", "transpose"}},
        Case{"SumsOfChannels",
             conv("%a", "%x") + "%y = sum(%a, axis=[0, 2, 3]) : float32[16]\n",
             {"transpose", "conv", "sum"}},
        Case{"SumsThatWouldTurnTheirResult",
             conv("%a", "%x") + "%y = sum(%a, axis=[0, 3]) : float32[16, 6]\n",
             {"transpose", "conv", "transpose", "sum"}},
        Case{"StretchedOperands",
             conv("%a", "%x") +
                 "%m = mean(%a, axis=[2, 3], keepdim=True) : float32[N, 16, 1, 1]\n"
                 "%b = broadcast_to(%m, shape=[N, 16, 6, 5]) : float32[N, 16, 6, 5]\n"
                 "%c = multiply(%a, %b) : float32[N, 16, 6, 5]\n" +
                 conv("%y", "%c"),
             {"transpose", "conv", "mean", "broadcast_to", "multiply", "conv", "transpose"}}),
    [](const testing::TestParamInfo<Case>& info) { return std::string(info.param.name); });

TEST(ChooseLayout, LeavesNarrowConvolutionsAndOtherDtypes) {
  for (
      const char* text :
      {"program f(%x: float32[2, 6, 9, 9], %w: float32[16, 6, 3, 3]) -> (%y) {\n%y = conv(%x, %w, "
       "None, stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1) : float32[2, 16, 7, 7]\n}",
       "program f(%x: float64[2, 16, 9, 9], %w: float64[16, 16, 3, 3]) -> (%y) {\n%y = conv(%x, %w, "
       "None, stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1) : float64[2, 16, 7, 7]\n}"})
    EXPECT_EQ(ops_of(laid_out(text)), (std::vector<std::string>{"conv"}));
}

TEST(ChooseLayout, CastsToBfloat16KeepTheLayout) {
  const std::string text =
      "program f(%x: float32[2, 16, 6, 5], %w: bfloat16[16, 16, 3, 3]) -> (%y) {\n"
      "%a = cast(%x, dtype=bfloat16) : bfloat16[2, 16, 6, 5]\n"
      "%b = conv(%a, %w, None, " +
      std::string(kConv) +
      ") : bfloat16[2, 16, 6, 5]\n"
      "%c = cast(%b, dtype=float32) : float32[2, 16, 6, 5]\n"
      "%d = relu(%c) : float32[2, 16, 6, 5]\n"
      "%e = cast(%d, dtype=bfloat16) : bfloat16[2, 16, 6, 5]\n"
      "%y = conv(%e, %w, None, " +
      std::string(kConv) + ") : bfloat16[2, 16, 6, 5]\n}";
  const Program turned = laid_out(text);
  const std::vector<std::string> ops = ops_of(turned);
  EXPECT_EQ(std::count(ops.begin(), ops.end(), "transpose"), 2);
  const Tensor x = numbers({2, 16, 6, 5}), w = cast(numbers({16, 16, 3, 3}), DType::BFloat16);
  set_flag("passes_off", "choose_layout");
  const Tensors wanted = Executor(parse_program(text)).run({{x, w}});
  set_flag("passes_off", "");
  const Tensors got = Executor(turned).run({{x, w}});
  const auto a = cast(got[0], DType::Float32).to_vector<float>();
  const auto b = cast(wanted[0], DType::Float32).to_vector<float>();
  float most = 0;
  for (const float value : b) most = std::max(most, std::abs(value));
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], most / 128);
}

// The halves of a training step hand images over as they are worked on.
TEST(ChooseLayout, TrainingStepsComputeTheSame) {
  const Tensor w = numbers({16, 16, 3, 3}), x = numbers({2, 16, 6, 5});
  set_stop_gradient(w, false);
  set_stop_gradient(x, false);
  const auto net = [&](const Tensors& in) -> Tensors {
    const IntVector one{1, 1}, pad{1, 1, 1, 1};
    const Tensor a = relu(conv(in[0], w, Tensor(), one, pad, one, 1));
    return {mean(square(conv(a, w, Tensor(), one, pad, one, 1)))};
  };
  const auto values = [&](const char* off) {
    set_flag("passes_off", off);
    const TrainedProgram step(
        capture_joint(net, {{DType::Float32, x.shape(), "x", false}}, "step"));
    const Tensors made = step.run({{x}}), slopes = grad(made, Tensors{x, w});
    set_flag("passes_off", "");
    return Tensors{detach(made[0]), slopes[0], slopes[1]};
  };
  const Tensors plain = values("choose_layout"), turned = values("");
  for (size_t i = 0; i < plain.size(); ++i) expect_near(turned[i], plain[i]);
}

}  // namespace
}  // namespace oar
