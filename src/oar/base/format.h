// Text formatting: oar::format("{} of {}", i, n). Format strings are checked at compile time.
//
// Only fmt's core header is seen here: the formatting itself is compiled once, in format.cpp, which
// keeps the cost of this header small and needs no fmt library at link time.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <type_traits>

#include "oar/base/api.h"

namespace OAR_RUNTIME_API oar {

std::string vformat(std::string_view text, fmt::format_args args);

template <class... A>
std::string format(fmt::format_string<A...> text, A&&... args) {
  const fmt::string_view view = text;
  return oar::vformat({view.data(), view.size()}, fmt::make_format_args(args...));
}

namespace detail {

// A class or enum of ours that has a free function to_string next to it. Strings are
// left to fmt.
template <class T>
concept HasToString = (std::is_class_v<T> || std::is_enum_v<T>) &&
                      !std::is_convertible_v<const T&, fmt::string_view> &&
                      requires(const T& value) { std::string(to_string(value)); };

template <class T>
concept HasToStringOrIsEnum = HasToString<T> || std::is_enum_v<T>;

}  // namespace detail
}  // namespace oar

// What has a to_string prints as that; any other enum prints as its number.
template <class T>
  requires oar::detail::HasToStringOrIsEnum<T>
struct fmt::formatter<T, char> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }

  template <class Context>
  auto format(const T& value, Context& context) const {
    std::string text;
    if constexpr (oar::detail::HasToString<T>) {
      text = std::string(to_string(value));
    } else {
      text = std::to_string(+static_cast<std::underlying_type_t<T>>(value));
    }
    return std::copy(text.begin(), text.end(), context.out());
  }
};
