// Checksums of files and of tensors.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "oar/base/api.h"

namespace OAR_API oar {

// SHA-256 of content that comes in pieces (FIPS 180-4).
class Sha256 {
 public:
  void update(std::string_view data);
  std::string hex();  // of everything so far; ends it

 private:
  void block(const unsigned char* data);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<unsigned char, 64> rest_{};
  uint64_t length_ = 0;
};
std::string sha256(std::string_view data);

// CRC-32 as in zip files.
uint32_t crc32(std::string_view data);

}  // namespace oar
