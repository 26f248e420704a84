// Any bytes at all: either an Error, or tensors inside the file.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driver.h"
#include "oar/base/error.h"
#include "oar/formats/safetensors.h"

namespace {

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

std::string file_of(const std::string& header, const std::string& data) {
  std::string file(8, '\0');
  const uint64_t size = header.size();
  std::memcpy(file.data(), &size, 8);
  return file + header + data;
}

// Loads from a file in memory and reads every element.
void load(std::string_view bytes) {
  const int fd = memfd_create("fuzz", 0);
  if (fd < 0 || write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size()))
    broken("cannot make a file");
  try {
    double sum = 0;
    for (const auto& [name, tensor] : oar::load_safetensors("/proc/self/fd/" + std::to_string(fd)))
      for (const double value : tensor.to_vector<double>()) sum += value;
    [[maybe_unused]] volatile double sink = sum;
  } catch (const oar::Error& error) {
    if (error.kind() == oar::ErrorKind::Internal) broken(error.what());
  }
  close(fd);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  // A copy of exactly this size, so that a sanitizer sees a read beyond it.
  const std::vector<char> exact(data, data + size);
  const std::string_view file(exact.data(), exact.size());
  try {
    size_t position = 0;
    for (const auto& entry : oar::parse_safetensors(file).entries) {
      if (entry.begin > entry.end || entry.end > size) broken("a tensor is outside the file");
      if (entry.begin < position) broken("tensors overlap");
      position = entry.end;
      const auto bits = static_cast<size_t>(entry.shape.numel().value() * entry.bits);
      if ((bits + 7) / 8 != entry.end - entry.begin)
        broken("a tensor has another size than its place");
    }
  } catch (const oar::Error& error) {
    if (error.kind() == oar::ErrorKind::Internal) broken(error.what());
    return 0;
  }
  load(file);
  return 0;
}

std::vector<std::string> seeds() {
  return {
      file_of("{}", ""),
      file_of(R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]}}   )",
              std::string(24, 'x')),
      file_of(R"({"__metadata__":{"format":"pt","é":"\u00e9\n\ud83d\ude00"},)"
              R"("w":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
              R"("b":{"dtype":"BOOL","shape":[],"data_offsets":[8,9]},)"
              R"("h":{"dtype":"BF16","shape":[0,7],"data_offsets":[9,9]}})",
              std::string(9, '\1')),
      file_of(
          R"({"x":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,3],"more":[1.5e-3,null,{"a":true}]}})",
          "abc"),
  };
}

std::vector<std::string> dictionary() {
  return {"\"dtype\":",
          "\"shape\":",
          "\"data_offsets\":",
          "\"__metadata__\":",
          "F64",
          "C128",
          "I8",
          "U16",
          "BOOL",
          "[0,0]",
          "[]",
          "{}",
          "18446744073709551615",
          "9223372036854775807",
          "4611686018427387904",
          "\\ud800",
          "\\u0000",
          "\"",
          "1e400",
          "-1",
          "null",
          "[[[[[[[["};
}
