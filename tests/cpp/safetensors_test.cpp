#include "oar/formats/safetensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/formats/json_reader.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/shape.h"

namespace oar {
namespace {

class Safetensors : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "/oar_safetensors_XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    directory_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }
  std::string path(const std::string& name = "a.safetensors") const {
    return directory_ + "/" + name;
  }

  std::string directory_;
};

std::string file_of(const std::string& header, const std::string& data = "") {
  std::string file(8, '\0');
  const uint64_t size = header.size();
  std::memcpy(file.data(), &size, 8);
  return file + header + data;
}

std::string refusal(const std::string& file) {
  try {
    parse_safetensors(file);
  } catch (const Error& error) {
    EXPECT_NE(error.kind(), ErrorKind::Internal) << error.what();
    return error.text();
  }
  return "nothing was thrown";
}

void expect_refused(const std::string& file, const std::string& part) {
  const std::string text = refusal(file);
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST_F(Safetensors, EveryDTypeRoundTrips) {
  NamedTensors tensors;
  for (int i = 0; i < kDTypeCount; ++i) {
    const auto dtype = static_cast<DType>(i);
    tensors[name_of(dtype)] =
        Tensor::from_vector(std::vector<double>{0, 1, 1, 0, 1}, Shape{5}, dtype);
  }
  tensors["0-d"] = Tensor::scalar(2.5, DType::Float64);
  tensors["none"] = Tensor::empty({0, 3}, DType::Float32);
  tensors["turned"] = transpose(
      Tensor::from_vector(std::vector<double>{1, 2, 3, 4, 5, 6}, Shape{2, 3}, DType::Float32),
      {1, 0});
  tensors["ünï \"quoted\"\n\\"] = Tensor::scalar(int64_t{7}, DType::Int64);
  save_safetensors(path(), tensors, {{"format", "oar"}, {"note", "a\tb"}});

  Metadata metadata;
  const NamedTensors loaded = load_safetensors(path(), &metadata);
  EXPECT_EQ(metadata, (Metadata{{"format", "oar"}, {"note", "a\tb"}}));
  ASSERT_EQ(loaded.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) {
    ASSERT_TRUE(loaded.contains(name)) << name;
    EXPECT_EQ(loaded.at(name).describe(), tensor.describe());
    EXPECT_EQ(loaded.at(name).to_vector<double>(), tensor.to_vector<double>()) << name;
    EXPECT_TRUE(loaded.at(name).is_contiguous());
  }
}

TEST_F(Safetensors, WritesTheBytesOfTheFormat) {
  save_safetensors(path(), {{"b", Tensor::scalar(1.0, DType::Float32)},
                            {"a", Tensor::scalar(2.0, DType::Float64)},
                            {"c", Tensor::scalar(int64_t{3}, DType::UInt8)}});
  const std::string header = R"({"a":{"dtype":"F64","shape":[],"data_offsets":[0,8]},)"
                             R"("b":{"dtype":"F32","shape":[],"data_offsets":[8,12]},)"
                             R"("c":{"dtype":"U8","shape":[],"data_offsets":[12,13]}})";
  std::string padded = header;
  padded.append((8 - header.size() % 8) % 8, ' ');
  const double a = 2;
  const float b = 1;
  std::string data(reinterpret_cast<const char*>(&a), 8);
  data.append(reinterpret_cast<const char*>(&b), 4);
  data += '\3';
  EXPECT_EQ(read_file(path()), file_of(padded, data));
  save_safetensors(path(), {});
  EXPECT_EQ(read_file(path()), file_of("{}      "));
  EXPECT_TRUE(load_safetensors(path()).empty());
}

TEST_F(Safetensors, WritingToALoadedTensorLeavesTheFileAlone) {
  const Tensor saved = Tensor::from_vector(std::vector<double>{1, 2, 3}, Shape{3}, DType::Float32);
  save_safetensors(path(), {{"x", saved}, {"y", saved}});
  const std::string before = read_file(path());
  NamedTensors loaded = load_safetensors(path());
  const uint32_t version = loaded["y"]->storage->version();
  copy_into(loaded["x"], Tensor::scalar(9.0, DType::Float32));
  EXPECT_EQ(loaded["x"].to_vector<double>(), (std::vector<double>{9, 9, 9}));
  EXPECT_EQ(loaded["y"].to_vector<double>(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(loaded["y"]->storage->version(), version) << "the neighbour does not look changed";
  EXPECT_EQ(read_file(path()), before);
  // The file can be replaced by what was loaded from it, and the old content stays readable.
  save_safetensors(path(), loaded);
  EXPECT_EQ(loaded["y"].to_vector<double>(), (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(load_safetensors(path())["x"].to_vector<double>(), (std::vector<double>{9, 9, 9}));
}

TEST_F(Safetensors, UnalignedTensorsAreCopied) {
  const float value = 1.5f;
  std::string data = "\1";
  data.append(reinterpret_cast<const char*>(&value), 4);
  write_file_atomic(path(), file_of(R"({"f":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},)"
                                    R"("w":{"dtype":"F32","shape":[1],"data_offsets":[1,5]}})",
                                    data));
  const NamedTensors loaded = load_safetensors(path());
  EXPECT_EQ(loaded.at("w").item_double(), 1.5);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(loaded.at("w")->data) % 4, 0U);
}

// The index lists them; only a tensor of them cannot be created. Python reads them as arrays.
TEST_F(Safetensors, WideUnsignedIntegersAreInTheIndexAlone) {
  const std::string file =
      file_of(R"({"x":{"dtype":"U16","shape":[1],"data_offsets":[0,2]}})", "12");
  const SafetensorsIndex index = parse_safetensors(file);
  ASSERT_EQ(index.entries.size(), 1U);
  EXPECT_EQ(index.entries[0].stored, "U16");
  EXPECT_EQ(index.entries[0].bits, 16);
  EXPECT_FALSE(index.entries[0].dtype.has_value());
  write_file_atomic(path(), file);
  try {
    load_safetensors(path());
    FAIL() << "a tensor of U16 was made";
  } catch (const Error& error) {
    EXPECT_NE(error.text().find("dtype 'U16', which Oar does not have"), std::string::npos);
  }
}

TEST_F(Safetensors, DamagedFilesAreRefused) {
  const auto entry = [](const std::string& dtype, const std::string& shape,
                        const std::string& offsets) {
    return R"({"x":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" +
           offsets + "}}";
  };
  expect_refused("", "0 bytes, not even");
  expect_refused("1234567", "not even");
  expect_refused(std::string(8, '\xff'), "the header claims 18446744073709551615");
  expect_refused(file_of("{}").substr(0, 9), "the header claims 2");
  expect_refused(file_of(""), "expected '{'");
  expect_refused(file_of("{"), "malformed JSON");
  expect_refused(file_of("{} x"), "expected the end");
  expect_refused(file_of("[1]"), "expected '{'");
  expect_refused(file_of("{}", "data"), "cover 0 bytes");
  expect_refused(file_of(R"({"x":3})"), "expected '{'");
  expect_refused(file_of(R"({"x":{}})"), "lacks its dtype");
  expect_refused(file_of(entry("F32", "[1]", "[0,4]"), "123"), "needs 4 bytes");
  expect_refused(file_of(entry("F32", "[1]", "[4,0]"), "1234"), "needs 4 bytes");
  expect_refused(file_of(entry("F32", "[2]", "[0,4]"), "1234"), "needs 8 bytes");
  expect_refused(file_of(entry("F32", "[1]", "[0]"), "1234"), "lacks");
  expect_refused(file_of(entry("F32", "[1]", "[0,4,8]"), "1234"), "two offsets");
  expect_refused(file_of(entry("F32", "[-1]", "[0,4]"), "1234"), "an integer of at least 0");
  expect_refused(file_of(entry("F32", "[1.0]", "[0,4]"), "1234"), "an integer of at least 0");
  expect_refused(file_of(entry("F32", "[01]", "[0,4]"), "1234"), "an integer of at least 0");
  expect_refused(file_of(entry("F32", "[9223372036854775808]", "[0,4]"), "1234"), "below 2^63");
  expect_refused(file_of(entry("F32", "[4611686018427387904,4]", "[0,0]")),
                 "larger than any memory");
  expect_refused(file_of(entry("F32", "[0,4611686018427387904,4]", "[0,0]")),
                 "larger than any memory");
  expect_refused(file_of(entry("FOO", "[1]", "[0,2]"), "12"), "dtype 'FOO'");
  expect_refused(
      file_of(R"({"x":{"dtype":"U8","dtype":"U8","shape":[],"data_offsets":[0,1]}})", "1"),
      "expected a new key");
  expect_refused(file_of(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                         R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                         "123"),
                 "'b' overlaps");
  expect_refused(file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},)"
                         R"("b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})",
                         "123"),
                 "'b' leaves a gap");
  expect_refused(file_of(R"({"__metadata__":{"a":1}})"), "expected a string");
  expect_refused(file_of("{\"\xff\":{}}"), "expected UTF-8");
  std::string axes = "[1";
  for (int i = 0; i < 100; ++i) axes += ",1";
  expect_refused(file_of(entry("U8", axes + "]", "[0,1]"), "1"), "more than 64 axes");
  expect_refused(file_of(R"({"x":)" + std::string(100000, '[')), "'{'");
  expect_refused(file_of(R"({"x":{"extra":)" + std::string(100000, '[')), "less nesting");
}

TEST_F(Safetensors, ErrorsNameTheFile) {
  const auto error_of = [&](const std::string& file) -> std::string {
    try {
      load_safetensors(file);
    } catch (const Error& error) {
      return error.text();
    }
    return "nothing was thrown";
  };
  EXPECT_EQ(error_of(path("none")),
            "Cannot open \"" + path("none") + "\": No such file or directory.");
  EXPECT_NE(error_of(directory_).find("is not a file"), std::string::npos);
  write_file_atomic(path(), "12345");
  EXPECT_EQ(error_of(path()).find("Cannot load \"" + path() + "\": the file has 5 bytes"), 0U);
  write_file_atomic(path(), "");
  EXPECT_NE(error_of(path()).find("0 bytes"), std::string::npos);
  write_file_atomic(path(),
                    file_of(R"({"x":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]}})", "\2"));
  EXPECT_NE(error_of(path()).find("bytes other than 0 and 1"), std::string::npos);
}

TEST_F(Safetensors, RefusesToWriteWhatTheFormatCannotHold) {
  const Tensor t = Tensor::scalar(1.0, DType::Float32);
  EXPECT_THROW(save_safetensors(path(), {{"__metadata__", t}}), Error);
  EXPECT_THROW(save_safetensors(path(), {{"\xff", t}}), Error);
  EXPECT_THROW(save_safetensors(path(), {{"x", t}}, {{"k", "\xc3"}}), Error);
  EXPECT_THROW(save_safetensors(path(), {{"x", Tensor()}}), Error);
  EXPECT_THROW(save_safetensors(path(), {{"x", Tensor::meta(Shape{2}, DType::Float32)}}), Error);
  EXPECT_FALSE(std::filesystem::exists(path())) << "nothing is left behind";
}

TEST(JsonReader, ReadsEscapesAndSkipsAnything) {
  JsonReader json(
      R"( { "a\u00e9\n\/\ud83d\ude00" : [1, -2.5e+3, 0.1, true, false, null, {"b": []}], "n": 17 } )");
  std::string first;
  int64_t number = 0;
  json.object([&](const std::string& key) {
    if (key == "n") {
      number = json.unsigned_integer();
    } else {
      first = key;
      json.skip();
    }
  });
  json.end();
  EXPECT_EQ(first, "aé\n/😀");
  EXPECT_EQ(number, 17);
  for (const char* bad : {"\"\\x\"", "\"\\u12g4\"", "\"\\ud800\"", "\"\\ud800\\u0041\"",
                          "\"\\udc00\"", "\"a", "\"\n\"", "tru", "-", "1.", "1e", ".5", "[1,]",
                          "[1 2]", "{\"a\"}", "{\"a\":1,}", "", "\"\\"}) {
    JsonReader reader(bad);
    EXPECT_THROW(reader.skip(), Error) << bad;
  }
  EXPECT_EQ(json_quoted("a\"\\\x01"), R"("a\"\\\u0001")");
}

TEST(JsonReader, KnowsUtf8) {
  EXPECT_TRUE(is_utf8("aé€😀"));
  for (const char* bad :
       {"\x80", "\xc0\x80", "\xc3", "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf8"})
    EXPECT_FALSE(is_utf8(bad));
}

}  // namespace
}  // namespace oar
