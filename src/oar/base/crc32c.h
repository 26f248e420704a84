// The checksum of record files: CRC-32C (Castagnoli).
#pragma once

#include <cstdint>
#include <string_view>

#include "oar/base/api.h"

namespace OAR_API oar {

// Of the bytes; `before` is the checksum of those that precede them.
uint32_t crc32c(std::string_view bytes, uint32_t before = 0);

}  // namespace oar
