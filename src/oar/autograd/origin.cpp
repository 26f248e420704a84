#include "oar/autograd/origin.h"

#include <fstream>

#include "oar/base/format.h"
#include "oar/base/string_util.h"

namespace oar {
namespace {

void set_bits(uint8_t bits, bool on) {
  if (on)
    detail::origins.fetch_or(bits);
  else
    detail::origins.fetch_and(static_cast<uint8_t>(~bits));
}

// As the file has it now; empty if it cannot be read.
std::string source_of(const SourceLine& line) {
  std::ifstream file(line.file);
  std::string text;
  for (int i = 0; i < line.line; ++i)
    if (!std::getline(file, text)) return {};
  const size_t begin = text.find_first_not_of(" \t");
  return begin == std::string::npos ? std::string() : text.substr(begin);
}

}  // namespace

AnomalyMode anomaly_mode() {
  const uint8_t bits = detail::origins.load();
  return {(bits & detail::kLines) != 0, (bits & detail::kCheckNan) != 0};
}

void set_anomaly_mode(AnomalyMode mode) {
  set_bits(detail::kLines, mode.enabled);
  set_bits(detail::kCheckNan, mode.enabled && mode.check_nan);
}

void keep_layers(bool keep) { set_bits(detail::kLayers, keep); }

Origin current_origin() {
  Origin made{.layer = current_layer(), .lines = {}};
  if (!(detail::origins.load(std::memory_order_relaxed) & detail::kLines)) return made;
  if (const auto lines = host_language().current_lines) made.lines = lines();
  return made;
}

std::string Origin::text() const {
  std::string text;
  if (!lines.empty()) text += "The forward call was made at";
  for (const SourceLine& line : lines) {
    text += format("\n  {}:{}", line.file, line.line);
    if (const std::string source = source_of(line); !source.empty()) text += "  " + source;
  }
  if (layer == 0) return text;
  return text + (text.empty() ? "The forward call was made" : "\n ") +
         format(" in the layer {}", to_string(layer));
}

}  // namespace oar
