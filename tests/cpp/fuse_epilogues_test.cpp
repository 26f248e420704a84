// Epilogues: calls after a call that become part of it.
#include "capture_util.h"
#include "oar/autograd/engine.h"
#include "oar/base/flags.h"
#include "oar/compiler/passes/pass.h"
#include "oar/compiler/trained_program.h"
#include "oar/ir/parse.h"
#include "oar/ir/print.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

const std::string kImage = "float32[2, 16, 6, 5]";

std::string program_of(const std::string& results, const std::string& body) {
  return "program f(%x: " + kImage + ", %r: " + kImage +
         ", %w: float32[16, 16, 3, 3], %s: float32[16]) -> (" + results +
         ") {\n%a = conv(%x, %w, None, stride=[1, 1], padding=[1, 1, 1, 1], dilation=[1, 1], "
         "groups=1) : " +
         kImage + "\n" + body + "}\n";
}
std::string line(const std::string& to, const std::string& call) {
  return to + " = " + call + " : " + kImage + "\n";
}

std::vector<std::string> ops_of(const Program& program) {
  std::vector<std::string> names;
  for (const Instruction& call : program.body.instructions) names.push_back(call.op->name());
  return names;
}

void expect_fused(const std::string& text, const std::vector<std::string>& ops) {
  Program program = parse_program(text);
  run_pass(pass_named("fuse_epilogues"), program);
  expect_sound(program);
  EXPECT_EQ(ops_of(program), ops);
  const Tensors in = {numbers({2, 16, 6, 5}), numbers({2, 16, 6, 5}, 0.9), numbers({16, 16, 3, 3}),
                      numbers({16})};
  set_flag("passes_off", "fuse_epilogues, choose_layout");
  const Tensors wanted = Executor(parse_program(text)).run(in);
  set_flag("passes_off", "choose_layout");
  const Tensors plain = Executor(program).run(in);
  set_flag("passes_off", "");
  const Tensors turned = Executor(parse_program(text)).run(in);
  for (size_t i = 0; i < wanted.size(); ++i) {
    expect_near(plain[i], wanted[i]);
    expect_near(turned[i], wanted[i]);
  }
}

TEST(FuseEpilogues, EverythingThatStandsBehindAConvolution) {
  expect_fused(program_of("%y", line("%b", "channel_affine(%a, %s, %s, channel_axis=1)") +
                                    line("%c", "add(%r, %b)") + line("%y", "relu(%c)")),
               {"conv_fused"});
  expect_fused(program_of("%y", line("%y", "hardswish(%a)")), {"conv_fused"});
  expect_fused(program_of("%y", line("%y", "add(%a, %r)")), {"conv_fused"});
  for (const char* activation : {"silu", "sigmoid"})
    expect_fused(program_of("%y", line("%b", "channel_affine(%a, %s, %s, channel_axis=1)") +
                                      line("%y", std::string(activation) + "(%b)")),
                 {"conv_fused"});
}

TEST(FuseEpilogues, NotASummandThatIsMadeLater) {
  expect_fused(program_of("%c", line("%b", "exp(%r)") + line("%c", "add(%a, %b)")),
               {"conv", "exp", "add"});
}

TEST(FuseEpilogues, NotWhatSomebodyElseReads) {
  expect_fused(program_of("%y, %a", line("%y", "relu(%a)")), {"conv", "relu"});
  expect_fused(program_of("%y", line("%b", "relu(%a)") + line("%y", "add(%a, %b)")),
               {"conv", "relu", "add"});
  expect_fused(program_of("%y", line("%y", "add(%a, %a)")), {"conv", "add"});
}

TEST(FuseEpilogues, NotChannelsOfAnotherAxisNorOtherOrders) {
  const std::string square = "float32[2, 16, 16, 16]";
  const std::string text =
      "program f(%x: " + square + ", %w: float32[16, 16, 1, 1], %s: float32[16]) -> (%y) {\n" +
      "%a = conv(%x, %w, None, stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1) : " +
      square + "\n%y = channel_affine(%a, %s, %s, channel_axis=2) : " + square + "\n}";
  Program program = parse_program(text);
  EXPECT_FALSE(run_pass(pass_named("fuse_epilogues"), program));
}

// ---- products

const std::string kRows = "float32[40, 96]";

std::string product_of(const std::string& results, const std::string& body,
                       const std::string& product = "linear(%x, %w, %b)") {
  return "program f(%x: float32[40, 64], %r: " + kRows +
         ", %w: float32[64, 96], %b: float32[96], %v: float32[96, 64]) -> (" + results +
         ") {\nconst %half: float32[] = 0.5\n%a = " + product + " : " + kRows + "\n" + body + "}\n";
}
std::string row(const std::string& to, const std::string& call) {
  return to + " = " + call + " : " + kRows + "\n";
}

// A sum, a maximum and a factor round as they do alone, so no bit changes.
Program expect_fused_product(const std::string& text, const std::vector<std::string>& ops,
                             double tolerance = 0) {
  Program program = parse_program(text);
  if (run_pass(pass_named("fuse_epilogues"), program)) remove_dead(program);
  program.renumber();
  expect_sound(program);
  EXPECT_EQ(ops_of(program), ops) << to_text(program);
  const Tensors in = {numbers({40, 64}), numbers({40, 96}, 0.9), numbers({64, 96}, 0.1),
                      numbers({96}), numbers({96, 64}, 0.1)};
  set_flag("passes_off", "fuse_epilogues");
  const Tensors wanted = Executor(parse_program(text)).run(in);
  set_flag("passes_off", "");
  const Executor fused(program);
  for (int run = 0; run < 2; ++run) {
    const Tensors got = fused.run(in);
    for (size_t i = 0; i < wanted.size(); ++i) expect_near(got[i], wanted[i], tolerance);
  }
  return program;
}

TEST(FuseEpilogues, EverythingThatStandsBehindAProduct) {
  expect_fused_product(product_of("%y", row("%y", "relu(%a)")), {"matmul_fused"});
  expect_fused_product(product_of("%y", row("%c", "add(%r, %a)") + row("%y", "relu(%c)")),
                       {"matmul_fused"});
  const std::string spread = row("%h", "broadcast_to(%half, shape=[40, 96])");
  expect_fused_product(product_of("%y", spread + row("%c", "multiply(%h, %a)") +
                                            row("%d", "add(%c, %r)") + row("%y", "relu(%d)")),
                       {"matmul_fused"});
}

TEST(FuseEpilogues, ABiasThatIsAddedToAProduct) {
  const std::string bias = row("%s", "broadcast_to(%b, shape=[40, 96])") + row("%c", "add(%a, %s)");
  for (const std::string product : {"matmul(%x, %w)", "matmul(%x, %v, transpose_y=True)"})
    expect_fused_product(product_of("%y", bias + row("%y", "relu(%c)"), product), {"matmul_fused"});
}

TEST(FuseEpilogues, NotWhatSomebodyElseReadsOfAProduct) {
  expect_fused_product(product_of("%y, %a", row("%y", "relu(%a)")), {"linear", "relu"});
  expect_fused_product(product_of("%y", row("%c", "gelu(%a)") + row("%y", "add(%a, %c)")),
                       {"linear", "gelu", "add"});
  expect_fused_product(product_of("%y", row("%y", "multiply(%a, %r)")), {"linear", "multiply"});
  expect_fused_product(product_of("%y", row("%y", "gelu(%a)")), {"linear", "gelu"});
  expect_fused_product(product_of("%y", row("%y", "tanh(%a)")), {"linear", "tanh"});
}

TEST(FuseEpilogues, InTrainingWhatBackwardDoesNotRead) {
  const Tensor x = numbers({40, 64}), w = numbers({64, 96}, 0.2), b = numbers({96}, 0.5);
  for (const Tensor& t : {w, b}) set_stop_gradient(t, false);
  const auto ops_with = [&](Tensor (*activation)(const Tensor&), std::string_view forward) {
    const auto net = [&](const Tensors& in) -> Tensors {
      const Tensor h = activation(linear(in[0], w, b));
      return {sum(multiply(h, h))};
    };
    const TrainedProgram step(capture_joint(net, {{DType::Float32, x.shape(), "x"}}, "s"));
    EXPECT_EQ(ops_of(step.forward())[0], forward);
    const Tensors got = step.run({{x}}), wanted = net({x});
    const Tensors a = grad(got, Tensors{w, b}), e = grad(wanted, Tensors{w, b});
    expect_near(detach(got[0]), detach(wanted[0]));
    for (size_t i = 0; i < a.size(); ++i) expect_near(a[i], e[i]);
  };
  ops_with([](const Tensor& t) { return relu(t); }, "matmul_fused");
  ops_with([](const Tensor& t) { return tanh(t); }, "linear");
  ops_with([](const Tensor& t) { return gelu(t); }, "linear");
  ops_with([](const Tensor& t) { return silu(t); }, "linear");
}

// A weight is cached in oneDNN's layout until it is written; then it is read again.
TEST(FuseEpilogues, AKeptWeightIsReadAnewOnceItIsWritten) {
  const Tensor w = numbers({64, 96}, 0.2), b = numbers({96}, 0.5), x = numbers({40, 64});
  set_stop_gradient(w, false);
  const auto net = [&](const Tensors& in) -> Tensors { return {relu(linear(in[0], w, b))}; };
  const TrainedProgram step(capture_joint(net, {{DType::Float32, x.shape(), "x"}}, "s"));
  const NoGrad off;
  for (int run = 0; run < 3; ++run) {
    for (int again = 0; again < 3; ++again) expect_same(step.run({{x}})[0], net({x})[0]);
    copy_into(w, numbers({64, 96}, 0.7 + run));
  }
}

TEST(FuseEpilogues, BatchNormAndReluInTraining) {
  const Tensor x = numbers({3, 16, 4, 4}), w = numbers({16}, 0.2), b = numbers({16}, 0.5);
  for (const Tensor& t : {x, w, b}) set_stop_gradient(t, false);
  for (const bool last : {false, true}) {
    const auto net = [&](const Tensors& in) -> Tensors {
      const Tensor image = last ? transpose(in[0], {0, 2, 3, 1}) : in[0];
      const Tensor h = std::get<0>(batch_norm_train(image, w, b, 1e-5, last ? 3 : 1));
      return {sum(multiply(relu(h), numbers(h.shape(), 0.4)))};
    };
    const auto values = [&](const char* off, size_t& calls) {
      set_flag("passes_off", off);
      const TrainedProgram step(capture_joint(net, {{DType::Float32, x.shape(), "x", false}}, "s"));
      const Tensors made = step.run({{x}}), slopes = grad(made, Tensors{x, w, b});
      set_flag("passes_off", "");
      calls = step.forward().body.instructions.size() + step.backward().body.instructions.size();
      return Tensors{detach(made[0]), slopes[0], slopes[1], slopes[2]};
    };
    size_t apart = 0, fused = 0;
    const Tensors plain = values("fuse_epilogues", apart), got = values("", fused);
    EXPECT_EQ(fused, apart - 2) << "relu and relu_grad";
    for (size_t i = 0; i < plain.size(); ++i) expect_near(got[i], plain[i]);
  }
}

}  // namespace
}  // namespace oar
