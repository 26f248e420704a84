// What passes are given and share: analyses, options, patterns, new calls, and the verification after each pass.
#include "capture_util.h"
#include "oar/base/flags.h"
#include "oar/compiler/passes/context.h"
#include "oar/compiler/passes/match.h"
#include "oar/compiler/passes/pass.h"
#include "oar/ir/parse.h"

namespace oar {
namespace {

using namespace patterns;

const Program& sample() {
  static const Program program = parse_program(
      "program f(%x: float32[2, 3], state %w: float32[2, 3]) -> (%e: float32[2, 3]) {\n"
      "const %one: float32[] = 1.0\n"
      "%a = transpose(%x, perm=[1, 0]) : float32[3, 2]\n"
      "%b = transpose(%a, perm=[1, 0]) : float32[2, 3]\n"
      "%s = broadcast_to(%one, shape=[2, 3]) : float32[2, 3]\n"
      "%c = multiply(%s, %b) : float32[2, 3]\n"
      "%d = add(%c, %c) : float32[2, 3]\n"
      "%e = relu(%d) : float32[2, 3]\n"
      "write %w = %d\n}");
  return program;
}

ValueId at(const char* name) {
  const ValueId id = sample().find(name);
  EXPECT_NE(id, kNoValue) << name;
  return id;
}
const Instruction& call_of(const char* name) { return *Makers(sample())(at(name)); }

TEST(PassAnalyses, UsesCountReadersResultsAndWrites) {
  const Uses uses(sample());
  EXPECT_EQ(uses.count(at("a")), 1);
  EXPECT_EQ(uses.count(at("c")), 2);
  EXPECT_EQ(uses.count(at("d")), 2);  // relu and the write
  EXPECT_EQ(uses.count(at("e")), 1);
  EXPECT_EQ(uses.count(at("w")), 0);
  EXPECT_EQ(uses.readers(at("c")).size(), 2u);
  EXPECT_EQ(uses.only_reader(at("a")), std::optional<size_t>(1));
  EXPECT_EQ(uses.only_reader(at("d")), std::nullopt);
  EXPECT_EQ(uses.only_reader(at("e")), std::nullopt);
  EXPECT_TRUE(uses.is_returned(at("e")));
  EXPECT_FALSE(uses.is_returned(at("d")));
}

TEST(PassAnalyses, LivesGoFromTheCallToTheLastReader) {
  const Lives lives(sample());
  EXPECT_EQ(lives.begin(at("x")), Lives::kBefore);
  EXPECT_EQ(lives.end(at("x")), 0);
  EXPECT_EQ(lives.begin(at("b")), 1);
  EXPECT_EQ(lives.end(at("b")), 3);
  EXPECT_EQ(lives.end(at("d")), 6);  // written when a run ends
  EXPECT_EQ(lives.end(at("e")), 6);
}

TEST(PassAnalyses, ViewsShareTheirOwnersMemory) {
  const SharedMemory memory(sample());
  EXPECT_EQ(memory.owner(at("b")), at("x"));
  EXPECT_TRUE(memory.shares(at("a"), at("b")));
  EXPECT_EQ(memory.owner(at("s")), at("one"));
  EXPECT_EQ(memory.owner(at("c")), at("c"));
  EXPECT_FALSE(memory.shares(at("c"), at("x")));
}

TEST(PassAnalyses, CostsGrowWithSizesAndOpenSizesCountByTheirHints) {
  const auto cost = [](const std::string& sizes, const std::string& rows) {
    const Program p =
        parse_program("program f" + sizes + "(%x: float32[" + rows +
                      ", 64]) -> (%y) {\n%y = exp(%x) : float32[" + rows + ", 64]\n}");
    return PassContext(p).cost(p.body.instructions[0]);
  };
  EXPECT_GT(cost("", "4096"), 2 * cost("", "64"));
  EXPECT_EQ(cost("<N ~ 4096>", "N"), cost("", "4096"));
}

TEST(PassContext, AnalysesFollowTheProgramOnceItIsSaidToHaveChanged) {
  Program program = sample();
  PassContext context(program);
  EXPECT_EQ(context.uses().count(at("c")), 2);
  EXPECT_EQ(&context.uses(), &context.uses());  // computed once
  set_operand(program.body.instructions[4], "y", at("b"));
  EXPECT_EQ(context.uses().count(at("c")), 2);
  context.changed();
  EXPECT_EQ(context.uses().count(at("c")), 1);
}

TEST(PassContext, KnowsNumbersThroughViews) {
  PassContext context(sample());
  EXPECT_EQ(context.number(at("s")), std::optional(1.0));
  EXPECT_EQ(context.number(at("b")), std::nullopt);
  const Program filled = parse_program(
      "program f(%g: float32[2]) -> (%y, %z) {\n"
      "const %same: float32[2] = [3.0, 3.0]\nconst %two: float32[2] = [3.0, 4.0]\n"
      "%1 = full(shape=[2], fill_value=2, dtype=float32) : float32[2]\n"
      "%2 = reshape(%1, shape=[2, 1]) : float32[2, 1]\n"
      "%3 = in_backward(%1) : float32[2]\n"
      "%y = add(%same, %two) : float32[2]\n%z = add(%g, %3) : float32[2]\n}");
  PassContext other(filled);
  const auto result = [&](size_t i) { return filled.body.instructions[i].results[0]; };
  EXPECT_EQ(other.number(result(1)), std::optional(2.0));
  EXPECT_EQ(other.number(result(2)), std::nullopt);            // not before the derivative runs
  EXPECT_EQ(other.number(filled.find("same")), std::nullopt);  // more than one element
  EXPECT_EQ(other.constant_number(filled.find("same"), 2), std::optional(3.0));
  EXPECT_EQ(other.constant_number(filled.find("two"), 2), std::nullopt);
}

TEST(PassOptions, ComeFromFlags) {
  set_flag("passes_off", "merge_common, expand");
  set_flag("backward_memory_mb", "3");
  const PassOptions options = PassOptions::from_flags();
  set_flag("passes_off", "");
  set_flag("backward_memory_mb", "0");
  EXPECT_TRUE(options.is_off("expand"));
  EXPECT_FALSE(options.is_off("canonicalise"));
  EXPECT_EQ(options.backward_bytes, 3 << 20);
  EXPECT_TRUE(PassOptions{.off = "all"}.is_off("canonicalise"));
}

TEST(Match, CapturesWhatAPatternNames) {
  PassContext context(sample());
  const Pattern product =
      call(has_role(EpilogueRole::Product))
          .either_order(number(1), call(has_trait(Trait::View)).once().as("view"))
          .as("product");
  const std::optional<Match> m = match(product, call_of("c"), context);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->value("view"), at("b"));
  EXPECT_EQ(m->call("view").op->name(), "transpose");
  EXPECT_EQ(m->value("product"), at("c"));
  EXPECT_NE(error_of([&] { m->value("other"); }).find("captures no other"), std::string::npos);
  EXPECT_FALSE(match(product, call_of("d"), context));
  const Pattern sum = call(has_role(EpilogueRole::Sum)).operand("y", product);
  const std::optional<Match> nested = match(sum, at("d"), context);
  ASSERT_TRUE(nested);
  EXPECT_EQ(nested->value("product"), at("c"));
}

TEST(Match, DemandsUsesOperandsAndAttributes) {
  PassContext context(sample());
  const auto matches = [&](const Pattern& pattern, const char* value) {
    return match(pattern, at(value), context).has_value();
  };
  EXPECT_TRUE(matches(any(), "x"));
  EXPECT_TRUE(matches(any().once(), "b"));
  EXPECT_FALSE(matches(any().once(), "c"));
  EXPECT_TRUE(matches(constant(), "one"));
  EXPECT_FALSE(matches(constant(), "s"));
  EXPECT_TRUE(matches(this_value(at("b")), "b"));
  EXPECT_FALSE(matches(this_value(at("b")), "a"));
  EXPECT_FALSE(matches(call(has_trait(Trait::View)), "x"));  // nothing computes an input
  EXPECT_TRUE(matches(call(is_op(*call_of("e").op)), "e"));
  EXPECT_FALSE(matches(call(is_op(*call_of("e").op)), "d"));
  EXPECT_FALSE(matches(call(takes(EpilogueStep::Bias)), "d"));
  const auto turns = [](const Value& v) { return v.as_ints()[0] == 1; };
  EXPECT_TRUE(matches(call(has_trait(Trait::View)).attribute("perm", turns), "a"));
  EXPECT_FALSE(matches(call(has_trait(Trait::View)).attribute("perm", turns), "s"));
  const Pattern twice = call(has_trait(Trait::View)).operand("x", call(has_trait(Trait::View)));
  EXPECT_TRUE(matches(twice, "b"));
  EXPECT_FALSE(matches(twice, "a"));
  EXPECT_FALSE(matches(twice.operand("no_such", any()), "b"));
  EXPECT_FALSE(
      matches(call(has_trait(Trait::View)).where([](const Instruction&) { return false; }), "a"));
}

TEST(Match, OptionalOperandsMayBeMissing) {
  const Program program = parse_program(
      "program f(%x: float32[2, 3], %w: float32[3, 4]) -> (%y) {\n"
      "%y = linear(%x, %w, None) : float32[2, 4]\n}");
  PassContext context(program);
  const Pattern product = call(takes(EpilogueStep::Bias));
  const Instruction& linear = program.body.instructions[0];
  EXPECT_FALSE(match(product.operand("bias", any().as("bias")), linear, context));
  const auto m = match(product.operand("bias", any().optional().as("bias")), linear, context);
  ASSERT_TRUE(m);
  EXPECT_EQ(m->value("bias"), kNoValue);
}

TEST(NewCall, TakesOverThePlaceOfAnother) {
  Instruction old = call_of("e");
  old.location = "file.py:3";
  old.called = "activate";
  const Instruction made = NewCall(get_op("leaky_relu"), old).operand("x", at("c")).take();
  EXPECT_EQ(made.results, old.results);
  EXPECT_EQ(made.location, "file.py:3");
  EXPECT_STREQ(made.called, "activate");
  EXPECT_EQ(to_text(sample(), made), "%e = leaky_relu(%c, negative_slope=0.01) : float32[2, 3]");
}

// ---- verification

bool forget_a_cast(Program& program, PassContext&) {
  set_operand(program.body.instructions.back(), "x", program.find("h"));
  return true;
}

TEST(VerifyPasses, NamesThePassAndShowsTheInstruction) {
  const Program program = parse_program(
      "program f(%x: float32[2]) -> (%y) {\n"
      "%h = cast(%x, dtype=float64) : float64[2]\n"
      "%1 = cast(%h, dtype=float32) : float32[2]\n"
      "%y = relu(%1) : float32[2]\n}");
  const Pass wrong{"forget_a_cast", "", forget_a_cast};
  const auto run = [&](bool verify) {
    Program copy = program;
    PassContext context(copy, {.verify = verify});
    run_pass(wrong, copy, context);
  };
  const std::string error = error_of([&] { run(true); });
  EXPECT_NE(error.find("the program f after the pass forget_a_cast is not well formed"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("\n  %y = relu(%h) : float32[2]"), std::string::npos) << error;
  EXPECT_EQ(error_of([&] { run(false); }), "no error");
}

TEST(VerifyPasses, IsOnInTests) { EXPECT_TRUE(PassOptions::from_flags().verify); }

}  // namespace
}  // namespace oar
