#include "oar/interop/flatbuffer.h"

#include "oar/base/error.h"

namespace oar {
namespace {

[[noreturn]] void damaged_table(const char* what) {
  fail(ErrorKind::InvalidArgument, "the file is damaged: {}.\nhint: Copy or download it again.",
       what);
}

}  // namespace

FlatFile::FlatFile(std::string_view bytes, std::string_view identifier)
    : bytes_(bytes), left_(bytes.size()) {
  user_check(
      bytes.size() >= 8 && bytes.substr(4, 4) == identifier, ErrorKind::InvalidArgument,
      "the file is not of this format: the mark '{}' is missing.\nhint: Is it complete, and of the right kind?",
      identifier);
}

void FlatFile::check(size_t at, size_t size) const {
  if (at > bytes_.size() || size > bytes_.size() - at)
    damaged_table("something lies beyond its end");
}

void FlatFile::count(size_t elements) const {
  if (elements > left_) damaged_table("its lists are larger than the file");
  left_ -= elements;
}

FlatTable FlatFile::root() const {
  check(0, 4);
  uint32_t at = 0;
  std::memcpy(&at, bytes_.data(), 4);
  return {this, at};
}

FlatTable::FlatTable(const FlatFile* file, size_t at) : file_(file), at_(at) {
  const int64_t back = load<int32_t>(at);
  const int64_t fields = static_cast<int64_t>(at) - back;
  if (fields < 0) damaged_table("a table begins before the file");
  fields_ = static_cast<size_t>(fields);
  const auto bytes = load<uint16_t>(fields_);
  size_ = load<uint16_t>(fields_ + 2);
  if (bytes < 4 || bytes % 2 != 0) damaged_table("a table has no fields");
  file_->check(fields_, bytes);
  file_->check(at_, size_);
  field_count_ = (bytes - 4U) / 2;
}

size_t FlatTable::place_of(int field) const {
  if (static_cast<size_t>(field) >= field_count_) return 0;
  const auto offset = load<uint16_t>(fields_ + 4 + 2 * static_cast<size_t>(field));
  if (offset == 0) return 0;
  if (offset >= size_) damaged_table("a field lies beyond its table");
  return at_ + offset;
}

std::string_view FlatTable::elements(int field, size_t size, bool counted) const {
  const size_t place = place_of(field);
  if (place == 0) return {};
  const size_t at = place + load<uint32_t>(place);
  const size_t count = load<uint32_t>(at);
  if (counted) file_->count(count);
  file_->check(at + 4, count * size);
  return file_->bytes().substr(at + 4, count * size);
}

std::string_view FlatTable::bytes(int field) const { return elements(field, 1, false); }

FlatTable FlatTable::table(int field) const {
  const size_t place = place_of(field);
  if (place == 0) return {};
  return {file_, place + load<uint32_t>(place)};
}

std::vector<FlatTable> FlatTable::tables(int field) const {
  const std::string_view places = elements(field, 4, true);
  std::vector<FlatTable> list;
  list.reserve(places.size() / 4);
  for (size_t i = 0; i < places.size(); i += 4) {
    const auto at = static_cast<size_t>(places.data() + i - file_->bytes().data());
    list.push_back({file_, at + load<uint32_t>(at)});
  }
  return list;
}

}  // namespace oar
