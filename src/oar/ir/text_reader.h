// Reads the words of a program's text; errors name the position.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "oar/base/api.h"
#include "oar/tensor/dim.h"

namespace OAR_API oar {

// A letter or _, then letters, digits, _ and . Other names are quoted.
bool is_plain_name(std::string_view text);

class TextReader {
 public:
  explicit TextReader(std::string_view text) : text_(text) {}

  // Error at the current position.
  [[noreturn]] void fail_here(const std::string& problem) const;
  [[noreturn]] void expected(std::string_view what) const;

  bool at_end();
  // The next character after blanks and line ends; 0 at the end.
  char peek();
  // Consumes the word or sign if it comes next.
  bool accept(std::string_view word);
  void expect(std::string_view word);
  bool at_word(std::string_view word);

  std::string name();         // a plain one
  std::string any_name();     // a plain one, or any in quotes
  std::string label();        // %name, %12 or %"any name", without % and the last quote
  int64_t integer();          // with an optional minus
  int64_t number();           // any integer of 64 bits
  std::string number_word();  // the characters of a number: sign, digits, ., e, inf, nan
  std::string string();       // "…" with \" \\ and \n
  // The text after # up to the end of this line, or empty.
  std::string comment();

  // A size: 12, B, 2*B + 1, floordiv(B, 2), min(B, 4), … Symbols come from `symbols`; new ones are added.
  Dim dim(std::unordered_map<std::string, Dim>& symbols);

 private:
  void skip_blanks();
  Dim term(std::unordered_map<std::string, Dim>& symbols);
  Dim factor(std::unordered_map<std::string, Dim>& symbols);

  std::string_view text_;
  size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace oar
