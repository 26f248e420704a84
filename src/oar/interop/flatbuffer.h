// Flatbuffers: tables whose fields are found by number. Every offset and length is checked.
//
//   const FlatFile file(bytes, "TFL3");
//   for (const FlatTable& graph : file.root().tables(2)) …
//
// Tables may be shared, so a small file can describe much. What all lists of a file have together is limited by its size.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace oar {

class FlatFile;

// A table that is not there has no fields.
class FlatTable {
 public:
  FlatTable() = default;

  bool has(int field) const { return place_of(field) != 0; }
  template <class T>
  T number(int field, T otherwise) const {
    const size_t at = place_of(field);
    return at == 0 ? otherwise : load<T>(at);
  }
  bool flag(int field) const { return number<uint8_t>(field, 0) != 0; }
  // A string or a vector of bytes.
  std::string_view bytes(int field) const;
  template <class T>
  std::vector<T> numbers(int field) const {
    const std::string_view content = elements(field, sizeof(T), true);
    std::vector<T> list(content.size() / sizeof(T));
    if (!list.empty()) std::memcpy(list.data(), content.data(), content.size());
    return list;
  }
  FlatTable table(int field) const;
  std::vector<FlatTable> tables(int field) const;

 private:
  friend class FlatFile;
  FlatTable(const FlatFile* file, size_t at);

  size_t place_of(int field) const;  // 0 if it is not there
  std::string_view elements(int field, size_t size, bool counted) const;
  template <class T>
  T load(size_t at) const;

  const FlatFile* file_ = nullptr;
  size_t at_ = 0, fields_ = 0, field_count_ = 0, size_ = 0;
};

class FlatFile {
 public:
  // The bytes must outlive it, and it must outlive its tables.
  FlatFile(std::string_view bytes, std::string_view identifier);
  FlatFile(const FlatFile&) = delete;
  FlatFile& operator=(const FlatFile&) = delete;

  FlatTable root() const;
  std::string_view bytes() const { return bytes_; }
  // Damaged if the range is not inside of the file.
  void check(size_t at, size_t size) const;
  void count(size_t elements) const;

 private:
  std::string_view bytes_;
  mutable size_t left_;
};

template <class T>
T FlatTable::load(size_t at) const {
  file_->check(at, sizeof(T));
  T value;
  std::memcpy(&value, file_->bytes().data() + at, sizeof(T));
  return value;
}

}  // namespace oar
