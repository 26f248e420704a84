#include "oar/base/flags.h"

#include <ostream>

#include "oar/base/format.h"
#include "oar/cli/commands.h"
#include "oar/cli/terminal.h"

namespace oar::cli {

int show_flags(std::ostream& out, bool color) {
  const std::size_t width = terminal_width();
  const auto shown = [](std::string_view text) {
    return text.empty() ? std::string_view("\"\"") : text;
  };
  for (const FlagInfo& info : list_flags()) {
    const Flag& flag = info.flag;
    const bool changed = info.value != flag.default_value;
    out << styled(flag.name, Style::Bold, color) << " = "
        << styled(shown(info.value), changed ? Style::Yellow : Style::Plain, color)
        << styled(format("  ({}, default {}, {})", flag.type, shown(flag.default_value), flag.env),
                  Style::Dim, color)
        << '\n';
    for (const std::string& line : wrapped(flag.doc, width - 4)) out << "    " << line << '\n';
  }
  out << "\nSet one by its environment variable, or from Python: oar.set_flags({'log': 'info'}).\n";
  return 0;
}

}  // namespace oar::cli
