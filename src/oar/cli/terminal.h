// Text for a person at a terminal: colours where they help, tables, wrapped lines.
#pragma once

#include <cstddef>
#include <iosfwd>
#include <string>
#include <string_view>
#include <vector>

namespace oar::cli {

enum class Style { Plain, Bold, Dim, Green, Yellow, Red };

// The text in a style, or unchanged if colours are off.
std::string styled(std::string_view text, Style style, bool color);

// Whether standard output is a terminal that shows colours. NO_COLOR is honoured.
bool wants_color();

// Columns of the terminal; 100 if there is none.
std::size_t terminal_width();

// Breaks at spaces. A word longer than the width gets its own line.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);

// Columns as wide as their widest cell; the last one is wrapped to what is left of the width.
// Without titles (all empty) there is no title line.
class Table {
 public:
  explicit Table(std::vector<std::string> titles) : titles_(std::move(titles)) {}
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  void print(std::ostream& out, bool color) const;

 private:
  std::vector<std::string> titles_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace oar::cli
