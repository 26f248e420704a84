// Writes the wire format of Protocol Buffers (protobuf.h reads it).
//
//   ProtoWriter node;
//   node.text(4, "Relu");
//   ProtoWriter graph;
//   graph.message(1, node);
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "oar/base/api.h"

namespace OAR_API oar {

class ProtoWriter {
 public:
  void integer(int field, int64_t value);
  void float32(int field, float value);
  // A string, bytes or a message that is written already.
  void text(int field, std::string_view value);
  void message(int field, const ProtoWriter& value) { text(field, value.bytes_); }
  // A repeated number, packed.
  void integers(int field, std::span<const int64_t> values);
  void float32s(int field, std::span<const float> values);

  const std::string& bytes() const { return bytes_; }
  std::string take() { return std::move(bytes_); }

 private:
  void varint(uint64_t number);
  void key(int field, int wire) { varint(static_cast<uint64_t>(field) << 3 | unsigned(wire)); }

  std::string bytes_;
};

}  // namespace oar
