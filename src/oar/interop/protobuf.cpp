#include "oar/interop/protobuf.h"

#include <bit>
#include <cstring>

#include "oar/base/error.h"

namespace oar {
namespace {

[[noreturn]] void damaged(const char* what) {
  fail(ErrorKind::InvalidArgument, "the file is damaged: {}.\nhint: Copy or download it again.",
       what);
}

uint64_t take_varint(std::string_view& rest) {
  uint64_t number = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (rest.empty()) damaged("it ends inside of a number");
    const auto byte = static_cast<uint8_t>(rest.front());
    rest.remove_prefix(1);
    number |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if (byte < 0x80) return number;
  }
  damaged("a number has more than ten bytes");
}

template <class T>
T take_fixed(std::string_view& rest) {
  if (rest.size() < sizeof(T)) damaged("it ends inside of a number");
  T number;
  const std::string_view bytes = rest.substr(0, sizeof(T));
  std::memcpy(&number, bytes.data(), bytes.size());
  rest.remove_prefix(bytes.size());
  return number;
}

template <class Word, class T>
void append_packed(std::string_view content, std::vector<T>& list) {
  if (content.size() % sizeof(Word) != 0) damaged("a list of numbers has the wrong length");
  const size_t count = content.size() / sizeof(Word), before = list.size();
  list.resize(before + count);
  if (count > 0) std::memcpy(list.data() + before, content.data(), content.size());
}

}  // namespace

bool ProtoReader::next() {
  if (rest_.empty()) return false;
  const uint64_t key = take_varint(rest_);
  const uint64_t field = key >> 3;
  if (field == 0 || field > 0x1fffffff) damaged("a field has an impossible number");
  field_ = static_cast<int>(field);
  switch (key & 7) {
    case Varint:
      number_ = take_varint(rest_);
      break;
    case Fixed64:
      number_ = take_fixed<uint64_t>(rest_);
      break;
    case Fixed32:
      number_ = take_fixed<uint32_t>(rest_);
      break;
    case Length: {
      const uint64_t size = take_varint(rest_);
      if (size > rest_.size()) damaged("a field is longer than the rest of the message");
      content_ = rest_.substr(0, size);
      rest_.remove_prefix(size);
      break;
    }
    default:
      damaged("a field has an unknown kind");
  }
  wire_ = static_cast<Wire>(key & 7);
  return true;
}

void ProtoReader::expect(Wire wire) const {
  if (wire_ != wire) damaged("a field has another kind than the format says");
}

int64_t ProtoReader::integer() const {
  expect(Varint);
  return static_cast<int64_t>(number_);
}

float ProtoReader::float32() const {
  expect(Fixed32);
  return std::bit_cast<float>(static_cast<uint32_t>(number_));
}

double ProtoReader::float64() const {
  expect(Fixed64);
  return std::bit_cast<double>(number_);
}

std::string_view ProtoReader::bytes() const {
  expect(Length);
  return content_;
}

void ProtoReader::append(std::vector<int64_t>& list) const {
  if (wire_ != Length) {
    list.push_back(integer());
    return;
  }
  for (std::string_view rest = content_; !rest.empty();)
    list.push_back(static_cast<int64_t>(take_varint(rest)));
}

void ProtoReader::append(std::vector<float>& list) const {
  if (wire_ == Length)
    append_packed<float>(content_, list);
  else
    list.push_back(float32());
}

void ProtoReader::append(std::vector<double>& list) const {
  if (wire_ == Length)
    append_packed<double>(content_, list);
  else
    list.push_back(float64());
}

}  // namespace oar
