// Words of a TorchScript source, with the beginnings and ends of indented blocks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace oar::pytorch {

struct Token {
  enum Kind : uint8_t { Word, Number, Text, Sign, NewLine, Begin, End };
  Kind kind = NewLine;
  std::string text;  // of a text: its content
  int line = 0;
};

// The last one is a NewLine.
std::vector<Token> tokens_of(std::string_view source, const std::string& path);

[[noreturn]] void refuse_source(const std::string& path, int line, std::string_view what);

}  // namespace oar::pytorch
