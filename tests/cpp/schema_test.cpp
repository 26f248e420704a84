#include "oar/ops/core/schema.h"

#include <gtest/gtest.h>

#include "oar/base/error.h"
#include "oar/ops/core/registry.h"

namespace oar {
namespace {

TEST(Schema, ReadsParametersResultsAndVersion) {
  const Schema s = Schema::parse(
      "conv@3(Tensor x, Tensor? bias = None, Tensor[] more, Tensor?[] holes, int[] stride = [1, 2], "
      "int? k = None, float p = 0.5, bool on = True, str mode = 'a, b)', dtype? dtype = None, "
      "shape shape = [], Scalar s = 2, float[] scales = [0.5, 1e-3]) -> (Tensor out, Tensor mask)");
  EXPECT_EQ(s.name, "conv");
  EXPECT_EQ(s.version, 3U);
  ASSERT_EQ(s.parameters.size(), 13U);
  EXPECT_FALSE(s.parameters[0].optional);
  EXPECT_FALSE(s.parameters[0].has_default);
  EXPECT_TRUE(s.parameters[1].optional);
  EXPECT_TRUE(s.parameters[2].list);
  EXPECT_FALSE(s.parameters[2].optional_elements);
  EXPECT_TRUE(s.parameters[3].optional_elements);
  EXPECT_FALSE(s.parameters[3].optional);
  EXPECT_EQ(s.parameters[8].default_text, "'a, b)'");
  EXPECT_EQ(s.index_of("p"), 6);
  EXPECT_EQ(s.index_of("none"), -1);
  ASSERT_EQ(s.results.size(), 2U);
  EXPECT_EQ(s.results[1].name, "mask");
  EXPECT_FALSE(s.returns_list());

  const Frame& defaults = s.defaults();
  EXPECT_TRUE(defaults[0].is_none());
  EXPECT_TRUE(defaults[1].is_none());
  EXPECT_EQ(defaults[4].as_ints()[1], 2);
  EXPECT_EQ(defaults[6].as_double(), 0.5);
  EXPECT_TRUE(defaults[7].as_bool());
  EXPECT_EQ(defaults[8].as_string(), "a, b)");
  EXPECT_EQ(defaults[10].as_ints().size(), 0U);
  EXPECT_EQ(defaults[11].as_int(), 2);
  EXPECT_EQ(defaults[12].as_doubles()[1], 1e-3);
}

TEST(Schema, ReadsAliases) {
  const Schema written = Schema::parse("add_(Tensor(a!) x, Tensor y) -> Tensor(a!)");
  EXPECT_TRUE(written.parameters[0].written);
  EXPECT_EQ(written.parameters[0].alias, 'a');
  EXPECT_TRUE(written.results[0].written);
  EXPECT_EQ(written.results[0].name, "out");
  const Schema view = Schema::parse("split(Tensor(a) x, int n) -> Tensor(a)[]");
  EXPECT_FALSE(view.parameters[0].written);
  EXPECT_TRUE(view.returns_list());
  const Schema nothing = Schema::parse("zeros(shape shape) -> Tensor");
  EXPECT_EQ(nothing.results[0].alias, 0);
  EXPECT_EQ(Schema::parse("none() -> Tensor").parameters.size(), 0U);
}

TEST(Schema, PrintsWhatItReads) {
  for (
      const char* text : {
          "softmax(Tensor x, int axis = -1) -> Tensor",
          "topk(Tensor x, int k, int axis = -1, bool largest = True) -> (Tensor values, Tensor indices)",
          "add_(Tensor(a!) x, Tensor y) -> Tensor(a!)",
          "conv2d@2(Tensor x, Tensor? bias = None, int[] stride = [1]) -> Tensor",
          "index(Tensor x, Tensor?[] indices) -> Tensor",
          "step_(Tensor(a!)[] params, Tensor[]? masters = None, float lr = 0.1) -> Tensor(a!)[]",
      })
    EXPECT_EQ(Schema::parse(text).str(), text);
  const Schema spaced = Schema::parse("  f ( Tensor  x ,int k=3 )->Tensor  ");
  EXPECT_EQ(spaced.str(), "f(Tensor x, int k = 3) -> Tensor");
}

TEST(Schema, EveryRegisteredOneReadsAsItPrints) {
  for (const Op* op : Registry::get().all()) {
    const std::string text = op->schema().str();
    EXPECT_EQ(Schema::parse(text).str(), text);
  }
}

TEST(Schema, MalformedOnesAreErrorsThatShowThePlace) {
  for (const char* text : {
           "",
           "f",
           "f(",
           "f()",
           "f() ->",
           "f() -> int",
           "f() -> Tensor extra",
           "f() -> (Tensor)",
           "f() -> (Tensor a",
           "f() -> (Tensor a,)",
           "f(Tensor) -> Tensor",
           "f(Tensor x,) -> Tensor",
           "f(Tensor x Tensor y) -> Tensor",
           "f(Tensor x, Tensor x) -> Tensor",
           "f(Tenser x) -> Tensor",
           "f(Tensor( x) -> Tensor",
           "f(Tensor(a x) -> Tensor",
           "f(Tensor x = ) -> Tensor",
           "f(int k = three) -> Tensor",
           "f(int k = [) -> Tensor",
           "f(int k = 99999999999999999999) -> Tensor",
           "f(dtype t = quad) -> Tensor",
           "f(str s = 'open) -> Tensor",
           "f(str s = ') -> Tensor",
           "f(int k = ]) -> Tensor",
           "f(bool b = 3.x) -> Tensor",
           "1f() -> Tensor",
           "f@() -> Tensor",
           "f@x() -> Tensor",
       }) {
    try {
      Schema::parse(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::InvalidArgument) << text;
    }
  }
  try {
    Schema::parse("f(Tensor x, integer k) -> Tensor");
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(
        error.text(),
        "the schema 'f(Tensor x, integer k) -> Tensor' is malformed at character 19: expected a "
        "type: Tensor, bool, int, float, Scalar, str, dtype, shape or program.");
  }
}

// Whatever a user's package passes: an error or a schema, never a crash.
TEST(Schema, AnyTextIsSurvived) {
  const std::string good =
      "f(Tensor(a!) x, int[] k = [1, 2], str s = 'x', dtype? t = None) -> (Tensor a, Tensor b)";
  const std::string letters = "()[]{}'\",.=?!@-> aTensorint0129\n";
  uint64_t state = 5;
  const auto below = [&](size_t n) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<size_t>(state >> 33) % n;
  };
  for (int i = 0; i < 20000; ++i) {
    std::string text = good;
    for (size_t k = 1 + below(3); k > 0; --k) {
      const size_t at = below(text.size());
      if (below(3) == 0)
        text.erase(at, 1 + below(5));
      else if (below(2) == 0)
        text.insert(at, 1, letters[below(letters.size())]);
      else
        text[at] = letters[below(letters.size())];
      if (text.empty()) text = " ";
    }
    try {
      Schema::parse(text);
    } catch (const Error& error) {
      ASSERT_EQ(error.kind(), ErrorKind::InvalidArgument) << text;
    }
  }
}

TEST(Schema, InternalParametersComeLast) {
  const Schema schema = Schema::parse("f(Tensor x, int n = 1, shape? _part = None) -> Tensor");
  EXPECT_EQ(schema.visible_count(), 2U);
  EXPECT_TRUE(schema.parameters[2].is_internal());
  EXPECT_EQ(schema.str(), "f(Tensor x, int n = 1, shape? _part = None) -> Tensor");
  EXPECT_EQ(schema.visible_str(), "f(Tensor x, int n = 1) -> Tensor");
  EXPECT_THROW(Schema::parse("f(shape? _part = None, Tensor x) -> Tensor"), Error);
  EXPECT_THROW(Schema::parse("f(Tensor x, int _n = 1) -> Tensor"), Error);
  EXPECT_THROW(Schema::parse("f(Tensor x, shape? _part) -> Tensor"), Error);
}

}  // namespace
}  // namespace oar
