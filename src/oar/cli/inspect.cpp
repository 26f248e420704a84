#include <filesystem>
#include <iostream>
#include <iterator>

#include "oar/base/file.h"
#include "oar/cli/commands.h"
#include "oar/cli/model_commands.h"
#include "oar/cli/terminal.h"
#include "oar/compiler/passes/pass.h"
#include "oar/interop/guess.h"
#include "oar/ir/draw.h"
#include "oar/ir/parse.h"
#include "oar/ir/print.h"

namespace oar::cli {
namespace {

std::string read_all(const std::string& path) {
  if (path == "-") return {std::istreambuf_iterator<char>(std::cin), {}};
  return read_file(path);
}

// Values that the text omits do not matter for showing a program.
Tensor placeholder(const std::string&, const ValueType& type) {
  return Tensor::meta(type.shape, type.dtype);
}

// A line of a program with its op in bold and its types dimmed.
std::string coloured(std::string_view line) {
  std::string out(line);
  const size_t type = line.rfind(") : "), call = line.find(" = ");
  if (type == std::string_view::npos || call == std::string_view::npos) return out;
  const size_t open = line.find('(', call);
  return std::string(line.substr(0, call + 3)) +
         styled(line.substr(call + 3, open - call - 3), Style::Bold, true) +
         std::string(line.substr(open, type + 1 - open)) +
         styled(line.substr(type + 1), Style::Dim, true);
}

// Text that no other format claims may be a program; if not, the parser says what is wrong with it.
bool is_program_text(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return false;
  const interop::FileKind kind = interop::guess_kind(path);
  if (kind != interop::FileKind::Unknown) return kind == interop::FileKind::ProgramText;
  const std::string content = read_file(path);
  return !content.empty() && content.find('\0') == std::string::npos;
}

}  // namespace

int inspect(std::ostream& out, bool color, const InspectQuery& query) {
  if (query.path != "-" && !is_program_text(query.path))
    return describe_file(out, color, {query.path, query.method, query.weights, query.json});
  Program program = interop::naming_file(
      query.path, [&] { return parse_program(read_all(query.path), {placeholder}); });
  if (query.optimise) optimise(program);
  if (!query.svg.empty()) {
    write_file_atomic(query.svg, to_svg(program));
    out << "Drawn to " << query.svg << '\n';
    return 0;
  }
  const std::string text = to_text(program, {.locations = true});
  size_t start = 0;
  while (start < text.size()) {
    const size_t end = text.find('\n', start);
    const std::string_view line = std::string_view(text).substr(start, end - start);
    out << (color ? coloured(line) : std::string(line)) << '\n';
    start = end + 1;
  }
  return 0;
}

}  // namespace oar::cli
