#include <array>
#include <vector>

#include "oar/base/error.h"
#include "oar/formats/zip.h"

namespace oar {
namespace {

[[noreturn]] void broken(const char* what) {
  fail(ErrorKind::InvalidArgument, "the packed data is damaged: {}.", what);
}

class Bits {
 public:
  explicit Bits(std::string_view data) : data_(data) {}
  uint32_t take(int count) {
    uint32_t value = 0;
    for (int i = 0; i < count; ++i, ++at_) {
      if (at_ / 8 >= data_.size()) broken("it ends too early");
      value |= ((static_cast<unsigned char>(data_[at_ / 8]) >> (at_ % 8)) & 1U) << i;
    }
    return value;
  }
  std::string_view bytes(size_t count) {
    const size_t from = (at_ + 7) / 8;
    if (from > data_.size() || count > data_.size() - from) broken("it ends too early");
    at_ = 8 * (from + count);
    return data_.substr(from, count);
  }
  void to_byte() { at_ = (at_ + 7) / 8 * 8; }

 private:
  std::string_view data_;
  size_t at_ = 0;
};

// A canonical Huffman code: how many codes have each length, and the symbols in order.
class Code {
 public:
  explicit Code(const std::vector<uint8_t>& lengths) {
    for (const uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    std::array<size_t, 16> next{};
    for (size_t i = 1; i < 16; ++i) next[i] = next[i - 1] + counts_[i - 1];
    symbols_.resize(lengths.size());
    for (size_t i = 0; i < lengths.size(); ++i)
      if (lengths[i] != 0) symbols_[next[lengths[i]]++] = static_cast<uint16_t>(i);
  }
  uint16_t read(Bits& bits) const {
    int64_t code = 0, first = 0, index = 0;
    for (size_t length = 1; length < 16; ++length) {
      code |= bits.take(1);
      const int64_t count = counts_[length];
      if (code - first < count) return symbols_[static_cast<size_t>(index + code - first)];
      index += count;
      first = (first + count) << 1;
      code <<= 1;
    }
    broken("a code does not exist");
  }

 private:
  std::array<int64_t, 16> counts_{};
  std::vector<uint16_t> symbols_;
};

// Symbols from 257 on stand for lengths of copies, and others for their distances: a start and some more bits.
constexpr uint16_t kLengths[29] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                   31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
constexpr uint8_t kLengthBits[29] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2,
                                     2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
constexpr uint16_t kDistances[30] = {1,    2,    3,    4,    5,    7,    9,    13,    17,    25,
                                     33,   49,   65,   97,   129,  193,  257,  385,   513,   769,
                                     1025, 1537, 2049, 3073, 4097, 6145, 8193, 12289, 16385, 24577};
constexpr uint8_t kOrder[19] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};

void copy_block(Bits& bits, const Code& symbols, const Code& distances, std::string& out,
                size_t size) {
  while (true) {
    const uint16_t symbol = symbols.read(bits);
    if (symbol == 256) return;
    if (symbol < 256) {
      if (out.size() >= size) broken("it is larger than stated");
      out += static_cast<char>(symbol);
      continue;
    }
    if (symbol > 285) broken("a length does not exist");
    const size_t length = kLengths[symbol - 257] + bits.take(kLengthBits[symbol - 257]);
    const uint16_t far = distances.read(bits);
    if (far > 29) broken("a distance does not exist");
    const size_t distance = kDistances[far] + bits.take(far < 2 ? 0 : far / 2 - 1);
    if (distance > out.size()) broken("it refers to what comes before its beginning");
    if (length > size - out.size()) broken("it is larger than stated");
    for (size_t i = 0; i < length; ++i) out += out[out.size() - distance];
  }
}

std::pair<Code, Code> read_codes(Bits& bits) {
  const size_t symbols = bits.take(5) + 257, distances = bits.take(5) + 1, given = bits.take(4) + 4;
  std::vector<uint8_t> of_lengths(19, 0);
  for (size_t i = 0; i < given; ++i) of_lengths[kOrder[i]] = static_cast<uint8_t>(bits.take(3));
  const Code code(of_lengths);
  std::vector<uint8_t> lengths;
  while (lengths.size() < symbols + distances) {
    const uint16_t symbol = code.read(bits);
    if (symbol < 16) {
      lengths.push_back(static_cast<uint8_t>(symbol));
      continue;
    }
    if (symbol == 16 && lengths.empty()) broken("it repeats nothing");
    const uint8_t repeated = symbol == 16 ? lengths.back() : 0;
    const size_t count = symbol == 16   ? 3 + bits.take(2)
                         : symbol == 17 ? 3 + bits.take(3)
                                        : 11 + bits.take(7);
    lengths.insert(lengths.end(), count, repeated);
  }
  if (lengths.size() != symbols + distances) broken("it has too many codes");
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(symbols);
  return {Code({lengths.begin(), middle}), Code({middle, lengths.end()})};
}

std::pair<Code, Code> fixed_codes() {
  std::vector<uint8_t> lengths(288, 8);
  for (size_t i = 144; i < 256; ++i) lengths[i] = 9;
  for (size_t i = 256; i < 280; ++i) lengths[i] = 7;
  return {Code(lengths), Code(std::vector<uint8_t>(30, 5))};
}

}  // namespace

std::string inflate(std::string_view packed, size_t size) {
  Bits bits(packed);
  std::string out;
  for (bool last = false; !last;) {
    last = bits.take(1) != 0;
    const uint32_t kind = bits.take(2);
    if (kind == 0) {
      bits.to_byte();
      const uint32_t length = bits.take(16), inverse = bits.take(16);
      if ((length ^ inverse) != 0xffff) broken("a length is wrong");
      if (length > size - out.size()) broken("it is larger than stated");
      out += bits.bytes(length);
    } else if (kind == 3) {
      broken("a block of an unknown kind");
    } else {
      const auto [symbols, distances] = kind == 1 ? fixed_codes() : read_codes(bits);
      copy_block(bits, symbols, distances, out, size);
    }
  }
  if (out.size() != size) broken("it is smaller than stated");
  return out;
}

}  // namespace oar
