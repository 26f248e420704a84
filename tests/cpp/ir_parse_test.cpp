#include "capture_util.h"
#include "oar/ir/parse.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

constexpr const char* kStep =
    "program step<B ~ 4 >= 1>(%x: float32[B, 2], state %total: float32[2]) -> (%7: float32[2*B]) {\n"
    "  assume B != 1\n"
    "  const %scale: float32[2] = [1.0, 2.5]\n"
    "  %3 = tanh(%x) : float32[B, 2]  # step.py:3\n"
    "  %4 = broadcast_to(%scale, shape=[B, 2]) : float32[B, 2]\n"
    "  %5 = multiply(%3, %4) : float32[B, 2]\n"
    "  %6 = sum(%5, axis=[0], dtype=None, keepdim=False) : float32[2]\n"
    "  %7 = reshape(%5, shape=[2*B]) : float32[2*B]\n"
    "  %8 = add(%total, %6) : float32[2]\n"
    "  write %total = %8\n"
    "}\n";

std::string changed(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(IrParse, PrintsBackTheSame) {
  EXPECT_EQ(to_text(parse_program(kStep), {.locations = true}), kStep);
}

TEST(IrParse, RunsWhatItReads) {
  Program program = parse_program(kStep);
  const Tensor total = program.states[0].tensor;
  const Tensor x = Tensor::from_vector<double>({0, 1, 0.5, -1}, Shape{2, 2}, DType::Float32);
  const Executor executor(std::move(program));
  const Tensor wanted = tanh(x) * Tensor::from_vector<double>({1, 2.5}, Shape{2}, DType::Float32);
  expect_same(executor.run({{x}})[0], reshape(wanted, {4}));
  expect_same(total, sum(wanted, IntArgs{0}));
}

constexpr const char* kPlaced =
    "program f<B ~ 4>(%x: float32[B, 2] on grid(data: shard 0, model: replicate)) -> (%2: float32[B, 2]) {\n"
    "  const %w: float32[2, 2] on grid(data: replicate, model: shard 0) = "
    "[1.0, 2.0, 3.0, 4.0]\n"
    "  %2 = matmul(%x, %w, transpose_x=False, transpose_y=False) : float32[B, 2] on grid(data: shard 0, "
    "model: partial sum)\n"
    "}\n";

TEST(IrParse, ValuesHavePlacements) {
  const std::string text =
      changed(kPlaced, "-> (%2: float32[B, 2])",
              "-> (%2: float32[B, 2] on grid(data: shard 0, model: partial sum))");
  const Program program = parse_program(text);
  EXPECT_EQ(to_text(program), text);
  EXPECT_EQ(verify(program), std::vector<std::string>{});
  const ValueType& x = program.type_of(program.find("x"));
  ASSERT_TRUE(x.placement);
  EXPECT_EQ(x.placement->mesh, "grid");
  EXPECT_EQ(x.placement->axes[0].kind, MeshAxisPlacement::Shard);
  // Placements are compared by what they say.
  ValueType same = x, other = x, none = x;
  same.placement = std::make_shared<const Placement>(*x.placement);
  Placement cut = *x.placement;
  cut.axes[0].axis = 1;
  other.placement = std::make_shared<const Placement>(cut);
  none.placement = nullptr;
  EXPECT_EQ(x, same);
  EXPECT_FALSE(x == other);
  EXPECT_FALSE(x == none);
  EXPECT_EQ(none.str(), "float32[B, 2]");
}

TEST(IrParse, RefusesPlacementsThatAreNone) {
  const auto refused = [](const char* from, const char* to, const char* why) {
    try {
      parse_program(changed(kPlaced, from, to));
      ADD_FAILURE() << to << " is taken";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
  };
  refused("data: shard 0, model: replicate))", "data: shard 2, model: replicate))", "2 axes");
  refused("data: shard 0, model: replicate))", "data: shard 0, data: replicate))", "placed twice");
  refused("model: partial sum", "model: partial product", "not by 'product'");
  refused("on grid(data: shard 0, model: replicate))", "on grid())", "has no axes");
  refused("data: shard 0, model: replicate))", "data: halves 0))", "partial");
}

TEST(IrParse, APlacementThatDoesNotFitIsAProblem) {
  Program program = parse_program(kPlaced);
  Placement wrong = *program.values[0].type.placement;
  wrong.axes[1] = {"model", MeshAxisPlacement::Shard, 5};
  program.values[0].type.placement = std::make_shared<const Placement>(wrong);
  const std::vector<std::string> problems = verify(program);
  ASSERT_FALSE(problems.empty());
  EXPECT_NE(problems[0].find("axis 5 is cut along model"), std::string::npos) << problems[0];
}

TEST(IrParse, NumbersOfValuesAreLabelsOnly) {
  const Program p = parse_program(
      "program f(%9: float32[2]) -> (%1234567890123456789) {\n"
      "  %1234567890123456789 = relu(%9) : float32[2]\n}");
  EXPECT_EQ(to_text(p),
            "program f(%0: float32[2]) -> (%1: float32[2]) {\n  %1 = relu(%0) : float32[2]\n}\n");
}

TEST(IrParse, MissingArgumentsTakeTheirDefaults) {
  const Program p =
      parse_program("program f(%x: float32[2, 3]) -> (%y) {\n %y = softmax(%x) : float32[2, 3]\n}");
  EXPECT_NE(to_text(p).find("softmax(%x, axis=-1"), std::string::npos) << to_text(p);
}

TEST(IrParse, ReadsEveryKindOfAttribute) {
  const std::string text =
      "program f<N ~ 5>(%x: float64[N, 4]) -> (%4: complex128[2], %5: float64[N, 4]) {\n"
      "  const %c: complex128[2] = [(1.5, -2.0j), (nan, infj)]\n"
      "  const %n: bool[2] = [1, 0]\n"
      "  const %e: float64[0] = []\n"
      "  %4 = full(shape=[2], fill_value=(1.0, 0.5j), dtype=complex128) : complex128[2]\n"
      "  %5 = full(shape=[N, 4], fill_value=-inf, dtype=float64) : float64[N, 4]\n"
      "  %6 = full(shape=[max(N, 7) - 2*N + 3], fill_value=True, dtype=bool) : bool[3 - 2*N + max(N, "
      "7)]\n"
      "}\n";
  const std::string once = to_text(parse_program(text));
  EXPECT_EQ(to_text(parse_program(once)), once);
  EXPECT_NE(once.find("fill_value=(1.0, 0.5j)"), std::string::npos) << once;
  EXPECT_NE(once.find("[(1.5, -2.0j), (nan, infj)]"), std::string::npos) << once;
}

TEST(IrParse, NamesOfAnyKindAreReadBack) {
  const std::string text =
      "program \"<lambda>\"(%\"größe 1\": float32[2], state %\"a \\\"b\\\"\": float32[2]) -> "
      "(%\"3x\": float32[2]) {\n"
      "  %\"3x\" = add(%\"größe 1\", %\"a \\\"b\\\"\") : float32[2]\n"
      "  write %\"a \\\"b\\\"\" = %\"3x\"\n"
      "}\n";
  const Program program = parse_program(text);
  EXPECT_EQ(program.name, "<lambda>");
  EXPECT_NE(program.find("größe 1"), kNoValue);
  EXPECT_NE(program.find("a \"b\""), kNoValue);
  EXPECT_EQ(to_text(program), text);
  EXPECT_NE(error_of([] { parse_program("program <lambda>() -> () {}"); }).find("a name"),
            std::string::npos);
}

struct Mistake {
  const char *from, *to, *message;
};

class IrParseMistakes : public testing::TestWithParam<Mistake> {};

TEST_P(IrParseMistakes, AreNamedWithTheirPlace) {
  const auto& [from, to, message] = GetParam();
  const std::string text = changed(kStep, from, to);
  EXPECT_NE(error_of([&] { parse_program(text); }).find(message), std::string::npos)
      << error_of([&] { parse_program(text); });
}

INSTANTIATE_TEST_SUITE_P(
    All, IrParseMistakes,
    testing::Values(
        Mistake{"tanh(%x)", "tanh(%z)", "line 4, column 15: %z is used before it is defined"},
        Mistake{"tanh(%x)", "tahn(%x)", "line 4, column 12: there is no op 'tahn'"},
        Mistake{"tanh(%x)", "tanh@7(%x)", "tanh is at version 1, not 7"},
        Mistake{"tanh(%x)", "tanh(%x, %x)", "tanh takes fewer tensors"},
        Mistake{"tanh(%x)", "tanh()", "the argument x of tanh is missing"},
        Mistake{"%4 = broadcast_to", "%3 = broadcast_to", "%3 is defined twice"},
        Mistake{"keepdim=False", "keepdim=0", "'False' is expected, not '0)"},
        Mistake{"keepdim=False", "keepdims=False", "sum has no argument 'keepdims'"},
        Mistake{"keepdim=False", "axis=[1]", "the argument axis is given twice"},
        Mistake{"float32[B, 2]  #", "float33[B, 2]  #", "'float33' is not a dtype"},
        Mistake{"float32[B, 2]  #", "float32[B, 3]  #", "float32[B, 2] by inference"},
        Mistake{"float32[B, 2]  #", "float32[B, -2]  #", "the size -2 is negative"},
        Mistake{"[1.0, 2.5]", "[1.0]", "1 values are given for float32[2]"},
        Mistake{"[1.0, 2.5]", "[1.0, two]", "'two' is not a number"},
        Mistake{"= [1.0, 2.5]", "", "the values of %scale are not given"},
        Mistake{"B != 1", "B ! 1", "one of ==, !=, <, >= is expected"},
        Mistake{"<B ~ 4 >= 1>", "<B ~ 4, B ~ 5>", "the size B is declared twice"},
        Mistake{"write %total", "write %x", "%x is not a state"},
        Mistake{"state %total: float32[2]", "state %total: float32[B]", "has an open size"},
        Mistake{"state %total: float32[2]", "state %total: float32[1099511627776]",
                "is too large to be created here"},
        Mistake{"-> (%7", "-> (%77", "%77 is used before it is defined"},
        Mistake{"2*B]\n  %8", "99999999999999999999]\n  %8", "the integer is too large"},
        Mistake{"2*B]\n  %8", "B*B*B*B*9223372036854775807*4]\n  %8", "overflows"},
        Mistake{"}\n", "} and more\n", "the end is expected, not 'and more'"},
        Mistake{"}\n", "", "'%' is expected, not the end"}));

TEST(IrParse, DeepNestingIsAnError) {
  std::string size = "B";
  for (int i = 0; i < 100000; ++i) size.insert(0, "min(");
  EXPECT_NE(error_of([&] { parse_program(changed(kStep, "2*B", size)); }).find("nested too deeply"),
            std::string::npos);
}

}  // namespace
}  // namespace oar
