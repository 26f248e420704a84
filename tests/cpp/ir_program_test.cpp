#include "capture_util.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

Tensor g_weight;

Program sample_program() {
  g_weight = numbers({8, 4});
  g_weight->flags |= kParameter;
  const Dim batch = Dim::symbol("B", 4);
  return capture(
      [](const Tensors& in) { return Tensors{sum(relu(matmul(in[0], g_weight)) * 2.0)}; },
      {{DType::Float32, {batch, 8}, "x"}}, "step");
}

TEST(IrProgram, PrintsAsText) {
  const Dim batch = Dim::symbol("B", 4);
  const Tensor scale = Tensor::from_vector<double>({1, 2.5}, Shape{2}, DType::Float32);
  Tensor total = Tensor::from_vector<double>({0, 0}, Shape{2}, DType::Float32);
  const Program p = capture(
      [&](const Tensors& in) {
        const Tensor y = tanh(in[0]) * scale;
        add_(total, sum(y, IntArgs{0}));
        return Tensors{reshape(y, {batch * 2})};
      },
      {{DType::Float32, {batch, 2}, "x"}}, "step");
  EXPECT_EQ(
      to_text(p),
      "program step<B ~ 4>(%x: float32[B, 2], state %s0: float32[2]) -> (%8: float32[2*B]) {\n"
      "  const %c0: float32[2] = [1.0, 2.5]\n"
      "  %3 = tanh(%x) : float32[B, 2]\n"
      "  %4 = broadcast_to(%c0, shape=[B, 2]) : float32[B, 2]\n"
      "  %5 = multiply(%3, %4) : float32[B, 2]\n"
      "  %6 = sum(%5, axis=[0], dtype=None, keepdim=False) : float32[2]\n"
      "  %7 = add(%s0, %6) : float32[2]\n"
      "  %8 = reshape(%5, shape=[2*B]) : float32[2*B]\n"
      "  write %s0 = %7\n"
      "}\n");
  expect_sound(p);
}

TEST(IrProgram, PrintsAttributesSoThatTheyCanBeReadBack) {
  const Dim batch = Dim::symbol("B", 4);
  const Program p = capture(
      [&](const Tensors& in) {
        return Tensors{full({batch}, Scalar(2.0), DType::Float32),
                       full({batch}, Scalar(2), DType::Int64), leaky_relu(in[0], 0.5)};
      },
      {{DType::Float32, {batch}, "x"}});
  const std::string text = to_text(p);
  EXPECT_NE(text.find("full(shape=[B], fill_value=2.0, dtype=float32)"), std::string::npos) << text;
  EXPECT_NE(text.find("full(shape=[B], fill_value=2, dtype=int64)"), std::string::npos) << text;
  EXPECT_NE(text.find("leaky_relu(%x, negative_slope=0.5)"), std::string::npos) << text;
}

TEST(IrProgram, CopiesAreDeep) {
  Program p = sample_program();
  const std::string before = to_text(p);
  {
    Program copy = p;
    copy.body.instructions[0].attributes = Frame();
    copy.values[0].name = "other";
  }
  EXPECT_EQ(to_text(p), before);
  expect_sound(p);
}

class IrVerify : public testing::Test {
 protected:
  void expect_problem(const std::string& text) {
    const std::string all = join(verify(p), "\n");
    EXPECT_NE(all.find(text), std::string::npos) << "found instead: " << all;
  }
  Instruction& instruction(size_t i) { return p.body.instructions[i]; }
  Program p = sample_program();
};

TEST_F(IrVerify, AcceptsWhatCaptureMakes) { expect_sound(p); }

TEST_F(IrVerify, SeesUseBeforeDefinition) {
  std::swap(p.body.instructions.front(), p.body.instructions.back());
  expect_problem("is used before it is defined");
}

TEST_F(IrVerify, SeesValuesThatDoNotExist) {
  p.outputs[0] = 1000;
  expect_problem("value 1000 does not exist");
}

TEST_F(IrVerify, SeesSecondDefinitions) {
  instruction(1).results = instruction(0).results;
  expect_problem("is defined twice");
}

TEST_F(IrVerify, SeesWrongTypes) {
  p.values[static_cast<size_t>(instruction(0).results[0])].type.dtype = DType::Float64;
  expect_problem("by inference, but float64");
}

TEST_F(IrVerify, SeesWrongShapes) {
  p.values[static_cast<size_t>(instruction(0).results[0])].type.shape = Shape{7, 4};
  expect_problem("float32[B, 4] by inference, but float32[7, 4] is written");
}

TEST_F(IrVerify, SeesMissingOperands) {
  instruction(0).operands.pop_back();
  expect_problem("operands and");
}

TEST_F(IrVerify, SeesAttributesOfAnotherType) {
  for (Instruction& i : p.body.instructions)
    if (i.op->name() == "sum") i.attributes.set(3, Value(1.5));
  expect_problem("attribute keepdim is 1.5, not a bool");
}

TEST_F(IrVerify, SeesWritesInPlace) {
  for (Instruction& i : p.body.instructions)
    if (i.op->inplace()) i.op = i.op->inplace();
  expect_problem("writes its argument");
}

TEST_F(IrVerify, SeesStatesThatDoNotFit) {
  p.states.at(0).written = p.outputs[0];
  expect_problem("float32[] does not fit float32[8, 4]");
  p.states[0].tensor = numbers({2});
  expect_problem("but its tensor is float32[2]");
}

TEST_F(IrVerify, SeesAssumptionsThatWereForgotten) {
  const Dim a = Dim::symbol("A", 3), b = Dim::symbol("B", 3);
  p = capture([](const Tensors& in) { return Tensors{in[0] + in[1]}; },
              {{DType::Float32, {a}, "x"}, {DType::Float32, {b}, "y"}});
  ASSERT_FALSE(p.assumptions.empty());
  expect_sound(p);
  p.assumptions.clear();
  expect_problem("needs the assumption");
}

}  // namespace
}  // namespace oar
