// Any bytes at all as an `.oar` file: either an Error, or a model whose tensors are inside the file.
//
// Most changes would fail a checksum or move the data. So an input that begins with a brace is header, program and weights with marks
// between them, which become a file with the right sizes and checksums; others are tried as they are and with the right checksums.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "../cpp/oar_bytes.h"
#include "driver.h"
#include "oar/base/error.h"
#include "oar/formats/oar_file.h"
#include "oar/runtime/model.h"

namespace {

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

// Reads every element of every tensor, and the program against them.
void use(const oar::OarFile& file) {
  double sum = 0;
  for (const auto& [name, tensor] : file.tensors)
    for (const double value : tensor.to_vector<double>()) sum += value;
  [[maybe_unused]] volatile double sink = sum;
  for (const auto& [name, method] : file.methods) {
    try {
      oar::Model::parse(method.program, file.tensors);
    } catch (const oar::Error& error) {
      if (error.kind() == oar::ErrorKind::Internal) broken(error.what());
    }
  }
}

void load(const std::string& bytes) {
  const int fd = memfd_create("fuzz", 0);
  if (fd < 0 || write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    broken("cannot make a file");
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  try {
    use(oar::load_oar(path));
    oar::load_oar(path, /*verify=*/true);
  } catch (const oar::Error& error) {
    if (error.kind() == oar::ErrorKind::Internal) broken(error.what());
  }
  close(fd);
}

const std::string kProgram =
    R"({"format": "oar program", "version": 1, "feed": ["x"], "fetch": ["y"], "names": {"w": "weight"}})"
    "\nprogram f(%x: float32[2], state %w: float32[2]) -> (%1: float32[2]) {\n"
    "  %1 = add(%x, %w) : float32[2]\n}\n";

constexpr std::string_view kMark = "<|>";

void replace(std::string& text, std::string_view what, const std::string& by) {
  const size_t at = text.find(what);
  if (at != std::string::npos) text.replace(at, what.size(), by);
}

// In the header $SUM and $SIZE stand for the checksum and the size of the program, which is at the beginning of the data.
std::string assembled(const std::string& parts) {
  const size_t first = parts.find(kMark), second = parts.find(kMark, first + 1);
  if (second == std::string::npos) return oar::oar_bytes(parts.substr(0, first), "");
  std::string header = parts.substr(0, first);
  const size_t begin = first + kMark.size();
  std::string data = parts.substr(begin, second - begin);
  replace(header, "$SUM", std::to_string(oar::crc32c(data)));
  replace(header, "$SIZE", std::to_string(data.size()));
  data.resize(std::max<size_t>(data.size(), 512), '\0');
  return oar::oar_bytes(header, data + parts.substr(second + kMark.size()));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string file(reinterpret_cast<const char*>(data), size);
  if (file.starts_with('{')) {
    load(assembled(file));
    return 0;
  }
  load(file);
  oar::repair_oar(file);
  load(file);
  return 0;
}

std::vector<std::string> seeds() {
  const auto weights = std::string(8, 'x');
  const auto mark = std::string(kMark);
  const std::string head =
      R"({"format":"oar model","methods":{"forward":{"program":{"crc32c":$SUM,"data_offsets":[0,$SIZE]}}},)";
  const std::string entry = R"("dtype":"F32","shape":[2],"data_offsets":[512,520],"crc32c":)" +
                            std::to_string(oar::crc32c(weights));
  const std::string many =
      R"({"format":"oar model","tensors":{"h":{"dtype":"BF16","shape":[2,2],"data_offsets":[0,8],"crc32c":1},)"
      R"("b":{"dtype":"BOOL","shape":[3],"data_offsets":[64,67]},"p":{"dtype":"I4","shape":[3],"data_offsets":[128,130]}}})";
  return {
      oar::oar_bytes(R"({"format":"oar model"})", ""),
      oar::oar_bytes(many, std::string(130, '\1')),
      head + R"("tensors":{"weight":{)" + entry + "}}}" + mark + kProgram + mark + weights,
      head +
          R"("metadata":{"a":"\u00e9"},"tensors":{},"shards":[{"file":"3","header_crc32c":1}]})" +
          mark + kProgram + mark,
      many + mark + mark + weights,
  };
}

std::vector<std::string> dictionary() {
  return {"\"dtype\":",
          "\"shape\":",
          "\"data_offsets\":",
          "\"crc32c\":",
          "\"tensors\":",
          "\"methods\":",
          "\"shards\":",
          "\"metadata\":",
          "\"training\":",
          "oar shard",
          "F64",
          "C128",
          "BOOL",
          "U4",
          "[0,0]",
          "[]",
          "{}",
          "..",
          "18446744073709551615",
          "9223372036854775807",
          "4611686018427387904",
          "float32[",
          "%w",
          "state",
          std::string(4, '\0'),
          std::string(8, '\xff')};
}
