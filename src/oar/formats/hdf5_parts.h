// Inside hdf5*.cpp: numbers of a file, and the types of its arrays and attributes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/error.h"
#include "oar/tensor/dtype.h"

namespace oar {

[[noreturn]] void damaged_hdf5(std::string_view what);
[[noreturn]] void unread_hdf5(std::string_view what);  // Oar cannot read it

// The file, and how wide its addresses and lengths are.
struct Hdf5Bytes {
  std::string_view file;
  int offset_size = 8, length_size = 8;

  std::string_view at(uint64_t place, uint64_t size) const;
};

// Takes numbers from the beginning of some bytes.
class Hdf5Reader {
 public:
  Hdf5Reader(std::string_view rest, const Hdf5Bytes& bytes) : rest_(rest), bytes_(bytes) {}

  uint64_t number(int size);
  int byte() { return static_cast<int>(number(1)); }
  int word() { return static_cast<int>(number(2)); }
  // All ones, for nothing, stay all ones whatever the width.
  uint64_t offset();
  uint64_t length() { return number(bytes_.length_size); }
  std::string_view take(uint64_t size);
  void skip(uint64_t size) { take(size); }
  size_t left() const { return rest_.size(); }

 private:
  std::string_view rest_;
  const Hdf5Bytes& bytes_;
};

constexpr uint64_t kNoAddress = ~uint64_t{0};

struct Hdf5Message {
  enum Type : uint8_t {
    Dataspace = 1,
    Links = 2,
    Datatype = 3,
    Link = 6,
    Layout = 8,
    Filters = 11,
    Attribute = 12,
    Continuation = 16,
    SymbolTable = 17,
    Attributes = 21,
  };
  int type;
  bool shared;  // its content is elsewhere
  std::string_view content;
};

struct Hdf5Type {
  enum Class : uint8_t { Integer, Real, Text, LongText, Opaque, Other } kind = Other;
  uint64_t size = 0;
  bool is_signed = false, big_endian = false, is_flag = false;
};
Hdf5Type parse_hdf5_type(std::string_view message, const Hdf5Bytes& bytes);
DType dtype_of(const Hdf5Type& type);

std::vector<int64_t> parse_hdf5_sizes(std::string_view message, const Hdf5Bytes& bytes);
// The texts of an attribute or an array.
std::vector<std::string> hdf5_texts(std::string_view content, const Hdf5Type& type, int64_t count,
                                    const Hdf5Bytes& bytes);

struct Hdf5Array {
  std::vector<int64_t> sizes;
  uint64_t element = 0;  // bytes of one
  std::string_view layout, filters;
};
// Its elements in C order, as the file holds them.
std::string hdf5_elements(const Hdf5Array& array, const Hdf5Bytes& bytes);

}  // namespace oar
