#include <gtest/gtest.h>

#include <string>

#include "oar/base/crc32c.h"

namespace oar {
namespace {

TEST(Crc32c, KnownValues) {
  EXPECT_EQ(crc32c(""), 0u);
  EXPECT_EQ(crc32c("123456789"), 0xE3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62A8AB43u);
}

TEST(Crc32c, OfPieces) {
  std::string bytes;
  for (int i = 0; i < 100; ++i) bytes += static_cast<char>(i * 37);
  const uint32_t whole = crc32c(bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut)
    EXPECT_EQ(crc32c(std::string_view(bytes).substr(cut), crc32c(bytes.substr(0, cut))), whole);
}

}  // namespace
}  // namespace oar
