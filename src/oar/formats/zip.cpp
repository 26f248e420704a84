#include "oar/formats/zip.h"

#include <cstring>

#include "oar/base/error.h"
#include "oar/formats/checksum.h"

namespace oar {
namespace {

// Deflated data grows at most about a thousandfold.
constexpr uint64_t kMostGrowth = 1040;
constexpr std::string_view kEnd = "PK\x05\x06", kWideEnd = "PK\x06\x06";

[[noreturn]] void damaged_zip(std::string_view what) {
  fail(ErrorKind::InvalidArgument, "the zip archive is damaged: {}.", what);
}

template <class T>
T number_at(std::string_view file, uint64_t at) {
  if (at > file.size() || sizeof(T) > file.size() - at) damaged_zip("it ends too early");
  T value;
  std::memcpy(&value, file.data() + at, sizeof(T));
  return value;
}

struct Directory {
  uint64_t at = 0, count = 0;
};

// The list of files at the end of the archive.
Directory directory_in(std::string_view file) {
  const size_t end = file.rfind(kEnd);
  if (end == std::string_view::npos || end + 22 > file.size())
    damaged_zip("it has no list of its files");
  Directory found{number_at<uint32_t>(file, end + 16), number_at<uint16_t>(file, end + 10)};
  if (found.at != 0xffffffff && found.count != 0xffff) return found;
  if (end < 20 || number_at<uint32_t>(file, end - 20) != 0x07064b50) return found;
  const auto wide = number_at<uint64_t>(file, end - 12);
  if (wide > file.size() || !file.substr(wide).starts_with(kWideEnd))
    damaged_zip("its list of files is not where it should be");
  return {number_at<uint64_t>(file, wide + 48), number_at<uint64_t>(file, wide + 32)};
}

// The extra field with 64-bit numbers replaces those that are all ones.
void take_wide_numbers(std::string_view extra, std::initializer_list<uint64_t*> numbers) {
  for (uint64_t at = 0; at + 4 <= extra.size(); at += 4U + number_at<uint16_t>(extra, at + 2)) {
    if (number_at<uint16_t>(extra, at) != 1) continue;
    uint64_t next = at + 4;
    for (uint64_t* value : numbers)
      if (*value == 0xffffffff) {
        *value = number_at<uint64_t>(extra, next);
        next += 8;
      }
  }
}

}  // namespace

ZipFile::ZipFile(std::string_view file) : file_(file) {
  auto [at, count] = directory_in(file);
  for (uint64_t i = 0; i < count; ++i) {
    if (number_at<uint32_t>(file, at) != 0x02014b50) damaged_zip("its list of files is broken");
    Entry entry;
    const auto method = number_at<uint16_t>(file, at + 10);
    entry.sum = number_at<uint32_t>(file, at + 16);
    entry.packed = number_at<uint32_t>(file, at + 20);
    entry.size = number_at<uint32_t>(file, at + 24);
    const size_t name_size = number_at<uint16_t>(file, at + 28),
                 extra_size = number_at<uint16_t>(file, at + 30),
                 note_size = number_at<uint16_t>(file, at + 32);
    uint64_t local = number_at<uint32_t>(file, at + 42);
    if (name_size + extra_size > file.size() - at - 46) damaged_zip("it ends too early");
    entry.name = file.substr(at + 46, name_size);
    take_wide_numbers(file.substr(at + 46 + name_size, extra_size),
                      {&entry.size, &entry.packed, &local});
    if (local > file.size()) damaged_zip("a file is beyond its end");
    entry.place =
        local + 30U + number_at<uint16_t>(file, local + 26) + number_at<uint16_t>(file, local + 28);
    if (entry.place > file.size() || entry.packed > file.size() - entry.place)
      damaged_zip("a file ends too early");
    if (method != 0 && method != 8) damaged_zip("a file is packed in an unknown way");
    entry.deflated = method == 8;
    if (entry.deflated ? entry.size / kMostGrowth > entry.packed : entry.size != entry.packed)
      damaged_zip("a file has another size than stated");
    if (!by_name_.emplace(entry.name, entries_.size()).second)
      damaged_zip("two files have the same name");
    entries_.push_back(std::move(entry));
    at += 46 + name_size + extra_size + note_size;
  }
}

const ZipFile::Entry* ZipFile::find(std::string_view name) const {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : &entries_[found->second];
}

std::string ZipFile::content(const Entry& entry) const {
  const std::string_view stored = file_.substr(entry.place, entry.packed);
  std::string content = entry.deflated ? inflate(stored, entry.size) : std::string(stored);
  if (crc32(content) != entry.sum) damaged_zip(format("'{}' has another checksum", entry.name));
  return content;
}

bool is_zip(std::string_view file) { return file.starts_with("PK\x03\x04"); }

}  // namespace oar
