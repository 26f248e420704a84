#include "oar/formats/checksum.h"

#include <bit>
#include <cstring>

#include "oar/base/format.h"

namespace oar {
namespace {

constexpr uint32_t kRounds[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace

void Sha256::block(const unsigned char* data) {
  uint32_t w[64];
  for (int i = 0; i < 16; ++i) {
    std::memcpy(&w[i], data + 4 * i, 4);
    w[i] = __builtin_bswap32(w[i]);
  }
  for (int i = 16; i < 64; ++i) {
    const uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + w[i - 7] +
           (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  std::array<uint32_t, 8> s = state_;
  for (int i = 0; i < 64; ++i) {
    const uint32_t first = s[7] + (std::rotr(s[4], 6) ^ std::rotr(s[4], 11) ^ std::rotr(s[4], 25)) +
                           ((s[4] & s[5]) ^ (~s[4] & s[6])) + kRounds[i] + w[i];
    const uint32_t second = (std::rotr(s[0], 2) ^ std::rotr(s[0], 13) ^ std::rotr(s[0], 22)) +
                            ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    s = {first + second, s[0], s[1], s[2], s[3] + first, s[4], s[5], s[6]};
  }
  for (size_t i = 0; i < 8; ++i) state_[i] += s[i];
}

void Sha256::update(std::string_view data) {
  while (!data.empty()) {
    const size_t held = length_ % 64, taken = std::min<size_t>(64 - held, data.size());
    if (taken == 64) {
      block(reinterpret_cast<const unsigned char*>(data.data()));
    } else {
      std::memcpy(rest_.data() + held, data.data(), taken);
      if (held + taken == 64) block(rest_.data());
    }
    length_ += taken;
    data.remove_prefix(taken);
  }
}

std::string Sha256::hex() {
  const uint64_t bits = __builtin_bswap64(length_ * 8);
  const size_t held = length_ % 64;
  std::string tail(held < 56 ? 56 - held : 120 - held, '\0');
  tail[0] = '\x80';
  tail.append(reinterpret_cast<const char*>(&bits), 8);
  update(tail);
  std::string text;
  for (const uint32_t word : state_) text += format("{:08x}", word);
  return text;
}

std::string sha256(std::string_view data) {
  Sha256 sum;
  sum.update(data);
  return sum.hex();
}

uint32_t crc32(std::string_view data) {
  static const auto table = [] {
    std::array<uint32_t, 256> made{};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit)
        value = (value & 1) != 0 ? 0xedb88320 ^ (value >> 1) : value >> 1;
      made[i] = value;
    }
    return made;
  }();
  uint32_t sum = 0xffffffff;
  for (const char c : data) sum = table[(sum ^ static_cast<unsigned char>(c)) & 0xff] ^ (sum >> 8);
  return ~sum;
}

}  // namespace oar
