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

// ---- writing -----------------------------------------------------------------------------------

namespace {

template <class T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(T));
}

// What a file's header and the list at the end share: version, flags (names are UTF-8), method, time, checksum, sizes.
void append_entry(std::string& out, const std::string& name, const std::string& content) {
  constexpr uint16_t kFirstDay =
      (1 << 5) | 1;  // 1 January 1980: the same content gives the same bytes
  append_number<uint16_t>(out, 20);
  append_number<uint16_t>(out, 1 << 11);
  append_number<uint16_t>(out, 0);
  append_number<uint16_t>(out, 0);
  append_number<uint16_t>(out, kFirstDay);
  append_number<uint32_t>(out, crc32(content));
  append_number(out, static_cast<uint32_t>(content.size()));
  append_number(out, static_cast<uint32_t>(content.size()));
  append_number(out, static_cast<uint16_t>(name.size()));
  append_number<uint16_t>(out, 0);
}

}  // namespace

void save_npz(const std::string& path, const NamedTensors& arrays) {
  AtomicFile file(path);
  std::string list;
  uint64_t at = 0;
  for (const auto& [array, tensor] : arrays) {
    const std::string name = array + ".npy", content = npy_bytes(tensor);
    std::string header = "PK\x03\x04";
    append_entry(header, name, content);
    header += name;
    user_check(name.size() < 0xffff && at + header.size() + content.size() < 0xffff0000,
               ErrorKind::Unsupported,
               "\"{}\" would have more than 4 GB.\nhint: Write several files, or safetensors.",
               path);
    list += std::string("PK\x01\x02") + std::string("\x14\0", 2);
    append_entry(list, name, content);
    list.append(10, '\0');  // comment, disk, attributes
    append_number(list, static_cast<uint32_t>(at));
    list += name;
    file.write(header.data(), header.size());
    file.write(content.data(), content.size());
    at += header.size() + content.size();
  }
  std::string end = std::string("PK\x05\x06") + std::string(4, '\0');
  append_number(end, static_cast<uint16_t>(arrays.size()));
  append_number(end, static_cast<uint16_t>(arrays.size()));
  append_number(end, static_cast<uint32_t>(list.size()));
  append_number(end, static_cast<uint32_t>(at));
  append_number<uint16_t>(end, 0);
  file.write(list.data(), list.size());
  file.write(end.data(), end.size());
  file.commit();
}

}  // namespace oar
