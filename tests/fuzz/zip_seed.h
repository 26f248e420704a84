// Archives of a few files, whose checksums are right.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "oar/formats/checksum.h"

namespace fuzz {

inline std::string number(uint64_t value, int bytes) {
  return {reinterpret_cast<const char*>(&value), static_cast<size_t>(bytes)};
}

using Files = std::vector<std::pair<std::string, std::string>>;
inline std::string zipped(const Files& files) {
  std::string made, list;
  for (const auto& [name, content] : files) {
    const std::string what = number(20, 2) + number(0, 8) + number(oar::crc32(content), 4) +
                             number(content.size(), 4) + number(content.size(), 4) +
                             number(name.size(), 2) + number(0, 2);
    for (const std::string& part : {std::string("PK\1\2"), number(20, 2), what, number(0, 8),
                                    number(0, 2), number(made.size(), 4), name})
      list += part;
    for (const std::string& part : {std::string("PK\3\4"), what, name, content}) made += part;
  }
  const size_t at = made.size();
  return made + list + "PK\5\6" + number(0, 4) + number(files.size(), 2) + number(files.size(), 2) +
         number(list.size(), 4) + number(at, 4) + number(0, 2);
}

}  // namespace fuzz
