// Passes, on programs written as text: before and after.
#include <limits>

#include "capture_util.h"
#include "oar/base/flags.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/parse.h"
#include "oar/ops/gen/all.h"

namespace oar {
namespace {

Program after(const char* pass, const std::string& text) {
  Program program = parse_program(text);
  run_pass(pass_named(pass), program);
  expect_sound(program);
  return program;
}

// The lines of the body, without their blanks.
std::string body(const Program& program) {
  const std::string text = to_text(program);
  std::string out;
  for (std::string_view line : split(text, '\n'))
    if (line.starts_with("  ")) out += std::string(trim(line)) + "\n";
  return out;
}

// The program in one function of x: float32[N, 4], with the results that are named.
std::string with_x(const std::string& results, const std::string& lines) {
  return "program f<N ~ 6>(%x: float32[N, 4]) -> (" + results + ") {\n" + lines + "}\n";
}

struct Case {
  const char *name, *pass, *results, *before, *after;
};
std::string name_of_case(const testing::TestParamInfo<Case>& info) { return info.param.name; }
std::ostream& operator<<(std::ostream& out, const Case& c) { return out << c.name; }

class Passes : public testing::TestWithParam<Case> {};

// Nobody reads what is selected, but its size is that of the result.
TEST(PassesAlone, RemoveDeadKeepsCallsThatTellASize) {
  const Program program =
      after("remove_dead", R"(program f<u ~ 3>(%x: float32[4], %m: bool[4]) -> (%2: float32[u]) {
    %1 = masked_select(%x, %m) : float32[u]
    %2 = full(shape=[u], fill_value=1.0, dtype=float32) : float32[u]
  })");
  EXPECT_EQ(program.body.instructions.size(), 2u);
  const Tensor x = numbers({4});
  const Tensor all = Executor(program).run({{x, equal(x, x)}})[0];
  EXPECT_EQ(all.dim(0), Dim(4));
}

TEST(PassesAlone, DropTracesThatNobodyReads) {
  const std::string text = R"(program f(%p: bool[], %x: float32[2]) -> (%1: float32[2]) {
    %1, %2 = switch_case(%p, [%x], branches=[
      program no(%a: float32[2]) -> (%a: float32[2]) {
      },
      program yes(%a: float32[2]) -> (%1: float32[2]) {
        %1 = exp(%a) : float32[2]
      }
    ], trace=True) : float32[2], int64[2]
  })";
  EXPECT_EQ(after("drop_traces", text).body.instructions[0].results.size(), 1u);
  EXPECT_EQ(after("simplify_regions", text).body.instructions[0].results.size(), 2u);
}

// Runs the program as it is written, without passes: they would rewrite what is to be compared.
Tensors run_as_written(const Program& program, const Tensor& x) {
  set_flag("passes_off", "all");
  const Executor executor(program);
  Tensors results = executor.run({{x}});
  set_flag("passes_off", "");
  return results;
}

// Numbers, and a row each of zeros of both signs, of infinities and nan, of the largest and the smallest.
Tensor numbers_and_edges() {
  using Limits = std::numeric_limits<float>;
  std::vector<double> values = numbers({3, 4}).to_vector<double>();
  for (const double value :
       {0.0, -0.0, 1.0, -1.0, double(Limits::infinity()), -double(Limits::infinity()),
        double(Limits::quiet_NaN()), 2.0, double(Limits::max()), -double(Limits::max()),
        double(Limits::denorm_min()), double(Limits::min())})
    values.push_back(value);
  return Tensor::from_vector(values, Shape{6, 4}, DType::Float32);
}

// The same numbers, with the same sign of zero; nan equals nan.
void expect_same_bits(const Tensor& got, const Tensor& wanted) {
  ASSERT_TRUE(got.defined() && wanted.defined());
  ASSERT_EQ(got.describe(), wanted.describe());
  const std::vector<double> a = got.to_vector<double>(), b = wanted.to_vector<double>();
  for (size_t i = 0; i < a.size(); ++i) {
    const bool same = (std::isnan(a[i]) && std::isnan(b[i])) ||
                      (a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i]));
    EXPECT_TRUE(same) << "element " << i << ": " << a[i] << " instead of " << b[i];
  }
}

TEST_P(Passes, RewriteAsWritten) {
  const Case& c = GetParam();
  const std::string before = with_x(c.results, c.before);
  const Program rewritten = after(c.pass, before);
  EXPECT_EQ(body(rewritten), c.after);
  const Tensor x = numbers_and_edges();
  const Tensors wanted = run_as_written(parse_program(before), x),
                got = run_as_written(rewritten, x);
  ASSERT_EQ(got.size(), wanted.size());
  for (size_t i = 0; i < got.size(); ++i) expect_same_bits(got[i], wanted[i]);
}

INSTANTIATE_TEST_SUITE_P(
    RemoveDead, Passes,
    testing::Values(
        Case{"CallsAndConstantsThatNobodyReads", "remove_dead", "%y",
             "const %c: float32[] = 2.0\n"
             "%a = exp(%x) : float32[N, 4]\n"
             "%b = broadcast_to(%c, shape=[N, 4]) : float32[N, 4]\n"
             "%d = multiply(%a, %b) : float32[N, 4]\n"
             "%y = relu(%x) : float32[N, 4]\n",
             "%y = relu(%x) : float32[N, 4]\n"},
        Case{"NotRandomOnes", "remove_dead", "%y",
             "%a = gaussian(shape=[2]) : float32[2]\n"
             "%y = relu(%x) : float32[N, 4]\n",
             "%a = gaussian(shape=[2], mean=0.0, std=1.0, seed=0, dtype=None) : float32[2]\n"
             "%y = relu(%x) : float32[N, 4]\n"}),
    name_of_case);

INSTANTIATE_TEST_SUITE_P(
    MergeCommon, Passes,
    testing::Values(Case{"EqualCalls", "merge_common", "%y",
                         "%a = exp(%x) : float32[N, 4]\n"
                         "%b = exp(%x) : float32[N, 4]\n"
                         "%y = add(%a, %b) : float32[N, 4]\n",
                         "%a = exp(%x) : float32[N, 4]\n"
                         "%y = add(%a, %a) : float32[N, 4]\n"},
                    Case{"EqualCallsOnWhatBecameEqual", "merge_common", "%y",
                         "%a = exp(%x) : float32[N, 4]\n"
                         "%b = exp(%x) : float32[N, 4]\n"
                         "%c = sum(%a, axis=[1]) : float32[N]\n"
                         "%d = sum(%b, axis=[1]) : float32[N]\n"
                         "%y = add(%c, %d) : float32[N]\n",
                         "%a = exp(%x) : float32[N, 4]\n"
                         "%c = sum(%a, axis=[1], dtype=None, keepdim=False) : float32[N]\n"
                         "%y = add(%c, %c) : float32[N]\n"},
                    Case{"NotOtherAttributes", "merge_common", "%y",
                         "%a = sum(%x, axis=[1], keepdim=True) : float32[N, 1]\n"
                         "%b = sum(%x, axis=[1], keepdim=False) : float32[N]\n"
                         "%c = reshape(%b, shape=[N, 1]) : float32[N, 1]\n"
                         "%y = add(%a, %c) : float32[N, 1]\n",
                         "%a = sum(%x, axis=[1], dtype=None, keepdim=True) : float32[N, 1]\n"
                         "%b = sum(%x, axis=[1], dtype=None, keepdim=False) : float32[N]\n"
                         "%c = reshape(%b, shape=[N, 1]) : float32[N, 1]\n"
                         "%y = add(%a, %c) : float32[N, 1]\n"},
                    Case{"ResultsStayTensorsOfTheirOwn", "merge_common", "%a, %b",
                         "%a = exp(%x) : float32[N, 4]\n"
                         "%b = exp(%x) : float32[N, 4]\n",
                         "%a = exp(%x) : float32[N, 4]\n"
                         "%b = exp(%x) : float32[N, 4]\n"},
                    Case{"EqualConstants", "merge_common", "%y",
                         "const %c: float32[4] = [1.0, 2.0, 3.0, 4.0]\n"
                         "const %d: float32[4] = [1.0, 2.0, 3.0, 4.0]\n"
                         "const %e: float32[4] = [1.0, 2.0, 3.0, 5.0]\n"
                         "%1 = add(%c, %d) : float32[4]\n"
                         "%y = add(%1, %e) : float32[4]\n",
                         "const %c: float32[4] = [1.0, 2.0, 3.0, 4.0]\n"
                         "const %e: float32[4] = [1.0, 2.0, 3.0, 5.0]\n"
                         "%3 = add(%c, %c) : float32[4]\n"
                         "%y = add(%3, %e) : float32[4]\n"}),
    name_of_case);

INSTANTIATE_TEST_SUITE_P(
    FoldConstants, Passes,
    testing::Values(Case{"ChainsOfCalls", "fold_constants", "%y",
                         "const %c: float32[4] = [1.0, 2.0, 3.0, 4.0]\n"
                         "%1 = neg(%c) : float32[4]\n"
                         "%2 = add(%1, %c) : float32[4]\n"
                         "%3 = broadcast_to(%2, shape=[N, 4]) : float32[N, 4]\n"
                         "%y = add(%x, %3) : float32[N, 4]\n",
                         "const %c: float32[4] = [1.0, 2.0, 3.0, 4.0]\n"
                         "const %2: float32[4] = [-1.0, -2.0, -3.0, -4.0]\n"
                         "const %3: float32[4] = [0.0, 0.0, 0.0, 0.0]\n"
                         "%4 = broadcast_to(%3, shape=[N, 4]) : float32[N, 4]\n"
                         "%y = add(%x, %4) : float32[N, 4]\n"},
                    Case{"NotWhatWouldGrow", "fold_constants", "%y",
                         "const %c: float32[] = 2.0\n"
                         "%1 = broadcast_to(%c, shape=[300, 300]) : float32[300, 300]\n"
                         "%y = exp(%1) : float32[300, 300]\n",
                         "const %c: float32[] = 2.0\n"
                         "%2 = broadcast_to(%c, shape=[300, 300]) : float32[300, 300]\n"
                         "%y = exp(%2) : float32[300, 300]\n"}),
    name_of_case);

INSTANTIATE_TEST_SUITE_P(
    Canonicalise, Passes,
    testing::Values(Case{"ReshapesInARow", "canonicalise", "%y",
                         "%1 = reshape(%x, shape=[4*N]) : float32[4*N]\n"
                         "%2 = reshape(%1, shape=[N, 2, 2]) : float32[N, 2, 2]\n"
                         "%3 = reshape(%2, shape=[N, 4]) : float32[N, 4]\n"
                         "%y = exp(%3) : float32[N, 4]\n",
                         "%y = exp(%x) : float32[N, 4]\n"},
                    Case{"ReshapesThatKeepASize", "canonicalise", "%y",
                         "%1 = reshape(%x, shape=[N, 2, 2]) : float32[N, 2, 2]\n"
                         "%2 = reshape(%1, shape=[2, 2, -1]) : float32[2, 2, N]\n"
                         "%y = exp(%2) : float32[2, 2, N]\n",
                         "%1 = reshape(%x, shape=[2, 2, N]) : float32[2, 2, N]\n"
                         "%y = exp(%1) : float32[2, 2, N]\n"},
                    Case{"TransposesInARow", "canonicalise", "%y",
                         "%1 = reshape(%x, shape=[N, 2, 2]) : float32[N, 2, 2]\n"
                         "%2 = transpose(%1, perm=[1, 2, 0]) : float32[2, 2, N]\n"
                         "%3 = transpose(%2, perm=[1, 0, -1]) : float32[2, 2, N]\n"
                         "%y = exp(%3) : float32[2, 2, N]\n",
                         "%1 = reshape(%x, shape=[N, 2, 2]) : float32[N, 2, 2]\n"
                         "%2 = transpose(%1, perm=[2, 1, 0]) : float32[2, 2, N]\n"
                         "%y = exp(%2) : float32[2, 2, N]\n"},
                    Case{"ThereAndBack", "canonicalise", "%y",
                         "%1 = transpose(%x, perm=[1, 0]) : float32[4, N]\n"
                         "%2 = transpose(%1, perm=[1, 0]) : float32[N, 4]\n"
                         "%3 = neg(%2) : float32[N, 4]\n"
                         "%4 = neg(%3) : float32[N, 4]\n"
                         "%y = exp(%4) : float32[N, 4]\n",
                         "%y = exp(%x) : float32[N, 4]\n"},
                    Case{"CastsAndCopies", "canonicalise", "%y",
                         "%1 = cast(%x, dtype=float32) : float32[N, 4]\n"
                         "%2 = assign(%1) : float32[N, 4]\n"
                         "%y = exp(%2) : float32[N, 4]\n",
                         "%y = exp(%x) : float32[N, 4]\n"},
                    Case{"ACopyThatIsGivenBackStays", "canonicalise", "%y",
                         "%y = assign(%x) : float32[N, 4]\n", "%y = assign(%x) : float32[N, 4]\n"},
                    Case{"OnesAndZeros", "canonicalise", "%y",
                         "const %one: float32[] = 1.0\n"
                         "const %zero: float32[] = 0.0\n"
                         "%1 = broadcast_to(%one, shape=[N, 4]) : float32[N, 4]\n"
                         "%2 = multiply(%1, %x) : float32[N, 4]\n"
                         "%3 = divide(%2, %1) : float32[N, 4]\n"
                         "%4 = broadcast_to(%zero, shape=[N, 4]) : float32[N, 4]\n"
                         "%5 = subtract(%3, %4) : float32[N, 4]\n"
                         "%y = exp(%5) : float32[N, 4]\n",
                         "%y = exp(%x) : float32[N, 4]\n"},
                    Case{"AddingZeroIsNotNothing", "canonicalise", "%y",
                         "%1 = full(shape=[N, 4], fill_value=0.0, dtype=float32) : float32[N, 4]\n"
                         "%y = add(%x, %1) : float32[N, 4]\n",
                         "%1 = full(shape=[N, 4], fill_value=0.0, dtype=float32) : float32[N, 4]\n"
                         "%y = add(%x, %1) : float32[N, 4]\n"},
                    Case{"ListsOfOne", "canonicalise", "%y",
                         "%1 = concat([%x], axis=0) : float32[N, 4]\n"
                         "%2 = relu(%1) : float32[N, 4]\n"
                         "%3 = relu(%2) : float32[N, 4]\n"
                         "%y = exp(%3) : float32[N, 4]\n",
                         "%1 = relu(%x) : float32[N, 4]\n"
                         "%y = exp(%1) : float32[N, 4]\n"}),
    name_of_case);

TEST(FoldBatchNorm, BecomesPartOfTheConvolution) {
  const Program program = parse_program(
      "program f(%x: float32[1, 1, 2, 2]) -> (%y) {\n"
      "const %w: float32[2, 1, 1, 1] = [3.0, 5.0]\n"
      "const %b: float32[2] = [1.0, 2.0]\n"
      "const %scale: float32[2] = [2.0, 4.0]\n"
      "const %shift: float32[2] = [10.0, 20.0]\n"
      "%1 = conv(%x, %w, %b, stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1) : "
      "float32[1, 2, 2, 2]\n"
      "%y = channel_affine(%1, %scale, %shift, channel_axis=1) : float32[1, 2, 2, 2]\n}");
  const Program folded = for_inference(program);
  expect_sound(folded);
  EXPECT_EQ(body(folded),
            "const %1: float32[2, 1, 1, 1] = [6.0, 20.0]\n"
            "const %2: float32[2] = [12.0, 28.0]\n"
            "%y = conv(%x, %1, %2, stride=[1, 1], padding=[0, 0, 0, 0], dilation=[1, 1], groups=1, "
            "channels_last=False) : float32[1, 2, 2, 2]\n");
  const Tensor x = numbers({1, 1, 2, 2});
  expect_near(Executor(folded).run({{x}})[0], Executor(program).run({{x}})[0]);
}

TEST(Pipeline, PassesCanBeLeftOutByName) {
  const std::string text = with_x("%y",
                                  "%a = exp(%x) : float32[N, 4]\n"
                                  "%b = exp(%x) : float32[N, 4]\n"
                                  "%y = add(%a, %b) : float32[N, 4]\n");
  const auto calls = [&](const char* off) {
    set_flag("passes_off", off);
    Program program = parse_program(text);
    optimise(program);
    set_flag("passes_off", "");
    return program.body.instructions.size();
  };
  EXPECT_EQ(calls(""), 2u);
  EXPECT_EQ(calls("remove_dead, merge_common"), 3u);
  EXPECT_EQ(calls("all"), 3u);
  EXPECT_NE(error_of([] { pass_named("cse"); }).find("There are canonicalise, "),
            std::string::npos);
}

TEST(Pipeline, FreezingMakesConstantsOfStatesThatNobodyWrites) {
  const Program program = for_inference(parse_program(
      "program f(%x: float32[2], state %w: float32[2], state %n: float32[2]) -> (%y) {\n"
      "%y = multiply(%x, %w) : float32[2]\n"
      "%m = add(%n, %y) : float32[2]\n"
      "write %n = %m\n}"));
  expect_sound(program);
  EXPECT_EQ(program.states.size(), 1u);
  ASSERT_EQ(program.constants.size(), 1u);
  EXPECT_EQ(program.label(program.constants[0].value), "%w");
}

// What a caller gets is his: writing it must not change the program.
TEST(Pipeline, ResultsThatAreConstantsAreCopies) {
  Program program = parse_program(
      "program f() -> (%2) {\nconst %c: float32[2] = [1.0, 2.0]\n%2 = neg(%c) : float32[2]\n}");
  optimise(program);
  ASSERT_TRUE(program.body.instructions.empty());
  const Executor executor(program);
  const Tensor first = executor.run({})[0];
  add_(first, first);
  EXPECT_EQ(executor.run({})[0].to_vector<double>(), (std::vector<double>{-1, -2}));
}

}  // namespace
}  // namespace oar
