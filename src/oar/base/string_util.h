// Small helpers on text.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "oar/base/api.h"

namespace OAR_API oar {

// The views returned by split and trim point into the argument.
std::vector<std::string_view> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string to_lower(std::string_view text);
std::string to_upper(std::string_view text);

// Joins strings, or anything with a to_string (std's or its own).
template <class Range>
std::string join(const Range& items, std::string_view separator) {
  using std::to_string;
  std::string out;
  bool first = true;
  for (const auto& item : items) {
    if (!first) {
      out += separator;
    }
    first = false;
    if constexpr (std::is_convertible_v<decltype(item), std::string_view>) {
      out += std::string_view(item);
    } else {
      out += to_string(item);
    }
  }
  return out;
}

// Insertions, deletions, substitutions and swaps of neighbours that turn a into b.
int edit_distance(std::string_view a, std::string_view b);

// The candidate that name was probably meant to be, ignoring case; empty if none is near.
std::string nearest_name(std::string_view name, std::span<const std::string_view> candidates);
std::string nearest_name(std::string_view name, std::span<const std::string> candidates);

}  // namespace oar
