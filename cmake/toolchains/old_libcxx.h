// Parts of C++20's standard library that emscripten's may lack. The wasm preset includes it before every file.
#pragma once

#ifdef __cplusplus
#include <algorithm>
#include <bit>
#include <charconv>
#include <compare>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <iterator>
#include <string>
#include <version>

#if !defined(__cpp_lib_bit_cast)
namespace std {
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  return __builtin_bit_cast(To, from);
}
}  // namespace std
#endif

#if !defined(__cpp_lib_three_way_comparison)
namespace std {
struct compare_three_way {
  template <class A, class B>
  constexpr auto operator()(const A& a, const B& b) const {
    return a <=> b;
  }
};
template <class T>
concept three_way_comparable = requires(const T& a, const T& b) { a <=> b; };
template <class A, class B>
constexpr auto lexicographical_compare_three_way(A a, A a_end, B b, B b_end)
    -> decltype(*a <=> *b) {
  for (; a != a_end && b != b_end; ++a, ++b)
    if (const auto order = *a <=> *b; order != 0) return order;
  return a != a_end   ? strong_ordering::greater
         : b != b_end ? strong_ordering::less
                      : strong_ordering::equal;
}
}  // namespace std
#endif

#if !defined(__cpp_lib_to_chars)
namespace std {
// Of what the C library reads, only what begins with a digit, a point or a minus is a number here.
inline from_chars_result from_chars(const char* first, const char* last, double& value) {
  const string text(first, last);
  if (text.empty() || text[0] == '+' || text[0] == ' ') return {first, errc::invalid_argument};
  char* end = nullptr;
  const double read = strtod(text.c_str(), &end);
  if (end == text.c_str()) return {first, errc::invalid_argument};
  const char* const behind = first + (end - text.c_str());
  if (read == __builtin_inf() && text.find_first_of("iI") == string::npos)
    return {behind, errc::result_out_of_range};
  value = read;
  return {behind, errc()};
}
}  // namespace std
#endif

#if !defined(__cpp_lib_ranges)
namespace std::ranges {
template <class Range, class Projection>
void sort(Range& range, std::less<>, Projection of) {
  std::sort(begin(range), end(range),
            [&](const auto& a, const auto& b) { return invoke(of, a) < invoke(of, b); });
}
}  // namespace std::ranges
#endif
#endif
