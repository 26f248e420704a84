// Files of the `.oar` format, put together from their parts; nothing of the library but the checksum.
#pragma once

#include <cstring>
#include <string>

#include "oar/base/crc32c.h"

namespace oar {

struct OarPreamble {
  uint16_t major = 1, minor = 0;
  uint32_t features = 0;
  int64_t header_more = 0, file_more = 0;  // lies about sizes
};

inline std::string oar_bytes(const std::string& header, const std::string& data,
                             OarPreamble p = {}) {
  std::string file("\x89OAR\r\n\x1a\n");
  const auto put = [&](auto number) {
    file.append(reinterpret_cast<const char*>(&number), sizeof(number));
  };
  const size_t data_at = (64 + header.size() + 4095) / 4096 * 4096;
  const size_t size = data.empty() ? 64 + header.size() : data_at + data.size();
  put(p.major);
  put(p.minor);
  put(p.features);
  put(static_cast<uint64_t>(header.size()) + static_cast<uint64_t>(p.header_more));
  put(static_cast<uint64_t>(size) + static_cast<uint64_t>(p.file_more));
  put(crc32c(header));
  file.resize(60, '\0');
  put(crc32c(file));
  file += header;
  if (!data.empty()) file.resize(data_at, '\0');
  return file + data;
}

// The checksums of preamble and header, as the bytes are now.
inline void repair_oar(std::string& file) {
  if (file.size() < 64) return;
  uint64_t header = 0;
  std::memcpy(&header, file.data() + 16, 8);
  const uint64_t size = file.size();
  std::memcpy(file.data() + 24, &size, 8);
  if (header <= size - 64) {
    const uint32_t sum = crc32c(std::string_view(file).substr(64, header));
    std::memcpy(file.data() + 32, &sum, 4);
  }
  const uint32_t sum = crc32c(std::string_view(file).substr(0, 60));
  std::memcpy(file.data() + 60, &sum, 4);
}

}  // namespace oar
