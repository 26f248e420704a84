#include <gtest/gtest.h>

#include "oar/base/error.h"
#include "oar/ir/draw.h"
#include "oar/ir/parse.h"

namespace oar {
namespace {

TEST(Draw, BoxesOfAProgram) {
  const Program program = parse_program(R"(
program f(%x: float32[2], state %w: float32[2]) -> (%2: float32[2]) {
  %1 = multiply(%x, %w) : float32[2]
  %2 = exp(%1) : float32[2]
})");
  const std::vector<GraphBox> boxes = boxes_of(program);
  ASSERT_EQ(boxes.size(), 5u);
  EXPECT_EQ(boxes[0].style, "input");
  EXPECT_EQ(boxes[1].style, "state");
  EXPECT_EQ(boxes[2].title, "multiply");
  EXPECT_EQ(boxes[2].reads, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(boxes[3].reads, (std::vector<size_t>{2}));
  EXPECT_EQ(boxes[4].style, "output");
  EXPECT_NE(to_svg(program).find("f · 2 calls"), std::string::npos);
}

TEST(Draw, AnyGraph) {
  const std::string svg = to_svg("a & b", {{"first", "<x>", "tip", "input", {}, {}},
                                           {"second", "", "", "other", {0}, {}},
                                           {"third", "", "", "o\"", {0, 1}, {}}});
  EXPECT_NE(svg.find("a &amp; b"), std::string::npos);
  EXPECT_NE(svg.find("&lt;x&gt;"), std::string::npos);
  EXPECT_NE(svg.find("class=\"o&quot;\""), std::string::npos);
  size_t edges = 0;
  for (size_t at = svg.find("class=\"edge\""); at != std::string::npos;
       at = svg.find("class=\"edge\"", at + 1))
    ++edges;
  EXPECT_EQ(edges, 3u);
  EXPECT_NE(to_svg("nothing", {}).find("nothing"), std::string::npos);
}

TEST(Draw, ABoxReadsEarlierOnes) {
  EXPECT_THROW(to_svg("g", {{"first", "", "", "", {0}, {}}}), Error);
  EXPECT_THROW(to_svg("g", {{"first", "", "", "", {1}, {}}, {"second", "", "", "", {}, {}}}),
               Error);
}

}  // namespace
}  // namespace oar
