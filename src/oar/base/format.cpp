// The only file that compiles fmt's formatting, header-only, so that no fmt library is linked.
#define FMT_HEADER_ONLY 1
#include "oar/base/format.h"

#include <fmt/format.h>

namespace oar {

std::string vformat(std::string_view text, fmt::format_args args) {
  try {
    return fmt::vformat(fmt::string_view(text.data(), text.size()), args);
  } catch (const fmt::format_error& error) {
    // Format strings are checked at compile time, so this is rare (a null char*). The text is mostly
    // an error message, which must not be replaced by one about formatting.
    return std::string(text) + " (" + error.what() + ")";
  }
}

}  // namespace oar
