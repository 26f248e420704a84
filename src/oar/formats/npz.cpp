#include "oar/formats/npz.h"

#include <cstring>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/formats/checksum.h"
#include "oar/formats/npy.h"

namespace oar {
namespace {

[[noreturn]] void damaged_zip(const char* what) {
  fail(ErrorKind::InvalidArgument, "the file is no .npz file that can be read: {}.", what);
}

template <class T>
T number_at(std::string_view file, size_t at) {
  if (at > file.size() || sizeof(T) > file.size() - at) damaged_zip("it ends too early");
  T value;
  std::memcpy(&value, file.data() + at, sizeof(T));
  return value;
}

// The list of files at the end of a zip file: its place and the number of entries.
std::pair<size_t, size_t> directory_in(std::string_view file) {
  const size_t end = file.rfind("PK\x05\x06");
  if (end == std::string_view::npos || end + 22 > file.size())
    damaged_zip("it has no list of arrays");
  return {number_at<uint32_t>(file, end + 16), number_at<uint16_t>(file, end + 10)};
}

// The extra field with 64-bit sizes, which NumPy writes for every array: replaces the sizes that are all ones.
void take_wide_sizes(std::string_view extra, uint64_t& size, uint64_t& packed) {
  for (size_t at = 0; at + 4 <= extra.size(); at += 4U + number_at<uint16_t>(extra, at + 2)) {
    if (number_at<uint16_t>(extra, at) != 1) continue;
    size_t next = at + 4;
    for (uint64_t* value : {&size, &packed})
      if (*value == 0xffffffff) {
        *value = number_at<uint64_t>(extra, next);
        next += 8;
      }
  }
}

}  // namespace

NamedTensors parse_npz(std::string_view file) {
  NamedTensors arrays;
  auto [at, count] = directory_in(file);
  for (size_t i = 0; i < count; ++i) {
    if (number_at<uint32_t>(file, at) != 0x02014b50) damaged_zip("its list of arrays is broken");
    const auto method = number_at<uint16_t>(file, at + 10);
    const auto sum = number_at<uint32_t>(file, at + 16);
    uint64_t packed = number_at<uint32_t>(file, at + 20), size = number_at<uint32_t>(file, at + 24);
    const size_t name_size = number_at<uint16_t>(file, at + 28),
                 extra_size = number_at<uint16_t>(file, at + 30),
                 note_size = number_at<uint16_t>(file, at + 32);
    const size_t local = number_at<uint32_t>(file, at + 42);
    if (name_size + extra_size > file.size() - at - 46) damaged_zip("it ends too early");
    std::string name(file.substr(at + 46, name_size));
    take_wide_sizes(file.substr(at + 46 + name_size, extra_size), size, packed);
    const size_t data =
        local + 30U + number_at<uint16_t>(file, local + 26) + number_at<uint16_t>(file, local + 28);
    if (data > file.size() || packed > file.size() - data) damaged_zip("an array ends too early");
    if (method != 0 && method != 8) damaged_zip("an array is packed in an unknown way");
    const std::string_view stored = file.substr(data, packed);
    const std::string content = method == 8 ? inflate(stored, size) : std::string(stored);
    if (crc32(content) != sum) damaged_zip("an array has another checksum");
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    arrays[name] = parse_npy(content);
    at += 46 + name_size + extra_size + note_size;
  }
  return arrays;
}

NamedTensors load_npz(const std::string& path) {
  const std::string content = read_file(path);
  try {
    return parse_npz(content);
  } catch (const Error& error) {
    fail(error.kind(), "\"{}\" cannot be loaded: {}\nhint: {}", path, error.text(), error.hint());
  }
}

}  // namespace oar
