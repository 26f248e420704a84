// `.oar` files: the reader, whatever the bytes; calls of older schemas.
#include "oar/formats/oar_file.h"

#include <filesystem>
#include <fstream>

#include "capture_util.h"
#include "oar/base/file.h"
#include "oar/ir/parse.h"
#include "oar/ir/upgrade.h"
#include "oar/runtime/model.h"
#include "oar_bytes.h"

namespace oar {
namespace {

const std::string kProgram =
    R"({"format": "oar program", "version": 1, "feed": ["x"], "fetch": ["y"], "names": {"w": "weight"}})"
    "\n"
    "program f<N ~ 4>(%x: float32[N, 2], state %w: float32[2]) -> (%y: float32[N, 2]) {\n"
    "  %v = broadcast_to(%w, shape=[N, 2]) : float32[N, 2]\n"
    "  %y = multiply(%x, %v) : float32[N, 2]\n}\n";

std::string bytes_of(std::vector<float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}
const std::string kWeights = bytes_of({2, 3});

std::string tensor_entry(size_t begin, const std::string& bytes, const std::string& shape) {
  return format(R"({{"dtype":"F32","shape":{},"data_offsets":[{},{}],"crc32c":{}}})", shape, begin,
                begin + bytes.size(), crc32c(bytes));
}
std::string method_entry(const std::string& text, uint32_t sum) {
  return format(R"({{"program":{{"data_offsets":[0,{}],"crc32c":{}}}}})", text.size(), sum);
}

struct Parts {
  std::string format = "oar model", name = "forward", more;
  std::string tensors = format_tensors(1024);
  uint32_t program_sum = crc32c(kProgram);

  static std::string format_tensors(size_t at) {
    return "{\"weight\":" + tensor_entry(at, kWeights, "[2]") + "}";
  }
  std::string header() const {
    return oar::format(
        R"({{"format":"{}","metadata":{{"by":"é"}},"methods":{{"{}":{}}},"tensors":{}{},"later":[1]}})",
        format, name, method_entry(kProgram, program_sum), tensors, more);
  }
  std::string file(OarPreamble p = {}) const {
    std::string data = kProgram;
    data.resize(1024, '\0');
    return oar_bytes(header(), data + kWeights, p);
  }
};

class OarFileTest : public testing::Test {
 protected:
  OarFileTest() : folder_(std::filesystem::temp_directory_path() / ("oar_file_test" + unique())) {
    std::filesystem::create_directories(folder_);
  }
  ~OarFileTest() override { std::filesystem::remove_all(folder_); }

  static std::string unique() {
    return std::to_string(
               reinterpret_cast<uintptr_t>(testing::UnitTest::GetInstance()->current_test_info())) +
           "_" + std::to_string(::getpid());
  }
  std::string put(const std::string& name, const std::string& bytes) const {
    const std::string path = (folder_ / name).string();
    write_file_atomic(path, bytes);
    return path;
  }
  void expect_error(const std::string& bytes, const std::string& said, bool verify = false) const {
    const std::string path = put("bad.oar", bytes);
    const std::string error = error_of([&] { load_oar(path, verify); });
    EXPECT_NE(error.find(said), std::string::npos) << error << "\nlacks: " << said;
    EXPECT_NE(error.find(path), std::string::npos) << error;
  }

  std::filesystem::path folder_;
};

TEST_F(OarFileTest, IsReadAndRuns) {
  const std::string path = put("model.oar", Parts().file());
  const OarFile file = load_oar(path, true);
  EXPECT_EQ(file.metadata.at("by"), "é");
  EXPECT_EQ(file.methods.at("forward").program, kProgram);
  EXPECT_EQ(file.methods.at("forward").training, "");
  EXPECT_EQ(file.tensors.at("weight").to_vector<double>(), (std::vector<double>{2, 3}));
  const Model model = Model::load(path);
  EXPECT_EQ(model.inputs()[0].str(), "x: float32[N, 2]");
  const Tensor x = Tensor::from_vector<float>({1, 10, 100, 1000}, Shape{2, 2}, DType::Float32);
  EXPECT_EQ(model.run({x})[0].to_vector<double>(), (std::vector<double>{2, 30, 200, 3000}));
  EXPECT_NE(error_of([&] { Model::load(path, "back"); }).find("no method 'back'; it has forward"),
            std::string::npos);
  EXPECT_NE(error_of([&] { Model::load(path + ".oar"); }).find("model.oar.oar"), std::string::npos);
}

TEST_F(OarFileTest, WritesStayInMemory) {
  const std::string bytes = Parts().file(), path = put("model.oar", bytes);
  const OarFile file = load_oar(path);
  *static_cast<float*>(file.tensors.at("weight")->data) = 7;
  EXPECT_EQ(read_file(path), bytes);
  EXPECT_EQ(load_oar(path).tensors.at("weight").to_vector<double>()[0], 2);
}

TEST_F(OarFileTest, EveryCutAndEveryChangedByteIsFound) {
  const std::string whole = Parts().file();
  const std::string path = (folder_ / "cut.oar").string();
  const auto loads = [&](const std::string& bytes) {
    std::ofstream(path, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    return error_of([&] { load_oar(path, true); }) == "no error";
  };
  ASSERT_TRUE(loads(whole));
  EXPECT_FALSE(loads(whole + "x"));
  const size_t header_end = 64 + Parts().header().size();
  for (size_t at = 0; at < whole.size(); at += at < header_end ? 7 : 61) {
    EXPECT_FALSE(loads(whole.substr(0, at))) << at;
    std::string changed = whole;
    changed[at] ^= 1;
    // Zeros between the parts mean nothing.
    const bool filler =
        (at >= header_end && at < 4096) || (at >= 4096 + kProgram.size() && at < 4096 + 1024);
    EXPECT_EQ(loads(changed), filler) << at;
  }
}

TEST_F(OarFileTest, SaysWhatIsWrong) {
  const Parts good;
  expect_error("", "does not begin as an .oar file");
  expect_error("PK\3\4", "does not begin as an .oar file");
  expect_error(good.file({.major = 2}), "version 2.0");
  expect_error(good.file({.features = 4}), "features 4");
  expect_error(good.file({.file_more = 1}), "but should have");
  expect_error(good.file({.header_more = int64_t{1} << 62}), "of them a header");
  Parts p;
  p.format = "oar shard";
  expect_error(p.file(), "it is an 'oar shard'");
  p = {};
  p.program_sum ^= 1;
  expect_error(p.file(), "the program of 'forward' has the checksum");
  p = {};
  p.tensors = Parts::format_tensors(1028);
  expect_error(p.file(), "tensor 'weight'");
  p.tensors = "{\"weight\":" + tensor_entry(1024, kWeights, "[3]") + "}";
  expect_error(p.file(), "needs 12 bytes");
  p.tensors = "{\"weight\":" + tensor_entry(1024, kWeights, "[9223372036854775807,4]") + "}";
  expect_error(p.file(), "larger than any memory");
  p.tensors = "{\"weight\":" + tensor_entry(1024, kWeights, "[2]") +
              ",\"other\":" + tensor_entry(1028, kWeights.substr(4), "[1]") + "}";
  expect_error(p.file(), "overlaps");
  p = {};
  std::string damaged = p.file();
  damaged.back() ^= 1;
  expect_error(damaged, "tensor 'weight' has the checksum", true);
  EXPECT_EQ(load_oar(put("damaged.oar", damaged)).tensors.size(), 1u);  // not asked to look
  expect_error(oar_bytes("{\"format\":", ""), "JSON");
  expect_error(oar_bytes("{}", ""), "it is an ''");
}

TEST_F(OarFileTest, ANewerMinorVersionIsRead) {
  EXPECT_EQ(load_oar(put("minor.oar", Parts().file({.minor = 9}))).tensors.size(), 1u);
}

TEST_F(OarFileTest, ReadsShards) {
  const std::string header =
      "{\"format\":\"oar shard\",\"tensors\":{\"weight\":" + tensor_entry(0, kWeights, "[2]") +
      "}}";
  put("part.oar", oar_bytes(header, kWeights));
  Parts p;
  p.tensors = "{}";
  const auto with = [&](const std::string& file, uint32_t sum) {
    p.more = format(R"(,"shards":[{{"file":"{}","header_crc32c":{}}}])", file, sum);
    return p.file();
  };
  const Model model =
      Model::load(put("model.oar", with("part.oar", crc32c(header))), "forward", true);
  EXPECT_EQ(model.run({numbers({1, 2}, 1.0)})[0].shape(), (Shape{1, 2}));
  for (const char* outside : {"../part.oar", "", "/etc/passwd", ".hidden", "a/b", "a\\u0000b"})
    expect_error(with(outside, 1), "no name of a shard");
  const auto error = [&](const std::string& bytes) {
    const std::string path = put("bad.oar", bytes);
    return error_of([&] { load_oar(path); });
  };
  EXPECT_NE(error(with("part.oar", 1)).find("shard of another model"), std::string::npos);
  EXPECT_NE(error(with("absent.oar", 1)).find("absent.oar"), std::string::npos);
  p.tensors = Parts::format_tensors(1024);
  EXPECT_NE(error(with("part.oar", crc32c(header))).find("two files have a tensor 'weight'"),
            std::string::npos);
}

// ---- versions of ops ---------------------------------------------------------------------------

TEST(Upgrade, FollowsTheStepsInOrder) {
  register_upgrade({.op = "upgraded", .from = 2, .renamed = {{"middle", "last"}}, .added = {}});
  register_upgrade(
      {.op = "upgraded", .from = 1, .renamed = {{"first", "middle"}}, .added = {{"k", "3"}}});
  const auto steps = upgrades_of("upgraded", 1, 3);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(renamed_by(steps, 0, "first"), "last");
  EXPECT_EQ(renamed_by(steps, 1, "middle"), "last");
  EXPECT_EQ(renamed_by(steps, 0, "other"), "other");
  EXPECT_EQ(upgrades_of("upgraded", 1, 4).size(), 2u);
  EXPECT_TRUE(upgrades_of("upgraded", 3, 3).empty());
  EXPECT_TRUE(upgrades_of("another", 1, 2).empty());
}

// Calls of version 0 do not exist: they stand for those of a version before the present one.
TEST(Upgrade, ReadsCallsOfAnOlderVersion) {
  const std::string old =
      "program f(%x: float32[2, 3]) -> (%y: float32[2, 3]) {\n"
      "  %y = softmax@0(%x, dim=0) : float32[2, 3]\n}";
  EXPECT_NE(error_of([&] { parse_program(old); }).find("softmax is at version 1, not 0"),
            std::string::npos);
  register_upgrade({.op = "softmax", .from = 0, .renamed = {{"dim", "axis"}}, .added = {}});
  EXPECT_NE(to_text(parse_program(old)).find("axis=0"), std::string::npos);
  register_upgrade({.op = "cumsum", .from = 0, .renamed = {}, .added = {{"axis", "1"}}});
  const std::string lacking =
      "program f(%x: float32[2, 3]) -> (%y: float32[2, 3]) {\n"
      "  %y = cumsum@0(%x) : float32[2, 3]\n}";
  EXPECT_NE(to_text(parse_program(lacking)).find("axis=1"), std::string::npos);
  const std::string newer =
      "program f(%x: float32[2]) -> (%y: float32[2]) {\n  %y = relu@7(%x) : float32[2]\n}";
  EXPECT_NE(error_of([&] { parse_program(newer); }).find("a newer Oar wrote the program"),
            std::string::npos);
}

}  // namespace
}  // namespace oar
