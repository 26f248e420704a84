#include "oar/interop/tensorflow/checkpoint.h"

#include <array>
#include <bit>
#include <cstdio>
#include <cstring>

#include "oar/base/error.h"
#include "oar/interop/protobuf.h"
#include "oar/interop/tensorflow/graph_def.h"

namespace oar::tensorflow {
namespace {

[[noreturn]] void damaged(std::string_view what) {
  fail(ErrorKind::InvalidArgument,
       "the index of the variables is damaged: {}.\nhint: Copy or download it again.", what);
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
T number_at(std::string_view bytes, size_t at) {
  T number;
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) damaged("it ends too early");
  std::memcpy(&number, bytes.data() + at, sizeof(T));
  return number;
}

// Checksums in these files are of Castagnoli's polynomial, rotated.
uint32_t checksum(std::string_view bytes) {
  static const auto kTable = [] {
    std::array<uint32_t, 256> table{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t word = i;
      for (int bit = 0; bit < 8; ++bit) word = word >> 1 ^ ((word & 1) != 0 ? 0x82f63b78U : 0U);
      table[i] = word;
    }
    return table;
  }();
  uint32_t word = ~0U;
  for (const char c : bytes) word = kTable[(word ^ static_cast<uint8_t>(c)) & 0xff] ^ word >> 8;
  return std::rotr(~word, 15) + 0xa282ead8U;
}

// A block, with a byte that says how it is packed and a checksum after it.
std::string_view block_at(std::string_view file, std::string_view& handle) {
  constexpr uint64_t kAfter = 5;
  const uint64_t at = take_varint(handle), size = take_varint(handle);
  if (at > file.size() || size > file.size() - at || file.size() - at - size < kAfter)
    damaged("a block lies outside of the file");
  const auto how = static_cast<uint8_t>(file[at + size]);
  user_check(how == 0, ErrorKind::Unsupported,
             "the index of the variables is packed, which Oar cannot read.");
  if (number_at<uint32_t>(file, at + size + 1) != checksum(file.substr(at, size + 1)))
    damaged("a checksum is wrong");
  return file.substr(at, size);
}

// Keys share their beginning with the key before them.
template <class F>
void for_each_entry(std::string_view block, F&& entry) {
  const auto restarts =
      number_at<uint32_t>(block, block.size() - std::min<size_t>(block.size(), 4));
  if (block.size() < 4 || restarts > (block.size() - 4) / 4) damaged("a block has no end");
  std::string_view rest = block.substr(0, block.size() - 4 - size_t{4} * restarts);
  std::string key;
  while (!rest.empty()) {
    const uint64_t shared = take_varint(rest), own = take_varint(rest), size = take_varint(rest);
    if (shared > key.size() || own > rest.size() || size > rest.size() - own)
      damaged("an entry is longer than its block");
    key.resize(shared);
    key += rest.substr(0, own);
    entry(key, rest.substr(own, size));
    rest.remove_prefix(own + size);
  }
}

struct Entry {
  int64_t type = 0, shard = 0, offset = 0, size = 0;
  std::vector<int64_t> shape;
  uint32_t checksum = 0;
  bool sliced = false;
};

Entry parse_entry(std::string_view message) {
  Entry e;
  for (ProtoReader r(message); r.next();) switch (r.field()) {
      case 1:
        e.type = r.integer();
        break;
      case 2:
        e.shape = parse_shape(r.bytes()).value_or(std::vector<int64_t>{-1});
        break;
      case 3:
        e.shard = r.integer();
        break;
      case 4:
        e.offset = r.integer();
        break;
      case 5:
        e.size = r.integer();
        break;
      case 6:
        e.checksum = std::bit_cast<uint32_t>(r.float32());
        break;
      case 7:
        e.sliced = true;
        break;
      default:
        break;
    }
  return e;
}

}  // namespace

std::map<std::string, std::string> parse_table(std::string_view file) {
  constexpr size_t kFooter = 48;
  constexpr uint64_t kMark = 0xdb4775248b80fb57;
  if (file.size() < kFooter) damaged("it is too short");
  std::string_view footer = file.substr(file.size() - kFooter);
  if (number_at<uint64_t>(footer, kFooter - 8) != kMark) damaged("it lacks the mark at its end");
  take_varint(footer);  // of the table's own notes
  take_varint(footer);
  std::map<std::string, std::string> entries;
  // A hostile index may name one block many times.
  size_t blocks = 0, most = file.size() / 8 + 1;
  for_each_entry(block_at(file, footer), [&](const std::string&, std::string_view handle) {
    if (++blocks > most) damaged("it has more blocks than room");
    for_each_entry(block_at(file, handle), [&](const std::string& key, std::string_view value) {
      if (!entries.emplace(key, value).second) damaged("a name is there twice");
    });
  });
  return entries;
}

Checkpoint::Checkpoint(Read read) : read_(std::move(read)) {
  entries_ = parse_table(read_(".index"));
  const auto header = entries_.find("");
  user_check(header != entries_.end(), ErrorKind::InvalidArgument,
             "the index of the variables has no header.");
  for (ProtoReader r(header->second); r.next();) {
    if (r.field() == 1) shards_ = r.integer();
    user_check(r.field() != 2 || r.integer() == 0, ErrorKind::Unsupported,
               "the variables are of a machine with the highest byte first.");
  }
  user_check(shards_ >= 1 && shards_ <= 99999, ErrorKind::InvalidArgument,
             "the index of the variables names {} files.", shards_);
}

const std::string& Checkpoint::shard(int64_t number) {
  user_check(number >= 0 && number < shards_, ErrorKind::InvalidArgument,
             "the index of the variables names the file {} of {}.", number, shards_);
  const auto found = content_.find(number);
  if (found != content_.end()) return found->second;
  char ending[40];
  std::snprintf(ending, sizeof(ending), ".data-%05d-of-%05d", static_cast<int>(number),
                static_cast<int>(shards_));
  return content_[number] = read_(ending);
}

Tensor Checkpoint::tensor(const std::string& name) {
  const auto found = entries_.find(name);
  user_check(found != entries_.end(), ErrorKind::InvalidArgument,
             "the checkpoint has no variable '{}'.", name);
  const Entry e = parse_entry(found->second);
  const std::string what = format("the variable '{}'", name);
  user_check(!e.sliced, ErrorKind::Unsupported, "{} is stored in several slices.", what);
  const DType dtype = dtype_of(e.type, what);
  const std::string& content = shard(e.shard);
  user_check(e.offset >= 0 && e.size >= 0 && static_cast<uint64_t>(e.offset) <= content.size() &&
                 static_cast<uint64_t>(e.size) <= content.size() - static_cast<uint64_t>(e.offset),
             ErrorKind::InvalidArgument, "{} lies outside of its file, which has {} bytes.", what,
             content.size());
  const std::string_view bytes =
      std::string_view(content).substr(static_cast<size_t>(e.offset), static_cast<size_t>(e.size));
  user_check(checksum(bytes) == e.checksum, ErrorKind::InvalidArgument,
             "{} has a wrong checksum: its file is damaged.", what);
  return tensor_of_bytes(bytes, e.shape, dtype, what);
}

}  // namespace oar::tensorflow
