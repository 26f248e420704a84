// Parts of C++20's standard library that emscripten's may lack. The wasm preset includes it before every file.
#pragma once

#ifdef __cplusplus
#include <algorithm>
#include <bit>
#include <compare>
#include <concepts>
#include <cstddef>
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
#endif
