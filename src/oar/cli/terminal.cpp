#include "oar/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <ostream>

#include "oar/base/string_util.h"

namespace oar::cli {
namespace {

// Columns that a text takes: bytes that continue a UTF-8 character take none.
std::size_t width_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string padded(std::string_view text, std::size_t width) {
  std::string out(text);
  out.append(width - std::min(width, width_of(text)), ' ');
  return out;
}

}  // namespace

std::string styled(std::string_view text, Style style, bool color) {
  static constexpr std::string_view kCodes[] = {"", "1", "2", "32", "33", "31"};
  if (!color || style == Style::Plain) return std::string(text);
  std::string out = "\033[";
  out.append(kCodes[static_cast<std::size_t>(style)]).append("m").append(text).append("\033[0m");
  return out;
}

bool wants_color() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  return isatty(STDOUT_FILENO) == 1 && (no_color == nullptr || *no_color == '\0') &&
         !(terminal != nullptr && std::string_view(terminal) == "dumb");
}

std::size_t terminal_width() {
  winsize size{};
  if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) return size.ws_col;
  return 100;
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  for (const std::string_view word : split(text, ' ')) {
    if (!lines.back().empty() && width_of(lines.back()) + 1 + width_of(word) > width)
      lines.emplace_back();
    if (!lines.back().empty()) lines.back() += ' ';
    lines.back() += word;
  }
  return lines;
}

void Table::print(std::ostream& out, bool color) const {
  const std::size_t columns = titles_.size();
  std::vector<std::size_t> widths(columns);
  for (std::size_t i = 0; i < columns; ++i) {
    widths[i] = width_of(titles_[i]);
    for (const auto& row : rows_) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  std::size_t indent = 0;
  for (std::size_t i = 0; i + 1 < columns; ++i) indent += widths[i] + 2;
  const std::size_t width = terminal_width();
  const std::size_t room = width > indent + 30 ? width - indent : 30;

  const auto print_row = [&](const std::vector<std::string>& row, Style style) {
    for (std::size_t i = 0; i + 1 < columns; ++i)
      out << styled(padded(row[i], widths[i]), i == 0 ? Style::Bold : style, color) << "  ";
    const std::vector<std::string> lines = wrapped(row[columns - 1], room);
    out << styled(lines[0], style, color) << '\n';
    for (std::size_t i = 1; i < lines.size(); ++i)
      out << std::string(indent, ' ') << styled(lines[i], style, color) << '\n';
  };
  const bool titled =
      std::any_of(titles_.begin(), titles_.end(), [](auto& t) { return !t.empty(); });
  if (titled) print_row(titles_, Style::Dim);
  for (const auto& row : rows_) print_row(row, Style::Plain);
}

}  // namespace oar::cli
