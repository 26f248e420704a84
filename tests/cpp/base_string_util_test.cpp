#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

#include "oar/base/string_util.h"

namespace oar {
namespace {

using Views = std::vector<std::string_view>;

TEST(StringUtil, SplitsAndJoins) {
  EXPECT_EQ(split("a,b,,c", ','), (Views{"a", "b", "", "c"}));
  EXPECT_EQ(split("", ','), (Views{""}));
  EXPECT_EQ(split("a,", ','), (Views{"a", ""}));
  EXPECT_EQ(join(Views{"a", "b"}, ", "), "a, b");
  EXPECT_EQ(join(std::vector<int>{1, -2, 3}, "x"), "1x-2x3");
  EXPECT_EQ(join(Views{}, ", "), "");
}

TEST(StringUtil, TrimsAndChangesCase) {
  EXPECT_EQ(trim(" \ta b\n"), "a b");
  EXPECT_EQ(trim("  "), "");
  EXPECT_EQ(to_lower("AbC1"), "abc1");
  EXPECT_EQ(to_upper("AbC1"), "ABC1");
}

TEST(StringUtil, EditDistance) {
  EXPECT_EQ(edit_distance("", "abc"), 3);
  EXPECT_EQ(edit_distance("abc", ""), 3);
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3);
  EXPECT_EQ(edit_distance("sotfmax", "softmax"), 1);
  EXPECT_EQ(edit_distance("same", "same"), 0);
}

TEST(StringUtil, NearestName) {
  const std::vector<std::string> names = {"softmax", "softplus", "relu", "conv2d"};
  EXPECT_EQ(nearest_name("sotfmax", names), "softmax");
  EXPECT_EQ(nearest_name("ReLU", names), "relu");
  EXPECT_EQ(nearest_name("conv", names), "");
  EXPECT_EQ(nearest_name("conv3d", names), "conv2d");
  EXPECT_EQ(nearest_name("", names), "");
  EXPECT_EQ(nearest_name("x", std::vector<std::string>{}), "");
}

}  // namespace
}  // namespace oar
