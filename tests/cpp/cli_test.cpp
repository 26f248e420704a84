#include <gtest/gtest.h>

#include <sstream>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/flags.h"
#include "oar/base/version.h"
#include "oar/cli/commands.h"
#include "oar/cli/machine.h"
#include "oar/cli/terminal.h"

namespace oar::cli {
namespace {

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(Version, IsThatOfTheProject) {
  int major = 0, minor = 0, patch = 0;
  EXPECT_EQ(std::sscanf(version(), "%d.%d.%d", &major, &minor, &patch), 3) << version();
}

TEST(Cli, DoctorFindsThisMachineFine) {
  std::ostringstream out;
  const int status = doctor(out, false);
  const std::string text = out.str();
  for (const char* part :
       {"processor", "cores", "memory", "allocator", "cpu", "add", "matmul", "gradients"})
    EXPECT_TRUE(contains(text, part)) << part << "\n" << text;
  EXPECT_TRUE(contains(text, "✓ matmul      returns the right numbers")) << text;
  EXPECT_EQ(contains(text, "✗"), status == 1) << text;
  EXPECT_EQ(contains(text, "Everything is fine."), status == 0 && !contains(text, "•")) << text;
  EXPECT_EQ(contains(text, "Nothing is wrong; see the note"), status == 0 && contains(text, "•"))
      << text;
  EXPECT_FALSE(contains(text, "\033[")) << "no colours unless asked for";
}

TEST(Cli, FlagsShowsAll) {
  std::ostringstream out;
  EXPECT_EQ(show_flags(out, false), 0);
  for (const FlagInfo& info : list_flags()) {
    EXPECT_TRUE(contains(out.str(), std::string(info.flag.name) + " = "));
    EXPECT_TRUE(contains(out.str(), std::string(info.flag.env)));
  }
}

TEST(Cli, OpsListsAndShowsOne) {
  std::ostringstream all, family, one;
  EXPECT_EQ(show_ops(all, false, {}), 0);
  EXPECT_TRUE(contains(all.str(), "softmax"));
  EXPECT_TRUE(contains(all.str(), "add (_)")) << "the in-place form is marked";
  EXPECT_EQ(show_ops(family, false, {.name = "", .family = "creation"}), 0);
  EXPECT_TRUE(contains(family.str(), "full_like"));
  EXPECT_FALSE(contains(family.str(), "softmax"));
  EXPECT_EQ(show_ops(one, true, {.name = "softmax", .family = ""}), 0);
  for (const char* part : {"softmax(Tensor x", "family", "inference", "vjp", "jvp", "decomposition",
                           "sharding", "kernels on cpu", "a@axis whole", "\033["})
    EXPECT_TRUE(contains(one.str(), part)) << part << "\n" << one.str();
  std::ostringstream in_place;
  show_ops(in_place, false, {.name = "add_", .family = ""});
  EXPECT_TRUE(contains(in_place.str(), "in place of"));
  EXPECT_THROW(show_ops(one, false, {.name = "sofmax", .family = ""}), Error);
  EXPECT_THROW(show_ops(one, false, {.name = "", .family = "no_family"}), Error);
}

TEST(Cli, TextIsWrappedAndAligned) {
  EXPECT_EQ(wrapped("one two three", 7), (std::vector<std::string>{"one two", "three"}));
  EXPECT_EQ(wrapped("extraordinarily so", 5), (std::vector<std::string>{"extraordinarily", "so"}));
  EXPECT_EQ(wrapped("", 5), (std::vector<std::string>{""}));
  EXPECT_EQ(wrapped("éé éé", 5).size(), 1U) << "columns, not bytes";
  Table table({"a", "b"});
  table.add({"é", "x"});
  table.add({"long", "y"});
  std::ostringstream out;
  table.print(out, false);
  EXPECT_EQ(out.str(), "a     b\né     x\nlong  y\n");
  EXPECT_EQ(styled("x", Style::Red, true), "\033[31mx\033[0m");
}

TEST(Cli, InspectPrintsAndDrawsPrograms) {
  const std::string path = testing::TempDir() + "inspect_test.txt", svg = path + ".svg";
  write_file_atomic(path,
                    "program f<N ~ 3>(%x: float32[N], state %w: float32[1099511627776]) -> (%2) {\n"
                    "  %1 = exp(%x) : float32[N]\n  %2 = exp(%x) : float32[N]\n}\n");
  std::ostringstream plain, colour, better, drawn;
  EXPECT_EQ(inspect(plain, false, {.path = path, .svg = "", .optimise = false}), 0);
  EXPECT_TRUE(contains(plain.str(), "  %2 = exp(%x) : float32[N]\n")) << plain.str();
  inspect(colour, true, {.path = path, .svg = "", .optimise = false});
  EXPECT_TRUE(contains(colour.str(), "\033[1mexp\033[0m(%x)")) << colour.str();
  inspect(better, false, {.path = path, .svg = "", .optimise = true});
  EXPECT_FALSE(contains(better.str(), "%3")) << "one of two equal calls has gone";
  EXPECT_EQ(inspect(drawn, false, {.path = path, .svg = svg, .optimise = false}), 0);
  const std::string picture = read_file(svg);
  EXPECT_TRUE(picture.starts_with("<svg")) << picture;
  EXPECT_TRUE(contains(picture, ">exp</text>"));
  EXPECT_TRUE(contains(picture, "f&lt;") == false && contains(picture, "f · 2 calls"));
  EXPECT_THROW(inspect(plain, false, {.path = path + ".no", .svg = "", .optimise = false}), Error);
}

TEST(Cli, KnowsTheMachine) {
  const Machine machine = inspect_machine();
  EXPECT_GE(machine.usable, 1);
  EXPECT_GE(machine.processors, machine.usable);
  EXPECT_GT(machine.memory, 0);
  EXPECT_TRUE(machine.has_avx2);
  EXPECT_EQ(bytes_text(512), "512 bytes");
  EXPECT_EQ(bytes_text(int64_t{3} << 29), "1.5 GiB");
}

}  // namespace
}  // namespace oar::cli
