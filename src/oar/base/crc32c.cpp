#include "oar/base/crc32c.h"

#include <array>
#include <bit>
#include <cstring>

namespace oar {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // bits reversed
using Tables = std::array<std::array<uint32_t, 256>, 8>;

// Table k advances a byte that is followed by k others, so that eight bytes take one step.
Tables make_tables() {
  Tables tables{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ (value & 1 ? kPolynomial : 0);
    tables[0][i] = value;
  }
  for (uint32_t i = 0; i < 256; ++i)
    for (size_t k = 1; k < 8; ++k)
      tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 255];
  return tables;
}
// Computed at the first use: as constants they would be 8 KB of every library.
const Tables& tables() {
  static const Tables made = make_tables();
  return made;
}

}  // namespace

uint32_t crc32c(std::string_view bytes, uint32_t before) {
  static_assert(std::endian::native == std::endian::little);
  const Tables& table = tables();
  uint32_t value = ~before;
  const char* at = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, at += 8) {
    uint64_t word;
    std::memcpy(&word, at, 8);
    word ^= value;
    value = 0;
    for (size_t k = 0; k < 8; ++k) value ^= table[7 - k][(word >> (8 * k)) & 255];
  }
  for (; left > 0; --left, ++at)
    value = (value >> 8) ^ table[0][(value ^ static_cast<unsigned char>(*at)) & 255];
  return ~value;
}

}  // namespace oar
