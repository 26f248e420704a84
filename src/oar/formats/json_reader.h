// Reads JSON (RFC 8259) piece by piece, as the caller expects it. For text that may be hostile:
// nothing is read beyond the end, nothing nests without limit, and text must be valid UTF-8.
//
//   JsonReader json(text);
//   json.object([&](const std::string& key) {
//     if (key == "shape") json.array([&] { shape.push_back(json.integer()); });
//     else json.skip();
//   });
//   json.end();
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "oar/base/api.h"
#include "oar/base/function_ref.h"

namespace OAR_API oar {

class JsonReader {
 public:
  explicit JsonReader(std::string_view text) : text_(text) {}

  // Calls member(key) before each value, which it must read. A duplicate key is an
  // error: otherwise two readers could read different things.
  void object(FunctionRef<void(const std::string& key)> member);
  void array(FunctionRef<void()> element);
  std::string string();
  // A number without fraction or exponent, from 0 to 2^63 - 1.
  int64_t unsigned_integer();
  // Any number. An integer is exact if an int64_t can hold it.
  struct Number {
    double value = 0;
    std::optional<int64_t> integer;
  };
  Number number();
  bool boolean();
  // The first character of the next value; 0 at the end.
  char next() { return peek(); }
  // Any value, checked like the others.
  void skip();
  // An error unless only white space is left.
  void end();

  // InvalidArgument with the position.
  [[noreturn]] void error(std::string_view expected) const;

 private:
  char peek();
  bool accept(char c);
  void expect(char c, std::string_view what);
  void enter();
  void literal(std::string_view word);
  void skip_number();
  uint32_t hex4();
  void append_escape(std::string& out);
  void append_utf8(std::string& out);

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

// The text as a JSON string, with its quotes.
std::string json_quoted(std::string_view text);

// Well-formed UTF-8: no overlong forms, no surrogates, nothing beyond U+10FFFF.
bool is_utf8(std::string_view text);

}  // namespace oar
