#include "oar/interop/proto_writer.h"

#include <cstring>

namespace oar {
namespace {
constexpr int kVarint = 0, kLength = 2, kFixed32 = 5;
}

void ProtoWriter::varint(uint64_t number) {
  while (number >= 0x80) {
    bytes_.push_back(static_cast<char>((number & 0x7f) | 0x80));
    number >>= 7;
  }
  bytes_.push_back(static_cast<char>(number));
}

void ProtoWriter::integer(int field, int64_t value) {
  key(field, kVarint);
  varint(static_cast<uint64_t>(value));
}

void ProtoWriter::float32(int field, float value) {
  key(field, kFixed32);
  char raw[sizeof(float)];
  std::memcpy(raw, &value, sizeof(float));
  bytes_.append(raw, sizeof(float));
}

void ProtoWriter::text(int field, std::string_view value) {
  key(field, kLength);
  varint(value.size());
  bytes_.append(value);
}

void ProtoWriter::integers(int field, std::span<const int64_t> values) {
  ProtoWriter packed;
  for (const int64_t value : values) packed.varint(static_cast<uint64_t>(value));
  text(field, packed.bytes_);
}

void ProtoWriter::float32s(int field, std::span<const float> values) {
  text(field, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
}

}  // namespace oar
