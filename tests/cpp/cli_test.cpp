#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/flags.h"
#include "oar/base/version.h"
#include "oar/cli/commands.h"
#include "oar/cli/completion.h"
#include "oar/cli/machine.h"
#include "oar/cli/op_times.h"
#include "oar/cli/progress.h"
#include "oar/cli/tensor_text.h"
#include "oar/cli/terminal.h"
#include "oar/formats/npz.h"
#include "oar/interop/guess.h"

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
  const int status = doctor(out, false, false);
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

TEST(Cli, StatisticsLeaveOutWhatIsNotFinite) {
  const Tensor t = Tensor::from_vector<double>({1, NAN, -3, INFINITY, 2}, Shape{5}, DType::Float32);
  const Statistics s = statistics_of(t);
  EXPECT_EQ(s.min, -3);
  EXPECT_EQ(s.max, 2);
  EXPECT_EQ(s.mean, 0);
  EXPECT_EQ(s.others, 2);
  EXPECT_EQ(json_number(NAN), "null");
}

TEST(Cli, TopScoresAreOfClassesOnly) {
  const Tensor scores = Tensor::from_vector<double>({0, 5, 1, 9, 2, 9, 1, NAN, 3, 4, 5, 6},
                                                    Shape{2, 6}, DType::Float32);
  const auto rows = top_scores(scores, 3);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0][0].index, 3) << "the first of two equal ones";
  EXPECT_EQ(rows[0][1].index, 5);
  EXPECT_EQ(rows[1][0].index, 5);
  EXPECT_TRUE(top_scores(Tensor::from_vector<double>({1, 2}, Shape{2}, DType::Float32)).empty());
  EXPECT_TRUE(top_scores(Tensor::empty(Shape{6, 6}, DType::Int64)).empty());
}

TEST(Cli, ProgressIsALine) {
  EXPECT_EQ(progress_line("train", 6, 12, 3, "0.5", 100),
            "train ############............ 6/12, 0:03 left  0.5");
  EXPECT_EQ(progress_line("read", 7, 0, 61, "", 100), "read 7, 1:01");
  EXPECT_LT(progress_line("train", 6, 12, 3, std::string(200, 'x'), 80).size(), 80U);
}

TEST(Cli, TimesOfOpsLeaveOutCallsInside) {
  timeline::Recording recording;
  const auto add = [&](const char* name, int64_t begin, int64_t end) {
    timeline::Event event;
    event.name = name;
    event.begin_ns = begin;
    event.end_ns = end;
    recording.events.push_back(event);
  };
  add("inner", 1000000, 3000000);
  add("outer", 0, 9000000);
  add("inner", 10000000, 11000000);
  const std::vector<OpTime> times = op_times(recording);
  ASSERT_EQ(times.size(), 2U);
  EXPECT_EQ(times[0].name, "outer");
  EXPECT_DOUBLE_EQ(times[0].milliseconds, 7);
  EXPECT_EQ(times[1].calls, 2);
  EXPECT_DOUBLE_EQ(times[1].milliseconds, 3);
}

TEST(Npz, WritesWhatItReads) {
  const std::string path = testing::TempDir() + "written.npz";
  NamedTensors arrays;
  arrays["a"] = Tensor::from_vector<double>({1, 2, 3}, Shape{3, 1}, DType::Float32);
  arrays["b c"] = Tensor::from_vector<double>({}, Shape{0}, DType::Int64);
  save_npz(path, arrays);
  const NamedTensors read = load_npz(path);
  ASSERT_EQ(read.size(), 2U);
  EXPECT_EQ(read.at("a").describe(), "float32[3, 1]");
  EXPECT_EQ(read.at("a").to_vector<double>(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(read.at("b c").describe(), "int64[0]");
}

TEST(Guess, NeedsNoEnding) {
  using interop::FileKind;
  const auto guess = [](std::string_view content, std::string_view path = "x") {
    return interop::guess_kind(content, path);
  };
  EXPECT_EQ(guess("\x89OAR\r\n\x1a\n"), FileKind::Oar);
  EXPECT_EQ(guess("GGUF"), FileKind::Gguf);
  EXPECT_EQ(guess("....TFL3"), FileKind::Tflite);
  EXPECT_EQ(guess("program f() -> () {}"), FileKind::ProgramText);
  EXPECT_EQ(guess("{\"format\": \"oar program\"}"), FileKind::OarProgram);
  EXPECT_EQ(guess("[1, 2]"), FileKind::Json);
  EXPECT_EQ(guess("layer {\n}"), FileKind::CaffeNet);
  EXPECT_EQ(guess("input: 'x'", "a.prototxt"), FileKind::CaffeNet);
  EXPECT_EQ(guess(""), FileKind::Unknown);
  EXPECT_EQ(guess(std::string_view("\x08\x07\x3a\x00", 4)), FileKind::Onnx);
  EXPECT_EQ(guess(std::string_view("\x08\x07\x3a\x09", 4)), FileKind::Unknown)
      << "it ends too early";
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
