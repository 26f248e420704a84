// The wire format of Protocol Buffers: a message is a list of (field number, value).
//
//   for (ProtoReader message(bytes); message.next();)
//     switch (message.field()) {
//       case 1: model.version = message.integer(); break;
//       case 7: model.graph = parse_graph(message.bytes()); break;
//     }
//
// Values that are not read are skipped. A length that points outside of the message is an error.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "oar/base/api.h"

namespace OAR_API oar {

class ProtoReader {
 public:
  // The bytes must outlive the reader and what it returns.
  explicit ProtoReader(std::string_view message) : rest_(message) {}

  // Moves to the next field; false at the end.
  bool next();
  int field() const { return field_; }

  int64_t integer() const;
  float float32() const;
  double float64() const;
  // A nested message, a string or bytes.
  std::string_view bytes() const;
  std::string text() const { return std::string(bytes()); }
  // A repeated number: one value, or all of them packed into one field.
  void append(std::vector<int64_t>& list) const;
  void append(std::vector<float>& list) const;
  void append(std::vector<double>& list) const;

 private:
  enum Wire : uint8_t { Varint = 0, Fixed64 = 1, Length = 2, Fixed32 = 5 };
  void expect(Wire wire) const;

  std::string_view rest_;
  std::string_view content_;  // of a field with a length
  uint64_t number_ = 0;       // of the others
  int field_ = 0;
  Wire wire_ = Varint;
};

}  // namespace oar
